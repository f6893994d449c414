"""The width of a page off a terminal: 120 columns, or the variable COLUMNS."""

from __future__ import annotations

from pathlib import Path

import pytest

from hlo_inspect.cli.main import run
from hlo_inspect.report.layout import cell_width

DATA = Path(__file__).parents[1] / "data"
DUMPS = ("cpu/adamw_step.after.txt", "gpu/collectives.after.txt", "tpu/bf16_master.after.txt", "cpu/adamw_step.before.txt")
COMMANDS = ("summary", "params", "collectives", "fusions", "cost", "top", "memory", "optimizer", "custom-calls", "time")


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("dump", DUMPS)
def test_no_line_is_wider_than_120(
    command: str, dump: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    run([command, str(DATA / dump)])
    assert max(map(cell_width, capsys.readouterr().out.splitlines())) <= 120


@pytest.mark.parametrize(("value", "width"), [("100", 100), ("0", 120), ("wide", 120), ("-5", 120)])
def test_columns_set_the_width_and_wrong_ones_do_not(
    value: str, width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", value)
    run(["summary", str(DATA / "cpu/adamw_step.after.txt")])
    widest = max(map(cell_width, capsys.readouterr().out.splitlines()))
    assert width - 20 <= widest <= width

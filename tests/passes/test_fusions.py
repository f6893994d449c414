"""The tables of the command `fusions` in a summary."""

from __future__ import annotations

from pathlib import Path

import pytest

import hlo_inspect
from tests.cases.case import FOLDER, cases_of

DATA = Path(__file__).parents[1] / "data"
TEXTS = [next(cases_of(FOLDER / f"passes/fusions/{name}.hlo")).text for name in ("nested", "step")]


@pytest.mark.parametrize("name", ["fusions_by_kind", "custom_calls_by_target"])
@pytest.mark.parametrize("text", [*TEXTS, DATA / "jax_0_5_0" / "scan_fsdp.after.txt", DATA / "cpu" / "collectives.before.txt"])
def test_the_summary_shows_them_as_fusions_does(text: str | Path, name: str) -> None:
    """In all columns, those that a narrow page leaves out among them."""
    page = hlo_inspect.inspect(text, ("summary",))
    alone = hlo_inspect.inspect(text, ("fusions",)).table(name)
    shown = [table.flat() for table in page.tables if table.name == name]
    assert [(summary_table.columns, summary_table.rows, summary_table.total) for summary_table in shown] == [
        (alone.columns, alone.rows, alone.total)
    ][: len(alone.rows)]

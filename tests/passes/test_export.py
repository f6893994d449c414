"""The report of `export`: facts, tables and first lines. The files are tested in `tests/export`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import hlo_inspect
from hlo_inspect.errors import UsageError
from hlo_inspect.report.model import Report

DATA = Path(__file__).parents[1] / "data"
COLLECTIVES, SCAN = DATA / "gpu/collectives.after.txt", DATA / "cpu/scan_fsdp.after.txt"


def report(path: Path, **options: Any) -> Report:
    return hlo_inspect.inspect(path, "export", simulator="chakra", **options)


def test_facts_of_one_call_of_each_collective() -> None:
    """`collectives` of `tests/data/programs.py`: rows of 128 x 16 floats over 8 devices are 1,024 bytes each."""
    facts = report(COLLECTIVES).facts
    figures = {
        name.removeprefix("export."): facts[name] for name in facts if name.startswith("export.") and facts[name] is not None
    }
    assert figures == {
        "ranks": 8,
        "files": 8,
        "nodes": figures["nodes"],
        "not_expressed_count": 0,
        "all-reduce.executed_count": 3,
        "all-reduce.executed_operand_bytes": 2 * 8 * 8 * 4 + 4,
        "all-gather.executed_count": 1,
        "all-gather.executed_operand_bytes": 1024,
        "reduce-scatter.executed_count": 1,
        "reduce-scatter.executed_operand_bytes": 1024,
        "all-to-all.executed_count": 1,
        "all-to-all.executed_operand_bytes": 1024,
        "collective-permute.executed_count": 1,
        "collective-permute.executed_operand_bytes": 1024,
        "collective-broadcast.executed_count": 0,
        "collective-broadcast.executed_operand_bytes": 0,
        "collective-reduce.executed_count": 0,
        "collective-reduce.executed_operand_bytes": 0,
        "ragged-all-to-all.executed_count": 0,
        "ragged-all-to-all.executed_operand_bytes": 0,
    }


def test_facts_count_every_iteration_of_a_loop() -> None:
    """The loops of `scan_fsdp` run 3 times, forward and backward (`tests/test_contract.py`)."""
    facts = report(SCAN).facts
    assert facts["export.all-gather.executed_count"] == 2 * 3
    assert facts["export.reduce-scatter.executed_operand_bytes"] == 3 * 256


def test_rows_add_up_to_the_facts() -> None:
    own = report(COLLECTIVES)
    rows = own.table("export").records()
    assert [row["axis"] for row in rows if row["kind"] == "all-reduce"] == ["d1", "d0", "d0,d1"]
    assert own.table("export").total == (None, None, None, 7, 4 * 1024 + 516)


def test_first_lines_are_for_a_review() -> None:
    page = str(report(COLLECTIVES, profile="h100-sxm"))
    assert "execution traces for ASTRA-sim 2: 8 ranks, 17 nodes each, 8 distinct files, 6 groups" in page
    assert "9 nodes of 9 kernel runs: 9.00 µs on h100-sxm" in page
    assert "not expressed  nothing" in page


def test_an_export_needs_a_simulator() -> None:
    with pytest.raises(UsageError, match="export needs --to"):
        hlo_inspect.inspect(COLLECTIVES, "export")

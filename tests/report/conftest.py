"""The report that the tests of all formats share, with awkward values of dumps, and its golden files.

`HLO_INSPECT_REWRITE_GOLDEN=1 pytest tests/report` writes the golden files anew; read their differences before keeping them.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from hlo_inspect.errors import Location
from hlo_inspect.report.formats import FORMATS, RenderOptions
from hlo_inspect.report.model import Finding, Input, Report
from hlo_inspect.report.table import Column, Plain, Row, Table, TablePlace

GOLDEN = Path(__file__).parent / "golden"
PATH = "dumps/module_0042.jit_train_step.after_optimizations.txt"

FACTS: dict[str, Plain] = {
    "module.name": "jit_train_step.[bold]42",
    "module.is_scheduled": True,
    "module.num_partitions": 8,
    "module.replica_count": 1,
    "module.shapes": "per_device",
    "module.devices": 8,
    "module.unparsed_lines": 0,
    "params.bytes": 194152460,
    "collectives.count": 25,
    "collectives.executed_count": None,
    "optimizer.learning_rate": 0.001,
    "optimizer.nesterov": False,
    "optimizer.clip_norm": float("inf"),
}

NOTES = (
    "collectives.executed_count: the trip count of while.7 (line 812) depends on a parameter",
    "collectives: wire bytes of ragged-all-to-all.19 depend on values",
)


def _buffers() -> Table:
    columns = (Column("buffer"), Column("count", "count", summed=True), Column("bytes", "bytes", summed=True))
    rows: tuple[Row, ...] = (("donated", 290, 193986560), ("not donated", 3, 165388), ("unused", 1, 512))
    return Table("buffers", "Parameters", columns, rows, place=TablePlace("parameters", "Parameters", "sums", 4))


def _opcodes() -> Table:
    columns = (Column("opcode"), Column("count", "count", summed=True), Column("flops", "flops", summed=True))
    rows: tuple[Row, ...] = (("fusion", 1234, 0), ("dot", 97, 631400000000), ("custom-call", 4, None))
    return Table("opcodes", "Instructions", columns, rows, place=TablePlace("program", ""))


def _custom_calls() -> Table:
    return Table("custom_calls", "Custom calls", (Column("target"), Column("count", "count", summed=True)), ())


def _collectives() -> Table:
    """Return 25 collectives: operand bytes 2, 4, … 50 MiB; the 20th is ragged, so its wire bytes are unknown."""
    columns = (
        Column("name"),
        Column("kind"),
        Column("operand_bytes", "bytes", summed=True),
        Column("wire_bytes", "bytes", summed=True, detail=1),
        Column("replica_groups", detail=5),
        Column("channel_id", "number", detail=6),
        Column("is_async", "bool", detail=3),
        Column("op_name", detail=2),
        Column("line", "number", detail=4),
        Column("form", detail=9),
    )
    rows = tuple(_collective(number) for number in range(25))
    return Table("collectives", "Collectives", columns, rows, place=TablePlace("collectives", "Collectives", "single", 1))


def _collective(number: int) -> Row:
    kind = "ragged-all-to-all" if number == 19 else ("all-reduce", "all-gather", "reduce-scatter")[number % 3]
    name = {3: "[bold]all-reduce.3[/]", 4: "=all|gather.4", 5: "scatter\x1b[31m.5"}.get(number, f"{kind}.{number}")
    return (
        name,
        kind,
        (number + 1) * 2 * 2**20,
        None if number == 19 else (number + 1) * 2**20,
        "{{0,1,2,3},{4,5,6,7}}" if number % 2 else "[2,4]<=[8]",
        number + 1,
        number % 2 == 0,
        f"jit(train_step)/jit(main)/transpose(jvp(decoder))/layer_{number}/attention/dot_general",
        700 + number,
        "start/done" if number % 2 == 0 else "plain",
    )


def _findings() -> tuple[Finding, ...]:
    return (
        Finding("HI001", "error", "1 line could not be read", Location(PATH, 61, 3)),
        Finding(
            "HI101",
            "warning",
            "parameter 17 `params['w|o']` (f32[4096,4096], 64 MiB) is replaced by an output of its shape but is not donated",
            Location(PATH, 61, 3),
            "Arg_17.18",
            67108864,
        ),
        Finding("HI204", "warning", "25 collectives wait at once", Location("-", 9)),
        Finding("HI104", "info", "parameter 3 is replicated; ask @embedding-team"),
        Finding("HI501", "info", "the loop while.7 has no known trip count", Location(PATH, 812)),
    )


@pytest.fixture(scope="session")
def sample() -> Report:
    return Report(
        command="summary",
        input=Input(PATH, first_line=4, lines=9120, bytes=1258291),
        facts=FACTS,
        tables=(_buffers(), _opcodes(), _custom_calls(), _collectives()),
        findings=_findings(),
        notes=NOTES,
        profile="nvidia-h100",
    )


@pytest.fixture(scope="session")
def rendered() -> Callable[..., str]:
    """Return `rendered`, such that `rendered("csv", report, …, top=3)` is the output of that format."""

    def render(name: str, *reports: Report, **options: Any) -> str:
        stream = StringIO()
        FORMATS[name](reports, stream, RenderOptions(**options))
        return stream.getvalue()

    return render


@pytest.fixture
def same_as_golden() -> Callable[[str, str], None]:
    def compare(name: str, text: str) -> None:
        path = GOLDEN / name
        if os.environ.get("HLO_INSPECT_REWRITE_GOLDEN"):
            path.write_text(text, encoding="utf-8", newline="\n")
        assert text == path.read_text(encoding="utf-8")

    return compare

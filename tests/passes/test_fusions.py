"""The command `fusions`: kinds, roots, content, the largest first, custom calls by target."""

from __future__ import annotations

from pathlib import Path

import pytest

import hlo_inspect
from hlo_inspect.report.model import Report, Value

DATA = Path(__file__).parents[1] / "data"

TEXT = """HloModule m

%inner (a: f32[4]) -> f32[4] {
  %a = f32[4]{0} parameter(0)
  ROOT %b = f32[4]{0} negate(%a)
}

%outer (a: f32[4]) -> (f32[4], f32[4]) {
  %a = f32[4]{0} parameter(0)
  %in = f32[4]{0} fusion(%a), kind=kLoop, calls=%inner
  %c = f32[4]{0} exponential(%in)
  ROOT %t = (f32[4]{0}, f32[4]{0}) tuple(%in, %c)
}

%big (x: f32[100]) -> f32[100] {
  %x = f32[100]{0} parameter(0)
  ROOT %y = f32[100]{0} negate(%x)
}

ENTRY %main (p: f32[4], q: f32[100]) -> f32[100] {
  %p = f32[4]{0} parameter(0)
  %q = f32[100]{0} parameter(1)
  %two = (f32[4]{0}, f32[4]{0}) fusion(%p), kind=kInput, calls=%outer, metadata={op_name="exp" source_file="a.py" source_line=9}
  %call = f32[4]{0} custom-call(%p), custom_call_target="gemm"
  %call.1 = f32[4]{0} custom-call(%p, %call), custom_call_target="gemm"
  %mark = f32[4]{0} custom-call(%p), custom_call_target="mark"
  %loop = f32[100]{0} fusion(%q), kind=kLoop, calls=%big
  ROOT %last = f32[100]{0} fusion(%loop), kind=kLoop, calls=%big
}
"""


@pytest.fixture(scope="module")
def report() -> Report:
    return hlo_inspect.inspect(TEXT, ("fusions",))


def rows(report: Report, table: str, *names: str) -> list[tuple[Value, ...]]:
    found = report.table(table)
    indexes = [[column.name for column in found.columns].index(name) for name in names]
    return [tuple(row[index] for index in indexes) for row in found.rows]


def test_facts(report: Report) -> None:
    facts = {name: value for name, value in report.facts.items() if not name.startswith("module.")}
    assert facts == {
        "fusions.count": 4,
        "fusions.kind.kCustom": 0,
        "fusions.kind.kInput": 1,
        "fusions.kind.kLoop": 3,
        "fusions.kind.kOutput": 0,
        "fusions.multi_output_count": 1,
        "custom_calls.count": 3,
        "custom_calls.target.gemm": 2,
        "custom_calls.target.mark": 1,
    }


def test_the_largest_come_first(report: Report) -> None:
    names = ("name", "kind", "root", "instructions", "outputs", "operand_bytes", "result_bytes", "computation", "line")
    assert rows(report, "fusions", *names) == [
        ("loop", "kLoop", "negate", 2, 1, 400, 400, "main", 27),
        ("last", "kLoop", "negate", 2, 1, 400, 400, "main", 28),
        ("two", "kInput", "tuple", 4, 2, 16, 32, "main", 23),
        ("in", "kLoop", "negate", 2, 1, 16, 16, "outer", 10),
    ]
    assert rows(report, "fusions", "op_name", "source")[2] == ("exp", "a.py:9")


def test_by_kind(report: Report) -> None:
    assert rows(
        report, "fusions_by_kind", "kind", "count", "multi_output", "instructions", "operand_bytes", "result_bytes"
    ) == [
        ("kLoop", 3, 0, 6, 816, 816),
        ("kInput", 1, 1, 4, 16, 32),
    ]
    assert report.table("fusions_by_kind").total == (None, 4, 1, 10, 832, 848)


def test_by_root(report: Report) -> None:
    assert rows(report, "fusions_by_root", "kind", "root", "count") == [("kLoop", "negate", 3), ("kInput", "tuple", 1)]


def test_the_content_of_each_fused_computation_counts_once(report: Report) -> None:
    """`%big` is called twice, and holds its two instructions once."""
    assert sorted(rows(report, "fusion_content", "opcode", "count")) == [
        ("exponential", 1),
        ("fusion", 1),
        ("negate", 2),
        ("parameter", 3),
        ("tuple", 1),
    ]


def test_custom_calls_by_target(report: Report) -> None:
    names = ("target", "count", "operand_bytes", "result_bytes")
    assert rows(report, "custom_calls", *names) == [("gemm", 2, 48, 32), ("mark", 1, 16, 16)]


def test_a_computation_that_is_not_in_the_text() -> None:
    text = TEXT.replace("calls=%big", "calls=%gone")
    found = hlo_inspect.inspect(text, ("fusions",))
    assert rows(found, "fusions", "name", "root", "instructions")[:2] == [("loop", None, None), ("last", None, None)]
    assert found.table("fusions_by_kind").rows[0][3] is None
    assert found.facts["fusions.count"] == 4


def test_no_fusions() -> None:
    found = hlo_inspect.inspect(DATA / "handmade/headerless.txt", ("fusions",))
    assert (found.facts["fusions.count"], found.facts["custom_calls.count"]) == (0, 0)
    assert {len(table.rows) for table in found.tables} == {0}

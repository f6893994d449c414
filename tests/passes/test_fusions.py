"""The command `fusions`: kinds, roots, content, the largest first, custom calls by target."""

from __future__ import annotations

from pathlib import Path

import pytest

import hlo_inspect
from hlo_inspect.report.model import Report
from tests.tables import columns, totals

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
        "custom_calls.marker_count": 0,
        "custom_calls.target.gemm": 2,
        "custom_calls.target.mark": 1,
    }


def test_the_largest_come_first(report: Report) -> None:
    names = ("name", "kind", "root", "instructions", "outputs", "operand_bytes", "result_bytes", "computation", "line")
    assert columns(report.table("fusions"), *names) == [
        ("loop", "kLoop", "negate", 2, 1, 400, 400, "main", 27),
        ("last", "kLoop", "negate", 2, 1, 400, 400, "main", 28),
        ("two", "kInput", "tuple", 4, 2, 16, 32, "main", 23),
        ("in", "kLoop", "negate", 2, 1, 16, 16, "outer", 10),
    ]
    assert columns(report.table("fusions"), "op_name", "source")[2] == ("exp", "a.py:9")


def test_by_kind(report: Report) -> None:
    """Each run of %big reads and writes 400 bytes; %outer reads 16 and writes 32, the fusion in it none by itself."""
    names = ("kind", "count", "multi_output", "runs", "bytes", "instructions", "operand_bytes", "result_bytes")
    assert columns(report.table("fusions_by_kind"), *names) == [
        ("kLoop", 3, 0, 3, 1600, 6, 816, 816),
        ("kInput", 1, 1, 1, 48, 4, 16, 32),
    ]
    sums = totals(report.table("fusions_by_kind"))
    assert (sums["count"], sums["runs"], sums["bytes"]) == (4, 4, 1648)


IN_A_LOOP = """HloModule m, is_scheduled=true

%big (x: f32[100]) -> f32[100] {
  %x = f32[100]{0} parameter(0)
  ROOT %y = f32[100]{0} negate(%x)
}

%body (s: (s32[], f32[100])) -> (s32[], f32[100]) {
  %s = (s32[], f32[100]{0}) parameter(0)
  %i = s32[] get-tuple-element(%s), index=0
  %v = f32[100]{0} get-tuple-element(%s), index=1
  %one = s32[] constant(1)
  %next = s32[] add(%i, %one)
  %f = f32[100]{0} fusion(%v), kind=kLoop, calls=%big
  %g = f32[100]{0} custom-call(%f), custom_call_target="pipeline_marker"
  ROOT %t = (s32[], f32[100]{0}) tuple(%next, %g)
}

%condition (s: (s32[], f32[100])) -> pred[] {
  %s = (s32[], f32[100]{0}) parameter(0)
  %i = s32[] get-tuple-element(%s), index=0
  %five = s32[] constant(5)
  ROOT %less = pred[] compare(%i, %five), direction=LT
}

ENTRY %main (p: f32[100]) -> (s32[], f32[100]) {
  %p = f32[100]{0} parameter(0)
  %zero = s32[] constant(0)
  %begin = (s32[], f32[100]{0}) tuple(%zero, %p)
  ROOT %w = (s32[], f32[100]{0}) while(%begin), condition=%condition, body=%body
}
"""


def test_the_summary_shows_what_fusions_and_custom_calls_do_in_one_step() -> None:
    """A loop of 5: 5 x 800 bytes of the fusion; a marker moves nothing."""
    page = hlo_inspect.inspect(IN_A_LOOP, ("summary",))
    assert columns(page.table("fusions_by_kind"), "kind", "count", "runs", "bytes") == [("kLoop", 1, 5, 4000)]
    assert columns(page.table("custom_calls_by_target"), "target", "count", "runs", "bytes") == [("pipeline_marker", 1, 5, 0)]


def test_without_costs_the_summary_says_that_it_counts_what_is_printed() -> None:
    page = hlo_inspect.inspect(IN_A_LOOP, ("summary",), quick=True)
    for name, label in (("fusions_by_kind", "kLoop"), ("custom_calls_by_target", "pipeline_marker")):
        table = page.table(name)
        assert table.title.endswith(", each site once")
        assert table.rows[0][:2] == (label, 1)
        assert all(column.unit != "bytes" for column in table.columns)


def test_by_root(report: Report) -> None:
    assert columns(report.table("fusions_by_root"), "kind", "root", "count") == [("kLoop", "negate", 3), ("kInput", "tuple", 1)]


def test_the_content_of_each_fused_computation_counts_once(report: Report) -> None:
    """`%big` is called twice, and holds its two instructions once."""
    assert sorted(columns(report.table("fusion_content"), "opcode", "count")) == [
        ("exponential", 1),
        ("fusion", 1),
        ("negate", 2),
        ("parameter", 3),
        ("tuple", 1),
    ]


def test_custom_calls_by_target(report: Report) -> None:
    """The first gemm has an operand of 16 bytes, the other two; each has a result of 16."""
    names = ("target", "count", "runs", "bytes", "operand_bytes", "result_bytes")
    assert columns(report.table("custom_calls_by_target"), *names) == [("gemm", 2, 2, 80, 48, 32), ("mark", 1, 1, 32, 16, 16)]


@pytest.mark.parametrize("name", ["fusions_by_kind", "custom_calls_by_target"])
@pytest.mark.parametrize(
    "text", [TEXT, IN_A_LOOP, DATA / "jax_0_5_0" / "scan_fsdp.after.txt", DATA / "cpu" / "collectives.before.txt"]
)
def test_the_summary_shows_them_as_fusions_does(text: str | Path, name: str) -> None:
    """In all columns, those that a narrow page leaves out among them."""
    page = hlo_inspect.inspect(text, ("summary",))
    alone = hlo_inspect.inspect(text, ("fusions",)).table(name)
    shown = [table.flat() for table in page.tables if table.name == name]
    assert [(summary_table.columns, summary_table.rows, summary_table.total) for summary_table in shown] == [
        (alone.columns, alone.rows, alone.total)
    ][: len(alone.rows)]


def test_a_computation_that_is_not_in_the_text() -> None:
    text = TEXT.replace("calls=%big", "calls=%gone")
    report = hlo_inspect.inspect(text, ("fusions",))
    names = ("name", "root", "instructions", "bytes")
    assert columns(report.table("fusions"), *names)[1:3] == [("loop", None, None, None), ("last", None, None, None)]
    assert columns(report.table("fusions_by_kind"), "kind", "instructions", "bytes")[0] == ("kInput", 4, 48)
    assert columns(report.table("fusions_by_kind"), "kind", "instructions", "bytes")[1] == ("kLoop", None, None)
    assert report.facts["fusions.count"] == 4


def test_no_fusions() -> None:
    report = hlo_inspect.inspect(DATA / "handmade/headerless.txt", ("fusions",))
    assert (report.facts["fusions.count"], report.facts["custom_calls.count"]) == (0, 0)
    assert {len(table.rows) for table in report.tables} == {0}


def test_costs_of_fusions_are_those_of_one_step(report: Report) -> None:
    """A fusion inside of another costs nothing by itself: its four FLOPs are the outer one's."""
    assert columns(report.table("fusions"), "name", "runs", "flops", "bytes") == [
        ("loop", 1, 100, 800),
        ("last", 1, 100, 800),
        ("two", 1, 4, 16 + 32),
        ("in", 1, 0, 0),
    ]


def test_equal_fusions_share_a_row(report: Report) -> None:
    assert report.table("fusions").page_as == "fusion_groups"
    assert columns(report.table("fusion_groups"), "name", "sites", "runs", "flops", "bytes") == [
        ("* × 2", 2, 2, 200, 1600),
        ("two", 1, 1, 4, 48),
        ("in", 1, 1, 0, 0),
    ]


SCAN = """HloModule scan

%write (x: f32[64,1024], u: f32[1024], i: s32[]) -> f32[64,1024] {
  %x = f32[64,1024]{1,0} parameter(0)
  %u = f32[1024]{0} parameter(1)
  %i = s32[] parameter(2)
  %zero = s32[] constant(0)
  %row = f32[1,1024]{1,0} reshape(%u)
  ROOT %d = f32[64,1024]{1,0} dynamic-update-slice(%x, %row, %i, %zero)
}

%double (u: f32[16384]) -> f32[16384] {
  %u = f32[16384]{0} parameter(0)
  ROOT %d = f32[16384]{0} add(%u, %u)
}

%body (s: (s32[], f32[64,1024], f32[1024], f32[16384])) -> (s32[], f32[64,1024], f32[1024], f32[16384]) {
  %s = (s32[], f32[64,1024]{1,0}, f32[1024]{0}, f32[16384]{0}) parameter(0)
  %i = s32[] get-tuple-element(%s), index=0
  %x = f32[64,1024]{1,0} get-tuple-element(%s), index=1
  %u = f32[1024]{0} get-tuple-element(%s), index=2
  %v = f32[16384]{0} get-tuple-element(%s), index=3
  %in_place = f32[64,1024]{1,0} fusion(%x, %u, %i), kind=kLoop, calls=%write
  %whole = f32[16384]{0} fusion(%v), kind=kLoop, calls=%double
  ROOT %t = (s32[], f32[64,1024]{1,0}, f32[1024]{0}, f32[16384]{0}) tuple(%i, %in_place, %u, %whole)
}

%condition (s: (s32[], f32[64,1024], f32[1024], f32[16384])) -> pred[] {
  %s = (s32[], f32[64,1024]{1,0}, f32[1024]{0}, f32[16384]{0}) parameter(0)
  ROOT %c = pred[] constant(false)
}

ENTRY %main (p: (s32[], f32[64,1024], f32[1024], f32[16384])) -> (s32[], f32[64,1024], f32[1024], f32[16384]) {
  %p = (s32[], f32[64,1024]{1,0}, f32[1024]{0}, f32[16384]{0}) parameter(0)
  ROOT %w = (s32[], f32[64,1024]{1,0}, f32[1024]{0}, f32[16384]{0}) while(%p), condition=%condition, body=%body, CONFIG
}
""".replace("CONFIG", 'backend_config={"known_trip_count":{"n":"64"}}')


def test_updates_in_place_count_the_written_part() -> None:
    """64 runs: a row of 4 KiB is read and written, with an index and a constant; 64 KiB are read and written.

    The arrays of the first are larger: 256 KiB twice.
    """
    report = hlo_inspect.inspect(SCAN, "fusions")
    assert columns(report.table("fusions"), "name", "runs", "bytes", "operand_bytes", "result_bytes") == [
        ("whole", 64, 64 * 2 * 65_536, 65_536, 65_536),
        ("in_place", 64, 64 * (2 * 4096 + 4), 262_144 + 4096 + 4, 262_144),
    ]


def test_without_the_entry_nothing_is_known_of_a_step() -> None:
    fused = "fused {\n  p = f32[8] parameter(0)\n  ROOT n = f32[8] negate(p)\n}"
    calling = "calling {\n  q = f32[8] parameter(0)\n  ROOT f = f32[8] fusion(q), kind=kLoop, calls=fused\n}"
    report = hlo_inspect.inspect(f"HloModule m\n\n{fused}\n\n{calling}\n\nother {{\n  p = f32[8]", "fusions")
    assert columns(report.table("fusions"), "runs", "flops", "bytes") == [(None, None, None)]
    assert columns(report.table("fusions_by_kind"), "kind", "runs", "flops", "bytes") == [("kLoop", None, None, None)]

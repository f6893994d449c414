"""The command `cost`: totals as XLA has them, one run with its loops, tables that add up, what is unknown."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path

import pytest

import hlo_inspect
from hlo_inspect.passes.cost import Cost
from hlo_inspect.report.facts import find_spec
from hlo_inspect.report.formats import FORMATS, RenderOptions
from hlo_inspect.report.model import Report
from hlo_inspect.report.table import LOWER_BOUND, Value
from tests.tables import columns
from tests.xla_sizes import count_tuples_as

DATA = Path(__file__).parents[1] / "data"
EXPECTED = json.loads((DATA / "expected.json").read_text(encoding="utf-8"))
DUMPS = {name: dump["facts"] for name, dump in EXPECTED["dumps"].items() if "cost.flops" in dump["facts"]}

# The cost depends on omitted text: names are not unique, or operands have none.
UNTOLD = {
    "prints/no_ids.txt": ("cost.flops", "cost.transcendentals", "cost.bytes_accessed"),
    "prints/no_operand_names.txt": ("cost.bytes_accessed",),
}

TEXT = """HloModule train

%body (s: (s32[], f32[4,4])) -> (s32[], f32[4,4]) {
  %s = (s32[], f32[4,4]{1,0}) parameter(0)
  %i = s32[] get-tuple-element(%s), index=0
  %x = f32[4,4]{1,0} get-tuple-element(%s), index=1
  %one = s32[] constant(1)
  %next = s32[] add(%i, %one)
  %y = f32[4,4]{1,0} dot(%x, %x), lhs_contracting_dims={1}, metadata={source_file="net.py" source_line=5}
  ROOT %t = (s32[], f32[4,4]{1,0}) tuple(%next, %y)
}

%condition (s: (s32[], f32[4,4])) -> pred[] {
  %s = (s32[], f32[4,4]{1,0}) parameter(0)
  %i = s32[] get-tuple-element(%s), index=0
  %limit = s32[] constant(3)
  ROOT %c = pred[] compare(%i, %limit), direction=LT
}

ENTRY %main (p: f32[4,4]) -> f32[4,4] {
  %p = f32[4,4]{1,0} parameter(0)
  %zero = s32[] constant(0)
  %start = (s32[], f32[4,4]{1,0}) tuple(%zero, %p)
  %loop = (s32[], f32[4,4]{1,0}) while(%start), condition=%condition, body=%body
  %z = f32[4,4]{1,0} get-tuple-element(%loop), index=1
  %mark = f32[4,4]{1,0} custom-call(%z), custom_call_target="[bold]mark"
  %gemm = f32[4,4]{1,0} custom-call(%mark, %z), custom_call_target="__cublas$gemm", CONFIG
  ROOT %e = f32[4,4]{1,0} exponential(%gemm), metadata={op_name="jit(f)/jvp(net)/exp" source_file="net.py" source_line=9}
}
""".replace("CONFIG", 'backend_config={"dot_dimension_numbers":{"lhs_contracting_dimensions":["1"]}}')
WITH_MARKER = TEXT.replace("[bold]mark", "pipeline_marker")
"""The same program without a call of unknown work."""
DOT, SQUARE = 2 * 16 * 4, 64
"""FLOPs of a product of two 4×4 matrices, and the bytes of one."""
BODY, CONDITION = 12 + 3 * SQUARE + 8, 4 + 4 + 1
"""Bytes of one run: an addition of two numbers, the product, two pointers; a comparison."""
TOTAL = (3 + 4 + 4 * DOT, 16, 4 * DOT, 16 * SQUARE + 36 + 36 + 4 * 8)
"""The figures of a run: FLOPs, transcendentals, FLOPs of matrix products, bytes."""
POINTERS = 4 * 8
"""Bytes of the tables of tuples in it, which no kernel moves."""
FLOAT8 = ("f8e4m3", "f8e4m3b11fnuz", "f8e4m3fn", "f8e4m3fnuz", "f8e5m2", "f8e5m2fnuz")
OTHER_TYPES = ("bf16", "c64", "c128", "f16", "f64", "f4e2m1fn", *FLOAT8, "mixed", "s4", "s8", "u8", "s32")
FIGURES = ("flops", "transcendentals", "matmul_flops", "bytes_accessed")
TABLES = ("cost", "cost_by_fusion_kind", "cost_by_phase", "cost_by_scope", "cost_by_source")


def inspect(source: str | Path, profile: str | None = None) -> Report:
    return hlo_inspect.inspect(source, passes=["cost"], profile=profile)


def facts(source: str | Path) -> dict[str, Value]:
    return {name: value for name, value in inspect(source).facts.items() if name.startswith("cost.")}


def rows(report: Report, table: str, *names: str) -> dict[Value, tuple[Value, ...]]:
    """Return the columns of that name of each row, by its label."""
    cost_table = report.table(table)
    return {row[0]: values for row, values in zip(cost_table.rows, columns(cost_table, *(names or FIGURES)), strict=True)}


def totals(report: Report, table: str, *names: str) -> list[Value]:
    cost_table = report.table(table)
    return [
        dict(zip([c.name for c in cost_table.columns], cost_table.total or [], strict=False)).get(name, 0) for name in names
    ]


def test_a_loop_once_and_as_often_as_it_runs() -> None:
    """The loop runs three times, its condition four; XLA counts both once, and no custom call.

    No rule tells the work of one call, so that all other work is a lower bound.
    """
    assert facts(TEXT) == {
        "cost.flops": 1 + DOT + 1,
        "cost.transcendentals": 16,
        "cost.bytes_accessed": 8 + BODY + CONDITION + 2 * SQUARE,
        "cost.matmul_flops": None,
        "cost.matmul_flops.lower_bound": 2 * DOT,
        "cost.executed_flops": None,
        "cost.executed_flops.lower_bound": 3 * (1 + DOT) + 4 + DOT,
        "cost.executed_matmul_flops": None,
        "cost.executed_matmul_flops.lower_bound": 4 * DOT,
        "cost.matmul_flops.f32.lower_bound": 4 * DOT,
        **dict.fromkeys(f"cost.matmul_flops.{name}" for name in (*OTHER_TYPES, "f32")),
        "cost.executed_bytes_accessed": 8 + 3 * BODY + 4 * CONDITION + (3 + 2) * SQUARE + 2 * SQUARE,
        "cost.attention_flops": None,
        "cost.attention_flops.lower_bound": 0,
        "cost.unknown_custom_calls": 1,
    }


CALLED = """HloModule m

f {
  p = f32[4] parameter(0)
  ROOT s = f32[4] add(p, p)
}

c {
  p = f32[4] parameter(0)
  ROOT t = pred[] constant(false)
}

ENTRY main {
  x = f32[4] parameter(0)
  ROOT r = CALLER
}
"""


@pytest.mark.parametrize(
    "caller",
    [
        "f32[4] call(x), to_apply=f",
        "((f32[4]), f32[4], s32[]) async-start(x), calls=f",
        "((f32[4]), f32[4], s32[]) call-start(x), to_apply=f",
        "f32[4] conditional(x, x, x), branch_computations={f, f}",
        'f32[4] while(x), condition=c, body=f, backend_config={"known_trip_count":{"n":"1"}}',
    ],
)
def test_a_computation_that_holds_only_arithmetic(caller: str) -> None:
    """Nothing of `f` is kept apart from its text: it runs once all the same, with 4 FLOPs on 3 arrays of 16 bytes."""
    cost_facts = facts(CALLED.replace("CALLER", caller))
    assert (cost_facts["cost.executed_flops"], cost_facts["cost.executed_bytes_accessed"]) == (4, 3 * 16)


def test_tables_of_one_run() -> None:
    report = inspect(TEXT)
    assert rows(report, "cost") == {
        "dot": (3 * DOT, 0, 3 * DOT, 3 * 3 * SQUARE),
        "custom-call": (*UNKNOWN, (3 + 2) * SQUARE),
        "compare": (4, 0, 0, 4 * CONDITION),
        "add": (3, 0, 0, 3 * 12),
        "exponential": (0, 16, 0, 2 * SQUARE),
        "tuple": (0, 0, 0, 4 * 8),
    }
    assert rows(report, "cost_by_fusion_kind") == {"(not a fusion)": (*UNKNOWN, TOTAL[3])}
    assert rows(report, "cost_by_phase") == {
        "unknown": (*UNKNOWN, 14 * SQUARE + 36 + 36 + 4 * 8),
        "forward": (0, 16, 0, 2 * SQUARE),
    }
    assert rows(report, "cost_by_source") == {
        "net.py:5": (3 * DOT, 0, 3 * DOT, 9 * SQUARE),
        "net.py:9": (0, 16, 0, 2 * SQUARE),
        "(not printed)": (*UNKNOWN, 36 + 36 + 4 * 8 + (3 + 2) * SQUARE),
    }


UNKNOWN = (None, None, None)
"""The FLOPs, transcendentals and FLOPs of products of a row that holds the call without a rule."""


def test_a_call_without_a_rule_makes_lower_bounds_of_its_rows() -> None:
    """The rest of its rows is known: a product of the other call; all products, three sums and four comparisons."""
    report = inspect(TEXT)
    least = [f"{figure}_lower_bound" for figure in ("flops", "transcendentals", "matmul_flops")]
    assert rows(report, "cost", *least)["custom-call"] == (DOT, 0, DOT)
    assert rows(report, "cost")["dot"] == (3 * DOT, 0, 3 * DOT, 9 * SQUARE)
    assert rows(report, "cost_by_phase", *least)["unknown"] == (3 + 4 + 4 * DOT, 0, 4 * DOT)
    assert rows(report, "cost_by_source", *least)["(not printed)"] == (3 + 4 + DOT, 0, DOT)
    assert rows(report, "matmuls_by_type", "flops") == {"f32": (4 * DOT,), None: (None,)}
    assert ">= 519" in page(report).replace(",", "")


def test_rows_come_by_bytes() -> None:
    """Nine matrices, three, two, two small sums of bytes of which one has more FLOPs, and eight pointers."""
    order = ["dot", "custom-call", "exponential", "compare", "add", "tuple"]
    assert [row[0] for row in inspect(TEXT).table("cost").rows] == order
    (share,) = rows(inspect(TEXT), "cost", "share")["dot"]
    assert share == 9 * SQUARE / TOTAL[3]


def test_a_lower_bound_has_no_share() -> None:
    """The trip count of the loop is unknown: the bytes of its body are known for one run alone."""
    report = inspect(TEXT.replace("constant(3)", "parameter(1)"))
    assert report.facts["cost.executed_bytes_accessed"] is None
    assert {share for (share,) in rows(report, "cost", "share").values()} == {None}
    assert "share: tables of cost have none, because some bytes are lower bounds" in report.notes
    assert "share" in page(inspect(TEXT))
    assert "share" not in page(report).replace("share: tables", "")


def page(report: Report) -> str:
    stream = StringIO()
    FORMATS["table"]([report], stream, RenderOptions(width=160))
    return stream.getvalue()


def test_a_bound_names_the_resource_that_surely_takes_longer(tmp_path: Path) -> None:
    """Bytes of a program before fusion have no time.

    A TPU v5e has no rate for f64: the products may take longer than their bytes. Whatever they take, all other FLOPs take
    longer than bytes that are moved in no time.
    """
    layout = "{(f32[4,4]{1,0})->f32[4,4]{1,0}}"
    before = f"""HloModule m, entry_computation_layout={layout}

ENTRY main {{
  p = f32[4,4]{{1,0}} parameter(0)
  dot.1 = f32[4,4]{{1,0}} dot(p, p), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  ROOT exponential.2 = f32[4,4]{{1,0}} exponential(dot.1), metadata={{op_name="jit(f)/exp"}}
}}
"""
    report = inspect(before, "tpu-v5e")
    assert set(rows(report, "cost_by_phase", "memory_s", "bound").values()) == {(None, None)}
    assert "bound" not in page(report).replace("lower bounds", "")
    products = TEXT.replace("f32[4,4]{1,0} dot", "f64[4,4]{1,0} dot").replace("%x = f32", "%x = f64")
    compute, _, bound = rows(inspect(products, "tpu-v5e"), "cost_by_source", "compute_s", "memory_s", "bound")["net.py:5"]
    assert (compute, bound) == (None, None)
    fast = PROFILE.replace("a100-sxm-80gb", "tpu-v5e").replace("50 B/s", "1e18 B/s")
    (tmp_path / "round.yaml").write_text(fast)
    by_kind = rows(inspect(products, str(tmp_path / "round.yaml")), "cost_by_fusion_kind", "compute_s", "bound")
    assert by_kind == {"(not a fusion)": (None, "compute")}


def test_a_page_leaves_out_a_table_without_information() -> None:
    """All of it is in no fusion."""
    tables = [table for table in inspect(TEXT).tables if table.name in TABLES]
    assert {table.name for table in tables if not table.on_page} == {"cost_by_fusion_kind"}


def test_custom_calls_that_are_not_counted_are_named() -> None:
    report = inspect(TEXT)
    assert report.facts["cost.unknown_custom_calls"] == 1
    uncounted = "no figure counts the work of [bold]mark (1 call), which is unknown; --custom-calls can state it"
    assert f"cost.unknown_custom_calls: {uncounted}" in report.notes
    nameless = inspect(TEXT.replace(', custom_call_target="[bold]mark"', "")).notes
    assert (
        "cost.unknown_custom_calls: no figure counts the work of custom calls without a target (1 call), which is unknown; "
        "--custom-calls can state it"
    ) in nameless


@pytest.mark.parametrize("name", sorted(DUMPS))
def test_dumps_cost_what_xla_says(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """XLA counts minus one FLOP and byte for each custom call; here they are not counted."""
    count_tuples_as("0.12" if "jax_0_12" in name else "0.10", monkeypatch)
    report = inspect(DATA / name)
    calls = (DATA / name).read_text(encoding="utf-8").count(" custom-call(")
    for fact in ("cost.flops", "cost.transcendentals", "cost.bytes_accessed"):
        if fact in UNTOLD.get(name, ()):
            assert report.facts[fact] is None
            assert any(note.startswith(f"{fact}: line ") for note in report.notes)
        else:
            uncounted = 0 if fact == "cost.transcendentals" else calls
            assert report.facts[fact] == pytest.approx(DUMPS[name][fact] + uncounted, rel=2e-7)


@pytest.mark.parametrize("name", sorted(DUMPS))
def test_rows_add_up(name: str) -> None:
    report = inspect(DATA / name)
    names = ("flops", "matmul_flops", "bytes_accessed")
    figures = [report.facts[f"cost.executed_{figure}"] for figure in names]
    for table in TABLES:
        assert totals(report, table, *names) == figures


@pytest.mark.parametrize("folder", ["cpu", "gpu", "tpu"])
def test_two_matrix_products_on_each_backend(folder: str) -> None:
    """2 · 4096 · 2048 · 8192 multiply-adds on each device: as dots, library calls, convolutions."""
    cost_facts = facts(DATA / folder / "gathered_matmul.after.txt")
    assert (
        cost_facts["cost.matmul_flops"]
        == EXPECTED["programs"]["gathered_matmul"]["cost.matmul_flops"]
        == 2 * 2 * 4096 * 2048 * 8192
    )
    assert cost_facts["cost.executed_matmul_flops"] == cost_facts["cost.matmul_flops"]


@pytest.mark.parametrize("folder", ["cpu", "gpu", "tpu"])
def test_a_scanned_matrix_product_runs_three_times(folder: str) -> None:
    cost_facts = facts(DATA / folder / "scan_forward.after.txt")
    assert cost_facts["cost.executed_matmul_flops"] == 3 * 256
    assert cost_facts["cost.matmul_flops"] == 256


def test_split_lines_cost_the_same() -> None:
    assert facts(DATA / "handmade/split_lines.txt")["cost.matmul_flops"] == 4096


def test_reasons_name_the_line() -> None:
    text = WITH_MARKER.replace("constant(3)", "parameter(1)").replace("exponential(%gemm)", "exponential(%gone)")
    report = inspect(text)
    assert report.facts["cost.flops"] == 1 + DOT + 1
    assert report.facts["cost.executed_flops"] is None
    assert any(note.startswith("cost.executed_flops: the trip count of loop (line 24) ") for note in report.notes)
    assert "cost.bytes_accessed: line 28: e: the shape of operand gone is unknown" in report.notes


def test_unreadable_lines_are_reported() -> None:
    report = inspect(DATA / "handmade" / "unreadable_lines.txt")
    assert "cost.flops: no figure counts 2 lines that cannot be read" in report.notes


@pytest.mark.parametrize("name", sorted(DUMPS))
def test_times_add_up(name: str) -> None:
    """To the last few bits: each row is rounded for itself."""
    report = inspect(DATA / name, "a100-sxm-80gb")
    for table in TABLES:
        times = [pytest.approx(report.facts["time.compute_s"]), pytest.approx(report.facts["time.memory_s"])]
        assert totals(report, table, "compute_s", "memory_s") == times


PROFILE = """title: A device of round figures
extends: a100-sxm-80gb
matmul: {f32: {value: 100, source: arithmetic}}
vector: {f32: {value: 10, source: arithmetic}, s32: {value: 5, source: arithmetic}}
memory: {bandwidth: {value: 50 B/s, source: arithmetic}}
sources:
  - {id: arithmetic, title: Round figures, publisher: nobody, version: "1", url: "https://example.org", page: "1"}
"""


def test_times_of_one_run(tmp_path: Path) -> None:
    """On a device of 100 FLOP/s for products, 10 FLOP/s of f32 and 5 of s32 elsewhere, and 50 bytes/s."""
    (tmp_path / "round.yaml").write_text(PROFILE)
    report = inspect(TEXT, str(tmp_path / "round.yaml"))
    assert report.profile == "round"
    facts = {**report.facts} | {name.removesuffix(".lower_bound"): least for name, least in report.facts.items()}
    facts = {name: facts[f"time.{name}"] for name in ("compute_s", "memory_s", "collective_s", "step_s")}
    compute, memory = 4 * DOT / 100 + (3 + 4) / 5, (TOTAL[3] - POINTERS) / 50
    assert facts == {
        "compute_s": pytest.approx(compute),
        "memory_s": pytest.approx(memory),
        "collective_s": 0,
        "step_s": pytest.approx(max(compute, memory)),
    }
    product = list(rows(report, "cost_by_source", "compute_s", "memory_s", "bound")["net.py:5"])
    assert product == [pytest.approx(3 * DOT / 100), pytest.approx(9 * SQUARE / 50), "memory"]
    assert report.facts["time.kernels_s"] is None
    assert "time.kernels_s: there is no rule for [bold]mark (1 kernel)" in report.notes


def test_rows_with_times_come_by_time(tmp_path: Path) -> None:
    """Without anything that bytes could wait for: 1.4 and 0.9 seconds of two opcodes, 3.84 and 1.28 of two products."""
    (tmp_path / "round.yaml").write_text(PROFILE.replace("50 B/s", "1e18 B/s"))
    report = inspect(WITH_MARKER, str(tmp_path / "round.yaml"))
    assert [row[0] for row in report.table("cost").rows][:4] == ["dot", "custom-call", "compare", "add"]
    (share,) = rows(report, "cost", "share")["compare"]
    assert share == pytest.approx(4 / 5 / (4 * DOT / 100 + 7 / 5))


def test_a_rate_that_the_profile_lacks() -> None:
    """No document states the rate of f64 on a TPU v5e. Its bytes still have a time, and so has all other work."""
    report = inspect(TEXT.replace("f32[4,4]{1,0} dot", "f64[4,4]{1,0} dot").replace("%x = f32", "%x = f64"), "tpu-v5e")
    assert report.facts["time.compute_s"] is None
    assert report.facts["time.compute_s.lower_bound"] == pytest.approx(7 / 6.1e12 + DOT / 197e12)
    assert report.facts["time.memory_s"] == pytest.approx((TOTAL[3] - POINTERS + 9 * SQUARE) / 819e9)  # nine matrices of f64
    notes = [note for note in report.notes if note.startswith("time.compute_s: ")]
    reason = "74 % of the FLOPs have no rate: the profile tpu-v5e states none for matmul.f64"
    rates = (
        "FLOPs of matmul.f32 count at the rate of matmul.bf16: XLA rounds the operands to that type, unless operand_precision"
    )
    assert notes[0] == f"time.compute_s: {reason}; there is no rule for [bold]mark"
    assert notes[1].startswith(f"time.compute_s: {rates}")


def test_without_a_profile_there_are_no_times() -> None:
    report = inspect(TEXT)
    assert {value for name, value in report.facts.items() if name.startswith("time.")} == {None}
    assert not any(note.startswith("time.") for note in report.notes)  # without a profile there are no times
    assert [column.name for column in report.table("cost").columns][-1] == "share"


def test_a_custom_call_whose_configuration_is_broken() -> None:
    report = inspect(TEXT.replace('backend_config={"dot', 'backend_config={"cut'))
    (finding,) = report.findings
    assert (finding.rule, finding.severity, finding.subject) == ("HI503", "warning", "gemm")
    assert finding.location is not None
    assert finding.location.line == 27
    assert "does not state lhs_contracting_dimensions" in finding.message
    cost_facts = {name: value for name, value in report.facts.items() if name.startswith("cost.")}
    assert cost_facts["cost.flops"] == 1 + DOT + 1
    assert {name for name, value in cost_facts.items() if value is None} == {
        "cost.matmul_flops",
        "cost.executed_flops",
        "cost.executed_matmul_flops",
        "cost.attention_flops",
        *(f"cost.matmul_flops.{name}" for name in (*OTHER_TYPES, "f32")),
    }


def test_a_trip_count_that_is_text() -> None:
    """A finding reports it, and the count comes from the loop."""
    config = 'body=%body, backend_config={"known_trip_count":{"n":"many"}}'
    report = inspect(TEXT.replace("body=%body", config))
    assert [(finding.rule, finding.subject) for finding in report.findings] == [("HI501", "loop")]
    assert report.facts["cost.executed_matmul_flops.lower_bound"] == 4 * DOT


def test_a_computation_that_calls_itself() -> None:
    report = inspect(TEXT.replace("%y = f32[4,4]{1,0} dot(%x, %x)", "%y = f32[4,4]{1,0} call(%x), to_apply=%body"))
    assert [finding.rule for finding in report.findings] == ["HI502"]
    assert report.facts["cost.flops"] is None
    assert report.facts["cost.executed_flops"] is None
    assert report.facts["cost.unknown_custom_calls"] == 1


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("exponential(%gemm)", "exponential(%gemm"),
        ("tuple(%zero, %p)", "tuple(%zero, %p"),
        ("tuple(%next, %y)", "tuple(%next, %y"),
        ("while(%start), condition", "while(%start), con)dition"),
    ],
)
@pytest.mark.parametrize("elsewhere", ["constant(0)", "constant((0)", "constant(0))"])
def test_brackets_that_are_not_closed(right: str, wrong: str, elsewhere: str) -> None:
    """The other lines are counted, even if one bracket closes another."""
    cost_facts = facts(TEXT.replace(right, wrong).replace("constant(0)", elsewhere))
    assert cost_facts["cost.matmul_flops"] in {2 * DOT, DOT, None}
    assert cost_facts["cost.unknown_custom_calls"] == 1


def test_every_fact_is_promised() -> None:
    named = {name for name in inspect(TEXT).facts if name.startswith(("cost.", "time.")) and not name.endswith(LOWER_BOUND)}
    specs = [find_spec(name, Cost.specs) for name in named]
    assert {spec.name for spec, _ in filter(None, specs)} == {spec.name for spec in Cost.specs}
    assert None not in specs


# -- products by the types of their operands ----------------------------------------------------------------------------------

TYPES = """HloModule types

%fused (a: bf16[4,8], b: bf16[8,2]) -> f32[4,2] {
  %a = bf16[4,8]{1,0} parameter(0)
  %b = bf16[8,2]{1,0} parameter(1)
  %p = f32[4,2]{1,0} dot(%a, %b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT %n = f32[4,2]{1,0} negate(%p)
}

%body (s: (s32[], f32[4,4], bf16[4,4])) -> (s32[], f32[4,4], bf16[4,4]) {
  %s = (s32[], f32[4,4]{1,0}, bf16[4,4]{1,0}) parameter(0)
  %i = s32[] get-tuple-element(%s), index=0
  %x = f32[4,4]{1,0} get-tuple-element(%s), index=1
  %y = bf16[4,4]{1,0} get-tuple-element(%s), index=2
  %m = f32[4,4]{1,0} dot(%x, %y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  %w = f32[4,4]{1,0} dot(%y, %m), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT %t = (s32[], f32[4,4]{1,0}, bf16[4,4]{1,0}) tuple(%i, %w, %y)
}

%condition (s: (s32[], f32[4,4], bf16[4,4])) -> pred[] {
  %s = (s32[], f32[4,4]{1,0}, bf16[4,4]{1,0}) parameter(0)
  ROOT %c = pred[] constant(true)
}

ENTRY %main (p: bf16[4,8], q: bf16[8,2], x: f32[4,4], y: bf16[4,4], e: f8e4m3fn[16,32], g: f8e4m3fn[32,16]) -> f32[4,2] {
  %p = bf16[4,8]{1,0} parameter(0)
  %q = bf16[8,2]{1,0} parameter(1)
  %x = f32[4,4]{1,0} parameter(2)
  %y = bf16[4,4]{1,0} parameter(3)
  %e = f8e4m3fn[16,32]{1,0} parameter(4)
  %g = f8e4m3fn[32,16]{1,0} parameter(5)
  %zero = s32[] constant(0)
  %start = (s32[], f32[4,4]{1,0}, bf16[4,4]{1,0}) tuple(%zero, %x, %y)
  %loop = (s32[], f32[4,4]{1,0}, bf16[4,4]{1,0}) while(%start), condition=%condition, body=%body, TRIPS
  %gemm = f32[16,16]{1,0} custom-call(%e, %g), custom_call_target="__cublas$lt$matmul$f8", CONFIG
  %image = f32[1,5,5,3]{3,2,1,0} constant({...})
  %kernel = f32[3,3,3,2]{3,2,1,0} constant({...})
  %conv = f32[1,3,3,2]{3,2,1,0} convolution(%image, %kernel), window={size=3x3}, dim_labels=b01f_01io->b01f
  ROOT %f = f32[4,2]{1,0} fusion(%p, %q), kind=kLoop, calls=%fused
}
""".replace("TRIPS", 'backend_config={"known_trip_count":{"n":"3"}}').replace(
    "CONFIG", 'backend_config={"gemm_backend_config":{"dot_dimension_numbers":{"lhs_contracting_dimensions":["1"]}}}'
)
GATHERED, SCAN = "gpu/gathered_matmul.after", "cpu/scan_forward.after"
# each device multiplies 4096 x 8192 and 8192 x 2048 numbers of bf16, and as many again; 2 x 8 and 8 x 8 of f32 three times
FACTS: dict[str, tuple[tuple[str, str, Value], ...]] = {
    "cost.matmul_flops.<type>": (
        (GATHERED, "cost.matmul_flops.bf16", 2 * 2 * 4096 * 2048 * 8192),
        (SCAN, "cost.matmul_flops.f32", 3 * 256),
    ),
}
COLUMNS: dict[str, tuple[str, dict[str, tuple[tuple[str, str, Value], ...]]]] = {
    "matmuls_by_type": (
        "type",
        {
            "type": ((SCAN, "f32", "f32"), (GATHERED, "bf16", "bf16")),
            "flops": ((SCAN, "f32", 3 * 256), (GATHERED, "bf16", 2 * 2 * 4096 * 2048 * 8192)),
            # also the step of a counter and its comparison, 16 squares, their sum and its division
            "share_of_flops": ((SCAN, "f32", 768 / (3 * 257 + 4 + 16 + 15 + 1)), ("gpu/scan_forward.after", "f32", 768 / 807)),
            "sites": ((SCAN, "f32", 1), (GATHERED, "bf16", 2)),
            "runs": ((SCAN, "f32", 3), (GATHERED, "bf16", 2)),
        },
    ),
}

BY_TYPE = {
    "f8e4m3fn": 2 * 16 * 16 * 32,
    "f32": 2 * (3 * 3) * 2 * (3 * 3 * 3),
    "mixed": 3 * 2 * (2 * 4 * 4 * 4),
    "bf16": 2 * 4 * 2 * 8,
}
"""FLOPs: two for each product that an element of the result sums; the body of the loop has two dots and runs three times."""


def matmuls(report: Report) -> dict[str, Value]:
    """Return the facts about types, without the first part of their names."""
    start, whole = "cost.matmul_flops.", f"cost.matmul_flops{LOWER_BOUND}"
    return {name.removeprefix(start): value for name, value in report.facts.items() if name.startswith(start) and name != whole}


def test_products_by_type_of_operands() -> None:
    """A library call, a convolution, dots of a loop whose operands differ in either order, and one inside of a fusion."""
    report = inspect(TYPES)
    assert matmuls(report) == BY_TYPE
    assert report.facts["cost.executed_matmul_flops"] == sum(BY_TYPE.values())
    flops = report.facts["cost.executed_flops"]
    assert isinstance(flops, int)
    assert rows(report, "matmuls_by_type", "flops", "share_of_flops", "sites", "runs") == {
        "f8e4m3fn": (16384, 16384 / flops, 1, 1),
        "f32": (972, 972 / flops, 1, 1),
        "bf16,f32": (768, 768 / flops, 2, 2 * 3),
        "bf16": (128, 128 / flops, 1, 1),
    }
    assert totals(report, "matmuls_by_type", "flops") == [sum(BY_TYPE.values())]


def test_products_of_a_loop_without_a_trip_count_are_lower_bounds() -> None:
    """It runs once at least; the other types are known."""
    report = inspect(TYPES.replace(', backend_config={"known_trip_count":{"n":"3"}}', ""))
    assert matmuls(report) == {**BY_TYPE, "mixed": None, "mixed.lower_bound": 256}
    assert [note for note in report.notes if note.startswith("cost.matmul_flops.mixed: ")]
    by_type = rows(report, "matmuls_by_type", "flops", "flops_lower_bound", "runs", "runs_lower_bound")
    assert by_type["bf16,f32"] == (None, 256, None, 2)
    assert by_type["bf16"] == (128, 128, 1, 1)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("convolution(%image, %kernel)", "convolution(%image, %lost)"),
        ("convolution(%image, %kernel)", "convulsion(%image, %kernel)"),
    ],
)
def test_a_product_whose_type_is_not_known_can_be_of_any(right: str, wrong: str) -> None:
    """No type is known to be 0, and a check that wants no f32 does not pass."""
    report = inspect(TYPES.replace(right, wrong))
    by_type = matmuls(report)
    assert {name: by_type[name] for name in by_type if name.endswith(LOWER_BOUND)} == {
        f"{name}{LOWER_BOUND}": flops for name, flops in BY_TYPE.items() if name != "f32"
    }
    assert {value for name, value in by_type.items() if not name.endswith(LOWER_BOUND)} == {None}
    assert {"f32", "f64", "f16", "bf16"} <= by_type.keys()
    assert rows(report, "matmuls_by_type", "flops", "flops_lower_bound")[None] == (None, 0)


def test_a_dot_that_lacks_an_attribute_has_a_type_all_the_same() -> None:
    report = inspect(TYPES.replace("dot(%a, %b), lhs_contracting_dims={1}, rhs_contracting_dims={0}", "dot(%a, %b)"))
    assert matmuls(report) == {**BY_TYPE, "bf16": None}


def test_types_of_a_text_that_is_cut_off() -> None:
    report = inspect(TYPES[: TYPES.index("  ROOT %f")])
    by_type = matmuls(report)
    assert {name: by_type[name] for name in ("mixed.lower_bound", "f32.lower_bound")} == {
        "mixed.lower_bound": 768,
        "f32.lower_bound": 972,
    }
    assert (by_type["bf16"], by_type["f16"]) == (None, None)


def test_without_products_there_is_no_table() -> None:
    report = inspect(CALLED.replace("CALLER", "f32[4] call(x), to_apply=f"))
    assert "matmuls_by_type" not in {table.name for table in report.tables}
    assert matmuls(report) == {}


@pytest.mark.parametrize("name", sorted(DUMPS))
def test_types_add_up(name: str) -> None:
    report = inspect(DATA / name)
    whole = report.facts["cost.executed_matmul_flops"]
    summed = sum(value for value in matmuls(report).values() if isinstance(value, int))
    assert whole in (summed, None)


@pytest.mark.parametrize(("stage", "name"), [("before", "bytes_as_written"), ("after", "bytes_accessed")])
def test_bytes_before_fusion_are_called_as_written(stage: str, name: str) -> None:
    report = hlo_inspect.inspect(Path(__file__).parents[1] / f"data/cpu/adamw_step.{stage}.txt", "cost")
    for table in ("cost", "cost_by_phase", "cost_by_source"):
        assert [column.page_name for column in report.table(table).columns if column.name == "bytes_accessed"] == [name]


@pytest.mark.parametrize(("profile", "whole"), [(None, "bytes"), ("h100-sxm", "time")])
def test_a_heading_says_of_what_the_shares_are(profile: str | None, whole: str) -> None:
    report = hlo_inspect.inspect(Path(__file__).parents[1] / "data/cpu/adamw_step.after.txt", "cost", profile=profile)
    table = report.table("cost_by_phase")
    assert [column.page_name for column in table.columns if column.name == "share"] == [f"share_of_{whole}"]
    if profile is None:
        share, size = table.records()[0]["share"], table.records()[0]["bytes_accessed"]
        assert isinstance(size, int)
        assert share == size / sum(int(str(row["bytes_accessed"])) for row in table.records())


RAGGED = """HloModule m

ENTRY e {
  x = f32[LHS] parameter(0)
  w = f32[RHS] parameter(1)
  s = s32[4] parameter(2)
  ROOT r = f32[RESULT] ragged-dot(x, w, s), ATTRIBUTES
}
"""


@pytest.mark.parametrize(
    ("lhs", "rhs", "result", "attributes", "flops", "by_xla"),
    [
        # each of 128 rows has one of four matrices of 32 x 64; XLA counts one row: 64 results of 32 products
        ("128,32", "4,32,64", "128,64", "rhs_contracting_dims={1}, lhs_ragged_dims={0}, rhs_group_dims={0}", 524_288, 4096),
        # 32 contracted elements are divided among four groups: each has its own result of 128 x 64
        ("128,32", "32,64", "4,128,64", "rhs_contracting_dims={0}, lhs_ragged_dims={1}", 524_288, 4 * 524_288),
        # four products of 8 x 32 and 32 x 64, divided among the groups by the batch
        (
            "4,8,32",
            "4,32,64",
            "4,8,64",
            "lhs_batch_dims={0}, rhs_batch_dims={0}, rhs_contracting_dims={1}, lhs_ragged_dims={0}",
            4 * 2 * 8 * 32 * 64,
            4 * 2 * 8 * 32 * 64,
        ),
    ],
)
def test_ragged_products_in_each_mode(lhs: str, rhs: str, result: str, attributes: str, flops: int, by_xla: int) -> None:
    contracting = f"lhs_contracting_dims={{{len(lhs.split(',')) - 1}}}, {attributes}"
    text = RAGGED.replace("LHS", lhs).replace("RHS", rhs).replace("RESULT", result).replace("ATTRIBUTES", contracting)
    cost_facts = facts(text)
    assert (
        cost_facts["cost.executed_matmul_flops"]
        == cost_facts["cost.executed_flops"]
        == cost_facts["cost.matmul_flops"]
        == flops
    )
    assert cost_facts["cost.flops"] == by_xla


def test_a_scan_runs_its_body_for_each_slice() -> None:
    """20 additions of 64 numbers; XLA counts one application for each of the 64 numbers of the initial value."""
    text = """HloModule m

add {
  l = f32[64] parameter(0)
  r = f32[64] parameter(1)
  a = f32[64] add(l, r)
  ROOT t = (f32[64], f32[64]) tuple(a, a)
}

ENTRY e {
  x = f32[20,64] parameter(0)
  i = f32[64] parameter(1)
  ROOT s = (f32[20,64], f32[64]) scan(x, i), dimensions={0}, num_carries=1, to_apply=add
}
"""
    cost_facts = facts(text)
    assert (cost_facts["cost.executed_flops"], cost_facts["cost.flops"]) == (20 * 64, 64 * 64)

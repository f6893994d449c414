"""The page of `time`: rows that add up to the facts, shares, comparisons, and the page without a schedule."""

from __future__ import annotations

from collections.abc import Sequence
from io import StringIO
from pathlib import Path

import pytest

import hlo_inspect
from hlo_inspect.figure import Figure
from hlo_inspect.report.model import Amount, Report
from hlo_inspect.report.table import Value, lower_bound, plain
from tests.tables import column

DATA = Path(__file__).parents[1] / "data"
SHARED = Path(__file__).parents[3] / "shared" / "dumps"
GATHERED = DATA / "gpu/gathered_matmul.after.txt"
SCAN = DATA / "cpu/scan_fsdp.after.txt"
BEFORE = DATA / "cpu/gathered_matmul.before.txt"

WINDOW = 2 * 2**23 / 3352e9
"""8 MiB are transposed between start and done of the first gather."""


def report(path: Path, *profiles: str, what_if: Sequence[str] = ()) -> Report:
    return hlo_inspect.inspect(path, ("time",), profile=profiles or "h100-sxm", what_if=what_if)


def number(value: Value) -> float:
    assert isinstance(value, int | float)
    return value


def total(time_report: Report, table: str, name: str) -> float:
    return sum(value for value in column(time_report.table(table), name) if isinstance(value, int | float))


@pytest.mark.parametrize("path", [GATHERED, SCAN, DATA / "tpu/gathered_matmul.after.txt", DATA / "gpu/scan_forward.after.txt"])
def test_rows_add_up_to_the_facts(path: Path) -> None:
    time_report = report(path, "tpu-v5e" if "tpu" in str(path) else "h100-sxm")
    facts = time_report.facts

    def least(name: str) -> float:
        return number(facts[name] if facts[name] is not None else facts[f"{name}.lower_bound"])

    step, likely = least("time.step_s"), least("time.estimate_step_s")
    assert step == pytest.approx(least("time.kernels_s") + least("time.exposed_collective_s"), rel=1e-9)
    for table in ("step", "time_by_phase", "time_by_scope", "time_by_source"):
        assert total(time_report, table, "bound_s") == pytest.approx(step, rel=1e-9), table
        assert total(time_report, table, "estimate_s") == pytest.approx(likely, rel=1e-9), table
        assert total(time_report, table, "share") == pytest.approx(1), table
    assert total(time_report, "time_by_phase", "exposed_s") == pytest.approx(
        least("time.estimate_exposed_collective_s"), rel=1e-9
    )
    assert total(time_report, "kernels", "step_share") == pytest.approx(1, rel=1e-9)
    kernels = [row for row in time_report.table("kernels").records() if row["bound_by"] != "collective"]
    assert sum(number(row["bound_s"]) for row in kernels) == pytest.approx(least("time.kernels_s"), rel=1e-9)


@pytest.mark.parametrize("table", ["collectives", "collectives_by_kind", "collectives_by_axis", "collectives_by_phase"])
def test_collectives_are_exposed_as_long_as_in_the_step(table: str) -> None:
    """Pages of both commands show the estimate; the bound has a column of its own."""
    step = report(GATHERED)
    collectives = hlo_inspect.inspect(GATHERED, "collectives", profile="h100-sxm")
    assert total(collectives, table, "estimate_exposed_s") == pytest.approx(total(step, "exposed_collectives", "exposed_s"))
    assert total(collectives, table, "exposed_s") == pytest.approx(step.facts["time.exposed_collective_s"])
    assert total(collectives, table, "estimate_exposed_s") == pytest.approx(total(step, "kernels", "estimate_exposed_s"))
    (title,) = {item.title for item in collectives.tables if item.name == table}
    assert title.endswith("; exposed time by the estimate")


def test_an_exposed_collective_and_what_could_hide_it() -> None:
    """A product hides the second gather. The first gather has a transpose to hide it.

    All that follows the first uses its result, but for the other transpose.
    """
    rows = {row["name"]: row for row in report(GATHERED).table("exposed_collectives").records()}
    assert list(rows) == ["all-gather-start", "reduce-scatter-start"]
    first, last = rows.values()
    assert first["window_s"] == pytest.approx(1e-6 + WINDOW)
    assert first["could_hide_s"] == pytest.approx(1e-6 + WINDOW)
    assert first["longest"] == "wrapped_transpose.1"
    assert first["exposed_s"] == pytest.approx(18.6e-6 + 3 * 2**23 / (0.824 * 450e9) - 1e-6 - WINDOW)
    assert (last["window_s"], last["could_hide_s"], last["longest"]) == (0, 0, None)


ROWS = """  %made = f32[4096]{0} negate(%p)
  %reduced = f32[4096]{0} all-reduce(%made), replica_groups={{0,1}}, to_apply=%add
  %used = f32[4096]{0} negate(%reduced)
  %free = f32[4096]{0} negate(%p)
"""


def entry_time(rows: str) -> str:
    start = "HloModule m, is_scheduled=true, replica_count=2\n\n%add {\n  %x = f32[] parameter(0)\n  %y = f32[] parameter(1)\n"
    start += "  ROOT %s = f32[] add(%x, %y)\n}\n\nENTRY %main {\n  %p = f32[4096]{0} parameter(0)\n"
    return f"{start}{rows}  ROOT %all = (f32[4096]{{0}}, f32[4096]{{0}}) tuple(%used, %free)\n}}\n"


@pytest.mark.parametrize("rows", [ROWS, "".join(reversed(ROWS.splitlines(keepends=True)))])
def test_work_that_could_hide_a_collective_counts_in_any_order(rows: str) -> None:
    """The operand is a negation, and another uses the result; only the last of the three is free to run meanwhile."""
    time_report = hlo_inspect.inspect(StringIO(entry_time(rows)), ("time",), profile="h100-sxm")
    (row,) = time_report.table("exposed_collectives").records()
    assert row["longest"] == "free"
    assert row["could_hide_s"] == pytest.approx(1e-6 + NEGATED, rel=1e-4)


def test_two_kernels_of_one_name_on_one_line_have_their_own_times() -> None:
    """Each of a product and a copy keeps its own bound, whichever table comes first."""
    product = "dot(%m, %m), lhs_contracting_dims={1}, rhs_contracting_dims={0}"
    rows = " ".join(f"%a = f32[1024,1024] {operation}" for operation in ("copy(%m)", product))
    start = "HloModule m, is_scheduled=true\n\nENTRY %main { %m = f32[1024,1024] parameter(0)"
    text = f"{start} {rows} ROOT %r = f32[1024,1024] negate(%a) }}\n"
    tables = [hlo_inspect.inspect(StringIO(text), (name,), profile="h100-sxm").table("kernels") for name in ("time", "top")]
    assert [column(table, "bound_by")[:2] for table in tables] == [["compute", "memory"]] * 2
    assert column(tables[0], "bound_s") == column(tables[1], "bound_s")


def test_without_a_model_of_links_exposed_times_are_lower_bounds() -> None:
    """No document states the rates that links of an MI300X reach: the table and its sum have bounds only."""
    time_report = hlo_inspect.inspect(GATHERED, ("time",), profile="mi300x")
    rows = time_report.table("exposed_collectives").records()
    assert rows
    for row in rows:
        assert (row["exposed_s"], row["estimate_s"]) == (None, None)
        assert 0 < number(row["exposed_s_lower_bound"]) <= number(row["bound_exposed_s"])
    (by_kind,) = (row for row in time_report.table("step").records() if str(row["part"]).startswith("exposed collectives"))
    assert by_kind["estimate_s"] is None
    assert by_kind["estimate_s_lower_bound"] == time_report.facts["time.estimate_exposed_collective_s.lower_bound"]
    (exposed,) = (row for row in time_report.headline if row.label == "exposed")
    amounts = [part for part in exposed.parts if isinstance(part, Amount) and part.unit == "seconds"]
    assert [plain(part.value) for part in amounts] == [None, None]
    sent = [number(row["bound_s"]) for row in time_report.table("collective_links").records()]
    assert lower_bound(amounts[1].value) == pytest.approx(sum(sent))


def test_runs_of_exposed_collectives_in_a_loop_of_unknown_length() -> None:
    text = UNKNOWN_LOOP.replace("LOOP_OR_BRANCH", "while(%p), condition=%cond, body=%body")
    time_report = hlo_inspect.inspect(StringIO(text), ("time",), profile="h100-sxm")
    (row,) = time_report.table("exposed_collectives").records()
    assert (row["runs"], row["runs_lower_bound"], row["exposed_s"], row["window_s"]) == (None, 1, None, None)
    assert number(row["bound_exposed_s_lower_bound"]) == pytest.approx(4 * 4096 / 450e9)


def test_busy_times_name_the_bottleneck() -> None:
    time_report = report(GATHERED)
    busy = dict(
        zip(column(time_report.table("resources"), "resource"), column(time_report.table("resources"), "busy_s"), strict=True)
    )
    assert busy["matrix unit"] == pytest.approx(2 * 2 * 4096 * 2048 * 8192 / 989.4e12)
    assert busy["nvlink"] == pytest.approx((2 * 3 * 2**23 + 3 * 2**22) / 450e9)
    (bottleneck,) = (row for row in time_report.headline if row.label == "bottleneck")
    assert bottleneck.parts[0] == "matrix unit, busy for "
    assert bottleneck.parts[6] == "; next: nvlink, "


def test_without_a_schedule_there_is_a_range() -> None:
    time_report = report(BEFORE)
    assert time_report.facts["time.exposed_collective_s"] is None
    assert time_report.facts["time.estimate_step_s"] is None
    least = number(time_report.facts["time.step_s"] or time_report.facts["time.step_s.lower_bound"])
    assert least == max(number(time_report.facts[f"time.{name}_s"] or 0) for name in ("compute", "memory", "collective"))
    assert {table.name for table in time_report.tables} >= {"resources", "kernels"}
    assert "step" not in {table.name for table in time_report.tables}
    assert any("the module is not scheduled" in str(part) for row in time_report.headline for part in row.parts)


def test_collectives_by_kind_and_phase() -> None:
    """A loop of 3 layers gathers 128 B forward and again backward, and scatters 256 B; reductions of 384 and 4 B follow it."""
    table = hlo_inspect.inspect(SCAN, ("collectives",)).table("collectives_by_kind_and_phase")
    names = ("kind", "phase", "sites", "runs", "executed_operand_bytes")
    assert {tuple(row[name] for name in names) for row in table.records()} == {
        ("all-gather", "forward", 1, 3, 3 * 128),
        ("all-gather", "recompute", 1, 3, 3 * 128),
        ("reduce-scatter", "backward", 1, 3, 3 * 256),
        ("all-reduce", "backward", 2, 2, 384 + 4),
    }
    one_phase = hlo_inspect.inspect(GATHERED, ("collectives",))
    assert "collectives_by_kind_and_phase" not in {table.name for table in one_phase.tables}


def test_collectives_by_size() -> None:
    """Two gathers of 32 MiB, and a scatter of 16 MiB, which is the limit of its class; bytes over time of all together."""
    time_report = hlo_inspect.inspect(GATHERED, ("collectives",), profile="h100-sxm")
    rows = {(row["kind"], row["up_to_bytes"]): row for row in time_report.table("collectives_by_size").records()}
    assert list(rows) == [("all-gather", 2**26), ("reduce-scatter", 2**24)]
    gathers = rows["all-gather", 2**26]
    likely = 18.6e-6 + 3 * 2**23 / (0.824 * 450e9)
    assert gathers["estimate_s"] == pytest.approx(2 * likely)
    assert gathers["bus_bandwidth"] == pytest.approx(3 * 2**23 / likely)
    without = hlo_inspect.inspect(GATHERED, ("collectives",))
    sizes = without.table("collectives_by_size").records()
    assert [(row["kind"], row["up_to_bytes"], row["runs"]) for row in sizes] == [
        *((*key, row["runs"]) for key, row in rows.items())
    ]
    assert "bound_s" not in {column.name for column in without.table("collectives").columns}


def test_without_a_profile_there_is_no_time() -> None:
    time_report = hlo_inspect.inspect(BEFORE, ("time",))
    assert time_report.tables == ()
    assert time_report.facts["time.step_s"] is None


def test_profiles_side_by_side() -> None:
    time_report = report(GATHERED, "a100-sxm-80gb", "h100-sxm")
    rows = {row["figure"]: row for row in time_report.table("compared").records()}
    flops = rows["all FLOPs alone"]
    alone = hlo_inspect.inspect(GATHERED, ("cost",), profile="h100-sxm").facts["time.compute_s"]
    assert flops["h100-sxm"] == alone
    assert flops["times_as_fast"] == pytest.approx(number(flops["a100-sxm-80gb"]) / number(alone), abs=1e-3)
    assert rows["binds"]["a100-sxm-80gb"] == "matrix unit"


def test_times_of_other_work_have_no_ratio() -> None:
    """An H100 has no rate for products of s4, an A100 has; both know all bytes."""
    product = "dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}"
    text = f"""HloModule test, is_scheduled=true, entry_computation_layout={{(s4[64,64]{{1,0}})->bf16[64,64]{{1,0}}}}

    ENTRY main {{
      a = s4[64,64]{{1,0}} parameter(0)
      c = bf16[64,64]{{1,0}} {product.replace("b)", "a)")}
      b = bf16[64,64]{{1,0}} negate(c)
      ROOT d = bf16[64,64]{{1,0}} {product.replace("a,", "b,")}
    }}
    """
    time_report = hlo_inspect.inspect(text, ("time",), profile=("a100-sxm-80gb", "h100-sxm"))
    rows = {row["figure"]: row for row in time_report.table("compared").records()}
    assert number(rows["all FLOPs alone"]["a100-sxm-80gb"]) > 0
    assert number(rows["all FLOPs alone"]["h100-sxm"]) > 0
    assert rows["all FLOPs alone"]["times_as_fast"] is None
    assert rows["all bytes alone"]["times_as_fast"] == pytest.approx(3352 / 2039, abs=1e-3)


def test_what_if_shows_the_time_saved() -> None:
    time_report = report(GATHERED, "h100-sxm", what_if=["links.nvlink.bandwidth=2x"])
    rows = {row["figure"]: row for row in time_report.table("compared").records()}
    assert rows["all collectives alone"]["times_as_fast"] == 2
    assert rows["all FLOPs alone"]["times_as_fast"] == 1
    likely = 2 * 3 * 2**23 / 450e9 / 2
    assert number(rows["exposed collectives at bounds"]["changed"]) < likely


UNKNOWN_LOOP = """HloModule test, is_scheduled=true, replica_count=2

%add (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %sum = f32[] add(%a, %b)
}

%body (x: f32[4096]) -> f32[4096] {
  %x = f32[4096] parameter(0)
  %k = f32[4096] negate(%x)
  ROOT %all = f32[4096] all-reduce(%k), replica_groups={{0,1}}, to_apply=%add
}

%cond (x: f32[4096]) -> pred[] {
  %x = f32[4096] parameter(0)
  %first = f32[1] slice(%x), slice={[0:1]}
  %number = f32[] reshape(%first)
  ROOT %more = pred[] compare(%number, %number), direction=LT
}

%short (x: f32[4096]) -> f32[4096] {
  %x = f32[4096] parameter(0)
  ROOT %s = f32[4096] negate(%x)
}

%long (x: f32[4096]) -> f32[4096] {
  %x = f32[4096] parameter(0)
  %l1 = f32[4096] negate(%x)
  ROOT %l2 = f32[4096] negate(%l1)
}

ENTRY %main (p: f32[4096], i: pred[]) -> f32[4096] {
  %p = f32[4096] parameter(0)
  %i = pred[] parameter(1)
  ROOT %w = f32[4096] LOOP_OR_BRANCH
}
"""
NEGATED = 2 * 4 * 4096 / 3352e9


def lower(time_report: Report, name: str) -> float:
    assert time_report.facts[f"time.{name}"] is None
    return number(time_report.facts[f"time.{name}.lower_bound"])


def test_a_loop_whose_count_is_not_known_runs_once_at_least() -> None:
    """The step is a lower bound then, and so are its parts."""
    text = UNKNOWN_LOOP.replace("LOOP_OR_BRANCH", "while(%p), condition=%cond, body=%body")
    time_report = hlo_inspect.inspect(StringIO(text), ("time",), profile="h100-sxm")
    assert lower(time_report, "kernels_s") == pytest.approx(NEGATED, rel=0.01)  # and two small kernels of the condition
    assert lower(time_report, "exposed_collective_s") == pytest.approx(4 * 4096 / 450e9)
    assert lower(time_report, "step_s") == pytest.approx(
        lower(time_report, "kernels_s") + lower(time_report, "exposed_collective_s"), rel=1e-9
    )
    assert lower(time_report, "estimate_step_s") > lower(time_report, "step_s")
    assert any(note.startswith("time.step_s: the trip count of w") for note in time_report.notes)


def test_in_a_loop_whose_count_is_not_known_resources_are_lower_bounds() -> None:
    """Lower bounds have no share."""
    text = UNKNOWN_LOOP.replace("LOOP_OR_BRANCH", "while(%p), condition=%cond, body=%body")
    time_report = hlo_inspect.inspect(StringIO(text), ("time",), profile="h100-sxm")
    rows = {row["resource"]: row for row in time_report.table("resources").records()}
    assert rows["nvlink"]["busy_s"] is None
    assert rows["nvlink"]["busy_s_lower_bound"] == pytest.approx(4 * 4096 / 450e9)
    assert [rows["nvlink"][name] for name in ("of_bound", "of_estimate")] == [None, None]
    for table in ("step", "time_by_scope"):
        assert set(column(time_report.table(table), "share")) == {None}, table
    assert set(column(time_report.table("step"), "bound_share")) == {None}


def test_a_conditional_takes_at_least_its_shorter_branch() -> None:
    text = UNKNOWN_LOOP.replace("LOOP_OR_BRANCH", "conditional(%i, %p, %p), true_computation=%short, false_computation=%long")
    time_report = hlo_inspect.inspect(StringIO(text), ("time",), profile="h100-sxm")
    assert lower(time_report, "step_s") == pytest.approx(NEGATED)
    assert lower(time_report, "estimate_step_s") == pytest.approx(1e-6 + NEGATED, rel=1e-3)
    rows = {row["name"]: row for row in time_report.table("kernels").records()}
    assert number(rows["s"]["bound_s_lower_bound"]) == pytest.approx(NEGATED)
    assert (rows["s"]["bound_s"], rows["l1"]["bound_s"], rows["l1"]["bound_s_lower_bound"]) == (None, None, 0)


def test_lines_without_a_computation_have_no_times() -> None:
    text = "%all = f32[4096] all-reduce(%k), replica_groups={{0,1}}, to_apply=%add\n"
    time_report = hlo_inspect.inspect(StringIO(text), ("time",), profile="h100-sxm")
    assert time_report.facts["time.step_s"] is None


@pytest.mark.skipif(not SHARED.is_dir(), reason="without the folder of shared dumps")
@pytest.mark.parametrize(
    ("name", "profile"),
    [
        ("gpu_h100x8/tf_fsdp_unroll", "h100-sxm"),
        ("tpu_v5e_2x4/decode_tp", "tpu-v5e"),
        ("tpu_v5e_2x4/pipeline_ppermute", "tpu-v5e"),
        ("timeline/gpu_a100_2x8_collective_zoo", "a100-sxm-80gb"),
        ("custom_calls/tpu_paged_attention_b4q8kv8", "tpu-v5e"),
    ],
)
def test_the_step_is_its_kernels_and_what_is_exposed(name: str, profile: str) -> None:
    facts = hlo_inspect.inspect(SHARED / f"{name}.opt.hlo.txt.xz", ("cost",), profile=profile).facts

    def least(fact: str) -> float:
        return number(facts[fact] if facts[fact] is not None else facts.get(f"{fact}.lower_bound") or 0)

    assert least("time.step_s") > 0
    for kind in ("", "estimate_"):
        parts = least(f"time.{kind}kernels_s") + least(f"time.{kind}exposed_collective_s")
        assert least(f"time.{kind}step_s") == pytest.approx(parts, rel=1e-9)
    assert least("time.step_s") <= least("time.estimate_step_s")


def test_a_text_without_its_entry_has_no_times() -> None:
    fused = "fused {\n  p = f32[8] parameter(0)\n  ROOT n = f32[8] negate(p)\n}"
    text = f"HloModule m, is_scheduled=true\n\n{fused}\n\nother {{\n  p = f32[8]"
    time_report = hlo_inspect.inspect(text, ("time",), profile="h100-sxm")
    assert [time_report.facts[name] for name in ("time.compute_s", "time.step_s", "time.estimate_step_s")] == [None] * 3
    assert ["".join(map(str, row.parts)) for row in time_report.headline if row.label == "step"] == [
        "unknown: the module has no entry computation"
    ]


def test_the_compilers_cycles_in_a_loop_of_unknown_length() -> None:
    """The loop runs once at least: 3000 cycles at 1.5 GHz are 2 us."""
    cycles = 'backend_config={"window_config":{"estimated_cycles":"3000","iteration_bounds":["1"]}}'
    text = UNKNOWN_LOOP.replace("%k = f32[4096] negate(%x)", f"%k = f32[4096] negate(%x), {cycles}")
    text = text.replace("LOOP_OR_BRANCH", "while(%p), condition=%cond, body=%body")
    time_report = hlo_inspect.inspect(StringIO(text), ("time",), profile="tpu-v5e")
    (row,) = (row for row in time_report.headline if row.label == "compiler")
    amounts = [part for part in row.parts if isinstance(part, Amount)]
    assert [lower_bound(part.value) for part in amounts] == [pytest.approx(2e-6), 3000, 1]
    assert [isinstance(part.value, Figure) for part in amounts] == [True, True, False]


def test_tables_of_pointers_take_no_time() -> None:
    """A tuple has 4 bytes for each of its elements by XLA's count, and runs in no kernel."""
    text = """HloModule m, is_scheduled=true, entry_computation_layout={(f32[1024]{0})->(f32[1024]{0}, f32[1024]{0})}

ENTRY %main (p: f32[1024]) -> (f32[1024], f32[1024]) {
  %p = f32[1024]{0} parameter(0)
  %n = f32[1024]{0} negate(%p)
  ROOT %t = (f32[1024]{0}, f32[1024]{0}) tuple(%n, %p)
}
"""
    facts = hlo_inspect.inspect(StringIO(text), ("time", "cost"), profile="h100-sxm").facts
    assert facts["cost.bytes_accessed"] == 2 * 4096 + 2 * 4
    assert facts["time.memory_s"] == facts["time.step_s"] == pytest.approx(2 * 4096 / 3352e9)


COPY = """HloModule m, is_scheduled=true, entry_computation_layout={(f32[8192,128]{1,0:T(8,128)})->f32[8192,128]{1,0:T(8,128)}}

ENTRY %main (p: f32[8192,128]) -> f32[8192,128] {
  %p = f32[8192,128]{1,0:T(8,128)} parameter(0)
  %s = (f32[8192,128]{1,0:T(8,128)S(1)}, f32[8192,128]{1,0:T(8,128)}, u32[]{:S(2)}) copy-start(%p)
  %d = f32[8192,128]{1,0:T(8,128)S(1)} copy-done(%s)
  ROOT %n = f32[8192,128]{1,0:T(8,128)S(1)} negate(%d)
}
"""


def test_memory_moves_each_byte_of_a_copy_to_the_chip_once() -> None:
    """4 MiB are read from HBM; by XLA's count start and done access 12 MiB of it, and VMEM has its own rate."""
    facts = hlo_inspect.inspect(StringIO(COPY), ("time",), profile="tpu-v5e").facts
    assert facts["time.memory_s"] == pytest.approx(4 * 8192 * 128 / 819e9)
    assert facts["time.step_s"] == pytest.approx(4 * 8192 * 128 / 819e9 + 8192 * 128 / 6.1e12)  # the negation follows


@pytest.mark.skipif(not (SHARED / "newest").is_dir(), reason="needs the dumps beside the checkout")
def test_a_published_step_of_256_chips() -> None:
    """20 billion parameters on 256 v5e took 13.6 s; the estimate lacks a part of one kernel."""
    facts = report(SHARED / "newest" / "v5e_16b.txt.xz", "tpu-v5e").facts
    assert number(facts["time.estimate_step_s.lower_bound"]) == pytest.approx(13.2, rel=0.01)


@pytest.mark.skipif(not (SHARED / "tpu_v5e_2x4").is_dir(), reason="needs the dumps beside the checkout")
def test_the_bottleneck_of_a_step_of_small_kernels() -> None:
    """About 100 kernels of 1.2 us each are two thirds of a step whose memory is busy for 2 % of it."""
    time_report = report(SHARED / "tpu_v5e_2x4" / "decode_tp.opt.hlo.txt.xz", "tpu-v5e")
    (line,) = (row for row in time_report.headline if row.label == "bottleneck")
    assert line.parts[0] == "fixed costs of kernels, "
    facts = time_report.facts
    assert number(facts["time.memory_s"]) <= number(facts["time.step_s"])

"""The page of `time` on dumps: rows that add up to the facts, shares, comparisons, and the page without a schedule."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

import hlo_inspect
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

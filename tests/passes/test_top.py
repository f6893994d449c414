"""The command `top`: kernels with their costs in one step, the most expensive first, in merged rows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import hlo_inspect
from hlo_inspect.report.layout import make_grid
from hlo_inspect.report.model import Report
from hlo_inspect.report.page import headline_text
from hlo_inspect.report.table import Value
from tests.tables import columns, totals

DATA = Path(__file__).parents[1] / "data"
DUMPS = sorted(json.loads((DATA / "expected.json").read_text(encoding="utf-8"))["dumps"])

TEXT = """HloModule m, num_partitions=2

%square (x: bf16[256,256]) -> bf16[256,256] {
  %x = bf16[256,256]{1,0} parameter(0)
  ROOT %y = bf16[256,256]{1,0} multiply(%x, %x)
}

%body (s: (s32[], bf16[256,256])) -> (s32[], bf16[256,256]) {
  %s = (s32[], bf16[256,256]{1,0}) parameter(0)
  %i = s32[] get-tuple-element(%s), index=0
  %a = bf16[256,256]{1,0} get-tuple-element(%s), index=1
  %square.1 = bf16[256,256]{1,0} fusion(%a), kind=kLoop, calls=%square, metadata={op_name="jit(f)/layers_1/mul"}
  %square.2 = bf16[256,256]{1,0} fusion(%square.1), kind=kLoop, calls=%square, metadata={op_name="jit(f)/layers_2/mul"}
  ROOT %t = (s32[], bf16[256,256]{1,0}) tuple(%i, %square.2)
}

%condition (s: (s32[], bf16[256,256])) -> pred[] {
  %s = (s32[], bf16[256,256]{1,0}) parameter(0)
  ROOT %c = pred[] constant(false)
}

ENTRY %main (p: bf16[256,256], zero: s32[]) -> bf16[256,256] {
  %p = bf16[256,256]{1,0} parameter(0)
  %zero = s32[] parameter(1)
  %t = (s32[], bf16[256,256]{1,0}) tuple(%zero, %p)
  %w = (s32[], bf16[256,256]{1,0}) while(%t), condition=%condition, body=%body, CONFIG
  %q = bf16[256,256]{1,0} get-tuple-element(%w), index=1
  %dot = bf16[256,256]{1,0} dot(%q, %p), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  %sum = bf16[256,256]{1,0} all-reduce(%dot), replica_groups={{0,1}}, channel_id=1, use_global_device_ids=true, to_apply=%square
  ROOT %copy = bf16[256,256]{1,0:S(1)} copy(%sum)
}
"""
LOOP = TEXT.replace("CONFIG", 'backend_config={"known_trip_count":{"n":"10"}}')
MATRIX, ELEMENTS = 2 * 2**16, 2**16
DOT = 2 * 2**24


def rows(report: Report, table: str, *names: str) -> dict[Value, tuple[object, ...]]:
    kernels = report.table(table)
    return {row[0]: values for row, values in zip(kernels.rows, columns(kernels, *names), strict=True)}


def test_one_row_a_kernel() -> None:
    """Ten runs of two fusions of two matrices; a product of three; two tables of pointers, one ten times, are no kernels."""
    report = hlo_inspect.inspect(LOOP, "top")
    assert rows(report, "kernels", "kind", "runs", "flops", "bytes", "line") == {
        "square.1": ("fusion", 10, 10 * ELEMENTS, 10 * 2 * MATRIX, 12),
        "square.2": ("fusion", 10, 10 * ELEMENTS, 10 * 2 * MATRIX, 13),
        "dot": ("dot", 1, DOT, 3 * MATRIX, 28),
        "sum": ("all-reduce", 1, ELEMENTS, 2 * MATRIX, 29),
        "copy": ("copy", 1, 0, 2 * MATRIX, 30),
        "(no kernel)": ("(no kernel)", 0, 0, 11 * 8, None),
    }
    assert rows(report, "kernels", "flop_per_byte")["dot"] == (DOT / (3 * MATRIX),)
    assert (report.facts["kernels.count"], report.facts["kernels.executed_count"]) == (5, 23)


def test_equal_kernels_share_a_row() -> None:
    """Numbers in the names of scopes make no difference."""
    report = hlo_inspect.inspect(LOOP, "top")
    assert report.table("kernels").page_as == "kernel_groups"
    groups = rows(report, "kernel_groups", "sites", "runs", "flops", "bytes", "scope")
    assert groups["square.* × 2"] == (2, 20, 20 * ELEMENTS, 20 * 2 * MATRIX, "layers_*")
    assert len(groups) == 5
    shares = [row[0] for row in rows(report, "kernel_groups", "share").values()]
    assert sum(share for share in shares if isinstance(share, float)) == pytest.approx(1)


def test_a_share_of_a_lower_bound_is_not_known() -> None:
    """Two fusions run an unknown number of times: nothing is known of the share of any row, by bytes or by time."""
    text = LOOP.replace('"known_trip_count":{"n":"10"}', "")
    assert text != LOOP
    for profile in (None, "h100-sxm"):
        report = hlo_inspect.inspect(text, "top", profile=profile)
        for table in ("kernels", "kernel_groups"):
            assert {share for (share,) in rows(report, table, "share").values()} == {None}
    assert rows(report, "kernels", "bytes_lower_bound")["square.1"] == (2 * MATRIX,)


def test_names_without_a_common_part_are_shown_by_their_kind() -> None:
    """The kind stands for them."""
    text = LOOP.replace("square.1", "a").replace("square.2", "b").replace("layers_1", "layer").replace("layers_2", "layer")
    assert next(iter(rows(hlo_inspect.inspect(text, "top"), "kernel_groups", "sites"))) == "fusion × 2"


def test_times_are_bounds() -> None:
    """On an H100 with 3352 GB/s; one of two devices sends the whole matrix with 450 GB/s."""
    report = hlo_inspect.inspect(LOOP, "top", profile="h100-sxm")
    kernels = rows(report, "kernels", "bound_s", "bound_by")
    assert kernels["square.1"] == (pytest.approx(10 * 2 * MATRIX / 3352e9), "memory")
    assert kernels["dot"] == (pytest.approx(3 * MATRIX / 3352e9), "memory")
    assert kernels["sum"] == (pytest.approx(MATRIX / 450e9), "collective")
    assert kernels["(no kernel)"] == (0.0, None)
    assert list(kernels) == ["square.1", "square.2", "sum", "dot", "copy", "(no kernel)"]


def test_memory_on_the_chip_takes_no_time() -> None:
    """`S(1)` is VMEM on a TPU: the copy reads one matrix at 819 GB/s, and writes none."""
    kernels = rows(hlo_inspect.inspect(LOOP, "top", profile="tpu-v5e"), "kernels", "bound_s")
    assert kernels["copy"] == (pytest.approx(MATRIX / 819e9),)


def test_a_loop_that_runs_unknown_times() -> None:
    report = hlo_inspect.inspect(TEXT.replace(", CONFIG", ""), "top", profile="h100-sxm")
    names = ("runs", "runs_lower_bound", "bytes", "bytes_lower_bound")
    assert rows(report, "kernels", *names)["square.1"] == (None, 1, None, 2 * MATRIX)
    times = rows(report, "kernels", "bound_s", "bound_s_lower_bound")
    assert times["square.1"] == (None, pytest.approx(2 * MATRIX / 3352e9))
    assert report.facts["kernels.executed_count"] is None
    assert report.facts["kernels.executed_count.lower_bound"] == 5
    assert any(note.startswith("kernels.executed_count: the trip count of w (line 26)") for note in report.notes)


def test_work_of_a_custom_call_without_a_rule_is_not_known() -> None:
    text = LOOP.replace("copy(%sum)", 'custom-call(%sum), custom_call_target="odd"')
    report = hlo_inspect.inspect(text, "top", profile="h100-sxm")
    odd_call = rows(report, "kernels", "flops", "bytes", "bound_s", "bound_s_lower_bound", "bound_by")["copy"]
    assert odd_call == (None, 2 * MATRIX, None, pytest.approx(2 * MATRIX / 3352e9), None)


def test_a_collective_without_a_bound_takes_no_known_time() -> None:
    """A ragged all-to-all sends what its operands say at run time."""
    layout = "entry_computation_layout={(f32[64]{0}, s64[8]{0})->f32[64]{0}}"
    text = f"""HloModule m, is_scheduled=true, num_partitions=8, {layout}

    ENTRY main {{
      p = f32[64]{{0}} parameter(0)
      o = s64[8]{{0}} parameter(1)
      ROOT r = f32[64]{{0}} ragged-all-to-all(p, p, o, o, o, o), channel_id=1, replica_groups={{{{0,1,2,3,4,5,6,7}}}}
    }}
    """
    kernels = rows(
        hlo_inspect.inspect(text, "top", profile="h100-sxm"), "kernels", "bound_s", "bound_s_lower_bound", "bound_by"
    )
    assert kernels["r"] == (None, 0.0, None)


@pytest.mark.parametrize("name", DUMPS)
def test_rows_add_up_to_what_the_module_costs(name: str) -> None:
    for report in hlo_inspect.inspect_all(DATA / name, ("top", "cost")):
        for table in ("kernels", "kernel_groups"):
            sums = totals(report.table(table))
            for column, fact in (("flops", "flops"), ("bytes", "bytes_accessed"), ("matmul_flops", "matmul_flops")):
                if sums.get(column) is not None and not report.facts["cost.unknown_custom_calls"]:
                    assert sums[column] == report.facts[f"cost.executed_{fact}"]


@pytest.mark.parametrize("command", ["top", "cost", "fusions"])
def test_calls_that_double_without_end(command: str) -> None:
    """2^3000 runs are more than can be counted, and than a float holds."""
    step = "%step {\n  %x = f32[8] parameter(0)\n  ROOT %y = f32[8] negate(%x)\n}\n"
    doubling = "".join(
        f"%c{i} {{\n  %x = f32[8] parameter(0)\n  %y = f32[8] call(%x), to_apply={callee}\n"
        f"  ROOT %z = f32[8] call(%y), to_apply={callee}\n}}\n"
        for i in range(3000)
        for callee in [f"%c{i - 1}" if i else "%step"]
    )
    entry = "ENTRY %main {\n  %p = f32[8] parameter(0)\n  ROOT %c = f32[8] call(%p), to_apply=%c2999\n}\n"
    report = hlo_inspect.inspect(f"HloModule m\n\n{step}{doubling}{entry}", command, profile="h100-sxm")
    if command == "top":
        assert report.facts["kernels.executed_count"] is None
        assert rows(report, "kernels", "flops", "bytes_lower_bound")["y"] == (None, 10**30)


TPU_DUMP = DATA / "tpu" / "scan_forward.after.txt"


@pytest.mark.parametrize("command", ["top", "cost"])
def test_a_note_names_an_inferred_clock(command: str) -> None:
    """No document states the clock of a TPU v6e; that of a v5e is stated."""
    said = "the compiler's cycles are converted to seconds by an inferred clock of tpu-v6e, 1.75 GHz: no document states it"
    assert any(note.endswith(said) for note in hlo_inspect.inspect(TPU_DUMP, command, profile="tpu-v6e").notes)
    assert not any("inferred clock" in note for note in hlo_inspect.inspect(TPU_DUMP, command, profile="tpu-v5e").notes)


def test_kernels_without_an_estimate_are_counted() -> None:
    text = LOOP.replace("copy(%sum)", 'custom-call(%sum), custom_call_target="odd"')
    report = hlo_inspect.inspect(text, "top", profile="h100-sxm")
    assert "kernels: estimates are lower bounds, because there is no rule for odd (1 kernel)" in report.notes
    assert rows(report, "kernels", "estimate_s", "estimate_s_lower_bound")["copy"] == (
        None,
        pytest.approx(1e-6 + 2 * MATRIX / 3352e9),
    )


def test_estimates_of_equal_kernels_add_up() -> None:
    """Ten runs of each of two fusions: a launch, two matrices and 5 % of 65,536 FLOPs at 133.8 TFLOP/s."""
    report = hlo_inspect.inspect(LOOP, "top", profile="h100-sxm")
    once = 1e-6 + 2 * MATRIX / 3352e9 + 0.05 * ELEMENTS / 133.8e12
    assert rows(report, "kernel_groups", "estimate_s")["square.* × 2"] == (pytest.approx(20 * once),)


@pytest.mark.parametrize("profile", [None, "h100-sxm"])
@pytest.mark.parametrize("raw_bytes", [False, True])
def test_a_page_of_the_usual_width_has_the_source(profile: str | None, raw_bytes: bool) -> None:
    groups = hlo_inspect.inspect(DATA / DUMPS[0], "top", profile=profile).table("kernel_groups")
    assert "source" not in make_grid(groups, None, raw_bytes).hidden


UNFUSED = """HloModule m, entry_computation_layout={(f32[64,64]{1,0}, f32[4096,64]{1,0})->(f32[64,64]{1,0}, f32[4096,64]{1,0})}

ENTRY e {
  p = f32[64,64]{1,0} parameter(0)
  q = f32[4096,64]{1,0} parameter(1)
  product = f32[64,64]{1,0} dot(p, p), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  sum = f32[4096,64]{1,0} add(q, q)
  ROOT t = (f32[64,64]{1,0}, f32[4096,64]{1,0}) tuple(product, sum)
}
"""


def test_before_fusion_kernels_are_ordered_by_flops() -> None:
    """The product has 2 * 64^3 FLOPs and 48 KiB; the sum has 64 * 4,096 FLOPs and 3 MiB, which may never move."""
    table = hlo_inspect.inspect(UNFUSED, "top").table("kernels")
    assert columns(table, "name", "flops", "bytes")[:2] == [("product", 2 * 64**3, 3 * 2**14), ("sum", 64 * 4096, 3 * 2**20)]
    assert [row[0] for row in columns(table, "share")] == pytest.approx([2 / 3, 1 / 3, 0])
    assert {"share of flops", "as written"} < set(make_grid(table, 200).header)
    compute = next(row for row in hlo_inspect.inspect(UNFUSED, "summary").headline if row.label == "compute")
    assert "".join(map(str, compute.parts)).endswith(" as written, before fusion")


def test_the_page_says_how_much_of_its_rows_is_hidden() -> None:
    """A transpose of 16 MiB hides its 6.0 us of one gather, a product hides another whole: 18.6 us and 24 MiB on the links."""
    report = hlo_inspect.inspect(DATA / "gpu/gathered_matmul.after.txt", "top", profile="h100-sxm")
    hidden = next(row for row in report.headline if row.label == "rows")
    bounds = 2**24 / 3352e9 + 3 * 2**23 / 450e9
    estimates = (1e-6 + 2**24 / 3352e9) + (18.6e-6 + 3 * 2**23 / (0.824 * 450e9))
    text = f"bounds add up to {1e6 * bounds:.1f} µs more than the step, estimates {1e6 * estimates:.1f} µs more"
    assert headline_text(hidden).replace("\u00a0", " ").startswith(text)
    time = hlo_inspect.inspect(DATA / "gpu/gathered_matmul.after.txt", "time", profile="h100-sxm").facts["time.estimate_step_s"]
    assert isinstance(time, float)
    assert totals(report.table("kernels"))["estimate_s"] == pytest.approx(time + estimates, rel=1e-3)
    assert not hlo_inspect.inspect(DATA / "gpu/gathered_matmul.after.txt", "top").headline

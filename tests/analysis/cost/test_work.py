"""The work of single instructions, computed by hand, and the unit of the hardware that does it."""

from __future__ import annotations

import pytest

from hlo_inspect.analysis.cost import work
from hlo_inspect.analysis.cost.bytes_accessed import FREE
from hlo_inspect.analysis.cost.figures import TallyKey, UnknownCostError, Work
from hlo_inspect.analysis.cost.operation import APPLYING, CALLERS, Operation
from hlo_inspect.analysis.hardware import load_profile, profile_names
from hlo_inspect.hlo.opcodes import OPCODES, opcodes_that_are
from tests.analysis.cost.small import cost_of, operation

ONCE = Work(2, 1)
"""A run of the applied computation."""

# HloCostAnalysis::HandleElementwiseOp lists these; every other elementwise opcode is a FLOP.
_TRANSCENDENTAL = """
acos acosh asin asinh atan2 atanh cbrt cosine cosh erf exponential exponential-minus-one log log-plus-one logistic power rsqrt
sine sinh sqrt tan tanh
"""
TRANSCENDENTAL = _TRANSCENDENTAL.split()
_WITHOUT_WORK = """
all-gather all-gather-start all-to-all async-done async-update batch-norm-grad batch-norm-inference batch-norm-training
broadcast collective-permute concatenate copy copy-start dynamic-slice dynamic-update-slice gather infeed iota opt-barrier
outfeed pad partition-id recv reduce-scatter reshape reverse rng-get-and-update-state send set-dimension-size slice topk
transpose tuple
"""
WITHOUT_WORK = _WITHOUT_WORK.split()


def ten_flops(op: Operation, attribute: str) -> Work:
    return Work(10)


def done(line: str, *shapes: str) -> Work:
    return work.work_of(operation(*[f"%p{i} = {shape} parameter({i})" for i, shape in enumerate(shapes)], line), ten_flops)


@pytest.mark.parametrize("opcode", sorted({*TRANSCENDENTAL, *opcodes_that_are("transcendental")}))
def test_transcendentals(opcode: str) -> None:
    assert done(f"%r = f32[3,4] {opcode}(%p0)", "f32[3,4]") == Work(0, 12)


@pytest.mark.parametrize("opcode", sorted(opcodes_that_are("flop")))
def test_flops_of_the_result(opcode: str) -> None:
    """Whatever the type, and however many operands."""
    assert done(f"%r = pred[3,4] {opcode}(%p0, %p0)", "s8[3,4]") == Work(12)


def test_each_elementwise_opcode_is_one_or_the_other() -> None:
    assert set(work.ELEMENTWISE) <= OPCODES
    assert not set(work.ELEMENTWISE) & (FREE | CALLERS | set(WITHOUT_WORK))


@pytest.mark.parametrize("opcode", WITHOUT_WORK)
def test_opcodes_that_move_data_do_no_work(opcode: str) -> None:
    assert done(f"%r = f32[8] {opcode}(%p0)", "f32[8]") == Work()


APPLICATIONS = {
    "map": 2,
    "reduce": 7 - 2,
    "scan": 7,
    "scatter": 7,
    "reduce-window": (7 - 1) * 2,
    "select-and-scatter": 7 * 6 + 7,
}
"""For a result of two elements, operands of seven and a window of seven."""


@pytest.mark.parametrize("opcode", sorted(APPLYING))
def test_applied_computations_count_once_per_application(opcode: str) -> None:
    line = f"%r = f32[2] {opcode}(%p0, %p0, %p0), window={{size=7}}, to_apply=%f, select=%f, scatter=%f"
    assert done(line, "f32[7]") == Work(10 * APPLICATIONS[opcode])


def test_an_opcode_that_xla_does_not_have() -> None:
    with pytest.raises(UnknownCostError, match="no rule for the opcode frobnicate"):
        done("%r = f32[8] frobnicate(%p0)", "f32[8]")


def test_a_short_spelling_does_the_work_of_what_it_wraps() -> None:
    assert done("%r = ((f32[8]), f32[8]) add-start(%p0)", "f32[8]") == Work(8)


# -- computations applied to elements, and formulas ----------------------------------------------------------------------------


def applied(op: Operation, attribute: str) -> Work:
    return {"to_apply": ONCE, "select": Work(3), "scatter": Work(0, 5)}[attribute]


def inputs(*shapes: str) -> list[str]:
    return [f"%p{i} = {shape} parameter({i})" for i, shape in enumerate(shapes)]


def test_map() -> None:
    assert work.mapped(operation(*inputs("f32[3,4]"), "%r = f32[3,4] map(%p0)"), applied) == ONCE.times(12)


def test_reduce_counts_what_vanishes() -> None:
    op = operation(*inputs("f32[3,4]", "f32[]"), "%r = f32[3] reduce(%p0, %p1), dimensions={1}")
    assert work.reduced(op, applied) == ONCE.times(12 - 3)


def test_empty_arrays_cost_nothing() -> None:
    """XLA's counts are -10 and -8."""
    op = operation(*inputs("f32[0,10]", "f32[]"), "%r = f32[10] reduce(%p0, %p1), dimensions={0}")
    assert work.reduced(op, applied) == ONCE.times(0)
    assert work.fft(operation(*inputs("c64[1]"), "%r = c64[1] fft(%p0), fft_type=FFT, fft_length={0}")).flops == 0


def test_reduce_of_two_arrays_counts_once() -> None:
    op = operation(*inputs("f32[3,4]", "s32[3,4]", "f32[]", "s32[]"), "%r = (f32[4], s32[4]) reduce(%p0, %p1, %p2, %p3)")
    assert work.reduced(op, applied) == ONCE.times(12 - 4)


def test_scan_counts_the_second_operand() -> None:
    op = operation(*inputs("f32[9]", "f32[5]"), "%r = (f32[9], f32[5]) scan(%p0, %p1)")
    assert work.scanned(op, applied) == ONCE.times(5)


def test_scatter_counts_the_first_update() -> None:
    op = operation(*inputs("f32[9]", "s32[2,1]", "f32[2]"), "%r = f32[9] scatter(%p0, %p1, %p2)")
    assert work.scattered(op, applied) == ONCE.times(2)
    two = operation(
        *inputs("f32[9]", "f32[9]", "s32[3,1]", "f32[3]", "f32[3]"), "%r = (f32[9], f32[9]) scatter(%p0, %p1, %p2, %p3, %p4)"
    )
    assert work.scattered(two, applied) == ONCE.times(3)


def test_reduce_window() -> None:
    """A window of 2×3 takes five applications for each output."""
    op = operation(*inputs("f32[4,9]", "f32[]"), "%r = f32[2,3] reduce-window(%p0, %p1), window={size=2x3 stride=2x3}")
    assert work.reduce_window(op, applied) == ONCE.times(5 * 6)


def test_a_window_over_a_whole_dimension_is_a_reduce_and_a_broadcast() -> None:
    """Five columns of four: three applications for each column's sum, and one sum for all: XLA's 20/4 + 4 - 1."""
    text = "%r = f32[4,5] reduce-window(%p0, %p1), window={size=7x1 pad=3_3x0_0}"
    assert work.reduce_window(operation(*inputs("f32[4,5]", "f32[]"), text), applied) == ONCE.times(20 // 4 + 4 - 1)


@pytest.mark.parametrize(
    ("window", "result"),
    [
        ("{size=5x1 pad=2_2x0_0}", "f32[4,5]"),  # does not reach over all four
        ("{size=7x1 pad=3_2x0_0}", "f32[3,5]"),  # not the same on both sides
        ("{size=7x1 pad=3_3x0_0}", "(f32[4,5], f32[4,5])"),  # several arrays
    ],
)
def test_other_padded_windows_are_counted_in_full(window: str, result: str) -> None:
    op = operation(*inputs("f32[4,5]", "f32[]"), f"%r = {result} reduce-window(%p0, %p1), window={window}")
    size = int(window[6])
    assert work.reduce_window(op, applied) == ONCE.times((size - 1) * (15 if "f32[3,5]" in result else 20))


def test_two_padded_dimensions_are_counted_in_full() -> None:
    op = operation(*inputs("f32[4,5]", "f32[]"), "%r = f32[4,7] reduce-window(%p0, %p1), window={size=7x1 pad=3_3x1_1}")
    assert work.reduce_window(op, applied) == ONCE.times(6 * 28)


def test_select_and_scatter() -> None:
    """Four sources, windows of three: two selects and one scatter each."""
    op = operation(*inputs("f32[12]", "f32[4]", "f32[]"), "%r = f32[12] select-and-scatter(%p0, %p1, %p2), window={size=3}")
    assert work.select_and_scatter(op, applied) == Work(4 * 2 * 3, 4 * 5)


@pytest.mark.parametrize(("count", "flops"), [(0, 0), (1, 0), (2, 2), (5, 15), (8, 24), (9, 36)])
def test_sort(count: int, flops: int) -> None:
    """It makes n · ⌈log2 n⌉ comparisons."""
    assert work.sort(operation(*inputs(f"f32[{count}]"), f"%r = f32[{count}] sort(%p0), dimensions={{0}}")) == Work(flops)


def test_fft() -> None:
    """2 · 4 · ⌊log2 8⌋ · ⌊log2 5⌋ for each element."""
    assert work.fft(operation(*inputs("c64[3,8,5]"), "%r = c64[3,8,5] fft(%p0), fft_length={8,5}")) == Work(8 * 3 * 2 * 120)


def test_triangular_solve() -> None:
    op = operation(*inputs("f32[4,4]", "f32[4,6]"), "%r = f32[4,6] triangular-solve(%p0, %p1)")
    assert work.triangular_solve(op) == Work(2 * 4 * 24)


def test_cholesky() -> None:
    """Two matrices of 4×4: 4·32/3, rounded down."""
    assert work.cholesky(operation(*inputs("f32[2,4,4]"), "%r = f32[2,4,4] cholesky(%p0)")) == Work(42)
    with pytest.raises(UnknownCostError):
        work.cholesky(operation(*inputs("f32[]"), "%r = f32[] cholesky(%p0)"))


def test_random_numbers_are_transcendentals() -> None:
    assert work.random(operation("%r = (u64[2], u32[5,3]) rng-bit-generator()")) == Work(0, 17)


def test_all_reduce_is_an_operation_per_element() -> None:
    assert work.all_reduce(operation("%r = (f32[5], f32[3,2]) all-reduce()")) == Work(11)


# -- units ---------------------------------------------------------------------------------------------------------------------


def units(*lines: str, before: str = "") -> dict[str, int]:
    """FLOPs by unit."""
    rows = cost_of(*lines, before=before).opcodes.rows
    return {key.unit: row[0] for key, row in rows.items() if row[0]}


@pytest.mark.parametrize(
    ("dtype", "unit"),
    [
        ("f32", "vector.f32"),
        ("bf16", "vector.bf16"),
        ("f8e4m3fn", "vector.f8"),
        ("s32", "vector.s32"),
        ("u8", "vector.s32"),
        ("pred", "vector.s32"),
        ("s64", ""),
        ("c64", "vector.c64"),
        ("", ""),
    ],
)
def test_elementwise(dtype: str, unit: str) -> None:
    assert work.elementwise_key("add", dtype) == TallyKey("add", unit)


@pytest.mark.parametrize(
    ("lhs", "rhs", "unit"),
    [
        ("bf16", "bf16", "matmul.bf16"),
        ("bf16", "f32", "matmul.f32"),
        ("f8e4m3fn", "f8e5m2", "matmul.f8"),
        ("s8", "u8", "matmul.s8"),
        ("s4", "s8", "matmul.s8"),
        ("c64", "c64", "matmul.c64"),
        ("pred", "pred", ""),
    ],
)
def test_matrix_products_run_in_the_wider_type(lhs: str, rhs: str, unit: str) -> None:
    assert work.matmul_unit(lhs, rhs) == unit


def test_units_are_figures_of_profiles() -> None:
    figures = [set(load_profile(name).figures) for name in profile_names()]
    dtypes = ("f64", "f32", "bf16", "f16", "f8e5m2", "s32", "pred", "s8", "s4")
    named = {work.elementwise_key("add", dtype).unit for dtype in dtypes} | {
        work.matmul_unit(d, d) for d in dtypes if d != "pred"
    }
    assert all(named <= stated for stated in figures)


def test_a_comparison_runs_in_the_type_that_it_compares() -> None:
    p = "%p = f32[8] parameter(0)"
    assert units(p, "%c = pred[8] compare(%p, %p), direction=LT") == {"vector.f32": 8}
    fused = f"%f {{\n  {p}\n  ROOT %c = pred[8] compare(%p, %p), direction=LT\n}}\n"
    assert units(p, "%g = pred[8] fusion(%p), kind=kLoop, calls=%f", before=fused) == {"vector.f32": 8}


def test_a_product_runs_in_the_type_of_its_operands() -> None:
    """Whatever type it accumulates in. An applied computation runs in the type of the instruction that applies it."""
    p = "%p = bf16[8] parameter(0)"
    assert units(p, "%d = f32[] dot(%p, %p), lhs_contracting_dims={0}, rhs_contracting_dims={0}") == {"matmul.bf16": 16}
    assert units(p, "%z = bf16[] constant(0)", "%r = bf16[] reduce(%p, %z), dimensions={0}, to_apply=%add") == {
        "vector.bf16": 7
    }


def test_a_kernel_does_not_tell_its_unit() -> None:
    config = 'backend_config={"custom_call_config":{"cost_estimate":{"flops":"2048"}}}'
    line = f'%c = f32[8] custom-call(%p), custom_call_target="tpu_custom_call", {config}'
    assert units("%p = f32[8] parameter(0)", line) == {"": 2048}

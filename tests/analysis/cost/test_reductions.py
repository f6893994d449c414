from __future__ import annotations

import pytest

from hlo_inspect.analysis.cost import reductions
from hlo_inspect.analysis.cost.model import UnknownCostError, Work
from hlo_inspect.analysis.cost.operation import Operation
from tests.analysis.cost.small import operation

ONCE = Work(2, 1)
"""One run of what is applied."""


def applied(op: Operation, attribute: str) -> Work:
    return {"to_apply": ONCE, "select": Work(3), "scatter": Work(0, 5)}[attribute]


def inputs(*shapes: str) -> list[str]:
    return [f"%p{i} = {shape} parameter({i})" for i, shape in enumerate(shapes)]


def test_map() -> None:
    assert reductions.mapped(operation(*inputs("f32[3,4]"), "%r = f32[3,4] map(%p0)"), applied) == ONCE.times(12)


def test_reduce_counts_what_vanishes() -> None:
    op = operation(*inputs("f32[3,4]", "f32[]"), "%r = f32[3] reduce(%p0, %p1), dimensions={1}")
    assert reductions.reduced(op, applied) == ONCE.times(12 - 3)


def test_reduce_of_two_arrays_counts_once() -> None:
    op = operation(*inputs("f32[3,4]", "s32[3,4]", "f32[]", "s32[]"), "%r = (f32[4], s32[4]) reduce(%p0, %p1, %p2, %p3)")
    assert reductions.reduced(op, applied) == ONCE.times(12 - 4)


def test_scan_counts_the_second_operand() -> None:
    op = operation(*inputs("f32[9]", "f32[5]"), "%r = (f32[9], f32[5]) scan(%p0, %p1)")
    assert reductions.scanned(op, applied) == ONCE.times(5)


def test_scatter_counts_the_first_update() -> None:
    op = operation(*inputs("f32[9]", "s32[2,1]", "f32[2]"), "%r = f32[9] scatter(%p0, %p1, %p2)")
    assert reductions.scattered(op, applied) == ONCE.times(2)
    two = operation(
        *inputs("f32[9]", "f32[9]", "s32[3,1]", "f32[3]", "f32[3]"), "%r = (f32[9], f32[9]) scatter(%p0, %p1, %p2, %p3, %p4)"
    )
    assert reductions.scattered(two, applied) == ONCE.times(3)


def test_reduce_window() -> None:
    """A window of 2×3 takes five applications for each output."""
    op = operation(*inputs("f32[4,9]", "f32[]"), "%r = f32[2,3] reduce-window(%p0, %p1), window={size=2x3 stride=2x3}")
    assert reductions.reduce_window(op, applied) == ONCE.times(5 * 6)


def test_a_window_over_a_whole_dimension_is_a_reduce_and_a_broadcast() -> None:
    """Five columns of four: three applications for each column's sum, and one sum for all: XLA's 20/4 + 4 - 1."""
    text = "%r = f32[4,5] reduce-window(%p0, %p1), window={size=7x1 pad=3_3x0_0}"
    assert reductions.reduce_window(operation(*inputs("f32[4,5]", "f32[]"), text), applied) == ONCE.times(20 // 4 + 4 - 1)


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
    assert reductions.reduce_window(op, applied) == ONCE.times((size - 1) * (15 if "f32[3,5]" in result else 20))


def test_two_padded_dimensions_are_counted_in_full() -> None:
    op = operation(*inputs("f32[4,5]", "f32[]"), "%r = f32[4,7] reduce-window(%p0, %p1), window={size=7x1 pad=3_3x1_1}")
    assert reductions.reduce_window(op, applied) == ONCE.times(6 * 28)


def test_select_and_scatter() -> None:
    """Four sources, windows of three: two selects and one scatter each."""
    op = operation(*inputs("f32[12]", "f32[4]", "f32[]"), "%r = f32[12] select-and-scatter(%p0, %p1, %p2), window={size=3}")
    assert reductions.select_and_scatter(op, applied) == Work(4 * 2 * 3, 4 * 5)


@pytest.mark.parametrize(("count", "flops"), [(0, 0), (1, 0), (2, 2), (5, 15), (8, 24), (9, 36)])
def test_sort(count: int, flops: int) -> None:
    """As many comparisons as n · ⌈log2 n⌉."""
    assert reductions.sort(operation(*inputs(f"f32[{count}]"), f"%r = f32[{count}] sort(%p0), dimensions={{0}}")) == Work(flops)


def test_fft() -> None:
    """2 · 4 · ⌊log2 8⌋ · ⌊log2 5⌋ for each element."""
    assert reductions.fft(operation(*inputs("c64[3,8,5]"), "%r = c64[3,8,5] fft(%p0), fft_length={8,5}")) == Work(
        8 * 3 * 2 * 120
    )


def test_triangular_solve() -> None:
    op = operation(*inputs("f32[4,4]", "f32[4,6]"), "%r = f32[4,6] triangular-solve(%p0, %p1)")
    assert reductions.triangular_solve(op) == Work(2 * 4 * 24)


def test_cholesky() -> None:
    """Two matrices of 4×4: 4·32/3, rounded down."""
    assert reductions.cholesky(operation(*inputs("f32[2,4,4]"), "%r = f32[2,4,4] cholesky(%p0)")) == Work(42)
    with pytest.raises(UnknownCostError):
        reductions.cholesky(operation(*inputs("f32[]"), "%r = f32[] cholesky(%p0)"))


def test_random_numbers_are_transcendentals() -> None:
    assert reductions.random(operation("%r = (u64[2], u32[5,3]) rng-bit-generator()")) == Work(0, 17)


def test_all_reduce_is_an_operation_per_element() -> None:
    assert reductions.all_reduce(operation("%r = (f32[5], f32[3,2]) all-reduce()")) == Work(11)

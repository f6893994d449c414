from __future__ import annotations

import itertools
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hlo_inspect.analysis.cost.figures import UnknownCostError, Work
from hlo_inspect.analysis.cost.work import (
    MAX_KERNEL,
    convolution,
    dot,
    ragged_dot,
    valid_positions,
)
from hlo_inspect.hlo.values.attributes import WindowDimension
from tests.analysis.cost.small import operation


def matmul(flops: int) -> Work:
    return Work(flops, 0, flops)


def binary(opcode: str, lhs: str, rhs: str, result: str, attributes: str) -> str:
    """Join two parameters and the instruction, as `operation` takes them."""
    return f"%x = {lhs} parameter(0)\n  %y = {rhs} parameter(1)\n  %z = {result} {opcode}(%x, %y), {attributes}"


def work_of(opcode: str, lhs: str, rhs: str, result: str, attributes: str = "metadata={}") -> Work:
    rule = {"dot": dot, "scaled-dot": dot, "ragged-dot": ragged_dot, "convolution": convolution}[opcode]
    return rule(operation(*binary(opcode, lhs, rhs, result, attributes).split("\n  ")))


def test_a_matrix_product() -> None:
    """2 × rows × columns × inner."""
    both = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"
    assert work_of("dot", "f32[3,5]", "f32[5,7]", "f32[3,7]", both) == matmul(2 * 3 * 7 * 5)
    assert work_of("scaled-dot", "f8e4m3fn[3,32]", "f8e4m3fn[32,7]", "f32[3,7]", both) == matmul(2 * 3 * 7 * 32)


def test_batches_and_several_contracted_dimensions() -> None:
    attributes = "lhs_batch_dims={0}, lhs_contracting_dims={1,3}, rhs_batch_dims={0}, rhs_contracting_dims={1,2}"
    assert work_of("dot", "f32[2,3,4,5]", "f32[2,3,5,6]", "f32[2,4,6]", attributes) == matmul(2 * (2 * 4 * 6) * (3 * 5))


def test_an_outer_product_contracts_nothing() -> None:
    assert work_of("dot", "f32[3]", "f32[4]", "f32[3,4]") == matmul(2 * 12)


@pytest.mark.parametrize("lhs", ["f32[3]", "f32[3,?]", "(f32[3])"])
def test_a_contracted_dimension_that_is_not_there(lhs: str) -> None:
    with pytest.raises(UnknownCostError):
        work_of("dot", lhs, "f32[5,7]", "f32[3,7]", "lhs_contracting_dims={1}, rhs_contracting_dims={0}")


def test_a_ragged_dot_with_groups_of_weights() -> None:
    """XLA leaves out the first dimension of the result for one group dimension, whatever it is."""
    attributes = "lhs_contracting_dims={1}, rhs_contracting_dims={1}, lhs_ragged_dims={0}, rhs_group_dims={0}"
    assert work_of("ragged-dot", "f32[11,5]", "f32[3,5,7]", "f32[11,7]", attributes) == matmul(2 * 7 * 5)


def test_a_ragged_dot_without_group_dimensions() -> None:
    attributes = "lhs_contracting_dims={1}, rhs_contracting_dims={0}, lhs_ragged_dims={1}, rhs_group_dims={}"
    assert work_of("ragged-dot", "f32[11,5]", "f32[5,7]", "f32[3,11,7]", attributes) == matmul(2 * 3 * 11 * 7 * 5)


def test_more_group_dimensions_than_the_result_has() -> None:
    with pytest.raises(UnknownCostError):
        work_of("ragged-dot", "f32[5]", "f32[5]", "f32[]", "lhs_contracting_dims={0}, rhs_group_dims={0}")


def test_a_convolution_of_ones() -> None:
    """A 1×1 kernel is a matrix product of features over all pixels."""
    attributes = "window={size=1x1}, dim_labels=b01f_01io->b01f"
    assert work_of("convolution", "f32[2,5,6,3]", "f32[1,1,3,7]", "f32[2,5,6,7]", attributes) == matmul(2 * 2 * 5 * 6 * 3 * 7)


def test_padding_is_not_multiplied() -> None:
    """A window of 3 over 4 with a border of 1: 3·4 pairs less one at either end."""
    attributes = "window={size=3 pad=1_1}, dim_labels=bf0_io0->bf0"
    assert work_of("convolution", "f32[1,1,4]", "f32[1,1,3]", "f32[1,1,4]", attributes) == matmul(2 * 10)


def test_groups_of_features_and_of_the_batch() -> None:
    depthwise = "window={size=1}, dim_labels=b0f_0io->b0f, feature_group_count=4"
    assert work_of("convolution", "f32[2,5,8]", "f32[1,2,12]", "f32[2,5,12]", depthwise) == matmul(2 * 2 * 5 * (8 // 4) * 12)
    batched = "window={size=1}, dim_labels=b0f_0io->b0f, batch_group_count=2"
    assert work_of("convolution", "f32[4,5,8]", "f32[1,8,12]", "f32[2,5,12]", batched) == matmul(2 * (4 // 2) * 5 * 8 * 12)


def test_no_spatial_dimensions() -> None:
    assert work_of("convolution", "f32[4,8]", "f32[8,12]", "f32[4,12]", "dim_labels=bf_io->bf") == matmul(2 * 4 * 8 * 12)


@pytest.mark.parametrize(
    "attributes",
    [
        "window={size=1}",
        "window={size=1}, dim_labels=b0f_0io",
        "window={size=1}, dim_labels=bf_io->bf",
        "window={size=1}, dim_labels=b0f_0io->b0f, feature_group_count=0",
        "window={size=ax1}, dim_labels=b0f_0io->b0f",
        "window={size=1x1 stride=2}, dim_labels=b0f_0io->b0f",
        "window={size=1 stride=0}, dim_labels=b0f_0io->b0f",
        "window={size=1 pad=1}, dim_labels=b0f_0io->b0f",
    ],
)
def test_convolutions_that_make_no_sense(attributes: str) -> None:
    with pytest.raises(UnknownCostError):
        work_of("convolution", "f32[4,5,8]", "f32[1,8,12]", "f32[4,5,12]", attributes)


def window(text: str) -> tuple[WindowDimension, ...]:
    return operation(f"%r = f32[] reduce-window(), window={text}").window


def test_a_window() -> None:
    text = "{size=3x1 stride=2x1 pad=-1_2x0_0 lhs_dilate=1x4 rhs_dilate=5x1 rhs_reversal=1x0}"
    assert window(text) == (WindowDimension(3, 2, -1, 2, 5, 1, is_reversed=True), WindowDimension(1, 1, 0, 0, 1, 4))
    assert window("{size=7}") == (WindowDimension(7),)
    assert operation("%r = f32[] reduce-window()").window == ()


def test_a_kernel_without_end() -> None:
    with pytest.raises(UnknownCostError):
        valid_positions(10, MAX_KERNEL + 1, 10, WindowDimension())


@given(
    st.integers(0, 7),
    st.integers(0, 6),
    st.integers(0, 9),
    st.builds(
        WindowDimension,
        stride=st.integers(1, 5),
        pad_low=st.integers(-4, 6),
        window_dilation=st.integers(1, 4),
        base_dilation=st.integers(1, 5),
    ),
)
def test_positions_as_the_definition_has_them(inputs: int, kernel: int, outputs: int, step: WindowDimension) -> None:
    """Each pair of a kernel position and an output, looked at."""
    count = 0
    for k, o in itertools.product(range(kernel), range(outputs)):
        place = o * step.stride - step.pad_low + k * step.window_dilation
        count += place % step.base_dilation == 0 and 0 <= place // step.base_dilation < inputs
    assert valid_positions(inputs, kernel, outputs, step) == count


def test_every_window_field_is_read() -> None:
    names = re.findall(r"(\w+)=", "size= stride= pad= lhs_dilate= rhs_dilate=")
    texts = [f"{{size=1 {name}={'2_3' if name == 'pad' else 2}}}" for name in names]
    assert len({window(text) for text in texts}) == len(names)


def test_a_dimension_below_0_is_not_known() -> None:
    with pytest.raises(UnknownCostError, match="dimension -7"):
        work_of("dot", "f32[3,5]", "f32[5,7]", "f32[3,7]", "lhs_contracting_dims={-7}, rhs_contracting_dims={0}")

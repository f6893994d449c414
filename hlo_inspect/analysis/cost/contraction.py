"""FLOPs of dots and convolutions: two for each multiply-add."""

from __future__ import annotations

import math

from hlo_inspect.analysis.cost.figures import UnknownCostError, Work
from hlo_inspect.analysis.cost.operation import Operation, dimension, elements
from hlo_inspect.hlo.shapes import ArrayShape
from hlo_inspect.hlo.values import IntegerAttribute, WindowDimension

MAX_KERNEL = 1 << 17
"""Positions of a kernel along one dimension; what has more is not counted, so that no text keeps the program busy."""

_GROUP_COUNTS: tuple[IntegerAttribute, ...] = ("feature_group_count", "batch_group_count")


def dot_flops(lhs: ArrayShape, result_elements: int, contracting: tuple[int, ...]) -> int:
    """`HloCostAnalysis::GetDotFlops`: each element of the result takes a multiply-add per contracted element."""
    return 2 * result_elements * math.prod([dimension(lhs, i) for i in contracting])


def dot(op: Operation) -> Work:
    """`HloCostAnalysis::HandleDot` and `HandleScaledDot`."""
    return matmul(dot_flops(op.operand_array(0), elements(op.shape), op.integers("lhs_contracting_dims")))


def ragged_dot(op: Operation) -> Work:
    """`HloCostAnalysis::HandleRaggedDot`: as a dot whose result lacks as many leading dimensions as there are group ones.

    The i-th group dimension removes dimension i of what is left, as XLA does it.
    """
    left = [dimension(op.array, i) for i in range(len(op.array.dimensions))]
    for i in range(len(op.integers("rhs_group_dims"))):
        if i >= len(left):
            raise UnknownCostError("more group dimensions than the result has")
        del left[i]
    return matmul(dot_flops(op.operand_array(0), math.prod(left), op.integers("lhs_contracting_dims")))


def convolution(op: Operation) -> Work:
    """`HloCostAnalysis::HandleConvolution`."""
    return matmul(convolution_flops(op, op.operand_array(0), op.operand_array(1), op.array))


def matmul(flops: int) -> Work:
    return Work(flops, 0, flops)


def convolution_flops(op: Operation, lhs: ArrayShape, rhs: ArrayShape, result: ArrayShape) -> int:
    """`HloCostAnalysis::GetConvolutionFlops`: multiply-adds whose input is neither padding nor a hole of dilation."""
    labels = op.instruction.attr("dim_labels")
    groups = [1 if (count := op.instruction.attr(name)) is None else count for name in _GROUP_COUNTS]
    if labels is None or min(groups) < 1:
        raise UnknownCostError("dim_labels or group counts are missing or make no sense")
    positions = 1
    for i, step in enumerate(op.window):
        sizes = (
            _labelled(lhs, labels.input, str(i)),
            _labelled(rhs, labels.kernel, str(i)),
            _labelled(result, labels.output, str(i)),
        )
        positions *= valid_positions(*sizes, step)
    input_features = _labelled(lhs, labels.input, "f") // groups[0]
    batch = _labelled(lhs, labels.input, "b") // groups[1]
    return 2 * input_features * _labelled(result, labels.output, "f") * batch * positions


def _labelled(shape: ArrayShape, labels: str, label: str) -> int:
    index = labels.find(label)
    if index < 0:
        raise UnknownCostError(f"dim_labels do not name dimension {label}")
    return dimension(shape, index)


def valid_positions(inputs: int, kernel: int, outputs: int, step: WindowDimension) -> int:
    """Pairs of a kernel position k and an output o that meet an input element.

    Those are the pairs for which u = o·stride - pad_low + k·window_dilation is a multiple of the base dilation and
    0 <= u / base_dilation < inputs. For each k, the matching o are every so-many-th of an interval.
    """
    if kernel > MAX_KERNEL or step.stride < 1 or step.base_dilation < 1:
        raise UnknownCostError("its window is too large or makes no sense")
    shared = math.gcd(step.stride, step.base_dilation)
    period = step.base_dilation // shared
    inverse = pow(step.stride // shared, -1, period) if period > 1 else 0
    count = 0
    for k in range(kernel):
        offset = step.pad_low - k * step.window_dilation  # u = o·stride - offset
        if offset % shared:
            continue
        first = max(0, -(-offset // step.stride))
        last = min(outputs - 1, ((inputs - 1) * step.base_dilation + offset) // step.stride)
        first += (offset // shared * inverse - first) % period
        count += max(0, (last - first) // period + 1)
    return count

"""Bytes that an instruction reads and writes, except fusions, custom calls and what runs other computations."""

from __future__ import annotations

from collections.abc import Callable

from hlo_inspect.analysis.cost.operation import Operation, leaf_size, shape_size
from hlo_inspect.hlo.shapes import ArrayShape, Shape, array_leaves

_FREE = "add-dependency after-all bitcast constant domain get-tuple-element parameter"
FREE = frozenset(_FREE.split())
"""Neither work nor bytes: they forward pointers or order others (`HloCostAnalysis::HandleParameter`, `HandleBitcast`, …)."""


def accessed_bytes(op: Operation) -> int:
    """By the opcode's own rule, else as `HloCostAnalysis::Preprocess` has it: all results and all operands once."""
    if op.opcode in FREE:
        return 0
    rule = _RULES.get(op.opcode)
    return rule(op) if rule else leaf_size(op.shape) + _operand_sizes(op)


def _operand_sizes(op: Operation) -> int:
    return sum(map(shape_size, op.operand_shapes()))


def _slice(op: Operation) -> int:
    """`HloCostAnalysis::HandleSlice`: what is sliced out, read and written."""
    return 2 * shape_size(op.shape)


def _dynamic_slice(op: Operation) -> int:
    """`HloCostAnalysis::HandleDynamicSlice`: a slice, and the first of the start indices."""
    return 2 * shape_size(op.shape) + shape_size(op.operand_shape(1))


def _dynamic_update_slice(op: Operation) -> int:
    """`HloCostAnalysis::HandleDynamicUpdateSlice`: the update is read and written, in place, with the first start index."""
    return 2 * shape_size(op.operand_shape(1)) + shape_size(op.operand_shape(2))


def _gather(op: Operation) -> int:
    """`HloCostAnalysis::HandleGather`: what is gathered, read and written, and the indices."""
    return 2 * shape_size(op.shape) + shape_size(op.operand_shape(1))


def _scatter(op: Operation) -> int:
    """`HloCostAnalysis::HandleScatter`: each update is read, and what it changes read and written; and the indices."""
    arrays = op.operand_count // 2
    updates = sum(shape_size(op.operand_shape(i)) for i in range(arrays + 1, 2 * arrays + 1))
    return 3 * updates + shape_size(op.operand_shape(arrays))


def _tuple(op: Operation) -> int:
    """`HloCostAnalysis::HandleTuple`: its table of pointers."""
    return shape_size(op.shape)


def _infeed(op: Operation) -> int:
    """`HloCostAnalysis::HandleInfeed`: the results."""
    return leaf_size(op.shape)


def _outfeed(op: Operation) -> int:
    """`HloCostAnalysis::HandleOutfeed`: the arrays of the operands."""
    return sum(map(leaf_size, op.operand_shapes()))


def _triangular_solve(op: Operation) -> int:
    """`HloCostAnalysis::HandleTriangularSolve`: half of the matrix is read."""
    return shape_size(op.shape) + shape_size(op.operand_shape(0)) // 2 + shape_size(op.operand_shape(1))


def _cholesky(op: Operation) -> int:
    """`HloCostAnalysis::HandleCholesky`: half of the matrix is read, half is written."""
    return shape_size(op.operand_shape(0))


def _all_reduce(op: Operation) -> int:
    """`HloCostAnalysis::HandleAllReduce`: the arrays of the result and the operands."""
    return sum(shape_size(leaf) for _, leaf in array_leaves(op.shape)) + _operand_sizes(op)


def _transpose(op: Operation) -> int:
    """`HloCostAnalysis::HandleTranspose`: nothing where the layouts make it a bitcast."""
    if _is_bitcast(op.operand_shape(0), op.shape, op.integers("dimensions")):
        return 0
    return leaf_size(op.shape) + _operand_sizes(op)


def _is_bitcast(operand: Shape, result: Shape, permutation: tuple[int, ...]) -> bool:
    """`ShapeUtil::TransposeIsBitcast`: the dimensions lie in memory in the same order before and after."""
    if not isinstance(operand, ArrayShape) or not isinstance(result, ArrayShape) or operand.dtype != result.dtype:
        return False
    before, after = _memory_order(operand), _memory_order(result)
    if not len(before) == len(after) == len(permutation) or max(after, default=-1) >= len(permutation):
        return False
    return before == tuple(permutation[i] for i in after)


def _memory_order(shape: ArrayShape) -> tuple[int, ...]:
    """Dimensions from the most minor one on; where no layout is printed the last dimension is the most minor one."""
    if shape.layout is not None and len(shape.layout.minor_to_major) == len(shape.dimensions):
        return shape.layout.minor_to_major
    return tuple(reversed(range(len(shape.dimensions))))


_RULES: dict[str, Callable[[Operation], int]] = {
    "slice": _slice,
    "dynamic-slice": _dynamic_slice,
    "dynamic-update-slice": _dynamic_update_slice,
    "gather": _gather,
    "scatter": _scatter,
    "tuple": _tuple,
    "infeed": _infeed,
    "outfeed": _outfeed,
    "triangular-solve": _triangular_solve,
    "cholesky": _cholesky,
    "all-reduce": _all_reduce,
    "all-reduce-start": _all_reduce,
    "cross-replica-sum": _all_reduce,
    "transpose": _transpose,
}

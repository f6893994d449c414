"""Bytes that an instruction reads and writes, except fusions, custom calls and what runs other computations."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from hlo_inspect.analysis.cost.operation import Operation, Traffic, shape_size
from hlo_inspect.hlo.opcodes import LITERAL_OPCODES, MARKERS, NAMING
from hlo_inspect.hlo.values.shapes import ArrayShape, Shape, TupleShape, array_leaves

FREE = (NAMING | MARKERS | LITERAL_OPCODES) - {"opt-barrier", "tuple"}
"""Neither work nor bytes: they forward pointers or order others (`HloCostAnalysis::HandleParameter`, `HandleBitcast`, …). In
XLA's model barriers, and tuples as tables of pointers, have bytes.
"""

Access = tuple[int, Shape]
"""Bytes that are read or written, and the array or table of pointers that they are part of."""


def accessed_bytes(op: Operation) -> Traffic:
    """By the opcode's own rule, else as `HloCostAnalysis::Preprocess` has it: all results and all operands once."""
    traffic = Traffic()
    if op.opcode not in FREE:
        rule = _RULES.get(op.opcode)
        for size, shape in rule(op) if rule else _all(op):
            traffic.add(size, shape)
    return traffic


def _all(op: Operation) -> Iterable[Access]:
    return [*_leaves(op.shape), *_operands(op)]


def _operands(op: Operation) -> Iterable[Access]:
    return [(shape_size(shape), shape) for shape in op.operand_shapes()]


def _leaves(shape: Shape) -> list[Access]:
    """All leaves of a shape, without the tables of its tuples."""
    if isinstance(shape, TupleShape):
        return [leaf for element in shape.elements for leaf in _leaves(element)]
    return [(shape_size(shape), shape)]


def _operand(op: Operation, number: int) -> Access:
    shape = op.operand_shape(number)
    return shape_size(shape), shape


def _slice(op: Operation) -> Iterable[Access]:
    """`HloCostAnalysis::HandleSlice`: what is sliced out, read and written."""
    size = shape_size(op.shape)
    return (size, op.operand_shape(0)), (size, op.shape)


def _slice_at(op: Operation) -> Iterable[Access]:
    """`HloCostAnalysis::HandleDynamicSlice`, `HandleGather`: a slice, and the first of the start indices, or the indices."""
    return *_slice(op), _operand(op, 1)


def _dynamic_update_slice(op: Operation) -> Iterable[Access]:
    """`HloCostAnalysis::HandleDynamicUpdateSlice`: the update is read and written, in place, with the first start index."""
    update = _operand(op, 1)
    return update, (update[0], op.shape), _operand(op, 2)


def _scatter(op: Operation) -> Iterable[Access]:
    """`HloCostAnalysis::HandleScatter`: each update is read, and what it changes read and written; and the indices."""
    arrays = op.operand_count // 2
    updates = [_operand(op, i) for i in range(arrays + 1, 2 * arrays + 1)]
    changed = [(2 * size, op.operand_shape(i)) for i, (size, _) in enumerate(updates)]
    return *updates, *changed, _operand(op, arrays)


def _tuple(op: Operation) -> Iterable[Access]:
    """`HloCostAnalysis::HandleTuple`: its table of pointers."""
    return [(shape_size(op.shape), op.shape)]


def _infeed(op: Operation) -> Iterable[Access]:
    """`HloCostAnalysis::HandleInfeed`: the results."""
    return _leaves(op.shape)


def _outfeed(op: Operation) -> Iterable[Access]:
    """`HloCostAnalysis::HandleOutfeed`: the arrays of the operands."""
    return [leaf for shape in op.operand_shapes() for leaf in _leaves(shape)]


def _triangular_solve(op: Operation) -> Iterable[Access]:
    """`HloCostAnalysis::HandleTriangularSolve`: half of the matrix is read."""
    size, matrix = _operand(op, 0)
    return (shape_size(op.shape), op.shape), (size // 2, matrix), _operand(op, 1)


def _cholesky(op: Operation) -> Iterable[Access]:
    """`HloCostAnalysis::HandleCholesky`: half of the matrix is read, half is written."""
    size, matrix = _operand(op, 0)
    return (size // 2, matrix), (size - size // 2, op.shape)


def _all_reduce(op: Operation) -> Iterable[Access]:
    """`HloCostAnalysis::HandleAllReduce`: the arrays of the result and the operands."""
    return [*((shape_size(leaf), leaf) for _, leaf in array_leaves(op.shape)), *_operands(op)]


def _transpose(op: Operation) -> Iterable[Access]:
    """`HloCostAnalysis::HandleTranspose`: nothing where the layouts make it a bitcast."""
    if len(op.array.dimensions) > 1:
        op.require("dimensions")
    if _is_bitcast(op.operand_shape(0), op.shape, op.integers("dimensions")):
        return ()
    return _all(op)


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


_RULES: dict[str, Callable[[Operation], Iterable[Access]]] = {
    "slice": _slice,
    "dynamic-slice": _slice_at,
    "dynamic-update-slice": _dynamic_update_slice,
    "gather": _slice_at,
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

BYTES_BY_ATTRIBUTES = frozenset({"transpose"})
"""Opcodes of which a rule above reads attributes; all other bytes are known by shapes."""

"""Bytes that an instruction reads and writes, except custom calls and instructions that run other computations.

A fusion reads its parameters, as far as they are used, and large constants, and writes its results.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from hlo_inspect.analysis.cost.figures import NOT_MOVED, UnknownCostError
from hlo_inspect.analysis.cost.operation import Operation, Traffic, elements, shape_size, wrapped
from hlo_inspect.graph.view import View
from hlo_inspect.hlo.opcodes import ASYNC_ENDS, LITERAL_OPCODES, MARKERS, NAMING, TABLE, opcodes_that_are
from hlo_inspect.hlo.values.shapes import ArrayShape, Shape, TupleShape, array_leaves, leaf_indices, subshape

FREE = (NAMING | MARKERS | LITERAL_OPCODES) - {"opt-barrier", "tuple"}
"""Opcodes with neither work nor bytes (`HloCostAnalysis::HandleParameter`, `HandleBitcast`, …).

They forward pointers or order others. In XLA's model barriers, and tuples as tables of pointers, have bytes.
"""

Access = tuple[int, Shape]
"""Accessed bytes, and the array or table of pointers that holds them."""


def accessed_bytes(op: Operation) -> Traffic:
    """Count by the opcode's own rule, else all results and operands once, as `HloCostAnalysis::Preprocess` does.

    A start moves its operands only, its done moves the result. A barrier moves nothing, nor does the end of a computation.
    """
    traffic = Traffic()
    if op.opcode not in FREE:
        rule = _RULES.get(op.opcode)
        for size, shape in rule(op) if rule else _all(op):
            traffic.add(size, shape)
    if op.opcode in _MOVES_A_PART:
        moved = Traffic()
        for size, shape in _MOVES_A_PART[op.opcode](op):
            moved.add(size, shape)
        traffic.spaces = moved.spaces | {NOT_MOVED: traffic.bytes - moved.bytes + moved.spaces.get(NOT_MOVED, 0)}
    return traffic


def _all(op: Operation) -> Iterable[Access]:
    return [*_leaves(op.shape), *_operands(op)]


def _operands(op: Operation) -> Iterable[Access]:
    return [(shape_size(shape), shape) for shape in op.operand_shapes()]


def _leaves(shape: Shape) -> list[Access]:
    """Return all leaves of a shape, without the tables of its tuples."""
    if isinstance(shape, TupleShape):
        return [leaf for element in shape.elements for leaf in _leaves(element)]
    return [(shape_size(shape), shape)]


def _operand(op: Operation, number: int) -> Access:
    shape = op.operand_shape(number)
    return shape_size(shape), shape


def _slice(op: Operation) -> Iterable[Access]:
    """Count the slice, read and written (`HloCostAnalysis::HandleSlice`)."""
    size = shape_size(op.shape)
    return (size, op.operand_shape(0)), (size, op.shape)


def _slice_at(op: Operation) -> Iterable[Access]:
    """Count a slice and the first start index, or all indices (`HloCostAnalysis::HandleDynamicSlice`, `HandleGather`)."""
    return *_slice(op), _operand(op, 1)


def _dynamic_update_slice(op: Operation) -> Iterable[Access]:
    """Count the update, read and written in place, and its first index (`HloCostAnalysis::HandleDynamicUpdateSlice`)."""
    update = _operand(op, 1)
    return update, (update[0], op.shape), _operand(op, 2)


def _scatter(op: Operation) -> Iterable[Access]:
    """Count the updates, the elements that they change twice, and the indices (`HloCostAnalysis::HandleScatter`)."""
    arrays = op.operand_count // 2
    updates = [_operand(op, i) for i in range(arrays + 1, 2 * arrays + 1)]
    changed = [(2 * size, op.operand_shape(i)) for i, (size, _) in enumerate(updates)]
    return *updates, *changed, _operand(op, arrays)


def _tuple(op: Operation) -> Iterable[Access]:
    """Count the table of pointers (`HloCostAnalysis::HandleTuple`)."""
    return [(shape_size(op.shape), op.shape)]


def _infeed(op: Operation) -> Iterable[Access]:
    """Count the results (`HloCostAnalysis::HandleInfeed`)."""
    return _leaves(op.shape)


def _outfeed(op: Operation) -> Iterable[Access]:
    """Count the arrays of the operands (`HloCostAnalysis::HandleOutfeed`)."""
    return [leaf for shape in op.operand_shapes() for leaf in _leaves(shape)]


def _triangular_solve(op: Operation) -> Iterable[Access]:
    """Count half of the matrix, the right-hand sides and the result (`HloCostAnalysis::HandleTriangularSolve`)."""
    size, matrix = _operand(op, 0)
    return (shape_size(op.shape), op.shape), (size // 2, matrix), _operand(op, 1)


def _cholesky(op: Operation) -> Iterable[Access]:
    """Count half of the matrix read, half written (`HloCostAnalysis::HandleCholesky`)."""
    size, matrix = _operand(op, 0)
    return (size // 2, matrix), (size - size // 2, op.shape)


def _all_reduce(op: Operation) -> Iterable[Access]:
    """Count the arrays of the result and the operands (`HloCostAnalysis::HandleAllReduce`)."""
    return [*((shape_size(leaf), leaf) for _, leaf in array_leaves(op.shape)), *_operands(op)]


TRANSFERS = opcodes_that_are("point-to-point")
TRANSFER_ENDS = TRANSFERS & ASYNC_ENDS

_CONTEXT, _TOKEN = ArrayShape("u32"), ArrayShape("token")
_OPERANDS = {"send": 2, "recv": 1}
"""Operands of each start of a transfer, the token included."""


def _transfer_shape(view: View, row: int) -> Shape | None:
    """Return the shape that XLA gives a row of `TRANSFERS` by its operands, whatever the text prints; else the text's.

    Hand-written texts print the array alone, or leave out the u32 context (`HloSendInstruction`, `HloRecvInstruction`). Old
    texts without tokens keep their shapes.
    """
    opcode, printed = view.opcodes[row], view.shapes[row]
    start = view.operand_row(row, 0) if opcode in TRANSFER_ENDS else row
    if start is None or len(view.operand_rows(start)) < _OPERANDS.get(view.opcodes[start], 0):
        return printed
    if opcode == "send-done":
        return _TOKEN
    carried = view.operand_shape(row, 0) if opcode in {"recv-done", "send"} else printed
    if isinstance(carried, TupleShape) and opcode != "send":
        carried = carried.elements[0] if carried.elements else None
    if carried is None:
        return printed
    return TupleShape((carried, _TOKEN)) if opcode == "recv-done" else TupleShape((carried, _CONTEXT, _TOKEN))


def _transfer(op: Operation) -> Iterable[Access]:
    """Count the arrays of the shape that XLA makes, and the operands; of the end of a transfer the table of its start."""
    made = _transfer_shape(op.view, op.index) or op.shape
    start = op.view.operand_row(op.index, 0) if op.opcode in TRANSFER_ENDS else None
    if start is None or op.view.opcodes[start] not in TRANSFERS:
        return [*_leaves(made), *_operands(op)]
    begun = _transfer_shape(op.view, start) or op.operand_shape(0)
    return [*_leaves(made), (shape_size(begun), begun)]


def _transpose(op: Operation) -> Iterable[Access]:
    """Count all, but nothing if the layouts make it a bitcast (`HloCostAnalysis::HandleTranspose`)."""
    if len(op.array.dimensions) > 1:
        op.require("dimensions")
    return () if _is_bitcast(op.operand_shape(0), op.shape, op.integers("dimensions")) else _all(op)


def _is_bitcast(operand: Shape, result: Shape, permutation: tuple[int, ...]) -> bool:
    """Return True if the dimensions have the same order in memory before and after (`ShapeUtil::TransposeIsBitcast`)."""
    if not isinstance(operand, ArrayShape) or not isinstance(result, ArrayShape) or operand.dtype != result.dtype:
        return False
    before, after = _memory_order(operand), _memory_order(result)
    if not len(before) == len(after) == len(permutation) or max(after, default=-1) >= len(permutation):
        return False
    return before == tuple(permutation[i] for i in after)


def _memory_order(shape: ArrayShape) -> tuple[int, ...]:
    """Return the dimensions, the most minor one first; without a printed layout the last dimension is the most minor one."""
    if shape.layout is not None and len(shape.layout.minor_to_major) == len(shape.dimensions):
        return shape.layout.minor_to_major
    return tuple(reversed(range(len(shape.dimensions))))


_RULES: dict[str, Callable[[Operation], Iterable[Access]]] = {
    **dict.fromkeys(TRANSFERS, _transfer),
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

_STARTS = frozenset(name for name, opcode in TABLE.items() if opcode.half == "start") | (TRANSFERS - TRANSFER_ENDS)
_ENDS_OF_COMPUTATIONS = frozenset(name for name in ASYNC_ENDS if TABLE[name].is_wrapper) | {"async-update", "async-done"}
_MOVES_A_PART: Mapping[str, Callable[[Operation], Iterable[Access]]] = {
    **dict.fromkeys(_STARTS, _operands),
    **dict.fromkeys(ASYNC_ENDS - TRANSFER_ENDS, lambda op: _leaves(op.shape)),
    **dict.fromkeys(_ENDS_OF_COMPUTATIONS | {"opt-barrier"}, lambda _: ()),
}
"""The accesses of these opcodes that move bytes: XLA's count has others too."""

BYTES_BY_ATTRIBUTES = frozenset({"transpose"})
"""Opcodes whose rule above reads attributes; all other bytes follow from shapes."""


# -- fusions ------------------------------------------------------------------------------------------------------------------


Index = tuple[int, ...]

Value = int | tuple[int | None, Index] | None
"""An operand: the result of a row, an element of its tuple, or a value that no row defines."""


@dataclass(slots=True)
class FusedTraffic:
    """The bytes that a fused computation reads and writes, for any caller.

    `total` counts outputs, constants and parameters (`HloCostAnalysis::HandleFusion`). `reads` holds the bytes read of each
    parameter, by number. `straight` are the numbers of the parameters that are the root, or the root's first operand.
    """

    total: Traffic = field(default_factory=Traffic)
    reads: dict[int, int] = field(default_factory=dict)
    straight: set[int] = field(default_factory=set)


class FusionReader:
    """Follows how a fused computation uses its parameters (`HloCostAnalysis::FusionParameterReadBytes`).

    `nested` holds the traffic of the computations that its own fusions call, by row.
    """

    def __init__(self, view: View, nested: Mapping[int, FusedTraffic | None]) -> None:
        self._view = view
        self._nested = nested
        if view.ambiguous:
            raise UnknownCostError("in the fused computation a name is defined twice")
        self._operands = list(map(self._values, range(len(view.rows))))
        self._users: dict[Value, list[int]] = {}
        for row, values in enumerate(self._operands):
            for value in values:
                users = self._users.setdefault(value, [])
                if not users or users[-1] != row:
                    users.append(row)

    def _values(self, row: int) -> Sequence[Value]:
        whole = self._view.whole_operands(row)
        if whole is not None:
            return whole
        operands = self._view.operands(row)
        if any(operand.name is None for operand in operands):
            raise UnknownCostError("in the fused computation an operand has no name")
        rows = self._view.operand_rows(row)
        return [(source, operand.path) if operand.path else source for source, operand in zip(rows, operands, strict=True)]

    def traffic(self) -> FusedTraffic:
        """Return the traffic of the computation. Raise UnknownCostError if a part is unknown."""
        root = self._view.root
        if root is None:
            raise UnknownCostError("the fused computation is empty")
        traffic = FusedTraffic()
        self._write(root, traffic.total)
        first_of_root = next(iter(self._operands[root]), None)
        for row, (opcode, shape) in enumerate(zip(self._view.opcodes, self._view.shapes, strict=True)):
            if opcode == "constant":  # `HloCostAnalysis::FusionCountConstantsMemoryAccess`
                traffic.total.add(shape_size(shape) if elements(shape) > 1 else 0, shape)
            elif opcode == "parameter":
                number = self._view.parameter_number(row)
                if number is None:
                    raise UnknownCostError("a parameter's number cannot be read")
                traffic.reads[number] = self._read_parameter(row, shape, traffic.total)
                if first_of_root is None or first_of_root == row:
                    traffic.straight.add(number)
        return traffic

    def _write(self, root: int, traffic: Traffic) -> None:
        """Add all arrays of the root (`HloCostAnalysis::FusionProcessOutputBytesAccessed`).

        A dynamic-update-slice works in place on its operand and writes only the update.
        """
        sources: dict[Index, int | None] = {(): root}
        if self._opcode(root) == "tuple":
            sources = {(i,): value if isinstance(value, int) else None for i, value in enumerate(self._operands[root])}
        shape = self._view.shapes[root]
        if shape is None or wrapped(self._opcode(root)) != self._opcode(root):
            shape = Operation(self._view, root).shape
        for index, leaf in array_leaves(shape):
            source = sources.get(index)
            in_place = source is not None and self._opcode(source) == "dynamic-update-slice"
            written = Operation(self._view, source).operand_shape(1) if source is not None and in_place else leaf
            traffic.add(shape_size(written), leaf)

    def _opcode(self, row: int) -> str:
        return self._view.opcodes[row]

    def _read_parameter(self, row: int, shape: Shape | None, traffic: Traffic) -> int:
        """Return the bytes read of a parameter (`HloCostAnalysis::FusionProcessOperandBytesRead`) and add them to `traffic`.

        Each leaf of a tuple is read as its get-tuple-element is used.
        """
        if not isinstance(shape, TupleShape):
            leaves: list[tuple[int, Shape | None]] = [(self._read(row, shape), shape)]
        else:
            leaves = [(self._leaf(row, shape, index), subshape(shape, index)) for index in leaf_indices(shape)]
        for size, leaf in leaves:
            traffic.add(size, leaf)
        return sum(size for size, _ in leaves)

    def _leaf(self, value: Value, shape: Shape, index: Index) -> int:
        """Return the bytes read of a tuple's leaf. A leaf without a get-tuple-element counts as the tuple around it."""
        for i in index:
            element = self._element(value, i)
            if element is not None and isinstance(shape, TupleShape):
                value, shape = element, shape.elements[i]
        return self._read(value, shape)

    def _element(self, value: Value, index: int) -> Value | None:
        """Return an element of a tuple: the operand `value#index`, or its first get-tuple-element; None without either."""
        row, path = value if isinstance(value, tuple) else (value, ())
        element = (row, (*path, index))
        if element in self._users:
            return element
        for user in self._users.get(value, ()):
            if self._opcode(user) == "get-tuple-element" and Operation(self._view, user).instruction.attr("index") == index:
                return user
        return None

    def _read(self, value: Value, shape: Shape | None) -> int:
        size = 0
        shared = False  # all users of the whole share one read of it
        for user in self._users.get(value, ()):
            opcode = self._opcode(user)
            if opcode == "fusion":
                size += self._read_by_fusion(value, user)
            elif opcode == "slice" or (opcode == "dynamic-slice" and self._is_first(user, value)):
                size += shape_size(self._view.shapes[user])
            elif opcode in {"broadcast", "reshape"}:
                size += shape_size(shape)
            elif opcode != "dynamic-update-slice" or not self._is_first(user, value):
                shared = True
        return size + shape_size(shape) if shared else size

    def _is_first(self, user: int, value: Value) -> bool:
        return self._operands[user][0] == value

    def _read_by_fusion(self, value: Value, fusion: int) -> int:
        """Return the bytes that a nested fusion reads of a value, once for each operand with that value."""
        traffic = self._nested.get(fusion)
        numbers = [i for i, operand in enumerate(self._operands[fusion]) if operand == value]
        if traffic is None or any(number not in traffic.reads for number in numbers):
            raise UnknownCostError("the computation that a fusion in it calls is unknown")
        return sum(self._read_for_users(fusion, traffic.reads[i], straight=i in traffic.straight) for i in numbers)

    def _read_for_users(self, fusion: int, reads: int, *, straight: bool) -> int:
        """Return the bytes that a nested fusion reads of a value, by the users of that fusion.

        If the value goes straight to its root and users read parts of the root, count these parts. Otherwise count the fusion's
        own reads, once. Without users count nothing.
        """
        size = 0
        shared = False
        for user in self._users.get(fusion, ()):
            opcode, shape = self._view.opcodes[user], self._view.shapes[user]
            first = self._is_first(user, fusion)
            if straight and (opcode == "slice" or (opcode == "dynamic-slice" and first)):
                size += shape_size(shape)
            elif not (straight and first and opcode == "dynamic-update-slice") and not shared:
                shared = True
                whole = straight and opcode in {"dynamic-slice", "dynamic-update-slice"}
                size += shape_size(self._view.shapes[fusion]) if whole else reads
        return size

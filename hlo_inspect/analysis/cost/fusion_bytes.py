"""Bytes of a fusion: what it reads of each parameter, large constants, and what it writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from hlo_inspect.analysis.cost.figures import UnknownCostError
from hlo_inspect.analysis.cost.operation import Operation, Traffic, elements, shape_size, wrapped
from hlo_inspect.graph.view import View
from hlo_inspect.hlo.values.shapes import Shape, TupleShape, array_leaves, subshape

Index = tuple[int, ...]

Value = int | tuple[int | None, Index] | None
"""What an operand is: the result of a row, an element of its tuple, or nothing that a row defines."""


@dataclass(slots=True)
class FusedTraffic:
    """The memory that a fused computation reads and writes, whatever calls it.

    `total` is that of outputs, constants and parameters (`HloCostAnalysis::HandleFusion`), `reads` the bytes read of each
    parameter, by its number. `straight` are the numbers of the parameters that are the root, or the root's first operand.
    """

    total: Traffic = field(default_factory=Traffic)
    reads: dict[int, int] = field(default_factory=dict)
    straight: set[int] = field(default_factory=set)


def fused_traffic(view: View, nested: Mapping[int, FusedTraffic | None]) -> FusedTraffic:
    """The traffic of a fused computation. `nested` is that of what each fusion in it calls, by the fusion's row."""
    return _FusionReader(view, nested).traffic()


class _FusionReader:
    """Follows how a fused computation uses its parameters (`HloCostAnalysis::FusionParameterReadBytes`)."""

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
        root = self._view.root
        if root is None:
            raise UnknownCostError("the fused computation is empty")
        found = FusedTraffic()
        self._write(root, found.total)
        first_of_root = next(iter(self._operands[root]), None)
        for row, (opcode, shape) in enumerate(zip(self._view.opcodes, self._view.shapes, strict=True)):
            if opcode == "constant":
                found.total.add(_constant_size(shape), shape)
            elif opcode == "parameter":
                number = self._view.parameter_number(row)
                if number is None:
                    raise UnknownCostError("a parameter's number cannot be read")
                found.reads[number] = self._read_parameter(row, shape, found.total)
                if first_of_root is None or first_of_root == row:
                    found.straight.add(number)
        return found

    def _write(self, root: int, traffic: Traffic) -> None:
        """`HloCostAnalysis::FusionProcessOutputBytesAccessed`: all arrays of the root. A dynamic-update-slice
        works in place on its operand and writes only the update.
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
        """`HloCostAnalysis::FusionProcessOperandBytesRead`: of a tuple each leaf as its get-tuple-element is used."""
        if not isinstance(shape, TupleShape):
            leaves: list[tuple[int, Shape | None]] = [(self._read(row, shape), shape)]
        else:
            leaves = [(self._leaf(row, shape, index), subshape(shape, index)) for index in _leaf_indices(shape)]
        for size, leaf in leaves:
            traffic.add(size, leaf)
        return sum(size for size, _ in leaves)

    def _leaf(self, value: Value, shape: Shape, index: Index) -> int:
        """What is read of one leaf of a tuple; a leaf that no instruction takes out counts as the tuple that it is part of."""
        for i in index:
            element = self._element(value, i)
            if element is not None and isinstance(shape, TupleShape):
                value, shape = element, shape.elements[i]
        return self._read(value, shape)

    def _element(self, value: Value, index: int) -> Value | None:
        """An element of a tuple: the operand `value#index`, or its first get-tuple-element; `None` without either."""
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
        """What a fusion in the fusion reads of a value, once for each operand that is the value."""
        traffic = self._nested.get(fusion)
        numbers = [i for i, operand in enumerate(self._operands[fusion]) if operand == value]
        if traffic is None or any(number not in traffic.reads for number in numbers):
            raise UnknownCostError("the computation that a fusion in it calls is not known")
        return sum(self._read_for_users(fusion, traffic.reads[i], straight=i in traffic.straight) for i in numbers)

    def _read_for_users(self, fusion: int, reads: int, *, straight: bool) -> int:
        """By the users of a fusion in the fusion: where the value goes straight to its root and they use parts of that,
        those parts; else what the fusion reads itself, once. Without users it counts nothing.
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


def _constant_size(shape: Shape | None) -> int:
    """`HloCostAnalysis::FusionCountConstantsMemoryAccess`: a single element is an immediate value."""
    return shape_size(shape) if elements(shape) > 1 else 0


def _leaf_indices(shape: Shape, index: Index = ()) -> list[Index]:
    """The index of each leaf, tokens included, which `array_leaves` leaves out."""
    if not isinstance(shape, TupleShape):
        return [index]
    return [leaf for i, element in enumerate(shape.elements) for leaf in _leaf_indices(element, (*index, i))]

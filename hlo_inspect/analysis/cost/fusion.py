"""Bytes of a fusion: what it reads of each parameter, large constants, and what it writes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from hlo_inspect.analysis.cost.body import Body
from hlo_inspect.analysis.cost.model import UnknownCostError
from hlo_inspect.analysis.cost.operation import elements, shape_size
from hlo_inspect.hlo.opcodes import LITERAL_OPCODES
from hlo_inspect.hlo.shapes import Shape, TupleShape, array_leaves

Index = tuple[int, ...]


@dataclass(slots=True)
class FusedTraffic:
    """What memory a fused computation touches; it depends on nothing outside of it.

    `written` and `constants` are bytes, `reads` the bytes read of each parameter, by number. `straight` are the parameters
    that are the root, or its first operand.
    """

    written: int = 0
    constants: int = 0
    reads: dict[int, int] = field(default_factory=dict)
    straight: set[int] = field(default_factory=set)

    @property
    def bytes(self) -> int:
        """`HloCostAnalysis::HandleFusion`: outputs, constants and parameters."""
        return self.written + self.constants + sum(self.reads.values())


def fused_traffic(body: Body, nested: Mapping[str, FusedTraffic | None]) -> FusedTraffic:
    """The traffic of a fused computation. `nested` is that of what each fusion in it calls, by the fusion's name."""
    return _Reader(body, nested).traffic()


class _Reader:
    """Follows how a fused computation uses its parameters (`HloCostAnalysis::FusionParameterReadBytes`).

    A value is spelled as operands spell it: `name`, or `name#0` for an element of a tuple. Users are indices of rows.
    """

    def __init__(self, body: Body, nested: Mapping[str, FusedTraffic | None]) -> None:
        self._body = body
        self._nested = nested
        self._users: dict[str, list[int]] = {}
        for index, opcode in enumerate(body.opcodes):
            for value in () if opcode in LITERAL_OPCODES else body.uses(index):
                users = self._users.get(value)
                if users is None:
                    self._users[value] = [index]
                elif users[-1] != index:
                    users.append(index)
        if "" in self._users or len(body.shapes) != len(body.rows):
            raise UnknownCostError("in the fused computation an operand has no name, or a name is defined twice")

    def traffic(self) -> FusedTraffic:
        root = self._body.root
        if root is None:
            raise UnknownCostError("the fused computation is empty")
        found = FusedTraffic(self._written(root))
        first_of_root = next(iter(self._body.uses(root)), None)
        for index, (row, (opcode, shape)) in enumerate(zip(self._body.rows, self._body.heads, strict=True)):
            if opcode == "constant":
                found.constants += _constant_size(shape)
            elif opcode == "parameter":
                number = self._body.parameter_number(index)
                found.reads[number] = self._parameter(row[1], shape)
                if first_of_root is None or row[1] == first_of_root:
                    found.straight.add(number)
        return found

    def _written(self, root: int) -> int:
        """`HloCostAnalysis::FusionProcessOutputBytesAccessed`: all arrays of the root, but of a dynamic-update-slice, which
        works in place on its operand, the update.
        """
        sources: dict[Index, int | None] = {(): root}
        if self._opcode(root) == "tuple":
            indices = {row[1]: i for i, row in enumerate(self._body.rows)}
            sources = {(i,): indices.get(name) for i, name in enumerate(self._body.uses(root))}
        size = 0
        for index, leaf in array_leaves(self._body.operation(root).shape):
            source = sources.get(index)
            in_place = source is not None and self._opcode(source) == "dynamic-update-slice"
            size += shape_size(self._body.operation(source).operand_shape(1) if source is not None and in_place else leaf)
        return size

    def _opcode(self, index: int) -> str:
        return self._body.opcodes[index]

    def _parameter(self, name: str, shape: Shape | None) -> int:
        """`HloCostAnalysis::FusionProcessOperandBytesRead`: of a tuple each leaf as its get-tuple-element is used."""
        if not isinstance(shape, TupleShape):
            return self._read(name, shape)
        return sum(self._leaf(name, shape, index) for index in _leaf_indices(shape))

    def _leaf(self, value: str, shape: Shape, index: Index) -> int:
        """What is read of one leaf of a tuple; a leaf that nobody takes out counts as what it is part of."""
        for i in index:
            element = self._element(value, i)
            if element is not None and isinstance(shape, TupleShape):
                value, shape = element, shape.elements[i]
        return self._read(value, shape)

    def _element(self, value: str, index: int) -> str | None:
        """What stands for an element of a tuple: `value#index`, or its first get-tuple-element; `None` without either."""
        if f"{value}#{index}" in self._users:
            return f"{value}#{index}"
        for user in self._users.get(value, ()):
            if self._opcode(user) == "get-tuple-element" and self._body.operation(user).integer("index", -1) == index:
                return self._body.rows[user][1]
        return None

    def _read(self, value: str, shape: Shape | None) -> int:
        size = 0
        shared = False  # all users of the whole share one read of it
        for user in self._users.get(value, ()):
            opcode = self._opcode(user)
            if opcode == "fusion":
                size += self._read_by_fusion(value, user)
            elif opcode == "slice" or (opcode == "dynamic-slice" and self._is_first(user, value)):
                size += shape_size(self._body.heads[user].shape)
            elif opcode in {"broadcast", "reshape"}:
                size += shape_size(shape)
            elif opcode != "dynamic-update-slice" or not self._is_first(user, value):
                shared = True
        return size + shape_size(shape) if shared else size

    def _is_first(self, user: int, value: str) -> bool:
        return self._body.uses(user)[0] == value

    def _read_by_fusion(self, value: str, fusion: int) -> int:
        """What a fusion in the fusion reads of a value, once for each operand that is the value."""
        traffic = self._nested.get(self._body.rows[fusion][1])
        numbers = [i for i, operand in enumerate(self._body.uses(fusion)) if operand == value]
        if traffic is None or any(number not in traffic.reads for number in numbers):
            raise UnknownCostError("the computation that a fusion in it calls is not known")
        return sum(self._read_for_users(fusion, traffic.reads[i], straight=i in traffic.straight) for i in numbers)

    def _read_for_users(self, fusion: int, reads: int, *, straight: bool) -> int:
        """By the users of a fusion in the fusion: where the value goes straight to its root and they use parts of that,
        those parts; else what the fusion reads itself, once. Without users it counts nothing.
        """
        name = self._body.rows[fusion][1]
        size = 0
        shared = False
        for user in self._users.get(name, ()):
            opcode, shape = self._body.heads[user]
            first = self._is_first(user, name)
            if straight and (opcode == "slice" or (opcode == "dynamic-slice" and first)):
                size += shape_size(shape)
            elif not (straight and first and opcode == "dynamic-update-slice") and not shared:
                shared = True
                whole = straight and opcode in {"dynamic-slice", "dynamic-update-slice"}
                size += shape_size(self._body.heads[fusion].shape) if whole else reads
        return size


def _constant_size(shape: Shape | None) -> int:
    """`HloCostAnalysis::FusionCountConstantsMemoryAccess`: a single element is an immediate value."""
    return shape_size(shape) if elements(shape) > 1 else 0


def _leaf_indices(shape: Shape, index: Index = ()) -> list[Index]:
    """The index of each leaf; unlike for `array_leaves`, a token is one."""
    if not isinstance(shape, TupleShape):
        return [index]
    return [leaf for i, element in enumerate(shape.elements) for leaf in _leaf_indices(element, (*index, i))]

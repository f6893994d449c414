"""One instruction of the text.

`Instruction` is a view of its text: operands and attributes are parsed when they are asked for, so that an instruction which
nothing looks into costs no more than its text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal, NamedTuple, Protocol, overload

from hlo_inspect.hlo import tokens
from hlo_inspect.hlo.device_groups import DeviceGroups, DevicePairs
from hlo_inspect.hlo.heads import Head
from hlo_inspect.hlo.opcodes import LITERAL_OPCODES, CalleeAttribute, Role, callee_roles
from hlo_inspect.hlo.operands import Operand, operands_end, operands_of
from hlo_inspect.hlo.shape_text import ShapeTable
from hlo_inspect.hlo.shapes import Shape, subshape
from hlo_inspect.hlo.sharding import Sharding
from hlo_inspect.hlo.tokens import Row
from hlo_inspect.hlo.values import (
    BackendConfig,
    BooleanAttribute,
    ConvolutionLabels,
    IntegerAttribute,
    IntegersAttribute,
    MalformedValue,
    Metadata,
    PaddingDimension,
    SliceDimension,
    StringAttribute,
    TextAttribute,
    Value,
    ValueTable,
    WindowDimension,
    WordAttribute,
)
from hlo_inspect.lazy_pattern import lazy_pattern

_PRINTED_NAMES = lazy_pattern(r"%?[\w.\-]++(?:, %?[\w.\-]++)*+", re.ASCII)  # operands as printers write them, without shapes
# a shape and the operand's name
_PRINTED_SHAPE = lazy_pattern(r"([a-z]\w*+\[[\d,]*+\](?:\{[^{}]*+\})?+) %?[A-Za-z_][\w.\-]*+", re.ASCII)
_PRINTED_OPERANDS = lazy_pattern(rf"{_PRINTED_SHAPE.pattern}(?:, (?:/\*index=\d++\*/)?+{_PRINTED_SHAPE.pattern})*+", re.ASCII)
_NO_VALUES: dict[str, Value | MalformedValue] = {}  # shared by all instructions of which no attribute was asked for


class Definitions(Protocol):
    """The heads of instructions by name."""

    def get(self, name: str, /) -> Head | None: ...


class EnclosingComputation(Protocol):
    """What an instruction asks of its computation."""

    @property
    def name(self) -> str: ...
    @property
    def is_entry(self) -> bool: ...
    @property
    def values(self) -> ValueTable: ...
    @property
    def scalars(self) -> Mapping[str, Instruction]: ...
    def note_fault(self, name: str, line: int, reason: str) -> None: ...


class Callee(NamedTuple):
    """A computation that an instruction calls by `attribute`."""

    attribute: CalleeAttribute
    role: Role
    name: str


class Instruction:
    """One instruction. `operand_shapes` are the shapes of its operands as they are printed, else as their definitions print
    them, where `resolve_operands` was asked for them.
    """

    __slots__ = (
        "_close",
        "_operands",
        "_values",
        "computation",
        "is_root",
        "line",
        "name",
        "opcode",
        "operand_shapes",
        "shape",
        "tail",
    )

    def __init__(self, computation: EnclosingComputation, row: Row, head: Head, line: int) -> None:
        root, name, _, tail = row
        self.computation = computation
        self.name = name
        self.opcode = head.opcode
        self.shape = head.shape
        self.line = line
        self.is_root = bool(root)
        self.operand_shapes: tuple[Shape | None, ...] = ()
        self.tail = tail
        self._close = operands_end(tail)
        self._operands: tuple[Operand, ...] | None = None
        self._values: dict[str, Value | MalformedValue] = _NO_VALUES

    # -- operands -------------------------------------------------------------------------------------------------------

    @property
    def literal(self) -> str:
        """The text between the parentheses of a constant or a parameter, without comments."""
        return tokens.without_comments(self.tail[: self._close]).strip()

    @property
    def operands(self) -> tuple[Operand, ...]:
        """The operands; a constant and a parameter have none."""
        if self._operands is None:
            self._operands = () if self.opcode in LITERAL_OPCODES else operands_of(self.tail, self._close)
        return self._operands

    @property
    def parameter_number(self) -> int | None:
        text = self.literal
        return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None

    def resolve_operands(self, definitions: Definitions) -> None:
        """Fills `operand_shapes`; a shape is `None` where it is not printed and the definition is not known."""
        if self.opcode in LITERAL_OPCODES or not self._close:
            return
        heads = list(map(definitions.get, self.tail[: self._close].replace("%", "").split(", ")))
        if None not in heads or _PRINTED_NAMES.fullmatch(self.tail, 0, self._close):
            self.operand_shapes = tuple([None if head is None else head.shape for head in heads])
            return
        shapes = self.computation.values.shapes
        if _PRINTED_OPERANDS.fullmatch(self.tail, 0, self._close):
            self.operand_shapes = tuple(map(shapes.get, _PRINTED_SHAPE.findall(self.tail, 0, self._close)))
        else:
            self.operand_shapes = tuple(_operand_shape(operand, definitions, shapes) for operand in self.operands)

    # -- attributes -----------------------------------------------------------------------------------------------------

    @overload
    def attr(self, name: BooleanAttribute) -> bool | None: ...
    @overload
    def attr(self, name: IntegerAttribute) -> int | None: ...
    @overload
    def attr(self, name: IntegersAttribute) -> tuple[int, ...] | None: ...
    @overload
    def attr(self, name: WordAttribute | StringAttribute | TextAttribute) -> str | None: ...
    @overload
    def attr(self, name: CalleeAttribute | Literal["control-predecessors"]) -> tuple[str, ...] | None: ...
    @overload
    def attr(self, name: Literal["backend_config"]) -> BackendConfig | None: ...
    @overload
    def attr(self, name: Literal["dim_labels"]) -> ConvolutionLabels | None: ...
    @overload
    def attr(self, name: Literal["epsilon"]) -> float | None: ...
    @overload
    def attr(self, name: Literal["frontend_attributes"]) -> Mapping[str, str] | None: ...
    @overload
    def attr(self, name: Literal["metadata"]) -> Metadata | None: ...
    @overload
    def attr(self, name: Literal["padding"]) -> tuple[PaddingDimension, ...] | None: ...
    @overload
    def attr(self, name: Literal["replica_groups"]) -> DeviceGroups | None: ...
    @overload
    def attr(self, name: Literal["sharding"]) -> Sharding | None: ...
    @overload
    def attr(self, name: Literal["slice"]) -> tuple[SliceDimension, ...] | None: ...
    @overload
    def attr(self, name: Literal["source_target_pairs"]) -> DevicePairs | None: ...
    @overload
    def attr(self, name: Literal["window"]) -> tuple[WindowDimension, ...] | None: ...
    def attr(self, name: str) -> Value | None:
        """The value of an attribute; `None` where there is none of that name, or its text makes no sense."""
        value = self._values.get(name)
        if value is None:
            value = self.value(name)
        return None if isinstance(value, MalformedValue) else value

    @overload
    def value(self, name: Literal["replica_groups"]) -> DeviceGroups | MalformedValue | None: ...
    @overload
    def value(self, name: Literal["source_target_pairs"]) -> DevicePairs | MalformedValue | None: ...
    @overload
    def value(self, name: str) -> Value | MalformedValue | None: ...
    def value(self, name: str) -> Value | MalformedValue | None:
        """The same, with the reason where the text makes no sense."""
        known = self._values.get(name)
        if known is None:
            text = self._text(name)
            if text is None:
                return None
            known = self.computation.values.read(name, text)
            if self._values is _NO_VALUES:
                self._values = {}
            self._values[name] = known
        return known

    def has(self, name: str) -> bool:
        """Whether there is an attribute of that name, whatever its value."""
        return self._text(name) is not None

    def callee(self, attribute: CalleeAttribute) -> str | None:
        """The first computation that an attribute names."""
        names = self.attr(attribute)
        return names[0] if names else None

    @property
    def called(self) -> list[Callee]:
        """The computations that are called, in the order of the opcode's attributes; empty for an unknown opcode."""
        roles = callee_roles(self.opcode)
        return [Callee(attribute, role, name) for attribute, role in roles.items() for name in self.attr(attribute) or ()]

    def _text(self, name: str) -> str | None:
        """The text of one attribute; what follows it is not looked at. Where the text stops making sense before it, the
        computation notes that.
        """
        tail, close = self.tail, self._close
        at = tail.find(f", {name}=", close)
        if at >= 0 and (tail.find('"', close, at) < 0 or _closes_all(tail, close, at)):
            common = tokens.COMMON_ATTRIBUTE.match(tail, at)
            if common is not None:
                return common[2]
        if name not in tail:
            return None
        try:
            return next((value for found, value in tokens.attributes(tail, close + 1) if found == name), None)
        except tokens.ScanError as error:
            self.computation.note_fault(self.name, self.line, error.message)
        return None


def _closes_all(tail: str, start: int, end: int) -> bool:
    """Whether no string and no brace is open at the end of a text."""
    if tail.count('"', start, end) % 2 or tail.find("\\", start, end) >= 0:
        return False
    return tail.count("{", start, end) == tail.count("}", start, end)


def _operand_shape(operand: Operand, definitions: Definitions, shapes: ShapeTable) -> Shape | None:
    if operand.shape or operand.name is None:
        return shapes.get(operand.shape)
    head = definitions.get(operand.name)
    return subshape(head.shape, operand.path) if head is not None and head.shape is not None else None

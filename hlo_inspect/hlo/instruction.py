"""Instructions of the text.

`Instruction` is a view of its text: operands and attributes are parsed on first use. An instruction that nothing reads costs
only its text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Set
from typing import Literal, NamedTuple, Protocol, overload

from hlo_inspect.hlo import tokens
from hlo_inspect.hlo.opcodes import LITERAL_OPCODES, CalleeAttribute, Role, callee_roles
from hlo_inspect.hlo.rows import Head
from hlo_inspect.hlo.tokens import Row
from hlo_inspect.hlo.values.attribute_forms import AttributeForm, printed_fusion
from hlo_inspect.hlo.values.attributes import (
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
from hlo_inspect.hlo.values.device_groups import DeviceGroups, DevicePairs
from hlo_inspect.hlo.values.shape_text import ShapeTable
from hlo_inspect.hlo.values.shapes import Shape, subshape
from hlo_inspect.hlo.values.sharding import Sharding
from hlo_inspect.lazy_pattern import lazy_pattern

_NAME = tokens.NAME
_ARRAY = r"[a-z][a-z0-9]*+\[[0-9,]*+\](?:\{[^{}%\"\n]*+\})?"
_TUPLE = r"\((?:[^()%\"\n/]++|/\*index=[0-9]++\*/|\((?:[^()%\"\n/]++|/\*index=[0-9]++\*/)*+\))*+\)"
_PRINTED = rf"(?:/\*index=[0-9]++\*/)?+(?:(?:{_ARRAY}|{_TUPLE}) )?+%"
_NAMES = lazy_pattern(rf"(?:%?{_NAME}(?:, %?{_NAME})*+)?+(?=\))")
_PRINTED_OPERANDS = lazy_pattern(rf"{_PRINTED}({_NAME})(?:, {_PRINTED}({_NAME})((?:, {_PRINTED}{_NAME})*+))?+\)")
"""Groups: the first two names, and the rest; most rows have no more than two operands."""
_MARKED = lazy_pattern(rf"%({_NAME})")
_PRINTED_OPERAND = lazy_pattern(rf"(?:({_ARRAY}|{_TUPLE}) )?+%({_NAME})")
_ELEMENT = lazy_pattern(rf"(?:(?:{_ARRAY}|{_TUPLE}) )?+%?{_NAME}\), index=([0-9]{{1,9}}+)(?=,|$)")

_USE = lazy_pattern(r"(?:(.*[\s)}\]]))?%?([A-Za-z_][\w.\-]*+)((?:#\d{1,9})*+)", re.ASCII | re.DOTALL)
_PLAIN = lazy_pattern(r"[^()\[{\"'/]*+\)")
_TEXT = r"[^()\"'/=]*+"
_INDEX = r"/\*index=[0-9]++\*/"
_INNER = rf"\({_TEXT}(?:(?:\({_TEXT}\)|{_INDEX}){_TEXT})*+\)"
_NESTED = rf"{_TEXT}(?:(?:\({_TEXT}(?:(?:{_INNER}|{_INDEX}){_TEXT})*+\)|{_INDEX}){_TEXT})*+"
_SHAPED = lazy_pattern(rf"{_NESTED}\)(?=, [A-Za-z_][\w.\-]*+=|$)", re.ASCII)
"""Pattern of operands with shapes, tuples of tuples at most, and what printers write after them."""

LEFT_OUT = "...(+"
"""Start of the mark for operands that a printer with `compact_operands` leaves out, after the first four."""


class Operand(NamedTuple):
    """An operand: the instruction's name, the tuple index in `name#0#1`, and the text of a printed shape.

    `name` is None if the printer left the operand out, or if an instruction is written in its place.
    """

    name: str | None
    path: tuple[int, ...] = ()
    shape: str = ""


def operand_names(tail: str) -> list[str] | None:
    """Return the names of operands printed in the usual way, with or without shapes; None for others."""
    printed = _PRINTED_OPERANDS.match(tail)
    if printed is not None:
        if printed[3]:
            return _MARKED.findall(tail, 0, printed.end())
        return [printed[1]] if printed[2] is None else [printed[1], printed[2]]
    return _names_alone(tail)


def _names_alone(tail: str) -> list[str] | None:
    """Return the names of operands printed without shapes; None for others."""
    bare = _NAMES.match(tail)
    if bare is None:
        return None
    names = bare[0].replace("%", "").split(", ") if bare[0] else []
    return None if "null" in names else names


def printed_element(tail: str) -> int | None:
    """Return the index of a get-tuple-element that is printed in the usual way; None for others."""
    printed = _ELEMENT.match(tail)
    return int(printed[1]) if printed is not None else None


def operands_of(tail: str, end: int | None = None) -> tuple[Operand, ...]:
    """Return the operands of a tail. `end` is the result of `operands_end`, if known.

    Raise ScanError if the parenthesis is not closed.
    """
    names = _names_alone(tail)
    if names is not None:
        return tuple([Operand(name) for name in names])
    printed = _PRINTED_OPERANDS.match(tail) if "%" in tail else None
    if printed is not None:
        return tuple([Operand(name, (), shape) for shape, name in _PRINTED_OPERAND.findall(tail, 0, printed.end())])
    text = tokens.without_comments(tail[: operands_end(tail) if end is None else end])
    return tuple(_operand(text[start:stop].strip()) for start, stop in tokens.split_items(text))


def operands_end(tail: str) -> int:
    """Return the index of the parenthesis that closes the operands. Raise ScanError if none does."""
    printed = _PLAIN.match(tail) or _SHAPED.match(tail)
    if printed is not None:
        return printed.end() - 1
    return tokens.balanced_end("(" + tail, 0, holds_lines=True) - 2


def _operand(text: str) -> Operand:
    """Parse an item of an operand list, `[shape] [%]name[#i…]`; any other text has no name."""
    use = _USE.fullmatch(text)
    if use is None or text == "null":
        return Operand(None, (), text)
    path = tuple(int(index) for index in use[3].split("#")[1:])
    return Operand(use[2], path, use[1].strip() if use[1] else "")


_CALLING_BY_ONE_ATTRIBUTE = frozenset({"fusion", "async-start"})


class Definitions(Protocol):
    """The heads of instructions by name."""

    def get(self, name: str, /) -> Head | None: ...


class EnclosingComputation:
    """The part of a computation that its instructions refer to.

    It does not refer to the computation, which holds the instructions. So Python frees a module without a search for cycles.
    """

    __slots__ = ("is_entry", "name", "values")

    def __init__(self, name: str, values: ValueTable, *, is_entry: bool) -> None:
        self.name = name
        self.is_entry = is_entry
        self.values = values


class Callee(NamedTuple):
    """A computation that an instruction calls through `attribute`."""

    attribute: CalleeAttribute
    role: Role
    name: str


class Instruction:
    """An instruction of the text.

    `operand_shapes`: the shapes of its operands as printed, else as their definitions print them. None unless
    `resolve_operands` was called.
    """

    __slots__ = (
        "_attributes",
        "_form",
        "_is_split",
        "_operands",
        "_places",
        "_text",
        "computation",
        "is_root",
        "line",
        "name",
        "opcode",
        "operand_shapes",
        "shape",
    )

    def __init__(self, computation: EnclosingComputation, row: Row, head: Head, line: int, metadata: str = "") -> None:
        """Create a view of `row`. `metadata` is the end of its text, if equal texts share it."""
        root, self.name, _, self._text = row
        self.computation = computation
        self.opcode = head.opcode
        self.shape = head.shape
        self.line = line
        self.is_root = bool(root)
        self.operand_shapes: tuple[Shape | None, ...] | None = None
        self._attributes = metadata
        self._is_split = False
        self._operands: tuple[Operand, ...] | None = None
        self._form: AttributeForm[Value | MalformedValue] | None = None
        self._places: tuple[str, ...] = ()

    def split(self) -> None:
        """Separate operands from attributes, before either is read. Raise ScanError if the parenthesis is not closed."""
        if not self._is_split:
            close = operands_end(self._text)
            self._text, self._attributes = self._text[:close], self._text[close + 1 :] + self._attributes
            self._is_split = True

    @property
    def untouched(self) -> tuple[str, str] | None:
        """Its text and its shared metadata; None once `split` was called."""
        return None if self._is_split else (self._text, self._attributes)

    @property
    def printed_fusion(self) -> tuple[str | None, str] | None:
        """Kind and callee of a fusion that is printed in the usual way; None once `split` was called."""
        return None if self._is_split else printed_fusion(self._text)

    @property
    def tail(self) -> str:
        """Its text after the opening parenthesis."""
        if not self._is_split:
            return self._text + self._attributes
        attributes = self._form.filled(self._places) if self._form is not None else self._attributes
        return f"{self._text}){attributes}"

    # -- operands -------------------------------------------------------------------------------------------------------

    @property
    def literal(self) -> str:
        """The text between the parentheses of a constant or a parameter, without comments."""
        self.split()
        return tokens.without_comments(self._text).strip()

    @property
    def operands(self) -> tuple[Operand, ...]:
        """The operands; a constant and a parameter have none."""
        if self._operands is None:
            self._operands = self.read_operands()
        return self._operands

    def read_operands(self) -> tuple[Operand, ...]:
        """Parse the operands without caching them, as most are read once."""
        self.split()
        return () if self.opcode in LITERAL_OPCODES else operands_of(f"{self._text})", len(self._text))

    @property
    def parameter_number(self) -> int | None:
        text = self.literal
        return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None

    def resolve_operands(self, definitions: Definitions) -> None:
        """Fill `operand_shapes`; a shape is None if it is not printed and the definition is unknown."""
        shapes = self.computation.values.shapes
        self.operand_shapes = tuple([_operand_shape(operand, definitions, shapes) for operand in self.read_operands()])

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
        """Return the value of an attribute; None if it is absent or malformed."""
        form = self._form
        value = form.known[name] if form is not None and name in form.known else self.value(name)
        return None if isinstance(value, MalformedValue) else value

    @overload
    def value(self, name: Literal["replica_groups"]) -> DeviceGroups | MalformedValue | None: ...
    @overload
    def value(self, name: Literal["source_target_pairs"]) -> DevicePairs | MalformedValue | None: ...
    @overload
    def value(self, name: str) -> Value | MalformedValue | None: ...
    def value(self, name: str) -> Value | MalformedValue | None:
        """Return the value of an attribute, None if absent, or a MalformedValue with the reason."""
        form = self._form or self.take_apart()
        if name in form.known:
            return form.known[name]
        values = self.computation.values
        if name in form.places:
            return values.read(name, self._places[form.places[name]])
        if form.fault and name not in form.texts and name in form.text:
            return MalformedValue(form.text, form.fault)
        form.known[name] = values.read(name, form.texts[name]) if name in form.texts else None
        return form.known[name]

    def has(self, name: str) -> bool:
        """Return True if there is an attribute of this name, even a malformed one."""
        return self.value(name) is not None

    def take_apart(self) -> AttributeForm[Value | MalformedValue]:
        """Split the text of the attributes into a form, which many instructions share, and its own places."""
        self.split()
        self._form, self._places = self.computation.values.forms.take_apart(self._attributes)
        self._attributes = ""
        return self._form

    def attribute_fault(self, plain: re.Pattern[str]) -> str:
        """Return the fault of its attributes; empty without one, as for an untouched text that matches `plain`."""
        if not self._is_split and plain.fullmatch(self._text + self._attributes):
            return ""
        return (self._form or self.take_apart()).fault

    def parts_without(self, name: str) -> tuple[AttributeForm[Value | MalformedValue], tuple[str, ...]]:
        """Return the form of its attributes, and its own places in it without that of one attribute."""
        form, places = self._form or self.take_apart(), self._places
        index = form.places.get(name, len(places))
        return form, (*places[:index], *places[index + 1 :])

    def callee(self, attribute: CalleeAttribute) -> str | None:
        """Return the first computation that an attribute names."""
        names = self.attr(attribute)
        return names[0] if names else None

    @property
    def called(self) -> list[Callee]:
        """The called computations, in the order of the opcode's attributes; empty for an unknown opcode."""
        roles = callee_roles(self.opcode)
        return [Callee(attribute, role, name) for attribute, role in roles.items() for name in self.attr(attribute) or ()]

    def may_call(self, callees: Set[str]) -> bool:
        """Return False if the instruction certainly calls none of `callees`.

        This is certain only for fusions and async-starts that are printed in the usual way.
        """
        printed = self.printed_fusion if self.opcode in _CALLING_BY_ONE_ATTRIBUTE else None
        return printed is None or printed[1] in callees


def _operand_shape(operand: Operand, definitions: Definitions, shapes: ShapeTable) -> Shape | None:
    if operand.shape or operand.name is None:
        return shapes.get(operand.shape)
    head = definitions.get(operand.name)
    return subshape(head.shape, operand.path) if head is not None and head.shape is not None else None

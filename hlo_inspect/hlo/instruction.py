"""One instruction of the text.

`Instruction` is a view: its operands and attributes are parsed from the text each time they are asked for, so that the
many that nobody looks into cost nothing but their text.
"""

from __future__ import annotations

import re
import sys
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple, Protocol

from hlo_inspect.hlo import scan
from hlo_inspect.hlo.opcodes import CALLEE_ATTRIBUTES, LITERAL_OPCODES
from hlo_inspect.hlo.rows import Row
from hlo_inspect.hlo.shape_text import ShapeError, UnknownTypeError, parse_shape
from hlo_inspect.hlo.shapes import Shape, subshape

if TYPE_CHECKING:
    from hlo_inspect.hlo.module import Computation

_USE = re.compile(r"(?:(.*[\s)}\]]))?%?([A-Za-z_][\w.\-]*+)((?:#\d{1,9})*+)", re.ASCII | re.DOTALL)
_WORD = re.compile(r"%?([A-Za-z_][\w.\-]*+)", re.ASCII)
_WORD_ATTRIBUTE = re.compile(r", [^=]*+=%?([A-Za-z_][\w.\-]*+)(?=,|$)", re.ASCII)
_NAMES = re.compile(r"%?[\w.\-]++(?:, %?[\w.\-]++)*+", re.ASCII)  # operands as printers write them, without shapes
_PRINTED_SHAPE = re.compile(r"([a-z]\w*+\[[\d,]*+\](?:\{[^{}]*+\})?+) %?[A-Za-z_][\w.\-]*+", re.ASCII)  # and the operand's name
_PRINTED_OPERANDS = re.compile(rf"{_PRINTED_SHAPE.pattern}(?:, (?:/\*index=\d++\*/)?+{_PRINTED_SHAPE.pattern})*+", re.ASCII)
_IDENTIFIER = r"[A-Za-z_][A-Za-z0-9_.\-]*+"
_ARRAY = r"[a-z][a-z0-9]*+\[[0-9,]*+\](?:\{[^{}%\"\n]*+\})?"
_TUPLE = r"\((?:[^()%\"\n]++|\([^()%\"\n]*+\))*+\)"
_PRINTED_OPERAND = rf"(?:/\*index=[0-9]++\*/)?+(?:(?:{_ARRAY}|{_TUPLE}) )?+%{_IDENTIFIER}"
_BARE_OPERANDS = re.compile(rf"(?:%?{_IDENTIFIER}(?:, %?{_IDENTIFIER})*+)?+(?=\))")
_SHAPED_OPERANDS = re.compile(rf"{_PRINTED_OPERAND}(?:, {_PRINTED_OPERAND})*+\)")
_SHAPED_OPERAND = re.compile(rf"(?:({_ARRAY}|{_TUPLE}) )?+%({_IDENTIFIER})")
_QUOTE = re.compile(r"[\"']|//")
_PLAIN_OPERANDS = re.compile(r"[^()\[{\"'/]*+\)")


class Head(NamedTuple):
    """The part `shape opcode` of a line, parsed once for all lines that share it. `shape` is `None` where it cannot be read."""

    opcode: str
    shape: Shape | None


@lru_cache(maxsize=1 << 16)
def head_of(text: str) -> Head:
    """The head that `shape opcode` spells; `ShapeError` where the shape is none. An unknown element type leaves no shape."""
    shape_text, _, opcode = text.rpartition(" ")
    try:
        shape = parse_shape(shape_text) if shape_text else None
    except UnknownTypeError:
        shape = None
    return Head(sys.intern(opcode), shape)


class Definitions(Protocol):
    """The heads of instructions by name."""

    def get(self, name: str, /) -> Head | None: ...


class Operand(NamedTuple):
    """A use: the instruction's name with the tuple index of `name#0#1`, and the shape where the text prints it.

    `name` is `None` for what is no name: an instruction written in place, a deleted operand.
    """

    name: str | None
    path: tuple[int, ...]
    shape: Shape | None


class Instruction:
    """One instruction. `definition_shapes` are the shapes of its operands as their definitions print them, where in reach."""

    __slots__ = ("_close", "_tail", "computation", "is_root", "line", "name", "opcode", "operand_shapes", "shape")

    def __init__(self, computation: Computation, row: Row, head: Head, line: int) -> None:
        root, name, _, tail = row
        self.computation = computation
        self.name = name
        self.opcode, self.shape = head
        self.line = line
        self.is_root = bool(root)
        self.operand_shapes: tuple[Shape | None, ...] = ()
        self._tail = tail
        self._close = operands_end(tail)

    @property
    def operand_text(self) -> str:
        """What stands between the parentheses: operands, a parameter's number, a literal."""
        return self._tail[: self._close]

    @property
    def attributes(self) -> dict[str, str]:
        """The text of each attribute. Where the tail stops making sense the computation notes a fault, and the rest is
        left out.
        """
        found: dict[str, str] = {}
        try:
            for name, value in scan.attributes(self._tail, self._close + 1):
                found.setdefault(name, value)
        except scan.ScanError as error:
            self.computation.note_fault(self.name, self.line, error.message)
        return found

    def mentions(self, text: str) -> bool:
        """Whether `text` stands in the operands or attributes: a cheap look before they are parsed."""
        return text in self._tail

    def attribute(self, name: str) -> str:
        """The text of one attribute, empty where there is none of that name; what stands behind it is not looked at."""
        at = self._printed_at(name)
        common = scan.common_attribute(self._tail, at) if at >= 0 else None
        if common is not None:
            return common[2]
        if name not in self._tail:
            return ""
        try:
            return next((value for found, value in scan.attributes(self._tail, self._close + 1) if found == name), "")
        except scan.ScanError as error:
            self.computation.note_fault(self.name, self.line, error.message)
        return ""

    def word(self, name: str) -> str | None:
        """The value of an attribute that is one word (`kind=kLoop`, `calls=%f`), without its `%`; `None` where none is."""
        at = self._printed_at(name)
        found = _WORD_ATTRIBUTE.match(self._tail, at) if at >= 0 else None
        if found is None:
            found = _WORD.fullmatch(scan.without_comments(self.attribute(name)).strip())
        return found[1] if found else None

    def attributes_match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Where a pattern matches the text of the attributes, from the comma in front of the first one."""
        return pattern.match(self._tail, self._close + 1)

    def _printed_at(self, name: str) -> int:
        """Where an attribute stands as printers write it, -1 where it does not, or not surely outside of strings."""
        at = self._tail.find(f", {name}=", self._close)
        return at if at >= 0 and self._tail.find('"', self._close, at) < 0 else -1

    @property
    def operands(self) -> tuple[Operand, ...]:
        return () if self.opcode in LITERAL_OPCODES else parse_operands(self._tail)[1]

    @property
    def parameter_number(self) -> int | None:
        text = self.operand_text
        if not text.isdigit():
            text = scan.without_comments(text).strip()
        return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None

    def callee_names(self, attribute: str) -> tuple[str, ...]:
        """The names of the computations that an attribute calls."""
        word = self.word(attribute)
        if word is not None:
            return (word,)
        text = scan.without_comments(self.attribute(attribute))
        return tuple(_WORD.findall(text)) if "=" not in text else ()

    def callees(self, attributes: dict[str, str]) -> dict[str, tuple[str, ...]]:
        """The names of the computations that each attribute calls."""
        texts = {name: scan.without_comments(attributes[name]) for name in CALLEE_ATTRIBUTES if name in attributes}
        return {name: tuple(_WORD.findall(text)) for name, text in texts.items() if "=" not in text}

    def resolve_operands(self, definitions: Definitions) -> None:
        """Fills `operand_shapes`: the printed shape of each operand, else that of its definition, `None` out of their reach."""
        if self.opcode in LITERAL_OPCODES or not self._close:
            return
        heads = list(map(definitions.get, self.operand_text.replace("%", "").split(", ")))
        if None not in heads or _NAMES.fullmatch(self._tail, 0, self._close):
            self.operand_shapes = tuple([None if head is None else head.shape for head in heads])
        elif _PRINTED_OPERANDS.fullmatch(self._tail, 0, self._close):
            self.operand_shapes = tuple(map(_shape_or_none, _PRINTED_SHAPE.findall(self._tail, 0, self._close)))
        else:
            self.operand_shapes = tuple(_operand_shape(operand, definitions) for operand in self.operands)


_OPERANDS_END = re.compile(r"\)(?=, [A-Za-z_][\w.\-]*+=|$)", re.ASCII)  # as printers write what follows the operands


def operands_end(tail: str) -> int:
    """The index of the parenthesis that closes the operands, in what follows the one that opens them."""
    plain = _PLAIN_OPERANDS.match(tail)
    if plain is not None:
        return plain.end() - 1
    likely = _OPERANDS_END.search(tail)
    if likely is not None:
        close = likely.start()
        is_first = tail.count("=", 0, close) == tail.count("/*index=", 0, close)  # behind another one stand attributes
        if is_first and tail.count("(", 0, close) == tail.count(")", 0, close) and not _QUOTE.search(tail, 0, close):
            return close
    return scan.balanced_end("(" + tail, 0, holds_lines=True) - 2


def parse_operands(tail: str) -> tuple[int, tuple[Operand, ...]]:
    """The operands of a tail, and the index of the parenthesis behind them."""
    close = operands_end(tail)
    if _NAMES.fullmatch(tail, 0, close) and tail.find("null", 0, close) < 0:
        return close, tuple([Operand(name, (), None) for name in tail[:close].replace("%", "").split(", ")])
    tail = scan.without_comments(tail[:close])
    return close, tuple(_operand(tail[start:end].strip()) for start, end in scan.split_items(tail))


def operands_of(tail: str) -> tuple[Operand, ...]:
    """The operands of a tail; quick where they are spelled as printers do."""
    bare = _BARE_OPERANDS.match(tail)
    if bare is not None and "null" not in bare[0]:
        return tuple([Operand(name, (), None) for name in bare[0].replace("%", "").split(", ")]) if bare[0] else ()
    shaped = _SHAPED_OPERANDS.match(tail)
    if shaped is None:
        return parse_operands(tail)[1]
    found = _SHAPED_OPERAND.findall(tail, 0, shaped.end())
    return tuple([Operand(name, (), _shape_or_none(shape) if shape else None) for shape, name in found])


def _operand(text: str) -> Operand:
    """One item of an operand list: `[shape] [%]name[#i…]`; anything else has no name."""
    use = _USE.fullmatch(text)
    if use is None or text == "null":
        return Operand(None, (), _shape_or_none(text))
    path = tuple(int(i) for i in use[3].split("#")[1:])
    return Operand(use[2], path, _shape_or_none(use[1]) if use[1] else None)


@lru_cache(maxsize=1 << 14)
def _shape_or_none(text: str) -> Shape | None:
    try:
        return parse_shape(text)
    except ShapeError:
        return None


def _operand_shape(operand: Operand, definitions: Definitions) -> Shape | None:
    if operand.shape is not None or operand.name is None:
        return operand.shape
    head = definitions.get(operand.name)
    return subshape(head.shape, operand.path) if head is not None and head.shape is not None else None

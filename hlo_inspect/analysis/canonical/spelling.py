"""What an instruction says, apart from names: its shape and opcode, its operands, and its attributes without metadata.

Printers differ in what they repeat (the shapes of operands), in white space and in comments; none of that is kept.
"""

from __future__ import annotations

import re
from collections.abc import Container, Sequence
from typing import NamedTuple

from hlo_inspect.analysis.view import View
from hlo_inspect.hlo import tokens
from hlo_inspect.hlo.nested import nested_computations
from hlo_inspect.hlo.opcodes import CALLEE_ATTRIBUTES, LITERAL_OPCODES, CalleeAttribute
from hlo_inspect.hlo.operands import Operand, operands_end
from hlo_inspect.lazy_pattern import lazy_pattern

METADATA = frozenset({"metadata", "origin", "original_value", "statistics"})
"""Attributes that say where an instruction comes from and how to draw it, not what it does."""

_LAYOUTS = frozenset({"operand_layout_constraints"})
_CALLS = {str(name): name for name in CALLEE_ATTRIBUTES}
_STRING = lazy_pattern(r'"(?:[^"\\]++|\\.)*+"|\'(?:[^\'\\\n]++|\\.)*+\'', re.DOTALL)
_GAP = lazy_pattern(r"[ \t\r\n]{2,}+|[\t\r\n]")
_INSIDE = lazy_pattern(r"(?<=[({\[]) | (?=[)}\],])")
_LOOSE = lazy_pattern(r"/\*|//|[\t\r\n]|  |[({\[] | [)}\],]")
_NAME = lazy_pattern(r"%?([A-Za-z_][\w.\-]*+)", re.ASCII)


_NO_OPERANDS: Sequence[Operand] = ()

Texts = tuple[tuple[str, str], ...]
"""Names and texts."""


class Callees(NamedTuple):
    """The computations that one attribute names; `is_list` where they stand in braces."""

    attribute: CalleeAttribute
    names: tuple[str, ...]
    is_list: bool


class Spelling(NamedTuple):
    """One instruction. `shape` is empty where it is left out; `operands` are those of an instruction of which not each operand
    is just the name of another one; `literal` is what a constant or a parameter holds; `attributes` are name and text, by name,
    of those that hold no names. `rest` is what cannot be read as attributes.
    """

    shape: str
    opcode: str
    operands: Sequence[Operand] = ()
    literal: str = ""
    attributes: Texts = ()
    callees: tuple[Callees, ...] = ()
    predecessors: tuple[str, ...] = ()
    channel: str = ""
    rest: str = ""


class Speller:
    """Spells rows. Without `layouts` these are left out of shapes; with `metadata` what `METADATA` names is kept.

    `computations` are the names of the module's.
    """

    def __init__(self, computations: Container[str], *, layouts: bool = True, metadata: bool = False) -> None:
        self._computations = computations
        self._layouts = layouts
        self._dropped = (frozenset() if metadata else METADATA) | (frozenset() if layouts else _LAYOUTS)
        self._shapes: dict[str, str] = {}

    def spell(self, view: View, index: int) -> Spelling:
        """A row of a view."""
        tail = view.tails[index]
        shape, opcode = self._shape(view, index), view.opcodes[index]
        try:
            close = operands_end(tail)
        except tokens.ScanError:
            return Spelling(shape, opcode, rest=plain(tail))
        literal, operands = "", _NO_OPERANDS
        if opcode in LITERAL_OPCODES:
            literal = plain(tail[:close])
        elif not view.has_only_names(index):
            operands = view.operands(index)
        try:
            return Spelling(shape, opcode, operands, literal, *self._attributes(view, index, close))
        except tokens.ScanError:
            return Spelling(shape, opcode, operands, literal, rest=plain(tail[close + 1 :]))

    def _shape(self, view: View, index: int) -> str:
        head = view.rows.heads[index]
        known = self._shapes.get(head)
        if known is None:
            shape = None if self._layouts else view.shapes[index]
            known = self._shapes[head] = plain(head.rpartition(" ")[0]) if shape is None else str(shape)
        return known

    def _attributes(self, view: View, index: int, close: int) -> tuple[Texts, tuple[Callees, ...], tuple[str, ...], str]:
        """The attributes as a `Spelling` has them."""
        attributes: list[tuple[str, str]] = []
        callees: list[Callees] = []
        predecessors: tuple[str, ...] = ()
        channel = ""
        in_place: dict[str, list[str]] = {}
        seen: set[str] = set()  # of an attribute that is there twice the first one counts
        for key, text in tokens.attributes(view.tails[index], close + 1):
            if key in self._dropped or key in seen:
                continue
            seen.add(key)
            if key in _CALLS and "=" not in text:
                callees.append(Callees(_CALLS[key], tuple(_NAME.findall(text)), text.startswith("{")))
            elif key in _CALLS:
                in_place = in_place or self._in_place(view, index)
                named = tuple(in_place.get(key, ()))
                callees.append(Callees(_CALLS[key], named, len(named) != 1))
            elif key == "control-predecessors":
                predecessors = tuple(_NAME.findall(text))
            elif key == "channel_id":
                channel = text
            else:
                attributes.append((key, plain(text)))
        attributes.sort()
        callees.sort()
        return tuple(attributes), tuple(callees), predecessors, channel

    def _in_place(self, view: View, index: int) -> dict[str, list[str]]:
        """The computations in place among the attributes of a row, as the reader names them, by the names of the attributes."""
        row = view.rows[index]
        found: dict[str, list[str]] = {}
        for inside in nested_computations(row, view.lines[index]):
            again = f"{inside.name} (line {inside.line})"
            attribute = inside.name[len(row[1]) + 1 :].partition(".")[0]
            found.setdefault(attribute, []).append(again if again in self._computations else inside.name)
        return found


def plain(text: str) -> str:
    """A text without comments, its white space outside of strings as printers write it."""
    if _LOOSE.search(text) is None:
        return text
    text = tokens.without_comments(text)
    parts = [_INSIDE.sub("", _GAP.sub(" ", part)) for part in _STRING.split(text)]
    return "".join(part + string for part, string in zip(parts, [*_STRING.findall(text), ""], strict=True)).strip()

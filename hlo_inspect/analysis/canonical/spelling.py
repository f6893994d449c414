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
from hlo_inspect.hlo.operands import Operand, operand_names, operands_end, operands_of

METADATA = frozenset({"metadata", "origin", "original_value", "statistics"})
"""Attributes that say where an instruction comes from and how to draw it, not what it does."""

_LAYOUTS = frozenset({"operand_layout_constraints"})
_CALLS = {str(name): name for name in CALLEE_ATTRIBUTES}
_STRING = re.compile(r'"(?:[^"\\]++|\\.)*+"|\'(?:[^\'\\\n]++|\\.)*+\'', re.DOTALL)
_GAP = re.compile(r"[ \t\r\n]{2,}+|[\t\r\n]")
_INSIDE = re.compile(r"(?<=[({\[]) | (?=[)}\],])")
_LOOSE = re.compile(r"/\*|//|[\t\r\n]|  |[({\[] | [)}\],]")
_NAME = re.compile(r"%?([A-Za-z_][\w.\-]*+)", re.ASCII)


class Callees(NamedTuple):
    """The computations that one attribute names; `is_list` where they stand in braces."""

    attribute: CalleeAttribute
    names: tuple[str, ...]
    is_list: bool


class Spelling(NamedTuple):
    """One instruction. `shape` is empty where it is left out; `literal` is what a constant or a parameter holds; `attributes`
    are name and text, by name, of those that hold no names. `rest` is what cannot be read as attributes.
    """

    shape: str
    opcode: str
    operands: Sequence[Operand]
    literal: str
    attributes: tuple[tuple[str, str], ...] = ()
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
        tail = view.rows[index][3]
        spelling = Spelling(self._shape(view, index), view.opcodes[index], (), "")
        try:
            close = operands_end(tail)
        except tokens.ScanError:
            return spelling._replace(rest=plain(tail))
        if spelling.opcode in LITERAL_OPCODES:
            spelling = spelling._replace(literal=plain(tail[:close]))
        else:
            names = operand_names(tail)
            operands = operands_of(tail, close) if names is None else [Operand(name) for name in names]
            spelling = spelling._replace(operands=operands)
        try:
            return self._with_attributes(spelling, view, index, close)
        except tokens.ScanError:
            return spelling._replace(rest=plain(tail[close + 1 :]))

    def _shape(self, view: View, index: int) -> str:
        head = view.rows[index][2]
        known = self._shapes.get(head)
        if known is None:
            shape = None if self._layouts else view.shapes[index]
            known = self._shapes[head] = plain(head.rpartition(" ")[0]) if shape is None else str(shape)
        return known

    def _with_attributes(self, spelling: Spelling, view: View, index: int, close: int) -> Spelling:
        attributes: list[tuple[str, str]] = []
        callees: list[Callees] = []
        predecessors: tuple[str, ...] = ()
        channel = ""
        for key, text in tokens.attributes(view.rows[index][3], close + 1):
            if key in self._dropped:
                continue
            if key in _CALLS:
                callees.append(self._callees(_CALLS[key], text, view, index))
            elif key == "control-predecessors":
                predecessors = tuple(_NAME.findall(text))
            elif key == "channel_id":
                channel = text
            else:
                attributes.append((key, plain(text)))
        attributes.sort()
        callees.sort()
        return spelling._replace(
            attributes=tuple(attributes), callees=tuple(callees), predecessors=predecessors, channel=channel
        )

    def _callees(self, key: CalleeAttribute, text: str, view: View, index: int) -> Callees:
        if "=" not in text:
            return Callees(key, tuple(_NAME.findall(text)), text.startswith("{"))
        names = []  # of computations in place, as the reader names them
        prefix = f"{view.rows[index][1]}.{key}"
        for inside in nested_computations(view.rows[index], view.lines[index]):
            if inside.name == prefix or inside.name.startswith(f"{prefix}."):
                again = f"{inside.name} (line {inside.line})"
                names.append(again if again in self._computations else inside.name)
        return Callees(key, tuple(names), len(names) != 1)


def plain(text: str) -> str:
    """A text without comments, its white space outside of strings as printers write it."""
    if _LOOSE.search(text) is None:
        return text
    text = tokens.without_comments(text)
    parts = [_INSIDE.sub("", _GAP.sub(" ", part)) for part in _STRING.split(text)]
    return "".join(part + string for part, string in zip(parts, [*_STRING.findall(text), ""], strict=True)).strip()

"""What an instruction says, apart from names: its shape and opcode, its operands, and its attributes without metadata.

Printers differ in what they repeat (the shapes of operands), in white space and in comments; none of that is kept.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from hlo_inspect.graph.view import View
from hlo_inspect.hlo import tokens
from hlo_inspect.hlo.instruction import Operand, operands_end
from hlo_inspect.hlo.opcodes import CALLEE_ATTRIBUTES, LITERAL_OPCODES, CalleeAttribute
from hlo_inspect.hlo.values.attribute_forms import AttributeForm
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


_NOTHING: tuple[str, int | None] = ("", None)

_Parts = tuple[Texts, tuple[Callees, ...], tuple[str, ...], str]
"""Attributes, callees, predecessors and channel of a `Spelling`."""


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


class _Attributes(NamedTuple):
    """The attributes of a form as a `Spelling` has them. Of callees and channel there is the text, or the number of the place
    that holds it.
    """

    attributes: Texts
    callees: tuple[tuple[CalleeAttribute, str, int | None], ...]
    predecessors: tuple[str, ...]
    channel: tuple[str, int | None]


class Speller:
    """Spells rows. Without `layouts` these are left out of shapes; with `metadata` what `METADATA` names is kept."""

    def __init__(self, *, layouts: bool = True, metadata: bool = False) -> None:
        self._layouts = layouts
        self._dropped = (frozenset() if metadata else METADATA) | (frozenset() if layouts else _LAYOUTS)
        self._shapes: dict[str, str] = {}
        self._forms: dict[object, _Attributes | None] = {}

    def spell(self, view: View, index: int) -> Spelling:
        """A row of a view."""
        shape, opcode, tail = self._shape(view, index), view.opcodes[index], view.tails[index]
        try:
            end = operands_end(tail)
        except tokens.ScanError:
            return Spelling(shape, opcode, rest=plain(tail))
        literal, operands = "", _NO_OPERANDS
        if opcode in LITERAL_OPCODES:
            literal = plain(tail[:end])
        elif view.whole_operands(index) is None:
            operands = view.operands(index)
        form, places = view.computation.values.forms.take_apart(tail[end + 1 :])
        parts = self._parts(form, places)
        if parts is None:
            return Spelling(shape, opcode, operands, literal, rest=plain(form.filled(places)))
        return Spelling(shape, opcode, operands, literal, *parts)

    def _shape(self, view: View, index: int) -> str:
        head = view.heads[index].text
        known = self._shapes.get(head)
        if known is None:
            shape = None if self._layouts else view.shapes[index]
            known = self._shapes[head] = plain(head.rpartition(" ")[0]) if shape is None else str(shape)
        return known

    def _parts(self, form: AttributeForm[Any], places: tuple[str, ...]) -> _Parts | None:
        """The attributes as a `Spelling` has them, with all that does not differ between instructions of one form read once;
        `None` where they cannot be read.
        """
        if form not in self._forms:
            self._forms[form] = self._of_form(form)
        known = self._forms[form]
        if known is None:  # the form alone does not tell them
            known, places = self._of_form(AttributeForm(form.filled(places), has_holes=False)), ()
        if known is None:
            return None
        callees = []
        for attribute, in_form, number in known.callees:
            text = in_form if number is None else places[number]
            names = () if "=" in text else tuple(_NAME.findall(text))  # what is still in place is too deep in others to be read
            callees.append(Callees(attribute, names, text.startswith("{")))
        in_form, number = known.channel
        return known.attributes, tuple(callees), known.predecessors, in_form if number is None else places[number]

    def _of_form(self, form: AttributeForm[Any]) -> _Attributes | None:
        """`None` where a form cannot be read, or places hold what is neither a callee nor a channel."""
        if form.fault:
            return None
        found = {name: (text, form.places.get(name)) for name, text in form.texts.items()}
        for name in self._dropped:
            found.pop(name, None)
        predecessors = tuple(_NAME.findall(found.pop("control-predecessors", _NOTHING)[0]))
        channel = found.pop("channel_id", _NOTHING)
        callees = sorted((_CALLS[name], *found.pop(name)) for name in _CALLS.keys() & found.keys())
        if any(place is not None for _, place in found.values()):
            return None
        texts = sorted((name, plain(text)) for name, (text, _) in found.items())
        return _Attributes(tuple(texts), tuple(callees), predecessors, channel)


def plain(text: str) -> str:
    """A text without comments, its white space outside of strings as printers write it."""
    if _LOOSE.search(text) is None:
        return text
    text = tokens.without_comments(text)
    parts = [_INSIDE.sub("", _GAP.sub(" ", part)) for part in _STRING.split(text)]
    return "".join(part + string for part, string in zip(parts, [*_STRING.findall(text), ""], strict=True)).strip()

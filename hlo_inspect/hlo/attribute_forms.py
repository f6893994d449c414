"""What the attributes of many instructions have in common.

The form of a text of attributes is that text without what is of one instruction alone: the computations that it calls, its
channel and its metadata. These stay with the instruction as its places. A value that the form has is read once for all
instructions of that form. A form and its places give the text back as it was: texts that differ in anything else, even in a
blank, have different forms.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Generic, TypeVar

from hlo_inspect.hlo import tokens
from hlo_inspect.hlo.opcodes import CALLEE_ATTRIBUTES
from hlo_inspect.lazy_pattern import lazy_pattern

MAX_FORMS = 1 << 16

_HOLE = "\0"
_HOLE_NUMBER = lazy_pattern(r"(%?+)\0(\d++)\0", re.ASCII)
_HOLES = tuple([f"{_HOLE}{number}{_HOLE}" for number in range(16)])
_PLACED = "|".join((*CALLEE_ATTRIBUTES, "channel_id", "metadata"))
_PLAIN = r"[^{}\[\]()\"'/\n]*+"
_PLACE = lazy_pattern(rf'(, (?:{_PLACED})=%?)([\w.\-]++|\{{{_PLAIN}(?:"(?:[^"\\\n]++|\\.)*+"{_PLAIN})*+\}})', re.ASCII)

V = TypeVar("V")


class AttributeForm(Generic[V]):
    """A text of attributes with numbered holes for its places.

    `known` are the values that were asked for and need no place, `None` of attributes that are not there; `places` are the
    numbers of the places that hold a value.
    """

    __slots__ = ("_has_holes", "known", "places", "text")

    def __init__(self, text: str, *, has_holes: bool = True) -> None:
        self.text = text
        self._has_holes = has_holes
        self.known: dict[str, V | None] = {}
        self.places: dict[str, int] = {}

    def filled(self, places: Sequence[str]) -> str:
        """The text with its places in it."""
        return _HOLE_NUMBER.sub(lambda hole: hole[1] + places[int(hole[2])], self.text) if places else self.text

    def attributes(self) -> Iterator[tuple[str, str, int | None]]:
        """Name and text of each attribute, and the number of the place that is the text where one is; `ScanError` where the
        text makes no sense, or holds a place among other things.
        """
        for name, text in tokens.attributes(self.text):
            hole = _HOLE_NUMBER.fullmatch(text) if self._has_holes else None
            if hole is None and self._has_holes and _HOLE in text:
                raise tokens.ScanError("a value with a place in it", 0)
            yield name, text, None if hole is None else int(hole[2])

    def text_of(self, name: str) -> str | None:
        """The text of an attribute; `ScanError` where it holds a place among other things, or the text before it makes no
        sense.
        """
        text = attribute_text(self.text, name)
        if text is None or not self._has_holes or _HOLE not in text:
            return text
        hole = _HOLE_NUMBER.fullmatch(text)
        if hole is None:
            raise tokens.ScanError("a value with a place in it", 0)
        self.places[name] = int(hole[2])
        return text


class FormTable(Generic[V]):
    """The forms of one module."""

    def __init__(self) -> None:
        self._forms: dict[str, AttributeForm[V]] = {}
        self._texts: dict[str, str] = {}

    def take_apart(self, attributes: str) -> tuple[AttributeForm[V], tuple[str, ...]]:
        """The form of a text of attributes, and its places."""
        pieces = _PLACE.split(attributes)
        places = pieces[2::3]
        if _HOLE in attributes or len(places) > len(_HOLES):
            return AttributeForm(attributes, has_holes=False), ()
        pieces[2::3] = _HOLES[: len(places)]
        text = "".join(pieces)
        before = text.rpartition(_HOLE)[0]
        if ('"' in before or "/" in before or "\\" in before) and not _are_whole(text, places):
            text, places = attributes, []
        form = self._forms.get(text)
        if form is None:
            form = AttributeForm(text)
            if len(self._forms) < MAX_FORMS:
                self._forms[text] = form
        if places and places[-1].startswith("{"):
            places[-1] = self.shared(places[-1])
        return form, tuple(places)

    def shared(self, text: str) -> str:
        """A text, metadata nearly always: one object for all that are equal, while there is room for more."""
        known = self._texts.get(text)
        if known is None:
            known = text
            if len(self._texts) < MAX_FORMS:
                self._texts[text] = text
        return known


def _are_whole(text: str, places: Sequence[str]) -> bool:
    """Whether places that hold strings are outside of those strings and comments that stand before them."""
    between = text.split(_HOLE)[::2]
    for number, place in enumerate(places, 1):
        before = "".join(between[:number])
        if '"' in place and (before.count('"') % 2 or "\\" in before or "/*" in before or "//" in before):
            return False
    return True


def attribute_text(text: str, name: str) -> str | None:
    """The text of the first attribute of a name in `, name=value, name=value`; what follows it is not looked at. `ScanError`
    where the text stops making sense before it.
    """
    at = text.find(f", {name}=")
    if at >= 0 and _closes_all(text, at):
        common = tokens.COMMON_ATTRIBUTE.match(text, at)
        if common is not None:
            return common[2]
    if name not in text:
        return None
    return next((value for found, value in tokens.attributes(text) if found == name), None)


def _closes_all(text: str, end: int) -> bool:
    """Whether surely no string, comment or brace is open at an index."""
    before = text[:end]
    if '"' in before:
        if before.count('"') % 2 or "\\" in before:
            return False
        before = "".join(before.split('"')[::2])
    return "/*" not in before and "//" not in before and before.count("{") == before.count("}")


_PRINTED_FUSION = lazy_pattern(
    r"""[^"'()/]*+(?:(?:/\*index=\d++\*/|\([^"'()/]*+\))[^"'()/]*+)*+\)"""
    r"(?:, kind=(k[A-Za-z]++))?+, calls=%?([A-Za-z_][\w.\-]*+)(?=, (?!device_ids=)[a-z]|$)",
    re.ASCII,
)
"""Operands with the comments that printers write among them, and tuple shapes and tiles, but no string: it may hold what looks
like the end of them. Behind what is called the next attribute follows, or nothing.
"""


def printed_fusion(tail: str) -> tuple[str | None, str] | None:
    """The kind of a fusion, and what it calls, by its text behind the opening parenthesis; `None` where this is not written as
    usual. An `async-start` has no kind.
    """
    found = _PRINTED_FUSION.match(tail)
    return None if found is None else (found[1], found[2])

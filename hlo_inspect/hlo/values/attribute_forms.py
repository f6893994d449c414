"""What the attributes of many instructions have in common.

The form of a text of attributes is that text without what is of one instruction alone: the computations that it calls, its
channel and its metadata. These stay with the instruction as its places. A value that the form has is read once for all
instructions of that form. A form and its places give the text back as it was: texts that differ in anything else, even in a
blank, have different forms.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
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

    `texts` are the texts of the attributes by name, of several of one name the first; where the text stops making sense they
    end, with a `fault`. `places` are the numbers of the places by attribute. `known` are the values that were asked for and
    need no place, `None` of attributes that are not there.
    """

    __slots__ = ("fault", "known", "places", "text", "texts")

    def __init__(self, text: str, *, has_holes: bool = True) -> None:
        self.text = text
        self.known: dict[str, V | None] = {}
        self.texts: dict[str, str] = {}
        self.places: dict[str, int] = {}
        self.fault = ""
        try:
            for name, value in tokens.attributes(text):
                if name not in self.texts:
                    self.texts[name] = value
                    if has_holes and _HOLE in value and (hole := _HOLE_NUMBER.fullmatch(value)) is not None:
                        self.places[name] = int(hole[2])
        except tokens.ScanError as error:
            self.fault = error.message

    def filled(self, places: Sequence[str]) -> str:
        """The text with its places in it."""
        return _HOLE_NUMBER.sub(lambda hole: hole[1] + places[int(hole[2])], self.text) if places else self.text


class FormTable(Generic[V]):
    """The forms of one module."""

    def __init__(self) -> None:
        self._forms: dict[str, AttributeForm[V]] = {}
        self._texts: dict[str, str] = {}

    def take_apart(self, attributes: str) -> tuple[AttributeForm[V], tuple[str, ...]]:
        """The form of a text of attributes, and its places. Where one of these is not the whole value of an attribute, but in a
        string, a comment or braces, the text is its own form.
        """
        pieces = _PLACE.split(attributes)
        places = pieces[2::3]
        if _HOLE in attributes or len(places) > len(_HOLES):
            return AttributeForm(attributes, has_holes=False), ()
        pieces[2::3] = _HOLES[: len(places)]
        form = self._form("".join(pieces))
        if len(form.places) != len(places):
            return self._form(attributes), ()
        if places and places[-1].startswith("{"):
            places[-1] = self.shared(places[-1])
        return form, tuple(places)

    def _form(self, text: str) -> AttributeForm[V]:
        form = self._forms.get(text)
        if form is None:
            form = AttributeForm(text)
            if len(self._forms) < MAX_FORMS:
                self._forms[text] = form
        return form

    def shared(self, text: str) -> str:
        """A text, metadata nearly always: one object for all that are equal, while there is room for more."""
        known = self._texts.get(text)
        if known is None:
            known = text
            if len(self._texts) < MAX_FORMS:
                self._texts[text] = text
        return known


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

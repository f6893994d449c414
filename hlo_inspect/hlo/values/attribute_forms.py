"""Forms: the part of the attributes' text that many instructions share.

A form is the text without the parts of a single instruction: its callees, channel and metadata. The instruction keeps these
parts as its places. A value in the form is read once for all its instructions. A form and its places give back the exact text:
texts that differ elsewhere, even in a blank, have different forms.
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

    `texts`: the text of each attribute by name; the first if a name repeats. They end before the first unreadable attribute,
    and `fault` says why.
    `places`: the number of the place of each attribute that has one.
    `known`: the values read so far that need no place; None for absent attributes.
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
        """Return the text with `places` in its holes."""
        return _HOLE_NUMBER.sub(lambda hole: hole[1] + places[int(hole[2])], self.text) if places else self.text


class FormTable(Generic[V]):
    """The forms of one module."""

    def __init__(self) -> None:
        self._forms: dict[str, AttributeForm[V]] = {}
        self._texts: dict[str, str] = {}

    def take_apart(self, attributes: str) -> tuple[AttributeForm[V], tuple[str, ...]]:
        """Split a text of attributes into its form and its places.

        The text is its own form if a place is not a whole value, but part of a string, a comment or braces.
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
        """Return the string that stands for all equal texts, nearly always metadata. `MAX_FORMS` limits their number."""
        first = self._texts.get(text)
        if first is None:
            first = text
            if len(self._texts) < MAX_FORMS:
                self._texts[text] = text
        return first


_PRINTED_FUSION = lazy_pattern(
    r"""[^"'()/]*+(?:(?:/\*index=\d++\*/|\([^"'()/]*+\))[^"'()/]*+)*+\)"""
    r"(?:, kind=(k[A-Za-z]++))?+, calls=%?([A-Za-z_][\w.\-]*+)(?=, (?!device_ids=)[a-z]|$)",
    re.ASCII,
)
"""Pattern of operands, with comments and shapes of tuples and tiles, then kind and callee.

Operands with strings do not match: a string may look like their end. The next attribute or nothing follows the
callee.
"""


def printed_fusion(tail: str) -> tuple[str | None, str] | None:
    """Return kind (None for `async-start`) and callee of a fusion from its tail; None unless it is printed in the usual way."""
    fusion = _PRINTED_FUSION.match(tail)
    return None if fusion is None else (fusion[1], fusion[2])

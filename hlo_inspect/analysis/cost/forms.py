"""Which computations are the same but for names and metadata. A program repeats the same few many times over, and those that
are alike cost the same.

Names are compared by what the printer's numbers leave of them: `%add.12` and `%add.7` are both `%add` with a number. Two
computations have the same form where their texts are the same without metadata and numbers, and the numbers repeat in the
same places: then a renaming takes the one to the other.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from hlo_inspect.hlo.module import Computation

_METADATA = re.compile(r', metadata=\{[^{}"\n]*+(?:"[^"\\\n]*+"[^{}"\n]*+)*+\}')
_NUMBER = re.compile(r"(\.\d++)", re.ASCII)
_STRING_OR_METADATA = re.compile(rf'("(?:[^"\\\n]++|\\.)*+")|{_METADATA.pattern}')
_MARK = re.compile("(?:calls|to_apply|body|condition|computations?|select|scatter)=")
_CALLS = re.compile(rf"{_MARK.pattern}(\{{[^{{}}]*+\}}|%?[\w.\-]++)", re.ASCII)
_NAME = re.compile(r"%?([\w.\-]+)", re.ASCII)
_COUNTED_ONE_BY_ONE = "custom-call"
"""Those without a rule are listed, each at its place."""


class Forms:
    """The forms of a module's computations: small numbers, the same for those that are alike."""

    def __init__(self, computations: Mapping[str, Computation]) -> None:
        self._computations = computations
        self._numbers: dict[tuple[object, ...], int] = {}
        self._known: dict[str, int] = {}

    def of(self, name: str) -> int | None:
        """The form of a computation; `None` where it is not easily told, or calls one whose form was not asked for yet."""
        known = self._known.get(name)
        if known is not None:
            return known
        return self._find(name, deep=True)

    def _find(self, name: str, *, deep: bool) -> int | None:
        computation = self._computations.get(name)
        text = _text(computation) if computation is not None else None
        if text is None:
            return None
        called: list[int] = []
        if _may_call(text):
            callees = _CALLS.findall(text)
            if len(callees) != len(_MARK.findall(text)):
                return None
            for callee in _NAME.findall(" ".join(callees)):
                form = self._known.get(callee)
                if form is None and deep:
                    form = self._find(callee, deep=False)
                if form is None:
                    return None
                called.append(form)
        pieces = _NUMBER.split(text)
        numbers = pieces[1::2]
        first = dict(zip(dict.fromkeys(numbers), range(len(numbers)), strict=False))
        repeats = tuple(map(first.__getitem__, numbers))
        key = ("\0".join(pieces[::2]), repeats, *called)
        form = self._known[name] = self._numbers.setdefault(key, len(self._numbers))
        return form


def _may_call(text: str) -> bool:
    """A look that costs less than the expression."""
    return (
        "to_apply=" in text
        or "calls=" in text
        or "computation" in text
        or "body=" in text
        or "condition=" in text
        or "select=" in text
        or "scatter=" in text
    )


def _text(computation: Computation) -> str | None:
    """The text of a computation without metadata, where it was kept as one."""
    if len(computation.chunks) != 1:
        return None
    text = computation.chunks[0][1]
    if not isinstance(text, str) or _COUNTED_ONE_BY_ONE in text:
        return None
    bare = _METADATA.sub("", text)
    if '"' in bare:  # what looked like metadata may have stood in a string
        return _STRING_OR_METADATA.sub(r"\1", text)
    return bare

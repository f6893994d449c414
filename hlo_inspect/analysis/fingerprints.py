"""Which computations are the same but for names and metadata. A program repeats the same few many times over, and those that
are alike cost the same.

Two computations have the same fingerprint where their texts, without metadata and names, are the same, and names repeat in the
same positions: then a renaming takes the one to the other. In a text that prints names without `%` only their numbers may
differ, `add.12` and `add.7`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from hlo_inspect.hlo.module import Computation
from hlo_inspect.hlo.opcodes import LITERAL_OPCODES

_METADATA = re.compile(r', metadata=\{[^{}"\n]*+(?:"[^"\\\n]*+"[^{}"\n]*+)*+\}')
_BRIEFLY = re.compile(r", metadata=\{[^}]*+\}")
"""Metadata up to its first brace, which is nearly always its last."""
_NAMES = re.compile(r"%([A-Za-z0-9_.\-]++)")
_NUMBERS = re.compile(r"(\.\d++)", re.ASCII)
_STRING_OR_METADATA = re.compile(rf'("(?:[^"\\\n]++|\\.)*+")|{_METADATA.pattern}')
_MARK = re.compile("(?:calls|to_apply|body|condition|computations?|select|scatter)=")
_CALLS = re.compile(
    r", (?:calls|to_apply|body|condition|[a-z]*+_?computations?|select|scatter)=(\{[^{}]*+\}|%?[\w.\-]++)", re.ASCII
)
_NAME = re.compile(r"%?([\w.\-]+)", re.ASCII)
_LITERALS = tuple(f" {opcode}" for opcode in LITERAL_OPCODES)
_COUNTED_ONE_BY_ONE = "custom-call"
"""Those without a rule are listed, each at its place."""


class Fingerprints:
    """The fingerprints of a module's computations: small numbers, the same for those that are alike."""

    def __init__(self, computations: Mapping[str, Computation]) -> None:
        self._computations = computations
        self._numbers: dict[tuple[object, ...], int] = {}
        self._known: dict[str, int] = {}
        self._marks: dict[str, int] = {}
        self._alone: set[str] = set()

    def of(self, name: str) -> int | None:
        """The fingerprint of a computation; `None` where it is not easily found, or where the computation calls one whose
        fingerprint was not asked for yet.
        """
        known = self._known.get(name)
        if known is not None:
            return known
        return self._find(name, deep=True)

    def is_alone(self, name: str) -> bool:
        """Whether a computation that has a fingerprint calls no other one, and differs only in names from all that share it."""
        return name in self._alone

    def _find(self, name: str, *, deep: bool) -> int | None:
        computation = self._computations.get(name)
        text = _text(computation) if computation is not None else None
        if text is None:
            return None
        pieces = (_NAMES if "%" in text else _NUMBERS).split(text)
        kept = "%".join(pieces[::2])
        called = self._called(text, kept, deep=deep)
        if called is None:
            return None
        if not called and "%" in text:
            self._alone.add(name)
        first: dict[str, int] = {}
        repeats = [first.setdefault(one, len(first)) for one in pieces[1::2]]
        key = (kept, len(called), *called, *repeats)
        fingerprint = self._known[name] = self._numbers.setdefault(key, len(self._numbers))
        return fingerprint

    def _called(self, text: str, kept: str, *, deep: bool) -> list[int] | None:
        """The fingerprints of the computations that a text calls, `None` where one is not known. `kept` is the text without
        names.
        """
        marks = self._count_marks(kept)
        callees = _CALLS.findall(text) if marks else []
        if len(callees) != marks:
            return None
        called: list[int] = []
        for callee in _NAME.findall(" ".join(callees)):
            fingerprint = self._known.get(callee)
            if fingerprint is None and deep:
                fingerprint = self._find(callee, deep=False)
            if fingerprint is None:
                return None
            called.append(fingerprint)
        return called

    def _count_marks(self, kept: str) -> int:
        """How many attributes of a text call others; what names leave of most texts is the same."""
        known = self._marks.get(kept)
        if known is None:
            known = self._marks[kept] = len(_MARK.findall(kept))
        return known


def _text(computation: Computation) -> str | None:
    """The rows of a computation as one text without metadata. The names of rows have a `%` unless operands have none."""
    rows = computation.rows
    text = "\n".join([f"{root}%{name} = {head}({tail}" for root, name, head, tail in rows])
    if text.count("%") == len(rows) and not all(head.endswith(_LITERALS) for _, _, head, _ in rows):
        text = text.replace("%", "")
    if not text or _COUNTED_ONE_BY_ONE in text:
        return None
    bare = _BRIEFLY.sub("", text)
    if '"' in bare or bare.count("\n") != text.count("\n"):  # what looked like metadata stood in a string, or is not all of it
        return _STRING_OR_METADATA.sub(r"\1", text)
    return bare

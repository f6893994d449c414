"""Which computations are the same but for names and metadata. A program repeats the same few many times over, and those that
are alike cost the same. This is for a pass over one module; `canonical` compares modules, and has rows in any order.

Two computations have the same fingerprint where their texts, without metadata and names, are the same, and names repeat in the
same positions: then a renaming takes the one to the other. In a text that prints names without `%` only their numbers may
differ, `add.12` and `add.7`.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from itertools import count

from hlo_inspect.hlo.module import Computation
from hlo_inspect.hlo.opcodes import LITERAL_OPCODES
from hlo_inspect.lazy_pattern import lazy_pattern

_METADATA = lazy_pattern(r', metadata=\{[^{}"\n]*+(?:"[^"\\\n]*+"[^{}"\n]*+)*+\}')
_UP_TO_A_BRACE = lazy_pattern(r", metadata=\{[^}\n]*+\}")
"""Metadata up to its first brace, which is nearly always its last."""
_STRING_OR_METADATA = lazy_pattern(rf'("(?:[^"\\\n]++|\\.)*+"?+)|{_METADATA.pattern}')
"""A string that is not closed goes to the end of its line: looked for at each quote in it, it would be read over and over."""
_NAMES = lazy_pattern(r"%([A-Za-z0-9_.\-]++)")
_NUMBERS = lazy_pattern(r"(\.\d++)", re.ASCII)
_CALLING = lazy_pattern("(?:calls|to_apply|body|condition|computations?|select|scatter)=")
_CALLS = lazy_pattern(
    r", (?:calls|to_apply|body|condition|[a-z]*+_?computations?|select|scatter)=(\{[^{}]*+\}|%?[\w.\-]++)", re.ASCII
)
_NAME = lazy_pattern(r"%?([\w.\-]+)", re.ASCII)
_LITERALS = tuple(f" {opcode}" for opcode in LITERAL_OPCODES)
_COUNTED_ONE_BY_ONE = "custom-call"
"""Those without a rule are listed, each at its place."""


class Fingerprints:
    """The fingerprints of a module's computations: small numbers, the same for those that are alike."""

    def __init__(self, computations: Mapping[str, Computation]) -> None:
        self._computations = computations
        self._numbers: dict[tuple[object, ...], int] = {}
        self._known: dict[str, int] = {}
        self._calling: dict[str, int] = {}
        self._alone: set[str] = set()

    def of(self, name: str) -> int | None:
        """The fingerprint of a computation; `None` where it is not easily found, or where the computation calls one whose
        fingerprint was not asked for yet.
        """
        known = self._known.get(name)
        return known if known is not None else self._find(name, deep=True)

    def is_alone(self, name: str) -> bool:
        """Whether a computation that has a fingerprint calls no other one, and differs only in names from all that share it."""
        return name in self._alone

    def _find(self, name: str, *, deep: bool) -> int | None:
        computation = self._computations.get(name)
        if computation is None or not computation.rows:
            return None
        roots, names, heads, tails = zip(*computation.rows, strict=True)
        spelled_heads, text = "\n".join(heads), without_metadata("\n".join(tails))
        if _COUNTED_ONE_BY_ONE in spelled_heads:
            return None
        is_marked = "%" in text or all(head.endswith(_LITERALS) for head in heads)
        if is_marked:
            parts = _NAMES.split(text)
            repeating = [*names, *parts[1::2]]
        else:
            parts = _NUMBERS.split("\n".join((*names, text)))
            repeating = parts[1::2]
        kept = "%".join(parts[::2])
        called = self._called(text, kept, deep=deep)
        if called is None:
            return None
        if is_marked and not called:
            self._alone.add(name)
        first_seen: defaultdict[str, int] = defaultdict(count().__next__)
        key = (spelled_heads, kept, roots, is_marked, *called, *map(first_seen.__getitem__, repeating))
        fingerprint = self._known[name] = self._numbers.setdefault(key, len(self._numbers))
        return fingerprint

    def _called(self, text: str, kept: str, *, deep: bool) -> list[int] | None:
        """The fingerprints of the computations that a text calls, `None` where one is not known. `kept` is the text without
        names, which is the same for most.
        """
        calls = self._calling.get(kept)
        if calls is None:
            calls = self._calling[kept] = len(_CALLING.findall(kept))
        if not calls:
            return []
        callees = _CALLS.findall(text)
        if len(callees) != calls:
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


def without_metadata(text: str) -> str:
    """The lines of a text without their metadata; what stands in a string is none."""
    bare = _UP_TO_A_BRACE.sub("", text)
    if '"' in bare or bare.count("\n") != text.count("\n"):  # what looked like metadata stood in a string, or is not all of it
        return _STRING_OR_METADATA.sub(r"\1", text)
    return bare

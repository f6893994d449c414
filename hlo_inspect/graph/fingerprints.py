"""Which computations are the same but for names and metadata. A program repeats the same few many times over, and those that
are alike cost the same. This is for a pass over one module; `canonical` compares modules, and has rows in any order.

Two computations have the same fingerprint where their texts, without metadata and names, are the same, and names repeat in the
same positions: then a renaming takes the one to the other. Where a text has names with `%` and others without, all names are
the same. In a text that prints no `%` at all only the numbers of names may differ, `add.12` and `add.7`.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from typing import NamedTuple

from hlo_inspect.hlo.module import Computation
from hlo_inspect.hlo.opcodes import LITERAL_OPCODES
from hlo_inspect.hlo.rows import NO_ROWS, HeadColumn, Rows
from hlo_inspect.lazy_pattern import lazy_pattern

_METADATA = lazy_pattern(r', metadata=\{[^{}"\n]*+(?:"[^"\\\n]*+"[^{}"\n]*+)*+\}')
_COMMENT = r"/\*(?:[^*]++|\*(?!/))*+\*/"
_BEGIN = ", metadata={"
_UP_TO_A_BRACE = lazy_pattern(r", metadata=\{[^}\n]*+\}")
_STRING_OR_METADATA = lazy_pattern(rf'("(?:[^"\\\n]++|\\.)*+"?+|{_COMMENT})|{_METADATA.pattern}')
"""A string that is not closed goes to the end of its line: looked for at each quote in it, it would be read over and over."""
_STRING_OR_COMMENT = lazy_pattern(r'("(?:[^"\\]++|\\.)*+"?+|\'(?:[^\'\\\n]++|\\.)*+\')|' + _COMMENT + r"|//[^\n]*+", re.DOTALL)
_NAMES = lazy_pattern(r"%([A-Za-z0-9_.\-]++)")
_NUMBERS = lazy_pattern(r"(\.\d++)", re.ASCII)
_CALLING = ("calls=", "to_apply=", "body=", "condition=", "computation=", "computations=", "select=", "scatter=")
_CALLS = lazy_pattern(
    r", (?:calls|to_apply|body|condition|[a-z]*+_?computations?|select|scatter)=(\{[^{}]*+\}|%?[\w.\-]++)", re.ASCII
)
_NAME = lazy_pattern(r"%?([\w.\-]+)", re.ASCII)
_WORD = lazy_pattern(r"[A-Za-z_][\w.\-]*+", re.ASCII)
_COUNTED_ONE_BY_ONE = "custom-call"
"""Those without a rule are listed, each at its place."""


class _Body(NamedTuple):
    """What a fingerprint depends on besides the heads.

    `text` is that of the tails without metadata, `calling` says how many attributes name callees, and `called` are the
    fingerprints of these.
    """

    rows: Rows
    text: str
    calling: int
    called: tuple[int, ...]


class _Heads(NamedTuple):
    """The heads of a computation's rows: their `number` is the same where they are the same and the same row is the root."""

    number: int
    is_counted_one_by_one: bool
    are_literals: bool


class Fingerprints:
    """The fingerprints of a module's computations: small numbers, the same for those that are alike."""

    def __init__(self, computations: Mapping[str, Computation]) -> None:
        self._computations = computations
        self._numbers: dict[tuple[object, ...], int] = {}
        self._known: dict[str, int] = {}
        self._calling: dict[str, int] = {}
        self._words: dict[str, frozenset[str]] = {}
        self._alone: set[int] = set()
        self._columns: dict[HeadColumn, _Heads] = {}
        self._texts: dict[tuple[tuple[str, ...], frozenset[int]], int] = {}

    def of(self, name: str) -> int | None:
        """The fingerprint of a computation; `None` where it is not easily found, or where the computation calls one whose
        fingerprint was not asked for yet.
        """
        known = self._known.get(name)
        return known if known is not None else self._find(name, deep=True)

    def is_alone(self, name: str) -> bool:
        """Whether a computation that has a fingerprint calls no other one, and differs only in names from all that share it."""
        return self._known.get(name) in self._alone

    def _find(self, name: str, *, deep: bool) -> int | None:
        computation = self._computations.get(name)
        rows = computation.rows if computation is not None else NO_ROWS
        if not rows.names:
            return None
        heads = self._heads(rows.column)
        if heads.is_counted_one_by_one:
            return None
        text = without_metadata("\n".join(rows.tails))
        values = _CALLS.findall(text) if rows.column.calling else ()
        called = self._of_all(_NAME.findall(" ".join(values)), deep=deep) if values else ()
        if called is None:
            return None
        fingerprint = self._by_pattern(_Body(rows, text, len(values), called), heads)
        if fingerprint is not None:
            self._known[name] = fingerprint
        return fingerprint

    def _by_pattern(self, body: _Body, heads: _Heads) -> int | None:
        """The fingerprint by what the text is without names, and by where they repeat."""
        text, names = body.text, body.rows.names
        is_marked = "%" in text or heads.are_literals
        if is_marked and _has_name_in_string(text):
            return None
        kept, pattern = _by_names(names, text) if is_marked else _by_numbers(names, text)
        if self._calls(kept) != body.calling:
            return None
        if is_marked and not self._words_of(kept).isdisjoint(names):
            pattern = (tuple(names), *pattern)
        key = heads.number, kept, is_marked, pattern, body.called
        fingerprint = self._numbers.setdefault(key, len(self._numbers))
        if is_marked and not body.called:
            self._alone.add(fingerprint)
        return fingerprint

    def _heads(self, column: HeadColumn) -> _Heads:
        """What the heads of rows say; the same for all columns with the same texts and marks."""
        known = self._columns.get(column)
        if known is None:
            texts = tuple(column.texts)
            number = self._texts.setdefault((texts, column.marked), len(self._texts))
            opcodes = set(column.opcodes)
            is_counted_one_by_one = any(_COUNTED_ONE_BY_ONE in opcode for opcode in opcodes)
            known = self._columns[column] = _Heads(number, is_counted_one_by_one, opcodes <= LITERAL_OPCODES)
        return known

    def _words_of(self, kept: str) -> frozenset[str]:
        """The words of a text without its marked names: among them are the names that have no mark."""
        known = self._words.get(kept)
        if known is None:
            known = self._words[kept] = frozenset(_WORD.findall(kept))
        return known

    def _calls(self, kept: str) -> int:
        """How many attributes of a text name computations, by the text without names, which is the same for most."""
        known = self._calling.get(kept)
        if known is None:
            known = self._calling[kept] = sum(map(kept.count, _CALLING))
        return known

    def _of_all(self, callees: Iterable[str], *, deep: bool) -> tuple[int, ...] | None:
        """The fingerprints of computations, `None` where one is not known."""
        found: list[int] = []
        for callee in callees:
            fingerprint = self._known.get(callee)
            if fingerprint is None and deep:
                fingerprint = self._find(callee, deep=False)
            if fingerprint is None:
                return None
            found.append(fingerprint)
        return tuple(found)


def _by_names(names: Sequence[str], text: str) -> tuple[str, tuple[object, ...]]:
    """A text without the names in it, and which of these are the names of which rows, or the same as others."""
    parts = _NAMES.split(text)
    first_seen: defaultdict[str, int] = defaultdict(count(len(names)).__next__, zip(names, count()))
    distinct = len(first_seen) == len(names)
    repeated = None if distinct else tuple(map(first_seen.__getitem__, names))
    return "%".join(parts[::2]), (repeated, *map(first_seen.__getitem__, parts[1::2]))


def _has_name_in_string(text: str) -> bool:
    """Whether what looks like a name may stand in a string, where another one would make another thing of it."""
    if '"' not in text and "'" not in text:
        return False
    if "\\" in text or "/" in text or "'" in text:
        return any("%" in one for one in _STRING_OR_COMMENT.findall(text))
    return "%" in "".join(text.split('"')[1::2])


def _by_numbers(names: Sequence[str], text: str) -> tuple[str, tuple[object, ...]]:
    """The same of a text in which names have no mark: without their numbers."""
    parts = _NUMBERS.split("\n".join((*names, text)))
    first_seen: defaultdict[str, int] = defaultdict(count().__next__)
    return "%".join(parts[::2]), tuple(map(first_seen.__getitem__, parts[1::2]))


def _up_to_a_brace(text: str) -> str:
    """A text without its metadata up to their first braces, which are nearly always their last."""
    first, *others = text.split(_BEGIN)
    bare = "".join([first, *[part.partition("}")[2] for part in others]])
    if "}" not in others[-1] or bare.count("\n") != text.count("\n"):  # one is not closed, or not on its line
        return _UP_TO_A_BRACE.sub("", text)
    return bare


def without_metadata(text: str) -> str:
    """The lines of a text without their metadata; what stands in a string is none."""
    if _BEGIN not in text:
        return text
    bare = _up_to_a_brace(text)
    if '"' not in bare and "*" not in bare:  # else what looked like metadata may be in a string or a comment, or not all of it
        return bare
    if text.count("/*") != text.count("/*index="):  # a comment may hold what looks like metadata or begins a string
        return _STRING_OR_METADATA.sub(r"\1", text)
    if '"' not in bare:
        return bare
    if '\\"' not in text and not any(part.count('"') % 2 for part in (*text.split("\n"), *text.split(_BEGIN))):
        return _METADATA.sub("", text)  # all strings are closed, and what looks like metadata begins outside of them
    return _STRING_OR_METADATA.sub(r"\1", text)

"""Fingerprints that computations share if they differ only in names and metadata, and of texts that renaming does not change.

A program repeats a few computations many times, and repeated ones cost the same. This is for a pass over one module;
`canonical` compares modules, and allows rows in any order.

Two computations share a fingerprint if a renaming maps one to the other. Their texts without metadata and names are equal, and
names repeat in the same positions. If a text has names with `%` and others without, all names must be equal. In a text without
any `%` only the numbers of names may differ, as in `add.12` and `add.7`.
"""

from __future__ import annotations

import re
from array import array
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from itertools import count
from typing import NamedTuple

from hlo_inspect.hlo.module import Computation
from hlo_inspect.hlo.opcodes import LITERAL_OPCODES
from hlo_inspect.hlo.rows import NO_ROWS, HeadColumn, Rows
from hlo_inspect.hlo.values.op_names import TABLE
from hlo_inspect.lazy_pattern import lazy_pattern

_METADATA = lazy_pattern(r', metadata=\{[^{}"\n]*+(?:"[^"\\\n]*+"[^{}"\n]*+)*+\}')
_COMMENT = r"/\*(?:[^*]++|\*(?!/))*+\*/"
_BEGIN = ", metadata={"
_UP_TO_A_BRACE = lazy_pattern(r", metadata=\{[^}\n]*+\}")
_STRING_OR_METADATA = lazy_pattern(rf'("(?:[^"\\\n]++|\\.)*+"?+|{_COMMENT})|{_METADATA.pattern}')
"""An open string ends with its line; otherwise each quote in it would start a new search."""
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
"""Opcode whose instructions are listed singly if no rule covers them."""


class _Body(NamedTuple):
    """The parts of a fingerprint besides the heads.

    `text` joins the tails without metadata. `calling` is the number of attributes that name callees; `called` are the callees'
    fingerprints.
    """

    rows: Rows
    text: str
    calling: int
    called: tuple[int, ...]


class _Heads(NamedTuple):
    """The heads of a computation's rows. Equal heads with the same root row have the same `number`."""

    number: int
    is_counted_one_by_one: bool
    are_literals: bool


class Fingerprints:
    """The fingerprints of a module's computations: small numbers, equal for equal computations."""

    def __init__(self, computations: Mapping[str, Computation]) -> None:
        self._computations = computations
        self._numbers: dict[tuple[object, ...], int] = {}
        self._known: dict[str, int] = {}
        self._calling: dict[str, int] = {}
        self._words: dict[str, frozenset[str]] = {}
        self._name_variants: set[int] = set()
        self._columns: dict[HeadColumn, _Heads] = {}
        self._texts: dict[tuple[tuple[str, ...], frozenset[int]], int] = {}

    def get(self, name: str) -> int | None:
        """Return the fingerprint of a computation.

        Return None if it is not found easily, or if a callee has no fingerprint yet.
        """
        fingerprint = self._known.get(name)
        return fingerprint if fingerprint is not None else self._find(name, deep=True)

    def differs_only_in_names(self, name: str) -> bool:
        """Return True if the computation has a fingerprint, calls none, and equals its sharers but for names."""
        return self._known.get(name) in self._name_variants

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
        called = self._get_all(_NAME.findall(" ".join(values)), deep=deep) if values else ()
        if called is None:
            return None
        fingerprint = self._find_pattern(_Body(rows, text, len(values), called), heads)
        if fingerprint is not None:
            self._known[name] = fingerprint
        return fingerprint

    def _find_pattern(self, body: _Body, heads: _Heads) -> int | None:
        """Return the fingerprint of a text without names and of the positions at which names repeat."""
        text, names = body.text, body.rows.names
        is_marked = "%" in text or heads.are_literals
        if is_marked and _has_name_in_string(text):
            return None
        kept, pattern = _mask_names(names, text) if is_marked else _mask_numbers(names, text)
        if self._calls(kept) != body.calling:
            return None
        if is_marked and not self._words_of(kept).isdisjoint(names):
            pattern = (tuple(names), *pattern)
        fingerprint = self._numbers.setdefault((heads.number, kept, is_marked, pattern, body.called), len(self._numbers))
        if is_marked and not body.called:
            self._name_variants.add(fingerprint)
        return fingerprint

    def _heads(self, column: HeadColumn) -> _Heads:
        """Return the heads of rows; equal columns share one object."""
        heads = self._columns.get(column)
        if heads is None:
            number = self._texts.setdefault((tuple(column.texts), column.marked), len(self._texts))
            opcodes = set(column.opcodes)
            is_counted_one_by_one = any(_COUNTED_ONE_BY_ONE in opcode for opcode in opcodes)
            heads = self._columns[column] = _Heads(number, is_counted_one_by_one, opcodes <= LITERAL_OPCODES)
        return heads

    def _words_of(self, kept: str) -> frozenset[str]:
        """Return the words of a text without its marked names. They include all unmarked names."""
        words = self._words.get(kept)
        if words is None:
            words = self._words[kept] = frozenset(_WORD.findall(kept))
        return words

    def _calls(self, kept: str) -> int:
        """Return the number of attributes of a text that name computations.

        The key is the text without names, which most computations share.
        """
        calling = self._calling.get(kept)
        if calling is None:
            calling = self._calling[kept] = sum(map(kept.count, _CALLING))
        return calling

    def _get_all(self, callees: Iterable[str], *, deep: bool) -> tuple[int, ...] | None:
        """Return the fingerprints of computations; None if one is unknown."""
        fingerprints: list[int] = []
        for callee in callees:
            fingerprint = self._known.get(callee)
            if fingerprint is None and deep:
                fingerprint = self._find(callee, deep=False)
            if fingerprint is None:
                return None
            fingerprints.append(fingerprint)
        return tuple(fingerprints)


def _mask_names(names: Sequence[str], text: str) -> tuple[str, tuple[object, ...]]:
    """Return a text without its names. For each name also return its row, or the position of the first equal name."""
    parts = _NAMES.split(text)
    first_seen: defaultdict[str, int] = defaultdict(count(len(names)).__next__, zip(names, count()))
    repeated = None if len(first_seen) == len(names) else tuple(map(first_seen.__getitem__, names))
    return "%".join(parts[::2]), (repeated, *map(first_seen.__getitem__, parts[1::2]))


def _has_name_in_string(text: str) -> bool:
    """Return True if a string may hold a name, as replacing it would change the string."""
    if '"' not in text and "'" not in text:
        return False
    if "\\" in text or "/" in text or "'" in text:
        return any("%" in string for string in _STRING_OR_COMMENT.findall(text))
    return "%" in "".join(text.split('"')[1::2])


def _mask_numbers(names: Sequence[str], text: str) -> tuple[str, tuple[object, ...]]:
    """Return a text with unmarked names without its numbers.

    For each number also return the position of the first equal number.
    """
    parts = _NUMBERS.split("\n".join((*names, text)))
    first_seen: defaultdict[str, int] = defaultdict(count().__next__)
    return "%".join(parts[::2]), tuple(map(first_seen.__getitem__, parts[1::2]))


def _remove_to_brace(text: str) -> str:
    """Remove metadata up to its first closing brace, which is nearly always its last."""
    first, *others = text.split(_BEGIN)
    bare = "".join([first, *[part.partition("}")[2] for part in others]])
    if "}" not in others[-1] or bare.count("\n") != text.count("\n"):  # one is not closed, or not on its line
        return _UP_TO_A_BRACE.sub("", text)
    return bare


def without_metadata(text: str) -> str:
    """Return the lines of a text without metadata. A string that looks like metadata stays."""
    if _BEGIN not in text:
        return text
    bare = _remove_to_brace(text)
    if '"' not in bare and "*" not in bare:  # else the match may be in a string or a comment, or a part of the metadata
        return bare
    if text.count("/*") != text.count("/*index="):  # a comment may hold text like metadata, or a quote
        return _STRING_OR_METADATA.sub(r"\1", text)
    if '"' not in bare:
        return bare
    if '\\"' not in text and not any(part.count('"') % 2 for part in (*text.split("\n"), *text.split(_BEGIN))):
        return _METADATA.sub("", text)  # all strings are closed, and the match begins outside of them
    return _STRING_OR_METADATA.sub(r"\1", text)


# -- texts of ranks -----------------------------------------------------------------------------------------------------------


_COMPUTATION = lazy_pattern(r"^(?:ENTRY )?%", re.MULTILINE)
_SIGNATURE = lazy_pattern(r"^((?:ENTRY )?%[\w.\-]++) \([^\n]*+(?<=\{)$", re.ASCII | re.MULTILINE)
_MARKED_NAME = lazy_pattern(r"%([A-Za-z_][\w.\-]*+)", re.ASCII)
_MODULE_NAME = lazy_pattern(r"HloModule [\w.\-]++", re.ASCII)


def unnamed_digest(text: str) -> bytes | None:
    """Return a hash of a text that renaming does not change, without reading its instructions.

    Ranks of a job print one program with other names, numbers, paths and lines. Equal hashes mean equal programs and
    schedules; programs that are equal may have different hashes, as by the number of a channel. None for texts in another form
    than that of XLA's printer.
    """
    start = _COMPUTATION.search(text)
    if start is None:
        return None
    head, body = text[: start.start()], without_metadata(text[start.start() :])
    if "%" in head or "%" in "".join(body.split('"')[1::2]):  # a name in a string is no name
        return None
    parts = _MARKED_NAME.split(_SIGNATURE.sub(r"\1 {", body))
    numbers: defaultdict[str, int] = defaultdict(count().__next__)
    hashed = blake2b(_MODULE_NAME.sub("", TABLE.sub("", head), count=1).encode(errors="surrogatepass"), digest_size=16)
    hashed.update("%".join(parts[::2]).encode(errors="surrogatepass"))
    hashed.update(array("q", map(numbers.__getitem__, parts[1::2])).tobytes())
    return hashed.digest()

"""The modules of all ranks of a job in sets of one module each, and the program that most ranks run.

Modules pair by name. Of several with one name those with equal programs are one set, then those with the same place among the
others. A rank that has another number of them than most ranks has is paired by equal programs only.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeVar

from hlo_inspect.compare.pairing import pair_by
from hlo_inspect.lazy_pattern import lazy_pattern

_DIGITS = lazy_pattern(r"(\d{1,18})", re.ASCII)
_END_NUMBER = lazy_pattern(r"(?:\.\d++)+$", re.ASCII)

Key = TypeVar("Key", bound=Hashable)


class RankText(NamedTuple):
    """The text of a module on one rank, a position in the order of ranks.

    Equal texts share a `digest`, equal flags and options beside them `settings`, and equal devices `assignment`, each empty if
    there are none. `is_optimized` is True for a text after optimizations. `constants` is a hash of the values that the text
    elides: None if it elides none, empty if no file has them.
    """

    rank: int
    module: str
    path: str
    digest: bytes
    is_optimized: bool = True
    settings: bytes = b""
    assignment: bytes = b""
    constants: bytes | None = None


class ModuleSet(NamedTuple):
    """A module on the ranks that have it. `miscounted` are ranks that have another number of modules of this name."""

    name: str
    texts: Mapping[int, RankText]
    miscounted: frozenset[int] = frozenset()


class Miscount(NamedTuple):
    """A rank with another number of modules of one name than most ranks have."""

    module: str
    rank: int
    modules: int
    usual: int


class RankSets(NamedTuple):
    """The modules of one name on all ranks, the ranks whose numbers of modules differ, and notes."""

    modules: list[ModuleSet]
    miscounts: list[Miscount]
    notes: list[str]


def rank_order(label: str) -> list[tuple[int, int, str]]:
    """Return a key that sorts the names of ranks, their numbers by value."""
    return [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in _DIGITS.split(label) if part]


def majority(values: Mapping[int, Key]) -> Key:
    """Return the value that most ranks have; of several the one that the lowest rank has."""
    ranks: dict[Key, list[int]] = {}
    for rank in sorted(values):
        ranks.setdefault(values[rank], []).append(rank)
    return max(ranks, key=lambda value: (len(ranks[value]), -ranks[value][0]))


def pair_modules(texts: Iterable[RankText], program: Callable[[RankText], Hashable]) -> Iterator[RankSets]:
    """Yield the paired modules of each name. `program` returns a key that texts of one program share."""
    by_name: dict[str, defaultdict[int, list[RankText]]] = {}
    for text in texts:
        name = _END_NUMBER.sub("", text.module) or text.module
        by_name.setdefault(name, defaultdict(list))[text.rank].append(text)
    for own in by_name.values():
        counts = {rank: len(own_texts) for rank, own_texts in own.items()}
        usual = majority(counts)
        miscounted = frozenset(rank for rank, count in counts.items() if count != usual)
        ranks, notes = _with_constants(own)
        first = ranks[min(rank for rank in counts if rank not in miscounted)]
        miscounts = [Miscount(first[0].module, rank, counts[rank], usual) for rank in sorted(miscounted)]
        if usual == 1 and not miscounted:
            modules = [ModuleSet(first[0].module, {rank: own_texts[0] for rank, own_texts in ranks.items()})]
        else:
            modules = list(_pair_several(first, ranks, program, miscounted))
        yield RankSets(modules, miscounts, notes)


def _with_constants(own: Mapping[int, Sequence[RankText]]) -> tuple[dict[int, list[RankText]], list[str]]:
    """Return the texts with digests that cover their large constants, and a note if the values are unknown on some ranks."""
    constants = {text.constants for texts in own.values() for text in texts if text.constants is not None}
    if b"" not in constants:
        covered = {
            rank: [text._replace(digest=text.digest + (text.constants or b"")) for text in texts] for rank, texts in own.items()
        }
        return covered, []
    texts = {rank: [text._replace(constants=None) for text in texts] for rank, texts in own.items()}
    name = next(iter(texts.values()))[0].module
    return texts, [f"large constants of {name} are not compared: not every rank has its module.mlir"]


def _pair_several(
    first: Sequence[RankText],
    own: Mapping[int, Sequence[RankText]],
    program: Callable[[RankText], Hashable],
    miscounted: frozenset[int],
) -> Iterator[ModuleSet]:
    """Yield the sets of modules of one name, in the order of the rank `first`."""
    sets: list[dict[int, RankText]] = [{} for _ in first]
    for rank, modules in own.items():
        keys = [program] if rank in miscounted else [program, lambda _: True]
        for position, place in pair_by(modules, first, keys).pairs:
            sets[place][rank] = modules[position]
    for text, paired in zip(first, sets, strict=True):
        yield ModuleSet(text.module, paired, miscounted)


def other_order(texts: Iterable[RankText]) -> dict[int, tuple[str, str]]:
    """Return the ranks with another order of the names that all have once, each with the first two that changed places."""
    names: defaultdict[int, list[str]] = defaultdict(list)
    for text in texts:
        names[text.rank].append(text.module)
    once = [Counter(own) for own in names.values()]
    shared = {name for name in (once[0] if once else ()) if all(counts[name] == 1 for counts in once)}
    orders = {rank: tuple(name for name in own if name in shared) for rank, own in names.items()}
    if not orders:
        return {}
    usual = majority(orders)
    return {
        rank: next((own, other) for own, other in zip(order, usual, strict=True) if own != other)
        for rank, order in orders.items()
        if order != usual
    }

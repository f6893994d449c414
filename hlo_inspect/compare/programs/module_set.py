"""The texts of one module on all ranks: those that can be compared, their programs, and the program of the majority."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from hlo_inspect.compare.programs.deviations import ProgramDeviation, RankProgram, find_deviation
from hlo_inspect.compare.programs.rank_sets import ModuleSet, RankText, majority
from hlo_inspect.hlo.settings.compile_settings import CompileSettings

_MOST_NAMED = 4
"""Limit of ranks that a text names."""


class RankReader(NamedTuple):
    """Readers of the program of a text, None if it is not readable or not whole, and of the settings beside a text.

    `program` may read it from a text that differs in names only, `exact` reads it with the names of the text. `before` returns
    a key that texts share if their modules are one program before optimizations, None without such a text.
    """

    program: Callable[[RankText], RankProgram | None]
    exact: Callable[[RankText], RankProgram | None]
    before: Callable[[RankText], Hashable | None]
    settings: Callable[[Path], CompileSettings]


class JobRanks(NamedTuple):
    """The ranks of a job in their order: names, directories, and the positions of those that may have other modules."""

    labels: Sequence[str]
    paths: Sequence[str]
    unread: frozenset[int] = frozenset()

    @property
    def size(self) -> int:
        """The number of ranks."""
        return len(self.labels)

    def named(self, ranks: Iterable[int]) -> str:
        """Return the names of some ranks: `rank 7`, `ranks 0 and 3`."""
        labels = [self.labels[rank] for rank in ranks]
        more = len(labels) - _MOST_NAMED
        shown = [*labels[:_MOST_NAMED], f"{more:,} more"] if more > 0 else labels
        text = " and ".join(filter(None, (", ".join(shown[:-1]), shown[-1])))
        return f"rank {text}" if len(labels) == 1 else f"ranks {text}"


class SetPrograms:
    """The programs of one module on all ranks. `notes` says which texts are not compared, `truncated` which are cut off."""

    def __init__(self, module_set: ModuleSet, ranks: JobRanks, reader: RankReader) -> None:
        self.name = module_set.name
        self.texts = module_set.texts
        self.miscounted = module_set.miscounted
        self.ranks = ranks
        self.reader = reader
        self.notes: list[str] = []
        self.truncated: list[int] = []
        self.comparable = self._comparable()
        self.programs = self._programs()

    def _comparable(self) -> dict[int, RankText]:
        """Return the texts that are whole and of the stage that most ranks have."""
        stage = majority({rank: text.is_optimized for rank, text in self.texts.items()})
        comparable = {}
        others: dict[str, list[int]] = {}
        for rank, text in sorted(self.texts.items()):
            program = self.reader.program(text) if text.is_optimized == stage else None
            if program is not None and not program.is_truncated:
                comparable[rank] = text
            elif program is not None:
                self.truncated.append(rank)
            elif text.is_optimized == stage:
                others.setdefault("cannot be read", []).append(rank)
            else:
                reason = "has no text after optimizations" if stage else "has a text after optimizations, most ranks have none"
                others.setdefault(reason, []).append(rank)
        self.notes += [f"{self.name} of {self.ranks.named(own)} {reason}: not compared" for reason, own in others.items()]
        return comparable

    def _programs(self) -> dict[bytes, RankProgram]:
        """Return the program of each distinct text."""
        texts = {text.digest: text for text in reversed(self.comparable.values())}
        read = {digest: self.reader.program(text) for digest, text in texts.items()}
        return {digest: program for digest, program in read.items() if program is not None}

    @property
    def skipped(self) -> list[int]:
        """The ranks that cannot be compared."""
        compared = {*self.comparable, *self.lacking}
        return [rank for rank in range(self.ranks.size) if rank not in compared]

    @cached_property
    def identities(self) -> dict[int, tuple[str, str | None]]:
        """The identity of the program of each rank."""
        return {rank: self.programs[text.digest].identity for rank, text in self.comparable.items()}

    @cached_property
    def usual_ranks(self) -> list[int]:
        """The ranks that run the program of the majority, the lowest first."""
        usual = majority(self.identities)
        return [rank for rank, identity in self.identities.items() if identity == usual]

    @cached_property
    def usual(self) -> RankProgram:
        """The program of the majority, in the text of its lowest rank. There must be a comparable text."""
        text = self.comparable[self.usual_ranks[0]]
        return self.reader.exact(text) or self.programs[text.digest]

    @cached_property
    def deviations(self) -> dict[bytes, ProgramDeviation]:
        """The deviation of each text that is not the majority's, nor differs from it in names only."""
        shared = self.programs[self.comparable[self.usual_ranks[0]].digest]
        deviating = {text.digest: text for text in self.comparable.values() if self.programs[text.digest] is not shared}
        return {
            digest: find_deviation(self.reader.exact(text) or self.programs[digest], self.usual)
            for digest, text in deviating.items()
        }

    @cached_property
    def lacking(self) -> list[int]:
        """The ranks that have no module of this name."""
        present = self.texts.keys() | self.miscounted | self.ranks.unread
        return [rank for rank in range(self.ranks.size) if rank not in present]

    @cached_property
    def is_extra(self) -> bool:
        """True if only a minority of ranks has the module."""
        having = self.texts.keys() | self.miscounted
        return bool(self.lacking) and (len(having), -min(having)) < (len(self.lacking), -self.lacking[0])

"""`ranks`: the modules of all ranks of a job, read and compared."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hlo_inspect.compare.programs.module_set import JobRanks, RankReader
from hlo_inspect.compare.programs.rank_comparison import ComparedSet, RankDeviation, compare_set, miscount_deviation
from hlo_inspect.compare.programs.rank_sets import ModuleSet, RankText, other_order, pair_modules
from hlo_inspect.compare.programs.rank_tables import rank_report
from hlo_inspect.errors import HloInspectError, InputError, InternalError, Location, as_internal_errors
from hlo_inspect.hlo.settings.compile_settings import read_settings
from hlo_inspect.inspection.rank_directories import RankDirectory, rank_directories
from hlo_inspect.inspection.rank_programs import RankPrograms
from hlo_inspect.inspection.rank_texts import RankLister
from hlo_inspect.inspection.source_reports import name_pattern, no_such_module
from hlo_inspect.report.model import Report
from hlo_inspect.report.table import number_of


@dataclass(slots=True)
class RankReports:
    """Comparison of the ranks that the arguments name. `module` is a regular expression of names.

    `watch` is called with the name of each module. `errors` has the directories and texts that cannot be read.
    """

    arguments: Sequence[str]
    module: str | None = None
    watch: Callable[[str], None] = lambda _: None
    errors: list[HloInspectError] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    """The texts that were read."""

    def report(self) -> Report:
        """Return the report. Raise InputError if no directory fits, or if none holds a module."""
        directories = rank_directories(self.arguments)
        notes: list[str] = []
        texts, unread = self._texts(directories, notes)
        ranks = JobRanks([directory.label for directory in directories], [str(d.path) for d in directories], unread)
        notes += _order_notes(ranks, texts)
        notes += _setting_notes(ranks, texts)
        sets: list[ComparedSet] = []
        miscounts: list[RankDeviation] = []
        with RankPrograms() as programs:
            reader = RankReader(programs.program, programs.exact, programs.before, programs.settings)

            def key(text: RankText) -> Hashable:
                program = programs.program(text)
                return text.digest if program is None else program.identity

            for named in pair_modules(texts, key):
                self.watch(named.modules[0].name)
                notes += named.notes
                miscounts += [
                    miscount_deviation(miscount, ranks) for miscount in named.miscounts if miscount.rank not in unread
                ]
                for miscount in named.miscounts[:1]:
                    hang = f"whether {miscount.module} of {ranks.named([miscount.rank])} hangs is unknown"
                    notes.append(f"{hang}: it has {number_of(miscount.modules, 'module')} of this name")
                sets += self._compared(named.modules, ranks, reader)
                programs.forget()
            self.errors += programs.errors
            notes += programs.notes
        return rank_report(" ".join(self.arguments), ranks, sets, miscounts, notes)

    def _compared(self, modules: Sequence[ModuleSet], ranks: JobRanks, reader: RankReader) -> Iterator[ComparedSet]:
        """Yield the result for each module; a fault of this package loses one module only."""
        for module_set in modules:
            place = Location(next(iter(module_set.texts.values())).path)
            try:
                with as_internal_errors(place, module_set.name):
                    yield compare_set(module_set, ranks, reader)
            except InternalError as error:
                self.errors.append(error)

    def _texts(self, directories: Sequence[RankDirectory], notes: list[str]) -> tuple[list[RankText], frozenset[int]]:
        """Return the texts of all ranks, and the ranks that may have other ones."""
        texts: list[RankText] = []
        unread = set()
        lister = RankLister()
        for rank, directory in enumerate(directories):
            listing = lister.texts(rank, directory)
            notes += listing.notes
            texts += listing.texts
            if not listing.texts or listing.fault is not None:
                unread.add(rank)
                self.errors.append(listing.fault or InputError("holds no HLO module", Location(str(directory.path))))
        if not texts:
            raise self.errors.pop(0)
        pattern = name_pattern(self.module)
        self.paths = [text.path for text in texts]
        chosen = [text for text in texts if pattern is None or pattern.search(text.module)]
        if not chosen:
            names = [text.module for text in texts]
            raise InputError(no_such_module(self.module, names), Location(" ".join(self.arguments)))
        return chosen, frozenset(unread)


def _order_notes(ranks: JobRanks, texts: Sequence[RankText]) -> list[str]:
    """Return a note if ranks compiled their modules in another order than most."""
    others = other_order(texts)
    if not others:
        return []
    rank, (own, usual) = next(iter(others.items()))
    named = ranks.named(others)
    return [f"the modules of {named} have another order: {ranks.named([rank])} has {own} in the place of {usual}"]


def _setting_notes(ranks: JobRanks, texts: Sequence[RankText]) -> list[str]:
    """Return a note if no flags can be compared, or if the options state more processes than there are directories."""
    first = next((text for text in texts if text.settings), None)
    if first is None:
        return ["flags are not compared: no module has a .debug_options or compile_options.textproto beside it"]
    processes = read_settings(Path(first.path)).process_count
    if processes is None or processes in (1, ranks.size):
        return []
    return [f"the options state {processes:,} processes; directories that fit the pattern: {ranks.size:,}"]

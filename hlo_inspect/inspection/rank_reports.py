"""`ranks`: the modules of all ranks of a job, each distinct text read once, and compared."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path

from hlo_inspect.analysis.collectives.logical_collectives import WANTS as COLLECTIVE_WANTS
from hlo_inspect.analysis.context import Context
from hlo_inspect.compare.programs.deviations import RankProgram
from hlo_inspect.compare.programs.module_set import JobRanks, RankReader
from hlo_inspect.compare.programs.rank_comparison import ComparedSet, RankDeviation, compare_set, miscount_deviation
from hlo_inspect.compare.programs.rank_sets import ModuleSet, RankText, other_order, pair_modules
from hlo_inspect.compare.programs.rank_tables import rank_report
from hlo_inspect.errors import HloInspectError, InputError, InternalError, Location, as_internal_errors
from hlo_inspect.graph.unnamed_texts import unnamed_digest
from hlo_inspect.hlo.input.dump_directory import text_before_optimizations
from hlo_inspect.hlo.input.source import open_source
from hlo_inspect.hlo.settings.compile_settings import read_settings, stablehlo_file
from hlo_inspect.hlo.settings.stablehlo import read_stablehlo
from hlo_inspect.hlo.wants import Wants
from hlo_inspect.inspection.rank_texts import RankDirectory, RankLister, rank_directories
from hlo_inspect.inspection.source_reports import name_pattern, no_such_module, without_collection
from hlo_inspect.report.model import Report
from hlo_inspect.report.table import number_of
from hlo_inspect.xla import Xla


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
            reader = RankReader(programs.program, programs.exact, programs.before, read_settings)

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


# -- the programs of all ranks' modules ------------------------------------------------------------------------------------


WANTS = COLLECTIVE_WANTS | Wants(graph=True, entry=True, checked=True)


class RankPrograms(AbstractContextManager["RankPrograms"]):
    """Reader of the programs of texts, and of the settings beside them. It keeps the programs until `forget`.

    `errors` are of texts that cannot be read, `notes` of texts that are not read as a whole.

    Texts that differ in names, numbers, paths and lines only have one program, which is read from the first of them.
    """

    def __init__(self) -> None:
        self._xla = Xla()
        self._programs: dict[bytes, RankProgram | None] = {}
        self._read: dict[bytes, tuple[RankText, RankProgram | None]] = {}
        self._unnamed: dict[bytes, RankProgram | None] = {}
        self._hashed: set[bytes] = set()
        self._before: dict[Path, Hashable | None] = {}
        self.errors: list[HloInspectError] = []
        self.notes: list[str] = []

    def __exit__(self, *_: object) -> None:
        self._xla.close()

    def forget(self) -> None:
        for cache in (self._programs, self._read, self._unnamed, self._hashed, self._before):
            cache.clear()

    def program(self, text: RankText) -> RankProgram | None:
        """Return the program of a text, maybe with other names; None if the text holds none, or cannot be read."""
        if text.digest not in self._programs:
            self._programs[text.digest] = self._equal(text) or self.exact(text)
        return self._programs[text.digest]

    def exact(self, text: RankText) -> RankProgram | None:
        """Return the program of a text with the names of that text."""
        if text.digest not in self._read:
            self._read[text.digest] = text, self._parse(text)
        return self._read[text.digest][1]

    def _equal(self, text: RankText) -> RankProgram | None:
        """Return the program of a text that differs from this one in names only, if one was read."""
        for other, program in self._read.values():
            if other.digest not in self._hashed:
                self._hashed.add(other.digest)
                self._unnamed.setdefault(_unnamed(other), program)
        return self._unnamed.get(_unnamed(text)) if self._unnamed else None

    def before(self, text: RankText) -> Hashable | None:
        """Return a key of the program before optimizations; None if the dump has no such text, or not a whole one."""
        path = text_before_optimizations(Path(text.path))
        if path is None:
            return None
        if path not in self._before:
            program = self.exact(RankText(text.rank, text.module, str(path), b"before " + str(path).encode()))
            self._before[path] = program.identity if program is not None and not program.is_truncated else None
        return self._before[path]

    def _parse(self, text: RankText) -> RankProgram | None:
        try:
            with as_internal_errors(Location(text.path), text.module), without_collection():
                modules = self._xla.read(open_source(text.path), WANTS)
                module = next(modules, None)
                if module is None:
                    return None
                if next(modules, None) is not None:
                    self.notes.append(f"{Location(text.path)}: holds several modules; only the first is compared")
                stablehlo = stablehlo_file(Path(text.path)) if text.constants else None  # has the constants that a text elides
                return RankProgram(Context(module), read_stablehlo(stablehlo).constants if stablehlo is not None else ())
        except (InputError, InternalError) as error:
            self.errors.append(error)
        return None


def _unnamed(text: RankText) -> bytes:
    """Return a hash that texts share if they differ in names only; that of the text itself if it has no such hash."""
    try:
        content = b"".join(open_source(text.path).raw_pieces())
    except InputError:  # reading its program gives the error again
        return text.digest
    digest = unnamed_digest(content.decode(errors="replace"))
    return text.digest if digest is None else digest + (text.constants or b"")

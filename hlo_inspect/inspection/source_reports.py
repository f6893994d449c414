"""The reports on the modules of one source: a file, a text or a stream, whatever it holds."""

from __future__ import annotations

import gc
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

from hlo_inspect.errors import (
    HloInspectError,
    InputError,
    InternalError,
    Location,
    NoSuchInstructionError,
    ParseError,
    UnfitModuleError,
    UsageError,
    as_internal_errors,
    did_you_mean,
)
from hlo_inspect.hlo.input.foreign_text import (
    MEMORY_FILE,
    Format,
    describe_foreign_text,
    describe_log,
    is_workload,
    no_workload,
)
from hlo_inspect.hlo.input.inputs import SecondReading, is_read_fast
from hlo_inspect.hlo.input.source import Source
from hlo_inspect.hlo.module import Module
from hlo_inspect.hlo.wants import Wants
from hlo_inspect.inspection.module_reports import ModuleReports
from hlo_inspect.report.model import Report
from hlo_inspect.user_patterns import UserPattern
from hlo_inspect.xla import Xla

if TYPE_CHECKING:
    from hlo_inspect.profiler.measurements import RecordedProgram

MEMORY = "memory"
"""The command that also reads XLA's files about memory, and its reports on memory that did not suffice."""

SUMMARY = "summary"
"""The command that answers as `memory` on a text that only such a report is about."""

_NAMED = 8
"""Names of modules that a message lists."""

T = TypeVar("T")

Item = Report | str | HloInspectError
"""A report, the name of a module that is not named as asked, or what cannot be read."""


class NoModuleError(InputError):
    """A text that can be read and holds no HLO module."""


class Watcher(Protocol):
    """Observer of the progress of an inspection."""

    def reading(self, name: str, read: int) -> None:
        """Receive the number of bytes of the file that are read."""

    def analysing(self, module: str) -> None:
        """Receive the name of a module that is read and is being analyzed."""


class SourceReports:
    """Reader of one source after another.

    `command` is the first pass, `module` a regular expression that names have to match. `about_workloads` names the passes for
    workload files. `xla` is one process of jaxlib for all sources.
    """

    def __init__(
        self, command: str, reports: ModuleReports, about_workloads: Sequence[str], module: str | None, *, strict: bool
    ) -> None:
        self._command = command
        self._reports = reports
        self._wants = reports.wants
        if strict and reports.asks_graph:
            self._wants |= Wants(graph=True)  # text that XLA printed is read once
        self._about_workloads = about_workloads
        self._pattern = name_pattern(module)
        self._strict = strict
        self.xla = Xla()
        if strict:
            self.xla.require("--strict needs")
        self.watcher: Watcher | None = None

    def read(self, source: Source, note: str | None, hosts: Sequence[Path] = ()) -> Iterator[Item]:
        """Yield for each module its report, its name if `module=` excludes it, or the error of XLA's parser.

        Raise if the source is unreadable or holds no module. `note` is a note on the file for all its reports. `hosts` are the
        profiles of other hosts.
        """
        if self.watcher is not None:
            source.on_bytes = partial(self.watcher.reading, source.name)
        source.converter = self.xla.as_text
        if is_workload(source.peek_text()):
            yield self._workload_report(source, note)
            return
        if self._command == MEMORY and MEMORY_FILE.match(source.peek_text()) is not None:
            from hlo_inspect.inspection.other_inputs import report_on_memory_file

            yield report_on_memory_file(source)
            return
        if not self._reports.chosen:
            raise NoModuleError(no_workload(source.peek_text()), Location(source.name))
        is_profile = bool(source.peek()) and source.format is Format.PROFILE
        reports = self._reports.with_measured() if is_profile else self._reports
        if reports.measures and (is_profile or self._reports.recorded is not None):
            yield from self._measured(source, note, hosts, reports)
            return
        wants = self._wants
        if is_profile and self._reports.asks_graph and not source.reopens:
            wants |= Wants(graph=True, entry=True)
        reads_again = self._reports.asks_graph and not wants.graph
        graphs = SecondReading(source, self.xla.read, Wants(graph=True, entry=True)) if reads_again else None
        modules = self._modules(source, wants, asks_graph=reads_again)
        number = 0
        while True:
            with without_collection():
                following = next(modules, None)
                if following is None:
                    break
                number += 1
                if isinstance(following, ParseError):
                    item: Item = following
                else:
                    module, reading_note = following
                    read_graph = partial(graphs.module, module, number) if graphs is not None else None
                    notes = (note, source.note, reading_note, *module.mends, source.expansion)
                    noted = [text for text in notes if text is not None]
                    is_wanted = self._is_wanted(module)
                    item = self._report(module, noted, read_graph) if is_wanted else module.program or module.name
                    if graphs is not None:
                        graphs.forget(module)
            yield item
        if not number:
            yield self._without_module(source)

    def _modules(self, source: Source, wants: Wants, *, asks_graph: bool) -> Iterator[ParseError | tuple[Module, str | None]]:
        """Yield the modules, with their graph if it may be asked for and costs less than a second reading.

        A module with faults is read again as `wants` says: the faults may be in lines that the command does not need.
        """
        if not asks_graph or not is_read_fast(source):
            yield from self.xla.modules(source, wants, strict=self._strict)
            return
        selected = SecondReading(source, self.xla.read, wants)
        for number, item in enumerate(self.xla.modules(source, wants | Wants(graph=True), strict=self._strict), 1):
            if isinstance(item, ParseError):
                yield item
                continue
            module, note = item
            module.counts_unparsed_lines = wants.reads_every_line  # of a small text or a large one alike
            yield module if not any(module.problems) else selected.module(module, number) or module, note

    def _without_module(self, source: Source) -> Report:
        """Return the report on a log that only states memory. Raise NoModuleError if it states none, or for other commands."""
        if source.memory_lines:
            from hlo_inspect.inspection.other_inputs import report_on_log, report_on_quoted_assignment

            report = report_on_log(source)
            if report is not None and self._command not in {MEMORY, SUMMARY}:
                message = "holds no HLO module, only XLA's out-of-memory report; read it with `hlo-inspect memory`"
                raise NoModuleError(message, Location(source.name))
            if report is None and self._command == MEMORY:
                report = report_on_quoted_assignment(source)
            if report is not None:
                return report
        what = describe_foreign_text(source.start) or describe_log(source.measured)
        expansion = f"; {source.expansion}" if source.expansion is not None else ""
        raise NoModuleError(f"holds no HLO module{what}{expansion}", Location(source.name))

    def _workload_report(self, source: Source, note: str | None) -> Report | str:
        """Return the report of a workload file; its policy if `module` excludes it. Raise NoModuleError if no pass reads it."""
        from hlo_inspect.inspection.other_inputs import report_on_workload
        from hlo_inspect.passes import find_workload_pass
        from hlo_inspect.workloads.workload_reader import read_workload

        passes = [pass_ for name in self._about_workloads if (pass_ := find_workload_pass(name)) is not None]
        if not passes:
            message = f"is a workload file of a network simulator; `{self._command}` does not read it"
            raise NoModuleError(f"{message}, `hlo-inspect workload` does", Location(source.name))
        with without_collection():
            workload = read_workload(source)
            policy = workload.header.policy
            if self._pattern is not None and self._pattern.search(policy) is None:
                return policy
            notes = [pass_ for pass_ in (note, source.note) if pass_ is not None]
            report = report_on_workload(workload, self._command, passes, notes)
        answered = {spec.name for spec in report.specs}
        return replace(report, unanswered=tuple(spec for spec in self._reports.specs if spec.name not in answered))

    def _measured(self, source: Source, note: str | None, hosts: Sequence[Path], reports: ModuleReports) -> Iterator[Item]:
        """Yield the report of each module that ran in the recorded profile: the source, or that of the request.

        The other modules of a profile have a report too if `reports` has unmeasured ones.
        """
        from hlo_inspect.inspection.recorded_profile import RecordedProfile

        watch = self.watcher.reading if self.watcher is not None else None
        recorded = reports.recorded
        modules: dict[str, Module] = {}
        with ExitStack() as opened:
            if recorded is not None:
                profile = opened.enter_context(RecordedProfile.at(recorded, watch))
            else:
                source = opened.enter_context(source.reopening())
                profile = opened.enter_context(RecordedProfile([source.reopened(), *hosts], watch))
            for item in self.xla.modules(source, reports.wants | Wants(graph=True), strict=self._strict):
                if isinstance(item, ParseError):
                    yield item
                elif not self._is_wanted(item[0]):
                    yield item[0].program or item[0].name
                else:
                    label = _of_module(item[0], partial(profile.label_of, item[0]))
                    if isinstance(label, HloInspectError):
                        yield label
                    else:
                        modules[label] = item[0]
            measured = profile.measured(modules, reports.wanted_samples) if modules else {}
        notes = [text for text in (None if hosts else note, source.note) if text is not None]
        if modules and not measured:
            message = f"has no events of {listed_names(modules)}"
            raise InputError(f"{message}; trace while it runs", Location(recorded or source.name))
        for label in modules if reports.needs.measured else measured:
            yield self._report(modules[label], notes, None, measured.get(label), reports)

    def _is_wanted(self, module: Module) -> bool:
        """Return True if the name of a module matches, or that of its program with the id."""
        names = (module.name, module.program)
        return self._pattern is None or self._pattern.pattern in names or any(map(self._pattern.search, names))

    def _report(
        self,
        module: Module,
        notes: Sequence[str],
        read_graph: Callable[[], Module | None] | None,
        measured: RecordedProgram | None = None,
        reports: ModuleReports | None = None,
    ) -> Item:
        """Return the report of a module, or the error if it lacks the named instruction or an analysis fails."""
        if self.watcher is not None:
            self.watcher.analysing(module.name)
        return _of_module(module, partial((reports or self._reports).report, module, notes, read_graph, measured))


def _of_module(module: Module, work: Callable[[], T]) -> T | HloInspectError:
    """Return the result of work on a module, or the error that is of this module alone."""
    try:
        with as_internal_errors(module.location(module.first_line), module.name):
            return work()
    except (NoSuchInstructionError, UnfitModuleError, InternalError) as error:  # another module may have it
        return error


_MANY_OBJECTS = 10_000
"""From this number of new objects on, a collection takes longer than counting the objects that a caller froze."""


@contextmanager
def without_collection() -> Iterator[None]:
    """Switch the garbage collector off: reading makes many small objects and no cycles."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            # Freezing moves new objects to the oldest generation, which quick collections leave alone. Objects that the
            # caller has frozen have to stay frozen, and counting them visits each.
            if gc.get_count()[0] > _MANY_OBJECTS and not gc.get_freeze_count():
                gc.freeze()
                gc.unfreeze()
            gc.enable()


def uncollected(items: Iterator[T]) -> Iterator[T]:
    """Yield items, each of which is made while the garbage collector is off."""
    while True:
        with without_collection():
            item = next(items, None)
        if item is None:
            return
        yield item


def name_pattern(module: str | None) -> UserPattern | None:
    """Compile the pattern of names; None for all. Raise UsageError if it is no regular expression."""
    try:
        return UserPattern(module) if module is not None else None
    except re.error as error:
        raise UsageError(f"{module!r} is not a regular expression: {error}") from error


def listed_names(names: Iterable[str]) -> str:
    """Return the first `_NAMED` distinct names as text."""
    distinct = list(dict.fromkeys(names))
    return ", ".join(distinct[:_NAMED]) + (", …" if len(distinct) > _NAMED else "")


def no_such_module(pattern: str | None, names: Iterable[str], what: str = "module") -> str:
    """Describe the error if no module has a name that matches the pattern."""
    names = list(names)
    hint = did_you_mean(pattern or "", dict.fromkeys(names))
    return f"holds no {what} named like {pattern!r}; there are: {listed_names(names)}{hint}"

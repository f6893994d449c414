"""Inputs to reports: the files to read, the number of processes and the order of the answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from itertools import groupby, tee
from pathlib import Path
from typing import NamedTuple

from hlo_inspect.errors import (
    HloInspectError,
    InputError,
    InternalError,
    Location,
    MissingExtraError,
    NoSuchInstructionError,
    UnfitModuleError,
    UsageError,
    as_internal_errors,
)
from hlo_inspect.hlo.input.dump_directory import dump_files, expanded, is_directory
from hlo_inspect.hlo.input.source import Openable, Source, open_source
from hlo_inspect.inspection.module_reports import NEEDS_ALL, ModuleReports, ReportNeeds, ReportSink
from hlo_inspect.inspection.source_reports import Item, NoModuleError, SourceReports, Watcher, no_such_module
from hlo_inspect.passes import MODULE_FACTS, WORKLOAD
from hlo_inspect.remote_servers import limit_waits
from hlo_inspect.report.facts import Facts
from hlo_inspect.report.model import Report
from hlo_inspect.request import Request

_LACKING = 3
"""Modules that the error names if none has the instruction."""

STANDARD_INPUT = frozenset({"-", "/dev/stdin", "/dev/fd/0"})
"""Names of standard input."""


class Inspection(AbstractContextManager["Inspection"]):
    """Reader of inputs that reports on their modules. One process of jaxlib serves the inputs of one `with` block."""

    def __init__(self, request: Request, needs: ReportNeeds = NEEDS_ALL) -> None:
        names = request.pass_names
        if not names:
            raise UsageError("no pass is named")
        limit_waits(request.remote_timeout)
        self._request = request
        self._needs = needs
        self._held = "a workload" if names == (WORKLOAD,) else "an HLO module"
        self._reports = ModuleReports(request, needs)
        about_workloads = request.also if names == (MODULE_FACTS,) else names  # `list` shows the facts of the passes in `also`
        self._sources = SourceReports(names[0], self._reports, about_workloads, request.module, strict=request.strict)
        self.passed_over: list[str] = []
        """Files of directories that hold no module: one line each."""

    def watch(self, watcher: Watcher) -> None:
        """Report progress to `watcher`."""
        self._sources.watcher = watcher

    def set_report_sink(self, sink: ReportSink) -> None:
        """Pass each report with the analyses of its module to `sink`, if this process reads the files."""
        self._reports.sink = sink

    def __exit__(self, *_: object) -> None:
        self._sources.xla.close()

    def sources(self, argument: str) -> list[Path | str]:
        """Expand an argument of the command line: `-` (standard input), a file, a directory or a pattern of files."""
        return expanded(argument)

    def reports(self, source: Openable) -> Iterator[Report]:
        """Yield the reports of `source`. Raise its first error after all of it is read; of an internal error, the cause."""
        errors: list[HloInspectError] = []
        for item in self.read([source]):
            if isinstance(item, Report):
                yield item
            else:
                errors.append(item)
        if errors:
            raise errors[0] if not isinstance(errors[0], InternalError) else errors[0].__cause__ or errors[0]

    def read(self, sources: Iterable[Openable]) -> Iterator[Report | HloInspectError]:
        """Yield a report for each module whose name matches, and an error for each unreadable file or module.

        An error does not stop the others. The order is that of the sources, also if several processes read them.
        """
        sources = list(sources)
        reads_input = any(isinstance(source, str) and source in STANDARD_INPUT for source in sources)
        files = _files(sources, self._request.stage)
        jobs = 1 if reads_input else self._request.jobs  # other processes cannot read standard input
        if jobs == 1:
            read = ((file, self._items(file)) for file in files)
            yield from self._read_sources(read)
            return
        from hlo_inspect.inspection.jobs import Jobs

        first, waiting = tee(files)
        with Jobs(jobs, partial(_start_reading, self._request, self._needs)) as processes:
            results = processes.in_order(first)
            yield from self._read_sources(
                (file, self._arrived(file, *arrived)) for file, arrived in zip(waiting, results, strict=False)
            )

    def _read_sources(self, read: Iterable[tuple[_File, Iterable[Item]]]) -> Iterator[Report | HloInspectError]:
        """Yield reports and errors of all files; no error for a file of a directory that only may hold a module."""
        for _, group in groupby(read, key=lambda result: result[0].number):
            matched, failed = 0, False
            others: list[str] = []
            empty: list[InputError] = []
            lacking: list[NoSuchInstructionError | UnfitModuleError] = []
            for file, items in group:
                for item in items:
                    if isinstance(item, Report):
                        matched += 1
                        yield item
                    elif isinstance(item, str):
                        others.append(item)
                    elif isinstance(item, NoModuleError) and file.may_hold:
                        empty.append(item)
                    elif isinstance(item, NoSuchInstructionError | UnfitModuleError):
                        lacking.append(item)
                    else:
                        failed = True
                        yield item
            if lacking and not matched:
                yield _missing_instruction(lacking)
                continue
            place = Location(file.source_name)
            if not failed and empty and not matched and not others:
                yield InputError(f"is a directory without a file that holds {self._held} ({len(empty)} read)", place)
                continue
            self.passed_over += map(str, empty)
            if not failed and not matched:
                yield InputError(no_such_module(self._request.module, others), place)

    def _arrived(self, file: _File, items: list[Item], failure: Exception | None) -> Iterator[Item]:
        """Yield the items that another process sent; put back the specifications, which did not travel."""
        from hlo_inspect.inspection.jobs import LostProcessError

        for item in items:
            if isinstance(item, Report):
                specs = item.specs or self._reports.specs
                yield replace(item, facts=Facts(item.facts, specs), specs=specs)
            else:
                yield item
        if isinstance(failure, LostProcessError):
            yield InputError(str(failure), Location(str(file.source)))
        elif failure is not None:
            raise failure

    def _items(self, file: _File) -> Iterator[Item]:
        """Yield for each module of a file its report, its name if that does not match, or an error."""
        if isinstance(file.source, HloInspectError):
            yield file.source
        else:
            yield from self.read_source(open_source(file.source), file.note, file.hosts)

    def read_source(self, source: Source, note: str | None = None, hosts: Sequence[Path] = ()) -> Iterator[Item]:
        """Yield the report, unmatched name or error of each module. `note` and `hosts` are those of a `DirectoryFile`."""
        try:
            with as_internal_errors(Location(source.name)):
                yield from self._sources.read(source, note, hosts)
        except (InputError, MissingExtraError, InternalError) as error:
            yield error


class _File(NamedTuple):
    """File to read, or the error that prevents it, with number and name of its source; all else as in a `DirectoryFile`."""

    number: int
    source_name: str
    source: Openable | HloInspectError
    note: str | None = None
    may_hold: bool = False
    hosts: tuple[Path, ...] = ()


def _files(sources: Iterable[Openable], stage: str | None) -> Iterator[_File]:
    """Yield the files of all sources in order; of a directory, those that hold its modules."""
    for number, source in enumerate(sources):
        source_name = str(source)
        try:
            if not is_directory(source):
                yield _File(number, open_source(source).name, source)
                continue
            for file in dump_files(source, stage):
                yield _File(number, source_name, file.source, file.note, file.may_hold, file.hosts)
        except (InputError, UsageError) as error:
            yield _File(number, source_name, error)


def _start_reading(request: Request, needs: ReportNeeds) -> Callable[[_File], Iterator[Item]]:
    """Return the function that a process calls for each file. Specifications equal for all modules do not travel."""
    inspection = Inspection(request, needs)

    def read(file: _File) -> Iterator[Item]:
        for item in inspection._items(file):
            if isinstance(item, Report):
                yield replace(item, facts=dict(item.facts), specs=() if item.specs is inspection._reports.specs else item.specs)
            else:
                yield item

    return read


def _missing_instruction(errors: Sequence[NoSuchInstructionError | UnfitModuleError]) -> HloInspectError:
    """Make the error for an instruction that no module has, or return that of a module that fits no recorded program."""
    unfit = next((error for error in errors if isinstance(error, UnfitModuleError)), None)
    if unfit is not None:
        return unfit
    listed = "; ".join(error.message for error in errors[:_LACKING])
    more = f"; and {len(errors) - _LACKING} more modules" if len(errors) > _LACKING else ""
    return NoSuchInstructionError(listed + more)

"""Reports of a command's inputs, errors of unreadable inputs, and a bar while a file is read."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Timer
from typing import TYPE_CHECKING

import click

from hlo_inspect.cli.options import OutputOptions
from hlo_inspect.cli.output import refuse_to_overwrite, refuse_to_overwrite_dump
from hlo_inspect.cli.streams import FAILED, reported, tell
from hlo_inspect.errors import HloInspectError, InputError, UsageError, printable
from hlo_inspect.lazy_pattern import lazy_pattern
from hlo_inspect.remote_files import is_address
from hlo_inspect.request import Request

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from hlo_inspect.inspection.inspection import Inspection
    from hlo_inspect.inspection.module_reports import NeededTables, ReportSink
    from hlo_inspect.inspection.source_reports import Watcher
    from hlo_inspect.report.model import Report, Severity

_PATIENCE_S = 1.0  # seconds before the bar is shown
_NAME = lazy_pattern(r"%?[A-Za-z_][\w.\-]*+(?:\{[\d,]*+\})?", re.ASCII)


def split_instruction_name(inputs: Sequence[str]) -> tuple[tuple[str, ...], str | None]:
    """Split off the last of several arguments as an instruction name, if it is spelled like one and no such file exists."""
    *files, last = inputs
    if files and _NAME.fullmatch(last) and not os.path.exists(last):  # noqa: PTH110 - False for a name that is too long
        return tuple(files), last
    return tuple(inputs), None


def require_local(command: str, arguments: Sequence[str]) -> None:
    """Raise UsageError if one of the arguments is a remote address, which the command cannot read."""
    for argument in arguments:
        if is_address(argument) and not os.path.lexists(argument):
            raise UsageError(f"{argument}: {command} reads local directories only; copy the dump to this machine")


@dataclass(slots=True)
class ReportStream:
    """Iterable over the reports of all inputs, once: each is made when the one before it is done with.

    `status` is the exit status so far. The error of an unreadable input is printed at once, and the others are read.
    A finding that reaches `fail_on` is a failure. `needed` cuts tables to what the reader needs. `every_rule` runs costly rules
    on large modules too. `sink` receives each report with the analyses of its module. If `measured`, reports on recorded
    profiles have their times.
    """

    inputs: Sequence[str]
    request: Request
    output: OutputOptions
    fail_on: Severity | None = None
    needed: NeededTables | None = None
    every_rule: bool = False
    sink: ReportSink | None = None
    measured: bool = False
    status: int = 0

    def __iter__(self) -> Iterator[Report]:
        from hlo_inspect.inspection.inspection import Inspection
        from hlo_inspect.inspection.module_reports import ReportNeeds
        from hlo_inspect.report.model import reaching

        output = self.output.output
        refuse_to_overwrite(output, [*self.inputs, *self.request.profiles, self.request.custom_calls])
        needs = ReportNeeds(self.needed, every_rule=self.every_rule, measured=self.measured)
        with (
            ReadingBar(wanted=not self.output.quiet and self.request.jobs == 1) as bar,
            Inspection(self.request, needs) as inspection,
        ):
            inspection.watch(bar)
            if self.sink is not None:
                inspection.set_report_sink(self.sink)
            for item in inspection.read(self._sources(inspection)):
                if isinstance(item, HloInspectError):
                    if item.location is not None:
                        refuse_to_overwrite(output, [item.location.path])
                    with bar.out_of_the_way():
                        self.status = max(self.status, reported(item))
                    continue
                refuse_to_overwrite_dump(output, item.input.path)
                if self.fail_on is not None and reaching(item.findings, self.fail_on):
                    self.status = max(self.status, FAILED)
                with bar.out_of_the_way():
                    yield item
            for line in inspection.passed_over:
                tell(f"hlo-inspect: {line}")

    def _sources(self, inspection: Inspection) -> list[Path | str]:
        sources: list[Path | str] = []
        for argument in self.inputs:
            try:
                sources += inspection.sources(argument)
            except InputError as error:
                self.status = max(self.status, reported(error))
        return sources


class ReadingBar:
    """Progress bar of a `with` block that lasts longer than a second, on a terminal and if it is `wanted`.

    A thread shows it, so that a long analysis of one module does not delay it. The thread imports rich. The watcher of the
    command line, if there is one, receives the same progress.
    """

    def __init__(self, *, wanted: bool) -> None:
        context = click.get_current_context(silent=True)
        self._watcher: Watcher | None = context.obj if context is not None else None
        self._timer = Timer(_PATIENCE_S, self._show) if wanted and on_terminal() else None
        self._name = self._module = ""
        self._read = 0
        self._is_hidden = False
        self._bar: Progress | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> ReadingBar:
        if self._timer is not None:
            self._timer.daemon = True
            self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer.join()
        if self._bar is not None:
            self._bar.stop()

    @contextmanager
    def out_of_the_way(self) -> Iterator[None]:
        """Hide the bar while something is printed."""
        self._is_hidden = True
        if self._bar is not None:
            self._bar.stop()
        try:
            yield
        finally:
            self._is_hidden = False
            if self._bar is not None:
                self._bar.start()

    def reading(self, name: str, read: int) -> None:
        """Show that `read` bytes of the file are read."""
        if name != self._name or read > self._read:
            self._module = ""
        self._name, self._read = name, read
        self._update()
        if self._watcher is not None:
            self._watcher.reading(name, read)

    def analysing(self, module: str) -> None:
        """Show that the module is read and is being analyzed, which takes an unknown time."""
        self._module = module
        self._update()
        if self._watcher is not None:
            self._watcher.analysing(module)

    def _show(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeElapsedColumn

        text = TextColumn("{task.description}", markup=False)
        columns = (text, BarColumn(bar_width=30), DownloadColumn(binary_units=True), TimeElapsedColumn())
        bar = Progress(*columns, console=Console(stderr=True), transient=True, redirect_stdout=False)
        self._task = bar.add_task(self._words(), completed=self._read, total=self._total())
        self._bar = bar
        if not self._is_hidden:
            bar.start()

    def _update(self) -> None:
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, description=self._words(), completed=self._read, total=self._total())

    def _total(self) -> int | None:
        """Return the bytes of the file; None, for a bar without an end, while a module is analyzed."""
        return None if self._module else _size(self._name)

    def _words(self) -> str:
        doing = f"analyzing {self._module}" if self._module else "reading"
        return printable(f"{Path(self._name).name}  {doing}")


def on_terminal() -> bool:
    """Return True if standard error is a terminal that can show a bar."""
    return sys.stderr is not None and sys.stderr.isatty() and os.environ.get("TERM") != "dumb"


def _size(name: str) -> int | None:
    """Return the bytes of a file; None for a pipe, whose length is unknown."""
    try:
        return Path(name).stat().st_size or None
    except (OSError, ValueError):
        return None

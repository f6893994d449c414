"""The reports of a command's inputs, one after the other, and what could not be read."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hlo_inspect.cli.options import ReadOptions
from hlo_inspect.cli.output import refuse_to_overwrite, refuse_to_overwrite_dump
from hlo_inspect.cli.progress import ReadingBar
from hlo_inspect.cli.streams import tell
from hlo_inspect.errors import HloInspectError, InputError
from hlo_inspect.lazy_pattern import lazy_pattern

if TYPE_CHECKING:
    from hlo_inspect.inspection.inspection import Inspection
    from hlo_inspect.inspection.module_reports import NeededTables
    from hlo_inspect.report.model import Report, Severity

FAILED, USAGE, UNREADABLE = 1, 2, 3

_NAME = lazy_pattern(r"%?[A-Za-z_][\w.\-]*+(?:\{[\d,]*+\})?", re.ASCII)


def with_name(inputs: Sequence[str]) -> tuple[tuple[str, ...], str | None]:
    """The inputs, and the name of an instruction that follows them: the last argument, where no such file exists."""
    *files, last = inputs
    if files and _NAME.fullmatch(last) and not Path(last).exists():
        return tuple(files), last
    return tuple(inputs), None


def reported(error: HloInspectError) -> int:
    """The exit status of an error, once it is on standard error."""
    tell(f"hlo-inspect: {error}")
    return UNREADABLE if isinstance(error, InputError) else USAGE


class Inspected:
    """The reports of all inputs, to be taken once: each is made when the one before it is done with.

    `status` is the exit status so far. An input that cannot be read is reported at once on standard error, and the others are
    read; a finding that reaches `fail_on` is a failure. The file `output` must not be one of the inputs. `needed` is what the
    reports have to have of their tables, where that is not all.
    """

    def __init__(
        self,
        inputs: Sequence[str],
        passes: Sequence[str],
        read: ReadOptions,
        also: Sequence[str] = (),
        *,
        quiet: bool = False,
        fail_on: Severity | None = None,
        output: str | None = None,
        needed: NeededTables | None = None,
    ) -> None:
        self.status = 0
        self._inputs = inputs
        self._passes = passes
        self._read = read
        self._also = also
        self._quiet = quiet
        self._fail_on = fail_on
        self._output = output
        self._needed = needed

    def __iter__(self) -> Iterator[Report]:
        from hlo_inspect.inspection.inspection import STANDARD_INPUT, Inspection
        from hlo_inspect.report.model import reaching

        options = self._read._asdict()
        jobs = options.pop("jobs")
        if not STANDARD_INPUT.isdisjoint(self._inputs):  # which other processes cannot read
            jobs = 1
        refuse_to_overwrite(self._output, [*self._inputs, *self._read.profile, self._read.custom_calls])
        with (
            ReadingBar(wanted=not self._quiet and jobs == 1) as bar,
            Inspection(self._passes, also=self._also, needed=self._needed, **options) as inspection,
        ):
            inspection.watch(bar)
            for one in inspection.read(self._sources(inspection), jobs):
                if isinstance(one, HloInspectError):
                    if one.location is not None:
                        refuse_to_overwrite(self._output, [one.location.path])
                    with bar.out_of_the_way():
                        self.status = max(self.status, reported(one))
                    continue
                refuse_to_overwrite_dump(self._output, one.input.path)
                if self._fail_on is not None and reaching(one.findings, self._fail_on):
                    self.status = max(self.status, FAILED)
                with bar.out_of_the_way():
                    yield one
            for line in inspection.passed_over:
                tell(f"hlo-inspect: {line}")

    def _sources(self, inspection: Inspection) -> list[Path | str]:
        sources: list[Path | str] = []
        for argument in self._inputs:
            try:
                sources += inspection.sources(argument)
            except InputError as error:
                self.status = max(self.status, reported(error))
        return sources

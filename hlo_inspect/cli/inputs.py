"""The reports of a command's inputs, one after the other, and what could not be read."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hlo_inspect.cli.output import refuse_to_overwrite, refuse_to_overwrite_dump
from hlo_inspect.cli.progress import ReadingBar
from hlo_inspect.cli.streams import tell
from hlo_inspect.errors import HloInspectError, InputError, InternalError
from hlo_inspect.lazy_pattern import lazy_pattern
from hlo_inspect.request import Request

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
    return UNREADABLE if isinstance(error, InputError | InternalError) else USAGE


class Inspected:
    """The reports of all inputs, to be taken once: each is made when the one before it is done with.

    `status` is the exit status so far. An input that cannot be read is reported at once on standard error, and the others are
    read; a finding that reaches `fail_on` is a failure. The file `output` must not be one of the inputs. `needed` is what the
    reports have to have of their tables, where that is not all; `every_rule` runs all rules, however large a module is.
    """

    def __init__(
        self,
        inputs: Sequence[str],
        request: Request,
        *,
        quiet: bool = False,
        fail_on: Severity | None = None,
        output: str | None = None,
        needed: NeededTables | None = None,
        every_rule: bool = False,
    ) -> None:
        self.status = 0
        self._inputs = inputs
        self._request = request
        self._quiet = quiet
        self._fail_on = fail_on
        self._output = output
        self._needed = needed
        self._every_rule = every_rule

    def __iter__(self) -> Iterator[Report]:
        from hlo_inspect.inspection.inspection import Inspection
        from hlo_inspect.inspection.module_reports import ReportNeeds
        from hlo_inspect.report.model import reaching

        refuse_to_overwrite(self._output, [*self._inputs, *self._request.profiles, self._request.custom_calls])
        needs = ReportNeeds(self._needed, every_rule=self._every_rule)
        with (
            ReadingBar(wanted=not self._quiet and self._request.jobs == 1) as bar,
            Inspection(self._request, needs) as inspection,
        ):
            inspection.watch(bar)
            for one in inspection.read(self._sources(inspection)):
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

"""Modules that `check` and `lint` answer for: whole ones, unless the user allows parts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

from hlo_inspect.cli.streams import reported, tell
from hlo_inspect.errors import InputError
from hlo_inspect.report.faults import internal_error
from hlo_inspect.report.model import Report


class Refusing(Protocol):
    """A run that counts the modules it did not answer for."""

    refused: int


def whole_modules(reports: Iterable[Report], run: Refusing, verb: str) -> Iterator[Report]:
    """Yield the reports on whole modules; refuse the others with an error that says what to do. `verb`: `checked`."""
    for report in reports:
        if _is_whole(report, verb):
            yield report
        else:
            run.refused += 1


def refusing(run: Refusing) -> Callable[[Report, Exception], None]:
    """Return the callback that refuses a report lost to an internal error."""

    def refuse(report: Report, error: Exception) -> None:
        reported(internal_error(report, error))
        run.refused += 1

    return refuse


def _is_whole(report: Report, verb: str) -> bool:
    from hlo_inspect.findings.reading_problems import is_partial_module, truncation

    cut = truncation(report)
    if cut is not None:
        inside = f" inside {cut.subject}" if cut.subject is not None else ""
        what = "a partial module is" if is_partial_module(cut) else f"{report.module_name} is truncated{inside} and is"
        message = f"{what} not {verb}: its answers would be incomplete; --allow-partial allows it all the same"
        tell(f"hlo-inspect: {InputError(message, cut.location)}")
    return cut is None

"""Where a report goes: standard output or a file, in the chosen format."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from hlo_inspect.cli.options import OutputOptions
from hlo_inspect.errors import Location, UsageError
from hlo_inspect.report import FORMATS, FORMATS_FOR_PEOPLE
from hlo_inspect.report.model import Report
from hlo_inspect.report.selection import selected


def deliver(reports: Sequence[Report], options: OutputOptions) -> None:
    """Renders the reports. A pipe that its reader closed ends the output quietly."""
    render = FORMATS[options.format]
    for_people = options.format in FORMATS_FOR_PEOPLE
    reports = [selected(report, options.selection, options.table, for_people=for_people) for report in reports]
    if options.format == "csv":
        _report_left_out(reports)
    if options.output is not None:
        path = Path(options.output)
        try:
            with path.open("w", encoding="utf-8", newline="") as stream:
                render(reports, stream, options.rendering(width=None, color=False))
        except OSError as error:
            raise UsageError(f"cannot be written: {error.strerror or error}", Location(options.output)) from error
        return
    try:
        render(reports, _writable(sys.stdout), options.rendering(width=_width(sys.stdout), color=_color(sys.stdout, options)))
        sys.stdout.flush()
    except BrokenPipeError:
        silence()


def _report_left_out(reports: Sequence[Report]) -> None:
    """CSV holds rows and nothing else: what a filter hides is said beside it."""
    for report in reports:
        for table in report.tables:
            if table.left_out is not None:
                sys.stderr.write(f"hlo-inspect: {report.input.path}: {table.left_out.count:,} rows filtered out\n")


def silence() -> None:
    """Points standard output at nothing, so that what is still buffered does not fail at exit."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):  # standard output is not a file, so that nothing is buffered
        return


def _writable(stream: TextIO) -> TextIO:
    """A stream of a narrow encoding (LANG=C) shows what it cannot write as escapes."""
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="backslashreplace")
    return stream


def _width(stream: TextIO) -> int | None:
    """The terminal's width; off a terminal `None`, so that output never depends on who looks."""
    return shutil.get_terminal_size().columns if stream.isatty() else None


def _color(stream: TextIO, options: OutputOptions) -> bool:
    """Colour only on a terminal, and not against https://no-color.org."""
    wanted = not options.no_color and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return wanted and stream.isatty()

"""Where reports go: standard output or a file, in the chosen format, each as soon as it is there."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import TextIO

from hlo_inspect.cli.options import OutputOptions
from hlo_inspect.cli.streams import silence, tell
from hlo_inspect.errors import Location, UsageError
from hlo_inspect.report import ALL_FORMATS, FORMATS_FOR_PEOPLE
from hlo_inspect.report.model import Report
from hlo_inspect.report.selection import selected


def deliver(reports: Iterable[Report], options: OutputOptions) -> None:
    """Renders the reports as they come. Without any nothing is written, and a file is left as it was; so it is where something
    fails. A pipe that its reader closed ends the output quietly.
    """
    chosen = _chosen(reports, options)
    first = next(chosen, None)
    if first is None:
        return
    render, reports = ALL_FORMATS[options.format], chain([first], chosen)
    if options.output is not None:
        with replaced_file(options.output) as stream:
            render(reports, stream, options.rendering(width=None, color=False))
        return
    if sys.stdout is None:
        raise UsageError("standard output is closed")
    stream = _writable(sys.stdout)
    try:
        render(reports, stream, options.rendering(width=_width(stream), color=_color(stream, options)))
        stream.flush()
    except BrokenPipeError:
        silence(stream)


def deliver_bytes(data: bytes, options: OutputOptions) -> None:
    """Writes bytes as they are, as `deliver` does."""
    if options.output is not None:
        with replaced_file(options.output) as stream:
            stream.buffer.write(data)
        return
    if sys.stdout is None:
        raise UsageError("standard output is closed")
    try:
        sys.stdout.buffer.write(data)
        sys.stdout.flush()
    except BrokenPipeError:
        silence(sys.stdout)


def deliver_lines(lines: Iterable[str], output: str | None) -> None:
    """Writes lines of text, to the file of that name where there is one, as `deliver` does."""
    coming = iter(lines)
    first = next(coming, None)
    if first is None:
        return
    if output is not None:
        with replaced_file(output) as stream:
            stream.writelines(chain([first], coming))
        return
    if sys.stdout is None:
        raise UsageError("standard output is closed")
    stream = _writable(sys.stdout)
    try:
        stream.writelines(chain([first], coming))
        stream.flush()
    except BrokenPipeError:
        silence(stream)


def _chosen(reports: Iterable[Report], options: OutputOptions) -> Iterator[Report]:
    """The reports with the rows and columns that are asked for."""
    for_people = options.format in FORMATS_FOR_PEOPLE
    for report in reports:
        one = selected(report, options.selection, options.table, for_people=for_people)
        if options.format == "csv":
            _report_left_out(one)
        yield one


def _report_left_out(report: Report) -> None:
    """CSV holds rows and nothing else: what a filter hides is said beside it."""
    for table in report.tables:
        if table.left_out is not None:
            tell(f"hlo-inspect: {report.input.path}: {table.left_out.rows:,} rows filtered out")


@contextmanager
def replaced_file(name: str) -> Iterator[TextIO]:
    """A stream to a file that takes the place of the one of that name once all is written; where something fails or
    interrupts, that one stays as it was. What is no regular file (a pipe, a device) is written at once. `UsageError` where it
    cannot be written.
    """
    try:
        if Path(name).exists() and not Path(name).is_file():
            with Path(name).open("w", encoding="utf-8", newline="") as stream:
                yield stream
            return
        path = Path(os.path.realpath(name))
        import secrets

        temporary = path.with_name(f".hlo-inspect-{secrets.token_hex(6)}.part")
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as stream:
                yield stream
                stream.flush()
                os.fsync(descriptor)
            with suppress(FileNotFoundError):
                temporary.chmod(stat.S_IMODE(path.stat().st_mode))
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    except (OSError, ValueError) as error:  # a path may hold a NUL
        raise UsageError(f"cannot be written: {getattr(error, 'strerror', None) or error}", Location(name)) from error


def refuse_to_overwrite(name: str | None, inputs: Iterable[Path | str | None]) -> None:
    """`UsageError` where the file of that name, which a report is to be written to, is one of the inputs."""
    if name is None:
        return
    for one in inputs:
        with suppress(OSError, ValueError):
            if one is not None and Path(one).is_file() and Path(one).samefile(name):
                raise UsageError("is an input, and the report would be written over it", Location(name))


def _writable(stream: TextIO) -> TextIO:
    """A stream of a narrow encoding (LANG=C) shows what it cannot write as escapes."""
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="backslashreplace")
    return stream


def _width(stream: TextIO) -> int | None:
    """The terminal's width; off a terminal `None`, so that output never depends on who looks."""
    if not stream.isatty():
        return None
    import shutil

    return shutil.get_terminal_size().columns


def _color(stream: TextIO, options: OutputOptions) -> bool:
    """Colour only on a terminal, and not against https://no-color.org."""
    wanted = not options.no_color and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return wanted and stream.isatty()

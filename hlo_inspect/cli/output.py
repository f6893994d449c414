"""Where reports go: standard output or a file, in the chosen format, each as soon as it is there."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from io import TextIOWrapper
from itertools import chain
from pathlib import Path
from typing import TextIO

from hlo_inspect.cli.options import OutputOptions
from hlo_inspect.cli.streams import reported, silence, tell
from hlo_inspect.errors import InternalError, Location, UsageError
from hlo_inspect.report import ALL_FORMATS, FORMATS_FOR_PEOPLE, FORMATS_OF_ROWS
from hlo_inspect.report.model import Report
from hlo_inspect.report.selection import selected


def deliver(reports: Iterable[Report], options: OutputOptions) -> int:
    """Render the reports as they come, and return the exit status: not 0 if one of them could not be rendered. Without any
    nothing is written, and a file is left as it was; so it is if something else fails.
    """
    chosen = _chosen(reports, options)
    first = next(chosen, None)
    if first is None:
        return 0
    errors: list[InternalError] = []

    def failed(report: Report, error: Exception) -> None:
        errors.append(InternalError.of(error, Location(report.input.path, report.input.first_line), report.module_name))

    with _destination(options.output) as stream:
        on_terminal = options.output is None and stream.isatty()
        width, color = _width() if on_terminal else None, on_terminal and _has_color(options)
        ALL_FORMATS[options.format](chain([first], chosen), stream, options.rendering(failed, width=width, color=color))
    return max(map(reported, errors), default=0)


def deliver_bytes(data: bytes, output: str | None) -> None:
    """Writes bytes as they are, to the file of that name where there is one."""
    with _destination(output) as stream:
        stream.buffer.write(data)


def deliver_lines(lines: Iterable[str], output: str | None) -> None:
    """Writes lines of text as they come, to the file of that name where there is one. Without any nothing is written."""
    coming = iter(lines)
    first = next(coming, None)
    if first is not None:
        with _destination(output) as stream:
            stream.writelines(chain([first], coming))


@contextmanager
def _destination(name: str | None) -> Iterator[TextIO]:
    """The file of that name, or standard output. There a pipe that its reader closed ends the output quietly, and a narrow
    encoding (LANG=C) shows what it cannot write as escapes.
    """
    if name is not None:
        with replaced_file(name) as stream:
            yield stream
        return
    if sys.stdout is None:
        raise UsageError("standard output is closed")
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        yield sys.stdout
        sys.stdout.flush()
    except BrokenPipeError:
        silence(sys.stdout)


def _chosen(reports: Iterable[Report], options: OutputOptions) -> Iterator[Report]:
    """The reports with the rows and columns that are asked for."""
    for_people = options.format in FORMATS_FOR_PEOPLE
    for report in reports:
        one = selected(report, options.selection, options.table, for_people=for_people)
        if options.format in FORMATS_OF_ROWS:
            _report_left_out(one)
        yield one


def _report_left_out(report: Report) -> None:
    """CSV and TSV hold rows and nothing else: what a filter hides is said beside them."""
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


def refuse_to_overwrite_dump(name: str | None, dump: str) -> None:
    """The same for a dump and the files about memory that XLA wrote beside it."""
    if name is None:
        return
    from hlo_inspect.inspection.other_inputs import files_of_dump

    refuse_to_overwrite(name, files_of_dump(dump))


def _width() -> int:
    """The terminal's width. Off a terminal there is none, so that output never depends on who looks."""
    import shutil

    return shutil.get_terminal_size().columns


def _has_color(options: OutputOptions) -> bool:
    """Whether a terminal has colour: not against https://no-color.org."""
    return not options.no_color and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"

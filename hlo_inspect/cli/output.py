"""Output of reports to standard output or a file, in the chosen format, each as soon as it is made."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from io import TextIOWrapper
from itertools import chain, count
from pathlib import Path
from typing import TextIO

from hlo_inspect.cli.command_line import command_without_limit
from hlo_inspect.cli.config_options import config_above
from hlo_inspect.cli.options import OutputOptions
from hlo_inspect.cli.streams import reported, silence, tell
from hlo_inspect.errors import InternalError, Location, UsageError, printable
from hlo_inspect.report.faults import Failed, answers, internal_error
from hlo_inspect.report.formats import ALL_FORMATS, CI_FORMATS, FORMATS_OF_ROWS, Renderer, RenderOptions
from hlo_inspect.report.model import Report
from hlo_inspect.report.repository import find_root
from hlo_inspect.report.selection import selected


def deliver(reports: Iterable[Report], options: OutputOptions) -> int:
    """Render the reports as they come and return the exit status: not 0 if a report could not be rendered.

    Without a rendered report a file stays as it was. An internal error loses its report only, or the page if that is HTML.
    """
    unselected: list[InternalError] = []
    chosen = _chosen(reports, options, lambda report, error: unselected.append(internal_error(report, error)))
    first = next(chosen, None)
    if first is None:
        return max(map(reported, unselected), default=0)
    errors: list[InternalError] = []
    numbers = count(1)

    def failed(report: Report, error: Exception) -> None:
        errors.append(internal_error(report, error))

    try:
        with _destination(options.output) as stream:
            numbered = (report for report, _ in zip(chain([first], chosen), numbers, strict=False))
            _renderer(options)(numbered, stream, _rendering(options, stream, failed))
            if len(errors) == next(numbers) - 1:
                raise errors.pop()
    except InternalError as error:
        errors.append(error)
    if options.verbose:
        _tell_fault_of_library()
    return max(map(reported, (*unselected, *errors)), default=0)


def _tell_fault_of_library() -> None:
    """Print why the library of the native reader does not load, if a text asked for it."""
    library = sys.modules.get("hlo_inspect.native.library")  # else no text did
    fault = library.load_fault() if library is not None else None
    if fault is not None:
        tell(f"hlo-inspect: note: {printable(fault)}; the reader in Python, which is slower, has read the text")


def _rendering(options: OutputOptions, stream: TextIO, failed: Failed[Report]) -> RenderOptions:
    """Return the choices for all formats. Colour needs a terminal that shows it, and https://no-color.org can forbid it."""
    on_terminal = options.output is None and stream.isatty()
    is_plain = options.no_color or bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"
    choices = options.rendering()._replace(
        width=_width(on_terminal=on_terminal),
        color=on_terminal and not is_plain,
        failed=failed,
        config=config_above(),
    )
    if options.format not in CI_FORMATS:
        return choices
    from hlo_inspect.findings import rule_pages

    return choices._replace(root=find_root(Path.cwd()), rule_pages={page.code: page for page in rule_pages()})


def _renderer(options: OutputOptions) -> Renderer:
    """Return the renderer of the format, with the limit of characters if there is one."""
    if options.max_chars is None:
        return ALL_FORMATS[options.format]
    from hlo_inspect.report.limit import Limit, render_limited

    return partial(render_limited, options.format, limit=Limit(options.max_chars, command_without_limit()))


def deliver_bytes(data: bytes, output: str | None) -> None:
    """Write bytes as they are, to standard output or the file `output`."""
    with _destination(output) as stream:
        stream.buffer.write(data)


def deliver_lines(lines: Iterable[str], output: str | None, max_chars: int | None = None, mark: str = "") -> None:
    """Write lines of text as they come, to standard output or the file `output`. Without lines no file is written.

    If they have more than `max_chars` characters, the last line, behind `mark`, says how many are left out.
    """
    if max_chars is not None:
        from hlo_inspect.report.limit import Limit, limited_lines

        lines = limited_lines(lines, Limit(max_chars, command_without_limit()), mark)
    coming = iter(lines)
    first = next(coming, None)
    if first is not None:
        with _destination(output) as stream:
            stream.writelines(chain([first], coming))


@contextmanager
def _destination(name: str | None) -> Iterator[TextIO]:
    """Open the file of that name, or standard output.

    A pipe that its reader closed ends the output quietly. A narrow encoding (LANG=C) shows other characters as escapes.
    """
    if name is not None:
        from hlo_inspect.atomic_files import atomic_writer

        with atomic_writer(name) as stream:
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


def _chosen(reports: Iterable[Report], options: OutputOptions, failed: Failed[Report]) -> Iterator[Report]:
    """Yield the reports with the selected rows and columns."""

    def choose(report: Report) -> Report:
        shown = selected(report, options.selection, options.table)
        for table in shown.tables if options.format in FORMATS_OF_ROWS else ():  # which hold rows only
            if table.left_out is not None:
                tell(f"hlo-inspect: {report.input.path}: {table.left_out.rows:,} rows filtered out")
        return shown

    return answers(reports, choose, failed)


def refuse_to_overwrite(name: str | None, inputs: Iterable[Path | str | None]) -> None:
    """Raise UsageError if the output file is one of the inputs."""
    if name is None:
        return
    for path in inputs:
        with suppress(OSError, ValueError):
            if path is not None and Path(path).is_file() and Path(path).samefile(name):
                raise UsageError("is an input; the report would overwrite it", Location(name))


def refuse_to_overwrite_dump(name: str | None, dump: str) -> None:
    """Raise UsageError if the output file is the dump or one of XLA's files about its memory."""
    if name is None:
        return
    from hlo_inspect.inspection.other_inputs import files_of_dump

    refuse_to_overwrite(name, files_of_dump(dump))


def _width(*, on_terminal: bool) -> int | None:
    """Return the columns of the terminal; elsewhere the variable COLUMNS, or None if it is not a positive number."""
    if on_terminal:
        import shutil

        return shutil.get_terminal_size().columns
    stated = os.environ.get("COLUMNS", "")
    return int(stated) if re.fullmatch(r"[1-9][0-9]{0,5}", stated) else None

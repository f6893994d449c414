"""Reports for a terminal, or a file that is read as text.

Text from a dump is printed as it is: no markup is interpreted and control characters are escaped. The environment is never
read. Without a width lines have 120 columns; without `color` there is no escape sequence.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from io import StringIO
from itertools import groupby, zip_longest
from typing import TextIO

from hlo_inspect.errors import printable
from hlo_inspect.report.layout import GAP, PAGE_WIDTH, Grid, cell_width, make_grid, pad, wrap
from hlo_inspect.report.model import Finding, HeadlineRow, Report, Severity
from hlo_inspect.report.page import (
    NO_BREAK,
    finding_details,
    findings_heading,
    findings_left_out,
    has_findings,
    has_unknown,
    headline_text,
    hidden_columns,
    input_details,
    module_details,
    module_name,
    page_notes,
    paragraphs,
    shown_findings,
    split_headline,
)
from hlo_inspect.report.render_options import RenderOptions, rendered, shown_tables
from hlo_inspect.report.table import Table, number_of
from hlo_inspect.report.text_curve import curve_lines, is_drawn

Line = list[tuple[str, str]]  # pieces of text, each with its style

_NARROWEST = 40
_BETWEEN = 4  # blanks between tables side by side
_DIM = "dim"
_HEADING = "bold"
_SEVERITY_STYLES: dict[Severity, str] = {"error": "bold red", "warning": "bold magenta", "info": "bold"}
# colours that can be read on dark and on light backgrounds, which yellow and cyan cannot
_WORD_STYLES: dict[str, str] = {str(word): style for word, style in _SEVERITY_STYLES.items()}
_WORD_STYLES |= {"failed": "bold red", "passed": "green"}
_INDENT = " " * 16  # as wide as the severity and code before a finding's message


def render_table(reports: Iterable[Report], stream: TextIO, options: RenderOptions) -> None:
    width = max(options.width or PAGE_WIDTH, _NARROWEST)
    write = _colored if options.color else _plain
    for index, page in enumerate(rendered(reports, lambda report: write(_page(report, options, width)), options)):
        stream.write(f"\n{page}" if index else page)
    if options.left_out:
        stream.write(f"\n{options.left_out}\n")


def table_text(table: Table, options: RenderOptions) -> str:
    """Return the text of a table alone, without colour."""
    return _plain(_grid_lines(make_grid(table, options.width or PAGE_WIDTH, options.raw_bytes)))


def _plain(lines: Iterable[Line]) -> str:
    return "".join("".join(text for text, _ in line).rstrip() + "\n" for line in lines)


def _colored(lines: Iterable[Line]) -> str:
    from rich.console import Console
    from rich.text import Text

    output = StringIO()  # rich ends the program when a pipe closes, but the caller has to see the error
    console = Console(
        file=output, color_system="standard", force_terminal=True, force_jupyter=False, no_color=False, legacy_windows=False
    )
    for line in lines:
        text = Text.assemble(*line)
        text.rstrip()
        console.print(text, soft_wrap=True)
    return output.getvalue()


def _page(report: Report, options: RenderOptions, width: int) -> Iterator[Line]:
    tables = shown_tables(report, options, for_people=True)
    off_terminal = options.width is None
    grids = {
        table.name: make_grid(table, width, options.raw_bytes, keeps_files=off_terminal)
        for table in tables
        if not is_drawn(table, options)
    }
    warnings, rows = split_headline(report)
    yield from _headline(warnings, options, width)
    yield from _module(report, options, width)
    yield from _headline(rows, options, width)
    findings = [] if options.quiet else list(_findings(report, options, width))
    if not report.answers_in_tables:
        yield from findings
    for drawn, together in groupby(tables, lambda table: is_drawn(table, options)):
        if drawn:
            yield from (line for table in together for line in _curve(table, options, width))
        else:
            yield from _tables([grids[table.name] for table in together], width)
    if report.answers_in_tables:
        yield from findings
    yield from _passages(report, width)
    hidden = hidden_columns(list(grids.values()))
    if hidden and options.verbose:
        yield []
        yield from _wrapped(hidden, width, style=_DIM)
    if not options.quiet:
        yield from _notes(report, options, width, has_unknown(report, list(grids.values())))
    if report.verdict is not None:
        yield []
        yield [(report.verdict.text, "bold green" if report.verdict.passed else "bold red")]


def _module(report: Report, options: RenderOptions, width: int) -> Iterator[Line]:
    """Yield the module's name, its devices and its input; the name has a line of its own if one is too short for all."""
    name, details = module_name(report), _joined(module_details(report), width)
    if len(details) == 1 and cell_width(name) + GAP + cell_width(details[0]) <= width:
        yield [(name, _HEADING), (" " * GAP + details[0], "")]
    else:
        yield [(name, _HEADING)]
        yield from ([(line, "")] for line in details)
    yield from ([(line, _DIM)] for line in _joined(input_details(report, options), width))


def _headline(rows: Sequence[HeadlineRow], options: RenderOptions, width: int) -> Iterator[Line]:
    """Yield the first lines: labels in a column, and texts whose further lines are below their first."""
    column = max((cell_width(row.label) for row in rows), default=0) + GAP
    for row in rows:
        style = _SEVERITY_STYLES[row.severity] if row.severity else "" if row.label else _HEADING
        indent = " " * column if row.label else ""
        lines = list(_wrapped(headline_text(row, options.raw_bytes), width, indent, style))
        lines[0][0] = (pad(printable(row.label), len(indent), right=False), _DIM)
        for line in lines:
            yield [(text.replace(NO_BREAK, " "), piece_style) for text, piece_style in line]


def _joined(parts: Iterable[str], width: int) -> list[str]:
    """Join the parts in as few lines as they fit in; a part is never broken, so that a path can be copied."""
    lines: list[str] = []
    for part in parts:
        if lines and cell_width(f"{lines[-1]} · {part}") <= width:
            lines[-1] += f" · {part}"
        else:
            lines.append(part)
    return lines


def _passages(report: Report, width: int) -> Iterator[Line]:
    for passage in report.passages:
        yield []
        if passage.heading:
            yield [(passage.heading, _HEADING)]
        indent = "  " if passage.heading else ""
        for paragraph in paragraphs(passage):
            if passage.verbatim:
                yield [(indent + paragraph, "")]
            else:
                yield from _wrapped(paragraph, width, indent)


def _tables(grids: Sequence[Grid], width: int) -> Iterator[Line]:
    """Yield the tables from left to right while they fit whole, then in a next row of tables."""
    shelf: list[Grid] = []
    for grid in grids:
        together = sum(other.width + _BETWEEN for other in shelf) + grid.width
        if shelf and together > width:
            yield from _side_by_side(shelf)
            shelf = []
        shelf.append(grid)
    yield from _side_by_side(shelf)


def _side_by_side(grids: Sequence[Grid]) -> Iterator[Line]:
    blocks = [list(_grid_lines(grid)) for grid in grids]
    if blocks:
        yield []
    for parts in zip_longest(*blocks, fillvalue=[]):
        line: Line = []
        for grid, part in zip(grids, parts, strict=True):
            used = sum(cell_width(text) for text, _ in part)
            line += [*part, (" " * (grid.width - used + _BETWEEN), "")]
        yield line


def _grid_lines(grid: Grid) -> Iterator[Line]:
    yield from ([(line, _HEADING)] for line in grid.title_lines)
    if grid.is_empty:
        yield [(grid.nothing, _DIM)]
        return
    rule: Line = [("─" * grid.width, _DIM)]
    yield from _row(grid, grid.header, _DIM)
    yield rule
    for index, row in enumerate(grid.rows):
        yield from _row(grid, row, _DIM if index >= len(grid.rows) - grid.folded else "")
        if grid.below:
            yield from ([(" " * grid.indent + line, "")] for line in grid.below[index])
    if grid.total is not None:
        yield rule
        yield from _row(grid, grid.total, _HEADING)
    if grid.left_out is not None:
        yield from _row(grid, grid.left_out, _DIM)


def _curve(table: Table, options: RenderOptions, width: int) -> Iterator[Line]:
    yield []
    yield from _wrapped(printable(table.title), width, style=_HEADING)
    yield from ([(line, "")] for line in curve_lines(table, width, options.raw_bytes))


def _row(grid: Grid, cells: Iterable[str], style: str) -> Iterator[Line]:
    """Yield the lines of a row: more than one if a cell is wrapped."""
    for line in zip_longest(*(cell.split("\n") for cell in cells), fillvalue=""):
        pieces: Line = []
        for cell, wide, right in zip(line, grid.widths, grid.right, strict=True):
            gap = " " * GAP if pieces else ""
            pieces.append((gap + pad(cell, wide, right), _WORD_STYLES.get(cell, style)))
        yield pieces


def _findings(report: Report, options: RenderOptions, width: int) -> Iterator[Line]:
    if not has_findings(report, options):
        return
    yield []
    yield [(findings_heading(report), _HEADING)]
    for finding in shown_findings(report, options):
        yield from _finding(finding, options, width)
    if not report.findings:
        yield [("none", _DIM)]
    left_out = findings_left_out(report, options)
    if left_out:
        yield [(left_out, _DIM)]


def _finding(finding: Finding, options: RenderOptions, width: int) -> Iterator[Line]:
    *lines, last = _wrapped(printable(finding.message), width, _INDENT)
    details = finding_details(finding, options.raw_bytes)
    place = " · ".join(details)
    if place and not lines and sum(cell_width(text) for text, _ in last) + GAP + cell_width(place) <= width:
        last.append((" " * GAP + place, _DIM))
        place = ""
    lines.append(last)
    lines[0][0] = (f"{finding.severity:<9}", _SEVERITY_STYLES[finding.severity])
    lines[0].insert(1, (f"{finding.rule:<7}", _DIM))
    yield from lines
    if place:
        yield from ([(_INDENT + line, _DIM)] for line in _joined(details, width - len(_INDENT)))


def _notes(report: Report, options: RenderOptions, width: int, unknown: bool) -> Iterator[Line]:
    """Yield remarks; with `verbose` also why values are unknown, else a hint how to see it if the page shows a "?"."""
    reasons, remarks = page_notes(report)
    if options.verbose and report.notes:
        yield []
        yield [("Notes", _HEADING)]
        for note in (*reasons, *remarks):
            yield from _wrapped(printable(note), width, indent="  ")
        return
    if remarks or (unknown and reasons):
        yield []
    for note in remarks:
        yield from _wrapped(printable(note), width, style=_DIM)
    if unknown and reasons:
        yield [(f"? is an unknown value: -v says why ({number_of(len(reasons), 'note')})", _DIM)]


def _wrapped(text: str, width: int, indent: str = "", style: str = "") -> Iterator[Line]:
    """Yield `text` in lines of `width`, at least one; each is a piece for the indent and a piece of text."""
    for line in wrap(text, width - len(indent)) or [""]:
        yield [(indent, ""), (line, style)]

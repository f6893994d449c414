"""Reports as GitHub Markdown, fit for a pull request: a heading, tables, findings and notes.

Cells are whole. Text from a dump is shown as it is: markup, pipes and HTML are escaped, and names in it mention nobody on
GitHub.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TextIO

from hlo_inspect.errors import printable
from hlo_inspect.lazy_pattern import lazy_pattern
from hlo_inspect.report.layout import PAGE_WIDTH, Grid, make_grid
from hlo_inspect.report.model import Report
from hlo_inspect.report.page import (
    finding_details,
    findings_heading,
    findings_left_out,
    has_findings,
    headline_text,
    hidden_columns,
    input_details,
    module_details,
    module_name,
    page_notes,
    paragraphs,
    shown_findings,
)
from hlo_inspect.report.render_options import RenderOptions, rendered, shown_tables
from hlo_inspect.report.table import number_of
from hlo_inspect.report.text_curve import curve_lines, is_drawn

_MARKUP = lazy_pattern(r"[\\`*_{}\[\]<>|~&#$]")
_REFERENCE = lazy_pattern(r"@(?=\w)|#(?=[0-9])")


def render_markdown(reports: Iterable[Report], stream: TextIO, options: RenderOptions) -> None:
    pages = rendered(reports, lambda report: "".join([f"{line}\n" for line in _page(report, options)]), options)
    for index, page in enumerate(pages):
        stream.write(f"\n{page}" if index else page)
    if options.left_out:
        stream.write(f"\n{escape(options.left_out)}\n")


def escape(text: str) -> str:
    """Escape `text` so that Markdown shows it literally.

    GitHub seeks mentions and issue numbers in it, so a blank of no width follows each @ or #.
    """
    return _REFERENCE.sub(r"\g<0>&#8203;", _MARKUP.sub(r"\\\g<0>", text))


def _page(report: Report, options: RenderOptions) -> Iterator[str]:
    yield f"### {escape(module_name(report))}"
    details = [*module_details(report), *input_details(report, options)]
    if details:
        yield from ("", escape(" · ".join(details)))
    if report.headline:
        yield ""
    for row in report.headline:
        yield (
            f"- **{escape(row.label)}** {escape(headline_text(row, options.raw_bytes))}"
            if row.label
            else f"- **{escape(headline_text(row, options.raw_bytes))}**"
        )
    findings = [] if options.quiet else list(_findings(report, options))
    if not report.answers_in_tables:
        yield from findings
    tables = shown_tables(report, options, for_people=True)
    grids = []
    for table in tables:
        if is_drawn(table, options):
            lines = curve_lines(table, PAGE_WIDTH, options.raw_bytes)
            yield from ("", f"**{escape(table.title)}**", "", "```", *(line.replace("`", "'") for line in lines), "```")
        else:
            grids.append(make_grid(table, None, options.raw_bytes))
            yield from _table(grids[-1])
    if report.answers_in_tables:
        yield from findings
    yield from _passages(report)
    hidden = hidden_columns(grids)
    if hidden and options.verbose:
        yield from ("", escape(hidden))
    if not options.quiet:
        yield from _notes(report)
    if report.verdict is not None:
        yield from ("", f"**{escape(report.verdict.text)}**")


def _passages(report: Report) -> Iterator[str]:
    """Yield the texts with their headings; text between backticks is code, and stays so."""
    for passage in report.passages:
        if passage.heading:
            yield from ("", f"**{passage.heading}**")
        yield ""
        if passage.verbatim:
            yield from ("```", *paragraphs(passage), "```")
        else:
            yield "\n\n".join(paragraphs(passage))


def _table(grid: Grid) -> Iterator[str]:
    yield from ("", f"**{escape(grid.title)}**", "")
    if grid.is_empty:
        yield grid.nothing
        return
    yield _row(map(escape, grid.header))
    yield _row("---:" if right else "---" for right in grid.right)
    for row in grid.rows:
        yield _row(map(escape, row))
    if grid.total is not None:
        yield _row(f"**{escape(cell)}**" if cell else "" for cell in grid.total)
    if grid.left_out is not None:
        yield _row(map(escape, grid.left_out))


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _findings(report: Report, options: RenderOptions) -> Iterator[str]:
    if not has_findings(report, options):
        return
    yield from ("", f"**{findings_heading(report)}**", "")
    for finding in shown_findings(report, options):
        details = " · ".join(finding_details(finding, options.raw_bytes))
        place = f" ({escape(details)})" if details else ""
        yield f"- **{finding.severity}** {finding.rule}: {escape(printable(finding.message))}{place}"
    if not report.findings:
        yield "none"
    left_out = findings_left_out(report, options)
    if left_out:
        yield from ("", left_out)


def _notes(report: Report) -> Iterator[str]:
    """Yield all notes, folded: readers of a pull request cannot ask for more."""
    reasons, remarks = page_notes(report)
    notes = [*reasons, *remarks]
    if not notes:
        return
    yield from ("", f"<details><summary>{number_of(len(notes), 'note')}</summary>", "")
    yield from (f"- {escape(printable(note))}" for note in notes)
    yield from ("", "</details>")

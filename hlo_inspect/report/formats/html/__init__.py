"""An HTML file with everything inside: pictures, tables, findings. It opens anywhere and loads nothing.

Of the extra `[html]`: Jinja2 makes the page, DataTables (as itables ships it) sorts, filters and searches. The files of
`drawing/` draw pictures.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from typing import TextIO

from hlo_inspect.report.formats.html.assets import need_extra, read_asset
from hlo_inspect.report.formats.html.page_text import render_template, write_page
from hlo_inspect.report.formats.html.view_texts import ViewText
from hlo_inspect.report.formats.html.views import page_of
from hlo_inspect.report.layout import Grid, make_grid
from hlo_inspect.report.model import Report
from hlo_inspect.report.page import findings_left_out, shown_findings
from hlo_inspect.report.render_options import RenderOptions, shown_tables


def render_html(reports: Iterable[Report], stream: TextIO, options: RenderOptions) -> None:
    """Write one page of all reports. Raise MissingExtraError if the extra `[html]` is not installed."""
    need_extra()
    write_page(page_of(reports), stream, options)


def compact_page(report: Report, options: RenderOptions) -> str | None:
    """Return the report as a part of a page, in the style of its surroundings; None if Jinja2 is not installed."""
    if find_spec("jinja2") is None:
        return None
    page = page_of([report])
    first = page.views[0]
    view = ViewText(first, {table.name: table for table in first.tables}, page.documentation, options)
    return render_template(
        "compact.html",
        view=view,
        style=read_asset("compact.css"),
        findings=shown_findings(report, options),
        left_out=findings_left_out(report, options),
        parts=_parts(view, report, options),
    )


def _parts(view: ViewText, report: Report, options: RenderOptions) -> list[tuple[str, Sequence[Grid]]]:
    """Return the sections that have rows, each with the tables that any page for people shows."""
    grids = {table.name: make_grid(table, options.width) for table in shown_tables(report, options, for_people=True)}
    sections = [
        (section_text.section.title, [grids[name] for name in section_text.section.tables if name in grids])
        for section_text in view.sections
    ]
    return [(title, [grid for grid in shown if grid.rows]) for title, shown in sections if any(grid.rows for grid in shown)]

"""The compact form of a page, for a cell of a notebook: first lines, findings and the first rows of tables, no script."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec

from hlo_inspect.report.html.assets import own
from hlo_inspect.report.html.page import render_template
from hlo_inspect.report.html.view_text import ViewText
from hlo_inspect.report.html.views import page_of
from hlo_inspect.report.layout import Grid, make_grid
from hlo_inspect.report.model import Report
from hlo_inspect.report.options import RenderOptions, shown_tables
from hlo_inspect.report.page import findings_left_out, shown_findings


def compact_page(report: Report, options: RenderOptions) -> str | None:
    """The report as a part of a page, in the style of whatever is around it; `None` where Jinja2 is not installed."""
    if find_spec("jinja2") is None:
        return None
    page = page_of([report])
    first = page.views[0]
    view = ViewText(first, {table.name: table for table in first.tables}, page.documentation, options)
    return render_template(
        "compact.html",
        view=view,
        style=own("compact.css"),
        findings=shown_findings(report, options),
        left_out=findings_left_out(report, options),
        parts=_parts(view, report, options),
    )


def _parts(view: ViewText, report: Report, options: RenderOptions) -> list[tuple[str, Sequence[Grid]]]:
    """The sections that have rows, each with the tables that any page for people shows."""
    grids = {table.name: make_grid(table, options.width) for table in shown_tables(report, options, for_people=True)}
    found = [(one.section.title, [grids[table.name] for table in one.tables if table.name in grids]) for one in view.sections]
    return [(title, [grid for grid in shown if grid.rows]) for title, shown in found if any(grid.rows for grid in shown)]

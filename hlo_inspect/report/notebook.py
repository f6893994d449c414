"""Reports and tables as a Python session shows them: text for `repr`, HTML for a notebook. Both are a page, not all rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape
from io import StringIO

from hlo_inspect.errors import printable
from hlo_inspect.report.layout import PAGE_WIDTH, Grid, make_grid
from hlo_inspect.report.model import Report, Table
from hlo_inspect.report.options import RenderOptions, shown_tables
from hlo_inspect.report.page import (
    findings_left_out,
    headline_text,
    input_details,
    module_details,
    module_name,
    paragraphs,
    shown_findings,
)
from hlo_inspect.report.terminal import render_terminal, table_text

_OPTIONS = RenderOptions(width=PAGE_WIDTH)
_NOTEBOOK_WIDTH = 2 * PAGE_WIDTH  # a notebook wraps cells, but a list of thousands of devices does not fit there


def as_text(shown: Report | Table) -> str:
    """The page as a terminal of 120 columns shows it."""
    if isinstance(shown, Table):
        return table_text(shown.top(shown.page_rows), _OPTIONS).rstrip("\n")
    stream = StringIO()
    render_terminal([shown], stream, _OPTIONS)
    return stream.getvalue().rstrip("\n")


def as_html(shown: Report | Table) -> str:
    """The page as HTML, in the style of the notebook: with the extra `[html]` the compact form of that of `report`."""
    if isinstance(shown, Table):
        return "\n".join(_table(shown.top(shown.page_rows)))
    from hlo_inspect.report.html.compact import compact_page

    return compact_page(shown, _OPTIONS._replace(width=_NOTEBOOK_WIDTH)) or "\n".join(_report(shown))


def _report(report: Report) -> Iterator[str]:
    details = " · ".join((*module_details(report), *input_details(report)))
    yield f"<h4>{escape(module_name(report))}</h4><p>{escape(details)}</p>"
    if report.headline:
        yield from ("<table>", *(_line(row.label, headline_text(row)) for row in report.headline), "</table>")
    for passage in report.passages:
        text = "".join(f"<p>{escape(line)}</p>" for line in paragraphs(passage))
        yield f"<p><b>{escape(passage.heading)}</b></p>{text}"
    if report.findings:
        yield "<ul>"
        for finding in shown_findings(report, _OPTIONS):
            place = f" ({printable(str(finding.location))})" if finding.location else ""
            yield f"<li><b>{finding.severity}</b> {finding.rule}: {escape(printable(finding.message) + place)}</li>"
        yield f"</ul><p>{escape(findings_left_out(report, _OPTIONS))}</p>"
    for table in shown_tables(report, _OPTIONS, for_people=True):
        yield from _table(table)


def _line(label: str, text: str) -> str:
    return f"<tr><th>{escape(printable(label))}</th><td>{escape(text)}</td></tr>"


def _table(table: Table) -> Iterator[str]:
    grid = make_grid(table, _NOTEBOOK_WIDTH)
    yield f"<p><b>{escape(grid.title)}</b></p>"
    if not grid.rows and grid.left_out is None:
        yield "<p>none</p>"
        return
    yield f"<table><thead>{_row(grid, grid.header, 'th')}</thead><tbody>"
    yield from (_row(grid, row, "td") for row in grid.rows)
    yield from (_row(grid, row, "th") for row in (grid.total, grid.left_out) if row)
    yield "</tbody></table>"


def _row(grid: Grid, cells: Iterable[str], tag: str) -> str:
    """Figures to the right, texts to the left, whatever the notebook does by itself."""
    sides = ("right" if right else "left" for right in grid.right)
    return (
        "<tr>"
        + "".join(f'<{tag} style="text-align:{side}">{escape(cell)}</{tag}>' for cell, side in zip(cells, sides, strict=True))
        + "</tr>"
    )

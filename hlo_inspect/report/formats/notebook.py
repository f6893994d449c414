"""Reports and tables as a Python session shows them: text for `repr`, HTML for a notebook. Both are a page, not all rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape
from io import StringIO

from hlo_inspect.report.formats.terminal import render_table, table_text
from hlo_inspect.report.layout import PAGE_WIDTH, Grid, make_grid
from hlo_inspect.report.model import Report
from hlo_inspect.report.render_options import RenderOptions
from hlo_inspect.report.table import Table

_OPTIONS = RenderOptions(width=PAGE_WIDTH)
_NOTEBOOK_WIDTH = 2 * PAGE_WIDTH  # a notebook wraps cells, but a list of thousands of devices does not fit there


def as_text(shown: Report | Table) -> str:
    """Return the page as a terminal of 120 columns shows it."""
    if isinstance(shown, Table):
        return table_text(_page_rows(shown), _OPTIONS).rstrip("\n")
    stream = StringIO()
    render_table([shown], stream, _OPTIONS)
    return stream.getvalue().rstrip("\n")


def as_html(shown: Report | Table) -> str:
    """Return the page as compact HTML, or as text without the extra `[html]`."""
    if isinstance(shown, Table):
        return "\n".join(_table(_page_rows(shown)))
    from hlo_inspect.report.formats.html import compact_page

    return compact_page(shown, _OPTIONS._replace(width=_NOTEBOOK_WIDTH)) or f"<pre>{escape(as_text(shown))}</pre>"


def _page_rows(table: Table) -> Table:
    shown = table.shown or table
    return shown.top(shown.page_rows)


def _table(table: Table) -> Iterator[str]:
    grid = make_grid(table, _NOTEBOOK_WIDTH)
    yield f"<p><b>{escape(grid.title)}</b></p>"
    if grid.is_empty:
        yield f"<p>{grid.nothing}</p>"
        return
    yield f"<table><thead>{_row(grid, grid.header, 'th')}</thead><tbody>"
    yield from (_row(grid, row, "td") for row in grid.rows)
    yield from (_row(grid, row, "th") for row in (grid.total, grid.left_out) if row)
    yield "</tbody></table>"


def _row(grid: Grid, cells: Iterable[str], tag: str) -> str:
    """Return the row as HTML: figures to the right, texts to the left, whatever the notebook does by itself."""
    sides = ("right" if right else "left" for right in grid.right)
    return (
        "<tr>"
        + "".join(f'<{tag} style="text-align:{side}">{escape(cell)}</{tag}>' for cell, side in zip(cells, sides, strict=True))
        + "</tr>"
    )

"""The rows and columns of one table that a user asks for: `--columns`, `--sort`, `--filter`.

They are about the table that `--table` names, or the command's own, which has one row a site. The other tables are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from hlo_inspect.errors import UsageError
from hlo_inspect.lazy_pattern import lazy_pattern
from hlo_inspect.report.cells import find_column
from hlo_inspect.report.model import Report
from hlo_inspect.report.table import Row, Table, Value, lower_bound

_OF_BOUNDS = lazy_pattern(r"(lower|upper)[-_ ]bound")
"""Part of the names of columns of bounds, which pages do not have."""

_PAGES = ("summary",)
"""Commands that are a page of tables and have none of their own."""


class TableSelection(NamedTuple):
    """Names of columns in the order to show; names to sort by, a minus reverses the order; filters."""

    columns: tuple[str, ...] = ()
    sort: tuple[str, ...] = ()
    filters: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.columns or self.sort or self.filters)


def selected(report: Report, selection: TableSelection, table: str | None = None) -> Report:
    """Return the report with the one table of the selection, or the report itself if nothing is selected.

    Raise UsageError for a table, column or filter that makes no sense.
    """
    if not selection:
        return report
    chosen = _table(report, table)
    if any(map(_OF_BOUNDS.search, (*selection.columns, *selection.sort, *selection.filters))):
        chosen = chosen.with_bounds()
    chosen = _filtered(chosen, selection.filters)
    for name in reversed(selection.sort):
        chosen = _sorted(chosen, name)
    if selection.sort:
        title = f"{chosen.title.partition(', by ')[0]}, by {', '.join(selection.sort)}"
        chosen = replace(chosen, title=title)
    if selection.columns:
        chosen = _with_columns(chosen, selection.columns)
    return replace(report, tables=(replace(chosen, page_as="", on_page=True),), headline=())


def _table(report: Report, name: str | None) -> Table:
    if name is not None:
        return report.table_with_figures(name)
    if not report.tables or report.command in _PAGES:
        names = ", ".join(table.name for table in report.tables)
        raise UsageError(f"{report.command!r} has no main table: choose one with --table{names and f' ({names})'}")
    return report.tables[0]


def _filtered(table: Table, filters: Sequence[str]) -> Table:
    if not filters:
        return table
    from hlo_inspect.report.filters import parse_filter, row_test, shows

    comparisons = [comparison for text in filters for comparison in parse_filter(text)]
    tests = [(comparison, row_test(comparison, table)) for comparison in comparisons]
    return table.filtered(lambda row: all(shows(comparison, test(row)) for comparison, test in tests))


def _sorted(table: Table, name: str) -> Table:
    """Sort numbers from the largest, texts from A to Z; a minus before the name reverses both. Unknown values come last."""
    index = find_column(name.removeprefix("-"), table)

    def value(row: Row) -> Value:
        return lower_bound(row[index])

    known_rows = [row for row in table.rows if value(row) is not None]
    descending = (table.columns[index].unit != "text") != name.startswith("-")
    known_rows.sort(key=value, reverse=descending)  # type: ignore[arg-type]  # the values of one column compare
    return replace(table, rows=(*known_rows, *(row for row in table.rows if value(row) is None)))


def _with_columns(table: Table, names: Sequence[str]) -> Table:
    """Select the columns in the order of the request: a page drops none of them, and scripts read no others."""
    chosen = list(dict.fromkeys(find_column(name, table) for name in names))

    def select(row: Row) -> Row:
        return tuple(row[index] for index in chosen)

    columns = tuple(table.columns[index]._replace(detail=0, is_chosen=True, bounded=False) for index in chosen)
    left_out = table.left_out and table.left_out._replace(sums=select(table.left_out.sums))
    return replace(table, columns=columns, rows=tuple(map(select, table.rows)), left_out=left_out)

"""The rows and columns of one table that a user asks for: `--columns`, `--sort`, `--filter`.

They are about the table that `--table` names, or the command's own, which has one row a site. The other tables are left out.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from hlo_inspect.errors import UsageError
from hlo_inspect.lazy_pattern import lazy_pattern
from hlo_inspect.report.cells import find_column
from hlo_inspect.report.model import Column, Report, Row, Table, Value
from hlo_inspect.report.units import UNKNOWN, parse_quantity

_PAGES = ("summary",)
"""Commands that are a page of tables and have none of their own."""


class TableSelection(NamedTuple):
    """Names of columns in the order to show; names to sort by, a minus reverses the order; filters."""

    columns: tuple[str, ...] = ()
    sort: tuple[str, ...] = ()
    filters: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.columns or self.sort or self.filters)


def selected(report: Report, selection: TableSelection, table: str | None = None, *, for_people: bool = False) -> Report:
    """Return the report with the one table of the selection, or the report itself if nothing is selected.

    For people a column brings its lower bounds along. Raise UsageError for a table, column or filter that makes no sense.
    """
    if not selection:
        return report
    chosen = _table(report, table)
    chosen = _filtered(chosen, selection.filters)
    for name in reversed(selection.sort):
        chosen = _sorted(chosen, name)
    if selection.sort:
        title = f"{chosen.title.partition(', by ')[0]}, by {', '.join(selection.sort)}"
        chosen = replace(chosen, title=title)
    if selection.columns:
        chosen = _with_columns(chosen, selection.columns, for_people)
    return replace(report, tables=(replace(chosen, page_as="", on_page=True),), headline=())


def _table(report: Report, name: str | None) -> Table:
    if name is not None:
        return report.table(name)
    if not report.tables or report.command in _PAGES:
        names = ", ".join(table.name for table in report.tables)
        raise UsageError(f"{report.command!r} has no main table: choose one with --table{names and f' ({names})'}")
    return report.tables[0]


def _filtered(table: Table, filters: Sequence[str]) -> Table:
    if not filters:
        return table
    from hlo_inspect.report.selection import parse_filter, row_test

    tests = [row_test(comparison, table) for text in filters for comparison in parse_filter(text)]
    return table.filtered(lambda row: all(test(row) for test in tests))


def _sorted(table: Table, name: str) -> Table:
    """Sort numbers from the largest, texts from A to Z; a minus before the name reverses both. Unknown values come last."""
    index = find_column(name.removeprefix("-"), table)
    bound = table.bound_columns.get(index)

    def value(row: Row) -> Value:
        return row[bound] if row[index] is None and bound is not None else row[index]

    known_rows = [row for row in table.rows if value(row) is not None]
    descending = (table.columns[index].unit != "text") != name.startswith("-")
    known_rows.sort(key=value, reverse=descending)  # type: ignore[arg-type]  # the values of one column compare
    return replace(table, rows=(*known_rows, *(row for row in table.rows if value(row) is None)))


def _with_columns(table: Table, names: Sequence[str], for_people: bool) -> Table:
    """Select the columns in the order of the request; a page drops none of them."""
    chosen = list(dict.fromkeys(find_column(name, table) for name in names))
    bounds = [bound for index, bound in table.bound_columns.items() if for_people and index in chosen and bound not in chosen]

    def select(row: Row) -> Row:
        return tuple(row[index] for index in (*chosen, *bounds))

    columns = tuple(table.columns[index]._replace(detail=0, is_chosen=True) for index in (*chosen, *bounds))
    left_out = table.left_out and table.left_out._replace(
        sums=select(table.left_out.sums), at_least=select(table.left_out.at_least)
    )
    return replace(table, columns=columns, rows=tuple(map(select, table.rows)), left_out=left_out)


_HEAD = lazy_pattern(r"([A-Za-z_][\w.-]*)\s*(==|!=|<=|>=|=|<|>|~)\s*", re.ASCII)
_QUOTED = lazy_pattern(r"\"[^\"]*\"|'[^']*'")

_ORDER: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_BOOLS = {"yes": True, "true": True, "no": False, "false": False}

Test = Callable[[Row], bool]


@dataclass(frozen=True, slots=True)
class Comparison:
    """A comparison as it is written."""

    column: str
    operator: str
    value: str
    quoted: bool


def parse_filter(text: str) -> list[Comparison]:
    """Parse the comparisons of a filter. Raise UsageError if there are none, or if other text is between them."""
    comparisons: list[Comparison] = []
    rest = text.strip()
    while rest or not comparisons:
        head = _HEAD.match(rest)
        if head is None:
            raise UsageError(f"{rest!r} is not a comparison; a filter is `COLUMN OP VALUE`, OP one of = != < <= > >= ~")
        value, rest = _take_value(rest[head.end() :])
        if not value:
            raise UsageError(f"the comparison {head[0].strip()!r} has no value")
        quoted = value[0] in "\"'"
        plain = value[1:-1] if quoted else value
        comparisons.append(Comparison(head[1], "=" if head[2] == "==" else head[2], plain, quoted))
    return comparisons


def _take_value(text: str) -> tuple[str, str]:
    """Return the value at the start of `text`, and the rest: a next comparison, or nothing."""
    quoted = _QUOTED.match(text)
    if quoted is not None:
        return quoted[0], text[quoted.end() :].strip()
    for blank in re.finditer(r"\s+", text):
        if _HEAD.match(text, blank.end()):
            return text[: blank.start()], text[blank.end() :]
    return text.strip(), ""


def row_test(comparison: Comparison, table: Table) -> Test:
    """Return a test of rows by the comparison. Raise UsageError if its column does not exist or has no such values."""
    index = find_column(comparison.column, table)
    column, bound = table.columns[index], table.bound_columns.get(index)
    if comparison.operator in {"=", "!="}:
        equal = _equality(comparison, column)
        return (lambda row: equal(row[index])) if comparison.operator == "=" else (lambda row: not equal(row[index]))
    if comparison.operator == "~":
        contains = _containment(comparison, column)
        return lambda row: contains(row[index])
    holds, wanted = _ORDER[comparison.operator], _quantity(comparison, column)
    if bound is not None and comparison.operator in {">", ">="}:
        return lambda row: _compared(holds, row[bound] if row[index] is None else row[index], wanted)
    return lambda row: _compared(holds, row[index], wanted)


def _compared(holds: Callable[[Any, Any], bool], value: Value, wanted: float) -> bool:
    return value is not None and holds(value, wanted)


def _equality(comparison: Comparison, column: Column) -> Callable[[Value], bool]:
    if comparison.value == UNKNOWN and not comparison.quoted:
        return lambda value: value is None
    if column.unit == "text":
        absent = not comparison.value and column.optional
        return lambda value: value == comparison.value or (absent and value is None)
    if column.unit == "bool":
        if comparison.value not in _BOOLS:
            raise UsageError(f"column {column.name!r} is yes or no, not {comparison.value!r}")
        wanted = _BOOLS[comparison.value]
        return lambda value: value is wanted
    quantity = _quantity(comparison, column)
    return lambda value: value == quantity


def _quantity(comparison: Comparison, column: Column) -> float:
    if column.unit in {"text", "bool"}:
        operators = "=, != or ~" if column.unit == "text" else "= or !="
        raise UsageError(f"{comparison.operator!r} needs an order, which column {column.name!r} does not have: use {operators}")
    try:
        return parse_quantity(comparison.value, column.unit)
    except ValueError as error:
        raise UsageError(f"column {column.name!r}: {error}") from error


def _containment(comparison: Comparison, column: Column) -> Callable[[Value], bool]:
    if column.unit != "text":
        raise UsageError(f"'~' is for text, which column {column.name!r} is not: use = != < <= > or >=")
    wanted = comparison.value
    try:
        pattern = re.compile(wanted)
    except re.error:  # such as `transpose(jvp`: match it as plain text
        return lambda value: isinstance(value, str) and wanted in value
    return lambda value: isinstance(value, str) and (wanted in value or pattern.search(value) is not None)

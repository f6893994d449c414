"""Assertions on the rows of a table: `collectives[kind=all-gather, axis=model].runs == 0`.

In brackets stand comparisons, as `--filter` takes them. Behind the point stands a figure of the rows that meet all of them:

    .count             their number
    .runs              the sum of a column; so is .sum(runs)
    .max(operand_bytes), .min(operand_bytes)

The figure is unknown if a value that decides it is unknown: a filter never passes over a row in silence. It then has bounds if
these are known. The maximum of no rows is 0, their minimum is unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, cast

from hlo_inspect.checks.expectations import Condition
from hlo_inspect.configs import Node
from hlo_inspect.errors import UsageError, did_you_mean
from hlo_inspect.figure import Number, Quantity, between, greatest, least, maximum, minimum, total
from hlo_inspect.lazy_pattern import lazy_pattern
from hlo_inspect.passes import ASSERTABLE_TABLES
from hlo_inspect.report.cells import find_column
from hlo_inspect.report.filters import Comparison, Test, parse_filter, row_test
from hlo_inspect.report.model import Report
from hlo_inspect.report.table import Row, Table, Unit, Value, plain

Function = Literal["count", "sum", "max", "min"]

_FIGURE = lazy_pattern(r"(\w+)\[(.*)\]\.(?:(count)|(sum|max|min)\(\s*(\w+)\s*\)|(\w+))")
_FORM = "an assertion on rows is `TABLE[COLUMN=VALUE, ...].count`, `.COLUMN`, `.max(COLUMN)` or `.min(COLUMN)`"


@dataclass(frozen=True, slots=True)
class RowFigure:
    """Figure of the rows of a table that meet all comparisons; `place` is that of the whole figure."""

    table: str
    comparisons: tuple[Comparison, ...]
    function: Function
    column: str
    place: Node

    def measure(self, report: Report) -> RowResult:
        """Return the figure of a report. Raise UsageError if a column does not exist or has no such values."""
        table = next((table for table in report.tables if table.name == self.table), None)
        if table is None:
            return RowResult(None, "count", (), None, None, f"this module has no table {self.table}")
        with self.place.located():
            tests = [row_test(comparison, table) for comparison in self.comparisons]
            index = None if self.function == "count" else _numeric(self.column, table)
        rows, doubts = self._select(table, tests)
        unit = "count" if index is None else table.columns[index].unit
        value, reason = self._value(rows, index, table)
        if doubts:
            with_doubts, _ = self._value((*rows, *(row for row, _ in doubts)), index, table)
            value, reason = self._between(value, with_doubts), _listed(doubts)
        of_single_rows = index if self.function in ("min", "max") and not doubts else None
        return RowResult(value, unit, rows or tuple(row for row, _ in doubts), table, of_single_rows, reason)

    def _between(self, value: Value, with_doubts: Value) -> Value:
        """Return the bounds of a count or a sum, of which some rows may or may not be a part."""
        if self.function in ("min", "max") or not isinstance(value, Number) or not isinstance(with_doubts, Quantity):
            return None
        return between(value, greatest(with_doubts), "some rows may be a part") if 0 <= value <= least(with_doubts) else None

    def _select(self, table: Table, tests: Sequence[Test]) -> tuple[tuple[Row, ...], list[tuple[Row, str]]]:
        """Return the rows that meet all comparisons, and those that may meet them, each with the reason of the doubt."""
        columns = [find_column(comparison.column, table) for comparison in self.comparisons]
        unmet = {
            index
            for index, comparison in zip(columns, self.comparisons, strict=True)
            if _is_blank(table, index) and not comparison.seeks_unknown
        }
        rows, doubts = [], []
        for row in table.rows:
            answers = [
                None if row[index] is None and index in unmet else test(row) for index, test in zip(columns, tests, strict=True)
            ]
            if False in answers:
                continue
            if None in answers:
                doubts.append((row, f"{table.columns[columns[answers.index(None)]].name} of {_label(table, row)}"))
            else:
                rows.append(row)
        return tuple(rows), doubts

    def _value(self, rows: Sequence[Row], index: int | None, table: Table) -> tuple[Value, str]:
        """Return the figure of rows, and the reason if it is unknown."""
        if index is None:
            return len(rows), ""
        column = table.columns[index]
        doubted = [row for row in rows if plain(row[index]) is None and not (column.optional and row[index] is None)]
        why = _listed([(row, f"{column.name} of {_label(table, row)}") for row in doubted]) if doubted else ""
        values = [value for row in rows if isinstance(value := row[index], Quantity)]
        if any(row[index] is None for row in doubted):
            return None, why
        if self.function == "sum":
            return total(values), why
        if self.function == "max":
            return maximum(values), why
        return (minimum(values), why) if values else (None, "no row has such a value")


class RowResult(NamedTuple):
    """Value of a figure in `unit`, the rows that it counts, and their table. If it is unknown, `reason` says why.

    A figure of single rows, their least or largest value, has the position of its `column`.
    """

    value: Value
    unit: Unit
    rows: tuple[Row, ...]
    table: Table | None
    column: int | None
    reason: str

    def rows_that_broke(self, condition: Condition) -> Table | None:
        """Return the table with the rows that fail the condition, or that a sum counts; None without rows."""
        rows = self.rows if self.column is None else [row for row in self.rows if not condition.holds(row[self.column])]
        return replace(self.table, rows=tuple(rows), page_as="", left_out=None) if self.table and rows else None


def parse_row_figure(node: Node) -> RowFigure | None:
    """Parse the figure in a node; None if its text names a fact. Raise UsageError with the place of what is wrong."""
    if "[" not in node.scalar:
        return None
    match = _FIGURE.fullmatch(node.scalar)
    if match is None:
        raise node.error(_FORM)
    table, filters, is_count, function, inner, column = match.groups()
    if table not in ASSERTABLE_TABLES:
        hint = did_you_mean(table, ASSERTABLE_TABLES) or f"; there are: {', '.join(ASSERTABLE_TABLES)}"
        raise node.error(f"there is no table {table!r} for assertions{hint}")
    with node.located():
        comparisons = tuple(parse_filter(filters)) if filters.strip() else ()
    chosen = "count" if is_count else function or "sum"
    return RowFigure(table, comparisons, cast("Function", chosen), inner or column or "", node)


def _numeric(name: str, table: Table) -> int:
    """Return the position of a column of numbers."""
    index = find_column(name, table)
    if table.columns[index].unit in ("text", "bool"):
        names = [column.name for column in table.columns if column.unit not in ("text", "bool")]
        raise UsageError(f"column {name!r} holds no numbers; these do: {', '.join(names)}")
    return index


def _is_blank(table: Table, index: int) -> bool:
    """Return True if no row has a value in an optional column of text: the module does not tell these values at all."""
    column = table.columns[index]
    return column.optional and column.unit == "text" and all(row[index] is None for row in table.rows)


def _label(table: Table, row: Row) -> str:
    """Return the name of a row: that of its instruction, else its first text."""
    names = [column.name for column in table.columns]
    label = row[names.index("name")] if "name" in names else None
    return str(label or next((value for value in row if isinstance(value, str)), "a row"))


def _listed(doubts: Iterable[tuple[Row, str]]) -> str:
    texts = list(dict.fromkeys(text for _, text in doubts))
    more = f" and {len(texts) - 2} more" if len(texts) > 2 else ""
    return f"unknown: {', '.join(texts[:2])}{more}"

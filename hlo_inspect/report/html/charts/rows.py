"""Rows of tables as charts read them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeGuard

from hlo_inspect.report.html.charts.palette import rank
from hlo_inspect.report.model import Table, Unit, Value
from hlo_inspect.report.units import format_bounded

Tables = Mapping[str, Table]
"""The tables of a report by name."""


@dataclass(frozen=True, slots=True)
class ChartRow:
    """A row by the names of its columns; `key` is its address within the page."""

    values: Mapping[str, Value]
    units: Mapping[str, Unit]
    key: str

    def __getitem__(self, column: str) -> Value:
        """The value of a column, `None` where the table has no such column."""
        return self.values.get(column)

    def least(self, column: str) -> float:
        """The value for a mark: where it is unknown its lower bound, and 0 where nothing of it is known."""
        value = self.values.get(column)
        value = self.values.get(f"{column}_lower_bound") if value is None else value
        return value if isinstance(value, int | float) else 0

    def text(self, column: str) -> str:
        """The value as tables have it, as `>= 4 MiB` where a lower bound of it is known."""
        return format_bounded(self.values.get(column), self.values.get(f"{column}_lower_bound"), self.units.get(column, "text"))


def grouped(rows: Iterable[ChartRow], label: Callable[[ChartRow], str]) -> dict[str, list[ChartRow]]:
    """The rows by phase, or by kind, in the order of legends."""
    groups: dict[str, list[ChartRow]] = {}
    for row in rows:
        groups.setdefault(label(row), []).append(row)
    return {name: groups[name] for name in sorted(groups, key=lambda name: (rank(name), name))}


def rows_of(tables: Tables, name: str) -> list[ChartRow]:
    """The rows of a table; none where there is no such table."""
    table = tables.get(name)
    if table is None:
        return []
    units = {column.name: column.unit for column in table.columns}
    names = list(units)
    return [ChartRow(dict(zip(names, row, strict=True)), units, f"{name}:{at}") for at, row in enumerate(table.rows)]


def is_number(value: Value) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)

"""Rows of tables as charts read them, and their texts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeGuard

from hlo_inspect.errors import printable
from hlo_inspect.report.formats.html.charts.palette import rank
from hlo_inspect.report.table import Table, Unit, Value, lower_bound, plain
from hlo_inspect.report.units import format_value

Tables = Mapping[str, Table]
"""The tables of a report by name."""


def by_name(tables: Iterable[Table]) -> dict[str, Table]:
    return {table.name: table for table in tables}


@dataclass(frozen=True, slots=True)
class ChartRow:
    """A row by the names of its columns; `key` is its address within the page."""

    values: Mapping[str, Value]
    units: Mapping[str, Unit]
    key: str

    def __getitem__(self, column: str) -> Value:
        """Return the value of a column, None if it is unknown or the table has no such column."""
        return plain(self.values.get(column))

    def least(self, column: str) -> float:
        """Return the value for a mark: its lower bound if it is unknown, 0 without one."""
        value = lower_bound(self.values.get(column))
        return value if isinstance(value, int | float) else 0

    def text(self, column: str) -> str:
        """Return the value as tables have it: `>= 4 MiB` for a known lower bound."""
        return format_value(self.values.get(column), self.units.get(column, "text"))


def grouped(rows: Iterable[ChartRow], label: Callable[[ChartRow], str]) -> dict[str, list[ChartRow]]:
    """Group the rows by phase, or by kind, in the order of legends."""
    groups: dict[str, list[ChartRow]] = {}
    for row in rows:
        groups.setdefault(label(row), []).append(row)
    return {name: groups[name] for name in sorted(groups, key=lambda name: (rank(name), name))}


def rows_of(tables: Tables, name: str) -> list[ChartRow]:
    """Return the rows of a table; none if the table is missing."""
    table = tables.get(name)
    if table is None:
        return []
    units = {column.name: column.unit for column in table.columns}
    names = list(units)
    return [ChartRow(dict(zip(names, row, strict=True)), units, f"{name}:{number}") for number, row in enumerate(table.rows)]


def is_number(value: Value) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


LONGEST = 160
"""Characters of a text in a picture; the table has the whole."""


def short(text: Value, longest: int = LONGEST) -> str:
    """Cut the middle of a text to `longest` characters at most, and escape control characters. Names differ at both ends."""
    shown = printable("" if text is None else str(text))
    if len(shown) <= longest:
        return shown
    begin = (longest - 1) // 2
    return f"{shown[:begin]}…{shown[len(shown) - (longest - 1 - begin) :]}"


def hover(title: Value, *parts: Value) -> str:
    """Return the text beside the mouse: a title and lines below it. Empty lines are left out."""
    return "\n".join([short(title), *(short(part) for part in parts if part)])


def counted(count: str, what: str) -> str:
    """Return a count with its noun, as "1 run" and "2 runs"."""
    return f"{count} {what}" if count == "1" else f"{count} {what}s"


def not_shown(unknown: int, what: str) -> str:
    """Return a sentence on the rows that have no mark because their figure is unknown; empty if there are none."""
    return f" Not shown: {unknown:,} {what}." if unknown else ""


def role_words(role: Value) -> str:
    """Return the role of a parameter or an array in words: "first moment"."""
    return str(role).replace("_", " ")


def alt_text(parts: Iterable[tuple[Value, str]], most: int = 12) -> str:
    """Return the figures of a picture for readers who cannot see it. Its writer escapes it."""
    figures: Sequence[tuple[Value, str]] = list(parts)
    words = "; ".join(f"{short(name)}: {value}" for name, value in figures[:most])
    return f"{words}; {len(figures) - most:,} more in the table" if len(figures) > most else words

"""A table as data for the page's script: distinct values and texts by column, and the columns that a page shows."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from types import NoneType

from hlo_inspect.report.cells import cell, cell_in_own_unit, heading
from hlo_inspect.report.csv import csv_field
from hlo_inspect.report.layout import make_grid
from hlo_inspect.report.table import Column, Table, Value

_EXACT = 2**53  # JavaScript cannot represent larger integers exactly
_WIDTHS = (44, 60, 80, 100, 120, 140, 160)
"""Characters of a line, from a telephone to the widest page."""


def table_data(table: Table, shown: Table, raw_bytes: bool) -> dict[str, object]:
    """Return a table for the page's script: its columns with values, and with texts as `shown`, with relative paths."""
    needed = _needed_widths(table.columns)
    bounds = table.bound_columns
    values: list[tuple[Value, ...]] = list(zip(*table.rows, strict=True)) or [() for _ in table.columns]
    columns = [
        {
            "name": column.name,
            "heading": heading(column, raw_bytes),
            "unit": column.unit,
            "from": needed.get(column.name),
            "machine": index in bounds.values(),
            "wraps": column.wraps,
            **_column_data(
                column, values[index], values[bounds[index]] if index in bounds else None, _texts(shown, index, raw_bytes)
            ),
        }
        for index, column in enumerate(table.columns)
    ]
    order = _order(table, [column.get("texts", column["values"]) for column in columns])
    return {"name": table.name, "title": table.title, "rows": len(table.rows), "columns": columns, "order": order}


_EARLY = "source"
"""The column that comes second: readers look for their own line."""

_USUAL_SOURCE = 12
"""Characters of a source line without the directory that all have in common."""


def _order(table: Table, texts: Sequence[object]) -> list[int]:
    """Return the columns of a page in their order: none of lower bounds, and none that is empty in all rows."""
    bounds = set(table.bound_columns.values())
    shown = [index for index in range(len(table.columns)) if index not in bounds and texts[index] not in ([""], [None])]
    early = [index for index in shown[1:] if table.columns[index].name == _EARLY]
    return [*shown[:1], *early, *(index for index in shown[1:] if index not in early)]


def _texts(table: Table, index: int, raw_bytes: bool) -> Callable[[int], str]:
    """Return the text of a column in a row, as on any page for people."""
    columns, rows = table.columns, table.rows
    column, bound = columns[index], table.bound_columns.get(index)
    if column.unit_of:
        return lambda row: cell_in_own_unit(rows[row], index, columns, raw_bytes)
    if bound is None:
        return lambda row: cell(rows[row][index], None, column, raw_bytes, of_sums=False)
    return lambda row: cell(rows[row][index], rows[row][bound], column, raw_bytes, of_sums=False)


@lru_cache(maxsize=1 << 10)
def _needed_widths(columns: tuple[Column, ...]) -> Mapping[str, int]:
    """Return the least width of a page that begins with a column, by the name of the column; others have to be chosen."""
    placed = tuple(column._replace(detail=0, width=_USUAL_SOURCE) if column.name == _EARLY else column for column in columns)
    needed: dict[str, int] = {_EARLY: _WIDTHS[2]}
    for width in _WIDTHS:
        hidden = set(make_grid(Table("", "", placed, ()), width).hidden)
        for column in columns:
            if column.name not in hidden:
                needed.setdefault(column.name, width)
    return needed


def _column_data(
    column: Column, values: Sequence[Value], bounds: Sequence[Value] | None, texts: Callable[[int], str]
) -> dict[str, object]:
    """Return distinct `values` and `texts`, and in `at` the position of each row's value; without `at` each row has its own.

    Texts are left out if they equal the values, and bounds if no value is unknown. `texts` returns that of a row. `csv` has the
    fields of CSV that differ from their values, by position.
    """
    keys: Sequence[object] = values if bounds is None else list(zip(values, bounds, strict=True))
    if column.unit_of:
        keys = [(value, texts(row)) for row, value in enumerate(values)]
    elif len(set(map(type, values)) - {NoneType}) > 1:  # 1, 1.0 and True are one key of a dict
        keys = list(zip(keys, map(type, values), strict=True))
    positions: dict[object, int] = {}
    first: list[int] = []
    for row, key in enumerate(keys):
        if key not in positions:
            positions[key] = len(first)
            first.append(row)
    distinct = [_json_value(values[row]) for row in first]
    shown = list(map(texts, first))
    data: dict[str, object] = {"values": distinct}
    if shown != distinct:
        data["texts"] = shown
    fields = [(number, value, csv_field(value)) for number, row in enumerate(first) if isinstance(value := values[row], str)]
    if changed := {str(number): field for number, value, field in fields if field != value}:
        data["csv"] = changed
    if bounds is not None and None in distinct:
        data["bounds"] = [_json_value(bounds[row]) for row in first]
    if len(first) < len(values):
        data["at"] = list(map(positions.__getitem__, keys))
    return data


def _json_value(value: Value) -> Value:
    """Return the value; a number that JavaScript would change becomes a text of its digits."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    return value if abs(value) <= _EXACT else str(value)

"""A table as data for the page's script: distinct values and texts by column, and the columns that a page shows."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import takewhile
from types import NoneType

from hlo_inspect.report.cells import cell, cell_in_own_unit, heading
from hlo_inspect.report.formats.csv import csv_field
from hlo_inspect.report.layout import make_grid
from hlo_inspect.report.table import Column, Table, Value

_EXACT = 2**53  # JavaScript cannot represent larger integers exactly
_WIDTHS = (44, 60, 80, 100, 120, 140, 160)
"""Characters of a line, from a telephone to the widest page."""


def table_data(table: Table, shown: Table, raw_bytes: bool) -> dict[str, object]:
    """Return a table for the page's script: its columns with values, and with texts as `shown`, with relative paths."""
    needed = _needed_widths(table.columns)
    flat = table.flat()
    values: list[tuple[Value, ...]] = list(zip(*flat.rows, strict=True)) or [() for _ in flat.columns]
    columns = []
    with_figures = -1  # position in the table of the column that is shown, or whose bounds are
    for index, column in enumerate(flat.columns):
        with_figures += not column.bound
        behind = (
            []
            if column.bound
            else takewhile(lambda position: flat.columns[position].bound, range(index + 1, len(flat.columns)))
        )
        bounds = {_BOUND_KEYS[flat.columns[position].bound]: values[position] for position in behind}
        texts = _texts(flat, index, raw_bytes) if column.bound else _texts(shown, with_figures, raw_bytes)
        columns.append(
            {
                "name": column.name,
                "heading": heading(column, raw_bytes),
                "unit": column.unit,
                "from": needed.get(column.name),
                "machine": bool(column.bound),
                "wraps": column.wraps,
                **_column_data(column, values[index], bounds, texts),
            }
        )
    order = _order(flat, [column.get("texts", column["values"]) for column in columns])
    return {"name": table.name, "title": table.title, "rows": len(table.rows), "columns": columns, "order": order}


_BOUND_KEYS = {"lower": "bounds", "upper": "limits"}

_EARLY = "source"
"""The column that comes second: readers look for their own line."""

_USUAL_SOURCE = 12
"""Characters of a source line without the directory that all have in common."""


def _order(table: Table, texts: Sequence[object]) -> list[int]:
    """Return the columns of a page in their order: none of lower bounds, and none that is empty in all rows."""
    shown = [index for index, column in enumerate(table.columns) if not column.bound and texts[index] not in ([""], [None])]
    early = [index for index in shown[1:] if table.columns[index].name == _EARLY]
    return [*shown[:1], *early, *(index for index in shown[1:] if index not in early)]


def _texts(table: Table, index: int, raw_bytes: bool) -> Callable[[int], str]:
    """Return the text of a column in a row, as on any page for people."""
    columns, rows = table.columns, table.rows
    column = columns[index]
    if column.unit_of:
        return lambda row: cell_in_own_unit(rows[row], index, columns, raw_bytes)
    return lambda row: cell(rows[row][index], column, raw_bytes, of_sums=False)


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
    column: Column, values: Sequence[Value], bounds: Mapping[str, Sequence[Value]], texts: Callable[[int], str]
) -> dict[str, object]:
    """Return distinct `values` and `texts`, and in `at` the position of each row's value; without `at` each row has its own.

    Texts are left out if they equal the values, and `bounds` by their keys if no value is unknown. `texts` returns that of a
    row. `csv` has the fields of CSV that differ from their values, by position.
    """
    keys: Sequence[object] = list(zip(values, *bounds.values(), strict=True)) if bounds else values
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
    if None in distinct:
        data.update({key: [_json_value(limits[row]) for row in first] for key, limits in bounds.items()})
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

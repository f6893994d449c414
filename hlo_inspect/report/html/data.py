"""Data blocks of a page: JSON that cannot end the element it stands in, and tables by columns.

A column holds each of its values once, beside its text as people read it, and for each row the number of its value: of the
eleven thousand kernels of a large model most have the shape, the scope, and the figures of others.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable

from hlo_inspect.report.cells import cell, cell_in_own_unit, heading
from hlo_inspect.report.layout import make_grid
from hlo_inspect.report.model import Column, Table, Value

_ESCAPES = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"})
_EXACT = 2**53  # integers above it are no numbers of JavaScript
_NARROW = 44  # characters: what a telephone shows
_WIDE = 160


def json_block(value: object) -> str:
    """JSON that stands inside of a script element."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).translate(_ESCAPES)


def table_data(table: Table, raw_bytes: bool) -> dict[str, object]:
    """A table for the page's script: columns with their values and texts, and the texts of its sums."""
    wide, narrow = _shown(table, _WIDE), _shown(table, _NARROW)
    bounds = table.bound_columns
    columns = [
        {
            "name": column.name,
            "heading": heading(column, raw_bytes),
            "unit": column.unit,
            "wide": at in wide,
            "narrow": at in narrow,
            "machine": at in bounds.values(),
            **_column_data(table, at, bounds.get(at), raw_bytes),
        }
        for at, column in enumerate(table.columns)
    ]
    return {"name": table.name, "title": table.title, "rows": len(table.rows), "columns": columns}


def _shown(table: Table, width: int) -> set[int]:
    """The columns that a page of that width begins with."""
    hidden = set(make_grid(Table(table.name, table.title, table.columns, ()), width).hidden)
    return {at for at, column in enumerate(table.columns) if column.name not in hidden}


def _column_data(table: Table, at: int, bound: int | None, raw_bytes: bool) -> dict[str, object]:
    """`values` and `texts`, and for each row the position of its own in `at`; without it a value for each row. Texts that the
    values are anyway are left out.
    """
    column = table.columns[at]
    keys: Iterable[tuple[Value, ...]]
    if column.unit_of:
        names = {one.name: number for number, one in enumerate(table.columns)}
        used = [names[name] for name in (column.unit_of, column.like) if name in names]
        keys = [(row[at], *(row[one] for one in used)) for row in table.rows]
    elif bound is not None:
        keys = [(row[at], row[bound]) for row in table.rows]
    else:
        keys = [(row[at],) for row in table.rows]
    positions: dict[tuple[object, ...], int] = {}
    rows: list[int] = []
    first: list[int] = []
    for number, key in enumerate(keys):
        typed = (*key, type(key[0]))  # 1 and True are not one value
        position = positions.setdefault(typed, len(positions))
        if position == len(first):
            first.append(number)
        rows.append(position)
    values = [_json_value(table.rows[number][at]) for number in first]
    texts = [_text(table, number, at, bound, column, raw_bytes) for number in first]
    data: dict[str, object] = {"values": values}
    if any(text != value for text, value in zip(texts, values, strict=True)):
        data["texts"] = texts
    if bound is not None and any(value is None for value in values):
        data["bounds"] = [_json_value(table.rows[number][bound]) for number in first]
    if len(values) < len(rows):
        data["at"] = rows
    return data


def _text(table: Table, number: int, at: int, bound: int | None, column: Column, raw_bytes: bool) -> str:
    row = table.rows[number]
    if column.unit_of:
        return cell_in_own_unit(row, at, table.columns, raw_bytes)
    return cell(row[at], row[bound] if bound is not None else None, column, raw_bytes, of_sums=False)


def _json_value(value: Value) -> Value:
    """A number that JavaScript would change is a text of its digits."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    return value if abs(value) <= _EXACT else str(value)

"""Data blocks of a page: JSON that cannot end the element that holds it, and tables by columns.

A column holds each of its values once, beside its text as people read it, and for each row the number of its value: of the
eleven thousand kernels of a large model most have the shape, the scope, and the figures of others.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from types import NoneType

from hlo_inspect.report.cells import cell, cell_in_own_unit, heading
from hlo_inspect.report.layout import make_grid
from hlo_inspect.report.model import Column, Table, Value

_ESCAPES = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
_EXACT = 2**53  # integers above it are no numbers of JavaScript
_NARROW = 44  # characters: what a telephone shows
_WIDE = 160


def json_block(value: object) -> str:
    """JSON for the inside of a script element. What is not printable is an escape: a character that turns the direction of
    the text, or a surrogate alone, as of a file's name that is not UTF-8.
    """
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for character, escape in _ESCAPES.items():
        text = text.replace(character, escape)
    hidden = {
        ord(c): f"\\u{ord(c):04x}" for c in set(text) if not c.isprintable() and "\x7e" < c < "\U00010000" and c != "\u00a0"
    }
    return text.translate(hidden) if hidden else text


def table_data(table: Table, shown: Table, raw_bytes: bool) -> dict[str, object]:
    """A table for the page's script: columns with their values, and with the texts of the same table as it is `shown`, with
    relative paths.
    """
    wide, narrow = _shown(table, _WIDE), _shown(table, _NARROW)
    bounds = table.bound_columns
    values: list[tuple[Value, ...]] = list(zip(*table.rows, strict=True)) or [() for _ in table.columns]
    columns = [
        {
            "name": column.name,
            "heading": heading(column, raw_bytes),
            "unit": column.unit,
            "wide": at in wide,
            "narrow": at in narrow,
            "machine": at in bounds.values(),
            **_column_data(column, values[at], values[bounds[at]] if at in bounds else None, _texts(shown, at, raw_bytes)),
        }
        for at, column in enumerate(table.columns)
    ]
    return {"name": table.name, "title": table.title, "rows": len(table.rows), "columns": columns}


def _texts(table: Table, at: int, raw_bytes: bool) -> Callable[[int], str]:
    """The text of a column in a row, as on any page for people."""
    columns, rows = table.columns, table.rows
    column, bound = columns[at], table.bound_columns.get(at)
    if column.unit_of:
        return lambda row: cell_in_own_unit(rows[row], at, columns, raw_bytes)
    if bound is None:
        return lambda row: cell(rows[row][at], None, column, raw_bytes, of_sums=False)
    return lambda row: cell(rows[row][at], rows[row][bound], column, raw_bytes, of_sums=False)


def _shown(table: Table, width: int) -> set[int]:
    """The columns that a page of that width begins with."""
    hidden = set(make_grid(Table(table.name, table.title, table.columns, ()), width).hidden)
    return {at for at, column in enumerate(table.columns) if column.name not in hidden}


def _column_data(
    column: Column, values: Sequence[Value], bounds: Sequence[Value] | None, texts: Callable[[int], str]
) -> dict[str, object]:
    """`values` and `texts`, and for each row the position of its own in `at`; without it a value for each row. Texts that the
    values are anyway are left out, and so are bounds where no value is unknown. `texts` gives that of a row.
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
    if bounds is not None and None in distinct:
        data["bounds"] = [_json_value(bounds[row]) for row in first]
    if len(first) < len(values):
        data["at"] = list(map(positions.__getitem__, keys))
    return data


def _json_value(value: Value) -> Value:
    """A number that JavaScript would change is a text of its digits."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    return value if abs(value) <= _EXACT else str(value)

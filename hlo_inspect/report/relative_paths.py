"""Paths of source files as pages show them: relative to the directory that all of them have in common.

Facts, JSON and CSV hold whole paths. A file of an installed package is shown as it is imported, `optax/_src/update.py:42`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from os.path import commonprefix

from hlo_inspect.lazy_pattern import lazy_pattern
from hlo_inspect.report.model import Row, Table, Value

SOURCE_COLUMNS = frozenset({"source", "frame"})
"""Columns of lines of source: `/train/main.py:10`, several joined by commas, or a word where there is none."""

_INSTALLED = lazy_pattern(r"^.*/(?:site-packages|dist-packages)/")


def with_relative_paths(tables: Sequence[Table]) -> tuple[Table, ...]:
    """The tables with shorter paths in their columns of source lines."""
    lines = {line for table in tables for at in _columns(table) for row in table.rows for line in _lines(row[at])}
    directory = _directory(line for line in lines if line.startswith("/") and not _INSTALLED.match(line))
    return tuple(_relative(table, directory) for table in tables)


def _columns(table: Table) -> list[int]:
    return [at for at, column in enumerate(table.columns) if column.name in SOURCE_COLUMNS or column.is_file]


def _lines(value: Value) -> list[str]:
    return value.split(",") if isinstance(value, str) else []


def _directory(lines: Iterable[str]) -> str:
    """The directory that they have in common, with the slash after it."""
    common = commonprefix(list(lines))  # noqa: RUF071 - up to the last slash of it
    return common[: common.rfind("/") + 1]


def _relative(table: Table, directory: str) -> Table:
    columns = _columns(table)
    if not columns:
        return table

    def shorter(row: Row) -> Row:
        values = list(row)
        for at in columns:
            if isinstance(row[at], str):
                values[at] = ",".join(_INSTALLED.sub("", line).removeprefix(directory) for line in _lines(row[at]))
        return tuple(values)

    return replace(table, rows=tuple(map(shorter, table.rows)))

"""What makes a page smaller that is too large to be opened quickly or sent."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import unescape
from pathlib import Path
from typing import NamedTuple

from hlo_inspect.errors import printable
from hlo_inspect.report.units import format_value

LIMIT = 100_000_000
"""Bytes of a page that opens quickly and can be sent."""

_ROWS = (10_000, 3_000, 1_000, 300, 100, 30, 10)
"""Rows of each table that are offered."""

_TABLE = re.compile(r'<script type="application/json" data-view="([^"]*)" data-table="[^"]*" data-rows="(\d+)">')
_VIEW = re.compile(r'<main data-view="([^"]*)"')
_TITLE = re.compile(r"<h1>(.*)</h1>")


class _WrittenTable(NamedTuple):
    """A table of a page: the view that has it, its rows, and how many characters it takes."""

    view: str
    rows: int
    size: int


def advice(path: Path, limit: int = LIMIT) -> str:
    """Which -n or --module makes the page smaller, where it has more bytes than the limit; else nothing."""
    size = path.stat().st_size
    if size <= limit:
        return ""
    titles: dict[str, str] = {}
    tables: list[_WrittenTable] = []
    view = ""
    with path.open(encoding="utf-8", newline="\n") as lines:
        for line in lines:
            if (table := _TABLE.match(line)) is not None:
                tables.append(_WrittenTable(table[1], int(table[2]), len(line)))
            elif (start := _VIEW.match(line)) is not None:
                view = start[1]
            elif (title := _TITLE.match(line)) is not None:
                titles[view] = printable(unescape(title[1]))
    words = [*_fewer_rows(size, tables, limit), *_fewer_modules(tables, titles)]
    return f"the page has {format_value(size, 'bytes')}, which browsers open slowly: {'; '.join(words)}"


def _fewer_rows(size: int, tables: Sequence[_WrittenTable], limit: int) -> Iterable[str]:
    """The most rows of each table with which the page is small enough, else the fewest that are offered."""
    largest = max((table.rows for table in tables), default=0)
    for rows in _ROWS:
        left_out = sum(table.size * (table.rows - rows) // table.rows for table in tables if table.rows > rows)
        if rows < largest and (size - left_out <= limit or rows == _ROWS[-1]):
            yield f"-n {rows} makes it about {format_value(size - left_out, 'bytes')}"
            return


def _fewer_modules(tables: Sequence[_WrittenTable], titles: dict[str, str]) -> Iterable[str]:
    """The module that takes most, where there are several."""
    if len(titles) > 1 and tables:
        sizes = {view: sum(table.size for table in tables if table.view == view) for view in titles}
        largest = max(sizes, key=lambda view: sizes[view])
        yield (
            f"--module REGEX leaves modules out, of which {titles[largest]} takes most, {format_value(sizes[largest], 'bytes')}"
        )

"""Advice on pages that are too large: what makes them smaller, told from the lines of the file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from html import unescape
from pathlib import Path
from typing import NamedTuple

from hlo_inspect.errors import printable
from hlo_inspect.report.formats.html import assets
from hlo_inspect.report.units import format_value

LIMIT = 100_000_000
"""Bytes of a page that opens quickly and can be sent."""

_ROWS = (10_000, 3_000, 1_000, 300, 100, 30, 10)
"""Rows of each table that are offered."""

_TABLE = re.compile(r'<script type="application/json" data-view="([^"]*)" data-table="[^"]*" data-rows="(\d+)">')
_PACKED = re.compile(r'<script type="application/octet-stream" data-packed="[^"]*">([^<]*)')
_VIEW = re.compile(r'<main data-view="([^"]*)" data-title="([^"]*)"')


class _WrittenTable(NamedTuple):
    """A table of a page: the view that has it, its rows, and how many characters it takes."""

    view: str
    rows: int
    size: int


def advice(path: Path, limit: int = LIMIT) -> str:
    """Return the -n or --module that makes the page smaller, if it has more bytes than the limit, else ""."""
    size = path.stat().st_size
    if size <= limit:
        return ""
    titles: dict[str, str] = {}
    tables: list[_WrittenTable] = []
    with path.open(encoding="utf-8", newline="\n") as lines:
        for line, written in _unpacked_lines(lines):
            if (table := _TABLE.match(line)) is not None:
                tables.append(_WrittenTable(table[1], int(table[2]), written))
            elif (start := _VIEW.search(line)) is not None:
                titles[start[1]] = printable(unescape(start[2]))
    words = [*_fewer_rows(size, tables, limit), *_fewer_modules(tables, titles)]
    return f"the page has {format_value(size, 'bytes')}; browsers open it slowly: {'; '.join(words)}"


def _unpacked_lines(lines: Iterable[str]) -> Iterator[tuple[str, int]]:
    """Yield the lines of all views, each with the characters that it takes in the file."""
    for line in lines:
        if (view := _PACKED.match(line)) is None:
            yield line, len(line)
            continue
        text = assets.unpacked(view[1])
        for line_of_view in text.splitlines():
            yield line_of_view, len(line_of_view) * len(line) // len(text)


def _fewer_rows(size: int, tables: Sequence[_WrittenTable], limit: int) -> Iterable[str]:
    """Yield the most rows of each table with which the page is small enough, else the fewest that are offered."""
    largest = max((table.rows for table in tables), default=0)
    for rows in _ROWS:
        left_out = sum(table.size * (table.rows - rows) // table.rows for table in tables if table.rows > rows)
        if rows < largest and (size - left_out <= limit or rows == _ROWS[-1]):
            yield f"-n {rows} makes it about {format_value(size - left_out, 'bytes')}"
            return


def _fewer_modules(tables: Sequence[_WrittenTable], titles: dict[str, str]) -> Iterable[str]:
    """Yield the advice to leave out the module that takes most, if there are several."""
    if len(titles) > 1 and tables:
        sizes = {view: sum(table.size for table in tables if table.view == view) for view in titles}
        largest = max(sizes, key=lambda view: sizes[view])
        yield (f"--module REGEX leaves modules out; the largest is {titles[largest]}, {format_value(sizes[largest], 'bytes')}")

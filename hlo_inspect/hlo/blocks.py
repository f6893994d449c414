"""Whole computations as printers write them, many at a time.

What a text must not have (open comments, unclosed brackets, a second instruction on a line) is counted once over all of
them; only where the counts do not come out right is each computation looked at on its own.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from hlo_inspect.hlo import rows
from hlo_inspect.hlo.rows import Row

_BLANK = re.compile(r"\n*+")


class Block(NamedTuple):
    """A computation: its rows, the extent of their lines in the text, and where the text goes on behind it.

    `line` counts from 0 at the line where the search began.
    """

    name: str
    is_entry: bool
    line: int
    rows: list[Row]
    start: int
    end: int
    behind: int


def find_blocks(text: str, start: int, *, balanced: bool) -> list[Block]:
    """The computations from `start`, the beginning of a line, that are whole and as printers write them.

    `balanced` asks for all brackets to be closed too.
    """
    extents = _extents(text, start)
    if not extents:
        return []
    end = extents[-1].behind
    found = rows.ROW.findall(text, start - 1, end)
    lines = sum(extent.lines for extent in extents)
    plain = len(found) == lines == text.count(" = ", start, end) and (not balanced or rows.is_balanced(text, start, end))
    blocks = []
    at = 0
    for extent in extents:
        if plain:
            own: list[Row] | None = found[at : at + extent.lines]
            at += extent.lines
        else:  # which of them it is has to be found out
            own = rows.find_rows(text, extent.start, extent.end, balanced=True)
        if own is None:
            break
        blocks.append(Block(extent.name, extent.is_entry, extent.line, own, extent.start, extent.end, extent.behind))
    return blocks


class _Extent(NamedTuple):
    name: str
    is_entry: bool
    line: int
    lines: int
    start: int
    end: int
    behind: int


def _extents(text: str, start: int) -> list[_Extent]:
    """Computations by their first and last lines."""
    extents: list[_Extent] = []
    line, position = 0, start
    while True:
        blank = _BLANK.match(text, position)
        begin = blank.end() if blank else position
        header = rows.COMPUTATION.match(text, begin)
        if header is None:
            return extents
        line += begin - position
        body = header.end()
        close = text.find("\n}", body - 1) + 1
        closer = rows.CLOSER.match(text, close) if close else None
        if closer is None:
            return extents
        lines = text.count("\n", body, close)
        position = closer.end()
        extents.append(_Extent(header[2], bool(header[1]), line, lines, body, close, position))
        line += lines + 2

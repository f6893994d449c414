"""Whole computations as printers write them, many at a time.

What a text must not have (open comments, unclosed brackets, a second instruction on a line) is counted once over all of
them; only where the counts do not come out right is each computation looked at on its own.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from hlo_inspect.hlo import rows
from hlo_inspect.hlo.rows import Row

_HEADER = re.compile(rf"\n{rows.COMPUTATION.pattern[:-2]}(?=\n)", re.ASCII)


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
    blocks = _candidates(text, start)
    if not blocks:
        return []
    counted, end = sum(len(block.rows) for block in blocks), blocks[-1].behind
    if text.count(" = ", start, end) == counted and (not balanced or rows.is_balanced(text, start, end)):
        return blocks
    for number, block in enumerate(blocks):
        if rows.find_rows(text, block.start, block.end, balanced=True) is None:
            return blocks[:number]
    return blocks


def _candidates(text: str, start: int) -> list[Block]:
    """Blocks whose lines are rows, by their number."""
    blocks: list[Block] = []
    line, position = 0, start
    for header in _HEADER.finditer(text, start - 1):
        between = text[position : header.start() + 1]
        if between.strip("\n"):
            break
        line += len(between)
        body = header.end() + 1
        close = text.find("\n}", body - 1) + 1
        closer = rows.CLOSER.match(text, close) if close else None
        if closer is None:
            break
        lines = text.count("\n", body, close)
        found = rows.ROW.findall(text, body - 1, close)
        if len(found) != lines:
            break
        blocks.append(Block(header[2], bool(header[1]), line, found, body, close, closer.end()))
        line += lines + 2
        position = closer.end()
    return blocks

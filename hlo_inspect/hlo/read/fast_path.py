"""The fast path: rows as XLA's printers write them, many lines at a time.

One expression splits the lines of a computation into rows. Counts over all lines, without strings and comments, then prove that
each line holds one closed instruction. If that fails, none is read: the reader tries fewer lines, and leaves a failing single
line to `parser`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from hlo_inspect.hlo.tokens import NAME, Row
from hlo_inspect.lazy_pattern import lazy_pattern

SHAPE = r"(?:\((?:[^)\n]++|\)(?! ))*+\)|[a-z][^ \n]*+)"
"""Pattern of the shape of a row, before a blank."""

_HEAD = rf"{SHAPE} [a-z][a-z0-9\-]*+"

_ITEM = lazy_pattern(rf"\n(?<![,=\s]\n)[ \t]*+((?:ROOT )?+)%?({NAME}) = ({_HEAD})\(", re.ASCII)
"""Pattern of the text before the tail of an instruction.

A match starts at the line end before it. A line that ends in a comma or an equal sign continues on the next line.
"""

CLOSER = lazy_pattern(r'\}[ \t]*+(?:, execution_thread="[^"\n]*+")?[ \t]*+(?://[^\n]*+)?\n(?!\s*+,)')
"""Pattern of the last line of a computation."""
_GOES_ON = ",= \t\r\f\v"
"""Last characters of lines that continue on the next line."""

_FRESH = lazy_pattern(r"\s*+(?!T\()[%}A-Za-z_]", re.ASCII)
"""Pattern of the start of a line that does not continue the previous one."""

_TIGHT_DEFINITION = lazy_pattern(r"%[\w.\-]++=", re.ASCII)
_INNER_OPCODE = lazy_pattern(r'(?:[^("\n]++|(?<![a-z0-9])\(|(?<=nan)\()*+\(', re.ASCII)
"""Pattern of the parenthesis of another opcode in operands with brackets; `nan(0x1)` has none."""

DEFINITION = lazy_pattern(rf"\n[ \t]*+(?:ROOT )?%?({NAME}) = ({_HEAD})\(", re.ASCII)
"""Pattern of name and head of an instruction; starts at the line end before it."""

CALLS = lazy_pattern(rf", calls=%?({NAME})", re.ASCII)

_NO_MARKS = bytes(set(range(256)) - set(b'"\n(){}[]*/'))
_MAX_DEPTH = 8
"""Deepest nesting of brackets; rows with more are left to the parser."""


class RowTexts(NamedTuple):
    """The rows in some lines, by column, and the index after the lines."""

    marks: Sequence[str]
    names: Sequence[str]
    heads: Sequence[str]
    tails: Sequence[str]
    end: int


def find_rows(text: str, start: int, limit: int, *, is_final: bool) -> RowTexts | None:
    """Return the rows from `start`, the beginning of a line of a computation, to before `limit`, at least one.

    They end before the computation does, or before a line that continues no other. Return None if a line is not as printers
    write it. Unless the text is final, its last line is left out: the next piece may continue it.
    """
    end = text.find("\n}", start - 1, limit) + 1
    if not end:
        loaded = len(text) if is_final else text.rfind("\n", start, len(text) - 1) + 1
        end = min(max(text.rfind("\n", start, limit), text.find("\n", start)) + 1, loaded)
    if end <= start or text[end - 2] in _GOES_ON or not (end == len(text) or _FRESH.match(text, end)):
        return None
    pieces = _ITEM.split(text[start - 1 : end - 1])
    marks = find_marks(text, start, end)
    rows = RowTexts(tuple(pieces[1::4]), tuple(pieces[2::4]), tuple(pieces[3::4]), tuple(pieces[4::4]), end)
    if marks is None or marks.count(b"\n") != len(rows.names):
        return None
    unclosed = marks
    for _ in range(_MAX_DEPTH):
        unclosed = unclosed.replace(b"[]", b"").replace(b"()", b"").replace(b"{}", b"")
    if unclosed.strip(b"\n"):
        return None
    more = marks.count(b"(") - len(rows.names) - "".join(rows.heads).count("(")
    return None if more and _holds_more(text, start, rows) else rows


def of_row(row: Row) -> RowTexts:
    """Return the columns of one row."""
    mark, name, head, tail = row
    return RowTexts((mark,), (name,), (head,), (tail,), 0)


def read_row(text: str, start: int) -> Row | None:
    """Return the row of the line at `start`; None if it is not as printers write it."""
    rows = find_rows(text, start, start, is_final=True)
    return (rows.marks[0], rows.names[0], rows.heads[0], rows.tails[0]) if rows is not None else None


def find_marks(text: str, start: int, end: int) -> bytes | None:
    """Return the brackets and line ends of `text[start:end]` outside strings and comments.

    Return None if a string or a comment extends over a line end.
    """
    part = text[start:end]
    if "\\" in part:
        part = (part.replace("\\\\", "") if "\\\\" in part else part).replace('\\"', "")
    between = part.encode(errors="replace").translate(None, _NO_MARKS).split(b'"')
    if len(between) % 2 == 0 or b"\n" in b"".join(between[1::2]):
        return None
    marks = b"".join(between[::2])
    if b"/" in marks:
        marks = marks.replace(b"/**/", b"")
    return None if b"/" in marks else marks.replace(b"*", b"")


def _holds_more(text: str, start: int, rows: RowTexts) -> bool:
    """Return True if a line may hold a second instruction, next to the first or in place of an operand."""
    if text.count(" = ", start, rows.end) != len(rows.names):
        return True
    if any(_INNER_OPCODE.match(tail) for tail in rows.tails if "(" in tail.partition(")")[0]):
        return True
    return _TIGHT_DEFINITION.search(text, start, rows.end) is not None

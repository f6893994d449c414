"""The fast path: rows as XLA's printers write them, many lines at a time.

A run consists of whole lines: instructions, and the first and last lines of computations. One expression splits all its lines
into rows. Counts over the whole run, without strings and comments, then prove that each line holds one closed instruction.
If a run fails, none of it is read: the reader tries a shorter run, and leaves a failing single line to `parser`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import compress, count
from operator import not_

from hlo_inspect.hlo.tokens import NAME, Row
from hlo_inspect.lazy_pattern import lazy_pattern

SHAPE = r"(?:\((?:[^)\n]++|\)(?! ))*+\)|[a-z][^ \n]*+)"
"""Pattern of the shape of a row, before a blank."""

_HEAD = rf"{SHAPE} [a-z][a-z0-9\-]*+"

_ITEM = lazy_pattern(
    rf"\n(?<![,=\s]\n)(?:[ \t]*+((?:ROOT )?+)%?({NAME}) = ({_HEAD})\(|"
    r'\}(?:, execution_thread="[^"\n]*+")?+\n)',
    re.ASCII,
)
"""Pattern of the text before the tail of an instruction or before the first line of a computation.

Before such a first line, it is the last line of another computation. A match starts at the line end before it. A line that ends
in a comma or an equal sign continues on the next line.
"""

_START = lazy_pattern(rf"\n?+(ENTRY )?+%?({NAME}) (?:\{{|\([^\n]*\) -> [^\n]* \{{)", re.ASCII)
"""Pattern of the first line of a computation, after at most one blank line: `"ENTRY "` or nothing, and its name."""

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


Part = tuple[str | None, bool, int, int, int, bool]
"""The rows of one computation in a run, as a plain tuple, because a module has many.

Its items: name (None if the computation begins before the run); True if it is the entry; number of its first row; number after
its last row; line of its first row, relative to the run; True if it is closed. It is closed unless the run ends in it.
"""


class LineRun:
    """The rows and computations in `text[start:end]`.

    `marks`, `names`, `heads` and `tails` are the columns of its instructions. The first line of a computation is a row with
    only a tail, and `""` in the other columns.
    """

    def __init__(self, text: str, start: int, end: int, close: int, *, inside: bool) -> None:
        """Split the text into rows; the last line of the last computation, or the end of the run, is at `close`."""
        self.start = start
        self.end = end
        pieces = _ITEM.split(text[start - 1 if inside else start : close])
        first = [] if inside else [""]
        marks, names, heads = first + pieces[1::4], first + pieces[2::4], first + pieces[3::4]
        self.starts = list(compress(count(), map(not_, names)))
        for number in self.starts:  # `split` yields None for it
            marks[number] = names[number] = heads[number] = ""
        self.marks: tuple[str, ...] = tuple(marks)
        self.names: tuple[str, ...] = tuple(names)
        self.heads: tuple[str, ...] = tuple(heads)
        self.tails: tuple[str, ...] = tuple(pieces[4 if inside else 0 :: 4])
        self.lines = 0
        self.parts: list[Part] = []

    def __len__(self) -> int:
        return len(self.names)

    def divide(self, *, inside: bool, is_closed: bool) -> bool:
        """Find the parts and count the lines. Return False if a computation starts in an unusual way."""
        line = begin = 0
        opened: tuple[str | None, bool] = (None, False)
        for number in self.starts:
            match = _START.fullmatch(self.tails[number])
            if match is None:
                return False
            if number or inside:
                self.parts.append((*opened, begin, number, line, True))
                line += number - begin + 1 + self.tails[number].startswith("\n")
            opened, begin, line = (match[2], bool(match[1])), number + 1, line + 1
        self.parts.append((*opened, begin, len(self), line, is_closed))
        self.lines = line + len(self) - begin + is_closed
        return True


def find_run(text: str, start: int, limit: int, *, inside: bool, is_final: bool) -> LineRun | None:
    """Return the run from `start`, the beginning of a line, to before `limit`, at least one line long.

    `inside`: it starts in a computation. Return None if a line is not as printers write it. The run ends after a computation if
    possible, else before a line that continues no other. Unless the text is final, its last line is left out: the next piece
    may continue it.
    """
    close = text.rfind("\n}", start - 1, limit)
    if close >= 0:
        closer = CLOSER.match(text, close + 1)
        if closer is None:
            return None
        end = closer.end()
    else:
        loaded = len(text) if is_final else text.rfind("\n", start, len(text) - 1) + 1
        end = min(max(text.rfind("\n", start, limit), text.find("\n", start)) + 1, loaded)
        if end <= start or not (end == len(text) or _FRESH.match(text, end)):
            return None
        close = end - 1
    if text[close - 1] in _GOES_ON or (not inside and text.find("\n", start) > close):
        return None
    run = LineRun(text, start, end, close, inside=inside)
    if not run.names:
        return None
    return run if run.divide(inside=inside, is_closed=end > close + 1) and _is_plain(text, run, inside=inside) else None


def read_row(text: str, start: int) -> Row | None:
    """Return the row of the line at `start`; None if it is not as printers write it."""
    end = text.find("\n", start) + 1
    line = text[start - 1 : end]
    item = _ITEM.match(line)
    if item is None or item[2] is None or line[-2] in _GOES_ON or not (end == len(text) or _FRESH.match(text, end)):
        return None
    marks = find_marks(text, start, end)
    if marks is None or _unclosed(marks):
        return None
    row = (item[1], item[2], item[3], line[item.end() : -1])
    more = marks.count(b"(") - 1 - row[2].count("(")
    return None if more and _holds_more(text, start, end, [row[3]], 1) else row


def _is_plain(text: str, run: LineRun, *, inside: bool) -> bool:
    """Return True if each line is closed and holds one instruction, or starts or ends a computation."""
    marks = find_marks(text, run.start, run.end)
    if marks is None or marks.count(b"\n") != run.lines:
        return False
    first_lines = "".join(map(run.tails.__getitem__, run.starts))
    opened = len(run) - len(run.starts) + first_lines.count("(") + "".join(run.heads).count("(")
    more = marks.count(b"(") - opened
    if more and _holds_more(text, run.start, run.end, run.tails, len(run) - len(run.starts)):
        return False
    braces = b"" if inside else b"{"
    braces += b"}{" * (len(run.parts) - 1) + b"}" * run.parts[-1][-1]
    return _unclosed(marks) == braces


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


def _unclosed(marks: bytes) -> bytes:
    """Return the brackets that are not closed on their line."""
    for _ in range(_MAX_DEPTH):
        size = len(marks)
        marks = marks.replace(b"[]", b"").replace(b"()", b"").replace(b"{}", b"")
        if len(marks) == size:
            break
    return marks.replace(b"\n", b"")


def _holds_more(text: str, start: int, end: int, tails: Sequence[str], rows: int) -> bool:
    """Return True if a line may hold a second instruction, next to the first or in place of an operand."""
    if text.count(" = ", start, end) != rows or any(_INNER_OPCODE.match(t) for t in tails if "(" in t.partition(")")[0]):
        return True
    return _TIGHT_DEFINITION.search(text, start, end) is not None

r"""One line of the input, and what is undone in it: colour codes, no-break spaces, HTML entities, escapes such as `\n`. Where
lines were wrapped at a fixed column, which of them continue the one before.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from operator import itemgetter
from typing import NamedTuple

from hlo_inspect.hlo import tokens
from hlo_inspect.lazy_pattern import lazy_pattern

_COLOUR = lazy_pattern(r"\x1b\[[0-9;?]*+[A-Za-z]|\x1b[()][A-Z0-9]|\x1b\][^\x07\x1b]*+(?:\x07|\x1b\\)|\x1b", re.ASCII)
_ENTITY = lazy_pattern(r"&(?:[a-z]{2,6}|#\d{1,6}|#x[0-9a-fA-F]{1,5});", re.ASCII)
_ESCAPES = lazy_pattern(r"(?:\\(?:x[0-9A-Fa-f]{1,2}|u[0-9A-Fa-f]{4}|[0-7]{1,3}|.))++", re.DOTALL)

NO_BREAK_SPACES = "\u00a0\u2007\u202f"
_SPACES = str.maketrans(dict.fromkeys(NO_BREAK_SPACES, " "))

MIN_WIDTH = 40

FRESH = lazy_pattern(
    r"\s*+(?:(?:ROOT[ \t]++)?%?[A-Za-z_][\w.\-]*+[ \t]++=[ \t]|ENTRY[ \t]|HloModule[ \t]|\}|$"
    r"|%?[A-Za-z_][\w.\-]*+ (?:\([^\n]*)?\{(?:$|\n)|%?[A-Za-z_][\w.\-]*+ \("
    r"|(?:FileNames|FunctionNames|FileLocations|StackFrames)(?:$|\n)|\d+ [\"{])",
    re.ASCII,
)
"""The start of a line that continues none."""

Columns = tuple[tuple[int, int], ...]
"""Where the pieces of a line come from: index in its text, and 1-based column in the input."""


class Line(NamedTuple):
    """A line as far as it is mended. `number` is that of its line in the input, `size` how long that is."""

    text: str
    number: int
    columns: Columns
    size: int

    @classmethod
    def of(cls, text: str, number: int) -> Line:
        """A line as the input has it."""
        return cls(text, number, ((0, 1),), len(text))

    def part(self, start: int, end: int | None = None) -> Line:
        """The line between two indices of its text."""
        first = bisect_right(self.columns, start, key=itemgetter(0))
        last = len(self.columns) if end is None else bisect_left(self.columns, end, key=itemgetter(0))
        inside = [(offset - start, column) for offset, column in self.columns[first:last]]
        return self._replace(text=self.text[start:end], columns=((0, self.column(start)), *inside))

    def column(self, index: int) -> int:
        """Where in the input the character at an index of the text comes from."""
        offset, column = self.columns[bisect_right(self.columns, index, key=itemgetter(0)) - 1]
        return column + index - offset


def without_colours(line: Line) -> Line:
    return _substituted(line, _COLOUR, lambda _: "")


def with_plain_spaces(line: Line) -> Line:
    return line._replace(text=line.text.translate(_SPACES))


def without_entities(line: Line) -> Line:
    import html

    return _substituted(line, _ENTITY, lambda match: html.unescape(match[0]).translate(_SPACES))


def unescaped(line: Line) -> Iterator[Line]:
    """The lines of a text in which line ends and quotes are written as C, Python and JSON write them in strings. What is
    escaped twice is undone twice.
    """
    for _ in range(3):
        line = _substituted(line, _ESCAPES, lambda match: tokens.unquote(f'"{match[0]}"'))
        if "\n" in line.text or "\\n" not in line.text:
            break
    start = 0
    for text in line.text.split("\n"):
        yield line.part(start, start + len(text))
        start += len(text) + 1


def _substituted(line: Line, pattern: re.Pattern[str], replacement: Callable[[re.Match[str]], str]) -> Line:
    """The line with each match replaced, and its columns kept."""
    pieces: list[str] = []
    columns: list[tuple[int, int]] = []
    length = at = 0
    for match in pattern.finditer(line.text):
        if match.start() > at or not columns:
            columns.append((length, line.column(at)))
        pieces.append(line.text[at : match.start()])
        length += match.start() - at
        columns.append((length, line.column(match.start())))
        made = replacement(match)
        pieces.append(made)
        length += len(made)
        at = match.end()
    if not pieces:
        return line
    columns.append((length, line.column(at)))
    pieces.append(line.text[at:])
    return line._replace(text="".join(pieces), columns=tuple(dict(columns).items()))  # of one index the last


def wrapped_width(lines: Sequence[str], without_prefix: Callable[[str], str]) -> int:
    """The column at which the lines of a module are wrapped; 0 where they are not."""
    width = max(map(len, lines))
    if width < MIN_WIDTH:
        return 0
    broken = [len(line) for line in lines[:-1]].count(width)
    if broken < 2:
        return 0
    continued = {True: 0, False: 0}  # by whether the line is as wide as lines can be
    for line, following in pairwise(lines):
        continued[len(line) == width] += JoinedLine(line).is_continued_by(without_prefix(following))
    # A text whose lines end where their author liked has narrower lines too that the next one continues.
    is_wrapped = continued[True] > max(1, continued[False]) and continued[True] >= 0.7 * broken
    return width if is_wrapped else 0


class JoinedLine:
    """A line, and those that were found to continue it: its text is put together when it is asked for."""

    def __init__(self, text: str) -> None:
        self.length = 0
        self._parts: list[str] = []
        self._braces = self._parentheses = 0
        self._opens_block = False
        self.add(text)

    @property
    def text(self) -> str:
        return "".join(self._parts)

    def add(self, text: str) -> None:
        """Adds what continues it."""
        self._parts.append(text)
        self.length += len(text)
        self._braces += text.count("{") - text.count("}")
        self._parentheses += text.count("(") - text.count(")")
        if text and not text.isspace():
            self._opens_block = text.rstrip().endswith("{")

    def is_continued_by(self, text: str) -> bool:
        """Whether the next line continues this one, which is as wide as lines can be."""
        if self._opens_block:
            return False
        return self._braces > 0 or self._parentheses > 0 or not FRESH.match(text)

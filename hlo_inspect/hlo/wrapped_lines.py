"""Lines that were wrapped at a fixed column: which lines continue the one before them, and the column of a text."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import pairwise

from hlo_inspect.lazy_pattern import lazy_pattern

MIN_WIDTH = 40

FRESH = lazy_pattern(
    r"\s*+(?:(?:ROOT[ \t]++)?%?[A-Za-z_][\w.\-]*+[ \t]++=[ \t]|ENTRY[ \t]|HloModule[ \t]|\}|$"
    r"|%?[A-Za-z_][\w.\-]*+ (?:\([^\n]*)?\{(?:$|\n)|%?[A-Za-z_][\w.\-]*+ \("
    r"|(?:FileNames|FunctionNames|FileLocations|StackFrames)(?:$|\n)|\d+ [\"{])",
    re.ASCII,
)
"""The start of a line that continues none."""


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

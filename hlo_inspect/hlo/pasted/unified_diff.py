"""Unified diffs of two dumps, as `diff -u` and git print them: two texts, and dots for lines that the diff leaves out."""

from __future__ import annotations

import re
from collections.abc import Iterator

from hlo_inspect.hlo.pasted.mended_text import Line
from hlo_inspect.lazy_pattern import lazy_pattern

OLD, NEW = 0, 1
_SIDES = {" ": (OLD, NEW), "-": (OLD,), "+": (NEW,)}
_START = lazy_pattern(r"--- [^\n]*\n\+\+\+ [^\n]*\n@@ -\d")
_HUNK = lazy_pattern(r"@@ -(\d{1,18})(?:,(\d{1,18}))? \+(\d{1,18})(?:,(\d{1,18}))? @@")


def diff_start(text: str, position: int = 0) -> int:
    """Return the index of the first line of a diff, or -1."""
    hunk = text.find("\n@@ -", position)
    while hunk >= 0:
        names = text.rfind("\n--- ", position, hunk) + 1
        if _START.match(text, names):
            return names
        hunk = text.find("\n@@ -", hunk + 1)
    return -1


class UnifiedDiff:
    """Reader of a diff line by line, for both sides."""

    def __init__(self) -> None:
        self._left = [0, 0]  # lines of the hunk, by side
        self._next = [1, 1]  # line of the file after the hunk, by side

    def take(self, line: Line) -> Iterator[tuple[int, Line]]:
        """Yield each side that a line belongs to, with its line."""
        if any(self._left):
            for side in _SIDES.get(line.text[:1] or " ", ()):
                self._left[side] -= 1
                yield side, line.part(1)
            return
        hunk = _HUNK.match(line.text)
        if hunk is not None:
            yield from self._begin(hunk, line)
        elif line.text.startswith("--- "):
            self._next = [1, 1]

    def _begin(self, hunk: re.Match[str], line: Line) -> Iterator[tuple[int, Line]]:
        """Begin a hunk; yield dots for the lines before it that no hunk has."""
        for side, (start, count) in enumerate((hunk.group(1, 2), hunk.group(3, 4))):
            self._left[side] = int(count or 1)
            if int(start) > self._next[side]:
                yield side, line._replace(text="...")
            self._next[side] = int(start) + self._left[side]

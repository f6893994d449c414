"""Text that arrives in pieces, and a position in it."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import NamedTuple

MAX_ITEM_CHARS = 1 << 26
"""Length of the longest item that the reader waits for."""


class TextSource:
    """Text in pieces that end with a line, read once.

    `name` is its name in messages. After `pieces` were read, `first_invalid_line` is the line of the first byte that is not
    UTF-8, and `invalid_lines` the number of lines with such bytes. `format` is its format before conversion to text.
    `memory_lines` report that XLA ran out of memory.
    """

    def __init__(self, name: str, pieces: Iterator[str]) -> None:
        self.name = name
        self.first_invalid_line: int | None = None
        self.invalid_lines = 0
        self.format: str | None = None
        self.memory_lines: list[tuple[int, str]] = []
        self._pieces = pieces
        self._kept: deque[str] | None = None

    @cached_property
    def damage(self) -> str | None:
        """The fault of the input that is known before its text is read; None if there is none."""
        return None

    @property
    def invalid_message(self) -> str:
        """The message about the lines that are not UTF-8."""
        counted = "1 line holds" if self.invalid_lines == 1 else f"{self.invalid_lines} lines hold"
        return f"{counted} bytes that are not UTF-8; they are shown as \\xNN"

    def pieces(self, next_line: Callable[[], int] = lambda: 1) -> Iterator[str]:
        """Yield the text in order. `next_line` returns the number of the first line of the next piece."""
        for piece in self._mended(next_line):
            if self._kept is not None:
                self._kept.append(piece)
            yield piece

    def _mended(self, _next_line: Callable[[], int]) -> Iterator[str]:
        return self._pieces

    def keep_text(self) -> None:
        """Keep the text of further pieces for `take_lines`."""
        self._kept = deque()

    def take_lines(self, count: int = sys.maxsize) -> str:
        """Remove and return the next lines of the kept text, or all that is left."""
        taken: list[str] = []
        kept = self._kept or deque()
        while kept and count > 0:
            piece = kept.popleft()
            *lines, rest = piece.split("\n", count)
            taken.append(piece[: len(piece) - len(rest)])
            count -= len(lines)
            if rest:
                kept.appendleft(rest)
        return "".join(taken)


class Span(NamedTuple):
    """Whole lines `text[start:end]`; the first line has the number `line`."""

    text: str
    start: int
    end: int
    line: int


def count_lines(text: str, start: int, end: int) -> int:
    """Count the line ends in `text[start:end]`.

    `str.count` looks at each character; `bytes.replace` is as fast as `find`.
    """
    part = text[start:end].encode(errors="replace")
    return len(part) - len(part.replace(b"\n", b""))


class Cursor:
    """A position in the loaded text, and the number of its line.

    The text starts with a line end that is not the input's, so that `text[position - 1]` exists. `pieces` receives a function
    that returns the number of the first line of the next piece.
    `bytes_before`: bytes of the input before the position, as UTF-8 with single line ends. `is_final`: True if the input ends
    with the text.
    """

    def __init__(self, pieces: Callable[[Callable[[], int]], Iterator[str]]) -> None:
        self._pieces = pieces(self.next_line_number)
        self._waiting: list[str] = []
        self._is_ascii = True
        self.text = "\n"
        self.position = 1
        self.line = 1
        self.bytes_before = 0
        self.is_final = False

    def more(self, most: int = MAX_ITEM_CHARS, least: int = 0) -> bool:
        """Append the next piece, and others until `least` characters follow the position; drop the lines before the position's.

        Return False at the end of the input, or if more than `most` characters follow the position.
        """
        following = len(self.text) - self.position
        if following > most:
            return False
        pieces = self._waiting
        while not pieces or following < least:
            piece = next(self._pieces, None)
            if piece is None:
                self.is_final = True
                break
            pieces.append(piece)
            following += len(piece)
        if not pieces:
            return False
        line_start = self.text.rfind("\n", 0, self.position)
        self.text = "".join([self.text[line_start:], *pieces])
        pieces.clear()
        self.position -= line_start
        self._is_ascii = self.text.isascii()
        return True

    def load(self, characters: int) -> None:
        """Append pieces until `characters` of them follow the position, or the input ends."""
        if len(self.text) - self.position < characters and not self.is_final:
            self.more(characters, characters)

    def twice_as_much(self, most: int = MAX_ITEM_CHARS) -> bool:
        """Append pieces until twice as much text follows the position, so that repeated attempts take linear time.

        Return False as `more` does.
        """
        wanted = 2 * (len(self.text) - self.position)
        is_more = self.more(most)
        while is_more and len(self.text) - self.position < wanted and self.more(most):
            pass
        return is_more

    def advance(self, position: int, lines: int | None = None) -> None:
        """Move forward to `position`, over `lines` line ends if the caller has counted them."""
        self.line += self.text.count("\n", self.position, position) if lines is None else lines
        passed = self.text[self.position : position] if not self._is_ascii else None
        self.bytes_before += position - self.position if passed is None else len(passed.encode(errors="replace"))
        self.position = position

    def next_line_number(self) -> int:
        """Return the number of the first line of the next piece."""
        return self.line + self.text.count("\n", self.position) + sum([piece.count("\n") for piece in self._waiting])

    def next_line(self) -> None:
        """Move past the next line end; every piece ends with a line."""
        end = self.text.find("\n", self.position)
        self.advance(end + 1 if end >= 0 else len(self.text))

    def column(self) -> int:
        """Return the 1-based column of the position."""
        return self.position - self.text.rfind("\n", 0, self.position)

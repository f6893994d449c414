"""Places in a dump, and the errors that the package raises.

Every exception of the public API derives from `HloInspectError` and carries a `Location`; what is wrong but does not stop the
analysis becomes a finding of the report instead.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import NamedTuple

PICTURE_WIDTH = 76

DEBUG = "HLO_INSPECT_DEBUG"
"""The environment variable with which internal errors show where they come from."""


class Location(NamedTuple):
    """A place in an input: path as the user gave it, 1-based line and column; `None` where it is not known."""

    path: str
    line: int | None = None
    column: int | None = None

    def __str__(self) -> str:
        place = self.path
        if self.line is not None:
            place += f":{self.line}"
            if self.column is not None:
                place += f":{self.column}"
        return place


class HloInspectError(Exception):
    """Base of the package's errors.

    `str()` gives one message: the place, what is wrong and, where the text is known, the line, cut around the caret.
    """

    def __init__(self, message: str, location: Location | None = None, source_line: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.location = location
        self.source_line = source_line

    @property
    def path(self) -> str | None:
        return self.location.path if self.location else None

    @property
    def line(self) -> int | None:
        return self.location.line if self.location else None

    @property
    def column(self) -> int | None:
        return self.location.column if self.location else None

    def __str__(self) -> str:
        text = printable(self.message)
        if self.location is not None:
            text = f"{printable(str(self.location))}: {text}"
        if self.source_line is not None and self.column is not None:
            text += "\n" + caret_picture(self.source_line, self.column)
        return text


class InputError(HloInspectError):
    """An input that cannot be read, or that holds no HLO module (exit status 3)."""


class ParseError(InputError):
    """HLO text that XLA's parser refuses (exit status 3); raised under `strict` only."""


class UsageError(HloInspectError):
    """A request that cannot be met: an unknown pass, fact, rule or table, a bad policy or profile (exit status 2)."""


class NoSuchInstructionError(UsageError):
    """Nothing in a module is called, numbered or spelled as asked."""


class MissingExtraError(UsageError):
    """An input or option that needs an extra or a package which is not installed (exit status 2)."""


class InternalError(HloInspectError):
    """A fault of this package, met in one module or file (exit status 3). Its cause is the exception."""

    module = ""
    """The module that it was met in."""

    @classmethod
    def of(cls, error: Exception, location: Location, module: str = "") -> InternalError:
        """Describe an unexpected exception, and where in an input it was met. With `DEBUG` it is raised instead."""
        if os.environ.get(DEBUG):
            raise error
        internal = cls(f"{f'{module}: ' if module else ''}{internal_error_text(error)}", location)
        internal.__cause__, internal.module = error, module
        return internal


def internal_error_text(error: Exception) -> str:
    """Return what a user is told of an unexpected exception."""
    return f"internal error, please report it: {type(error).__name__}: {error} ({DEBUG}=1 shows where)"


class UnknownFactError(UsageError, KeyError):
    """A fact that a report does not have."""


def did_you_mean(word: str, names: Iterable[str], cutoff: float = 0.6) -> str:
    """`; did you mean 'a' or 'b'?` with up to three names, or nothing; `cutoff` is how like `word` they are (1: the same)."""
    import difflib

    close = difflib.get_close_matches(word, list(names), n=3, cutoff=cutoff)
    return f"; did you mean {' or '.join(repr(name) for name in close)}?" if close else ""


def printable(text: str) -> str:
    """`text` with control characters escaped, so that text from a dump cannot steer a terminal; newlines included."""
    return text if text.isprintable() else "".join(c if c.isprintable() else _escaped(c) for c in text)


def _escaped(char: str) -> str:
    return char.encode("unicode_escape", "backslashreplace").decode("ascii")


def caret_picture(line: str, column: int) -> str:
    """Two lines: the part of `line` around the 1-based `column`, at most `PICTURE_WIDTH` characters, and a caret below it.

    HLO lines reach megabytes, so only a window is shown; tabs and control characters are single spaces in it.
    """
    start = max(0, min(column - 1 - PICTURE_WIDTH // 2, len(line) - PICTURE_WIDTH))
    window = "".join(c if c.isprintable() else " " for c in line[start : start + PICTURE_WIDTH])
    return f"  {window}\n  {' ' * (column - 1 - start)}^"

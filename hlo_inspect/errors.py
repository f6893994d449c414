"""Places in a dump, and the errors that the package raises.

Every exception of the public API derives from `HloInspectError` and carries a `Location`. A problem that does not stop the
analysis is a finding of the report instead.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

PICTURE_WIDTH = 76

DEBUG = "HLO_INSPECT_DEBUG"
"""Environment variable that makes internal errors show a traceback."""


class Location(NamedTuple):
    """Place in an input: path as the user gave it, 1-based line and column (None if unknown)."""

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
    """Base of the package's errors. `str()` returns place, reason and, if known, the part of the line around the caret."""

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
    """Input that cannot be read, or that holds no HLO module (exit status 3)."""


class ParseError(InputError):
    """HLO text that XLA's parser refuses (exit status 3); raised under `strict` only."""


class UnfitModuleError(InputError):
    """A module of a dump that is no program of the recorded profile."""


class UsageError(HloInspectError):
    """Request that cannot be met: an unknown pass, fact, rule or table, a bad policy or profile (exit status 2)."""


class NoSuchInstructionError(UsageError):
    """A module has no instruction of the name, number or text in the request."""


class MissingExtraError(UsageError):
    """Input or option that needs an extra or a package which is not installed (exit status 2)."""


class CompileError(HloInspectError):
    """A compiler refuses a program, aborts, or needs more than its limits."""


class InternalError(HloInspectError):
    """Fault of this package, met in one module or file (exit status 3). Its cause is the exception."""

    module = ""
    """Name of the module of the fault."""

    @classmethod
    def from_exception(cls, error: Exception, location: Location, module: str = "") -> InternalError:
        """Describe an unexpected exception and its place in an input. Raise the exception itself if `DEBUG` is set."""
        if os.environ.get(DEBUG):
            raise error
        internal = cls(f"{f'{module}: ' if module else ''}{internal_error_text(error)}", location)
        internal.__cause__, internal.module = error, module
        return internal


@contextmanager
def as_internal_errors(location: Location, module: str = "") -> Iterator[None]:
    """Raise unexpected exceptions of the block as InternalError. Own errors and lack of memory pass through."""
    try:
        yield
    except (HloInspectError, MemoryError):
        raise
    except Exception as error:
        raise InternalError.from_exception(error, location, module) from error


@contextmanager
def reading(path: str) -> Iterator[None]:
    """Raise InputError if the block cannot read the file or address `path`; add the place to a MissingExtraError."""
    try:
        yield
    except MissingExtraError as error:
        raise MissingExtraError(error.message, Location(path)) from error
    except (OSError, ValueError) as error:  # a path may hold a NUL
        raise InputError(f"cannot be read: {getattr(error, 'strerror', None) or error}", Location(path)) from error


def internal_error_text(error: Exception) -> str:
    """Return the message for an unexpected exception."""
    return f"internal error, please report it: {type(error).__name__}: {error} ({DEBUG}=1 shows the traceback)"


class UnknownFactError(UsageError, KeyError):
    """Fact that a report does not have."""


def did_you_mean(word: str, names: Iterable[str], cutoff: float = 0.6) -> str:
    """Return `; did you mean 'a' or 'b'?` with up to three names, or nothing. `cutoff` is their least similarity (1: equal)."""
    import difflib

    close = difflib.get_close_matches(word, list(names), n=3, cutoff=cutoff)
    return f"; did you mean {' or '.join(repr(name) for name in close)}?" if close else ""


def first_few(texts: Sequence[str], most: int, separator: str = ", ", before_more: str = " and ") -> str:
    """Join the first texts, and say how many there are beyond `most`: `a, b and 3 more`."""
    more = f"{before_more}{len(texts) - most:,} more" if len(texts) > most else ""
    return separator.join(texts[:most]) + more


def printable(text: str) -> str:
    """Escape control characters, newlines included, so that text from a dump cannot control a terminal."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "backslashreplace").decode("ascii") for c in text)


def caret_picture(line: str, column: int) -> str:
    """Return the part of `line` around the 1-based `column`, at most `PICTURE_WIDTH` characters, with a caret below.

    HLO lines reach megabytes, so only a window is shown; tabs and control characters are single spaces in it.
    """
    start = max(0, min(column - 1 - PICTURE_WIDTH // 2, len(line) - PICTURE_WIDTH))
    window = "".join(c if c.isprintable() else " " for c in line[start : start + PICTURE_WIDTH])
    return f"  {window}\n  {' ' * (column - 1 - start)}^"

r"""Texts in strings of programs and JSON: with line ends as `\n`, or a list with a string for each line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import islice

from hlo_inspect.hlo.pasted.prefixes import WINDOW, is_content
from hlo_inspect.lazy_pattern import lazy_pattern

MAX_TRIED = 100
"""Limit of headers that are tried in a line."""

_ESCAPED = lazy_pattern(
    r"HloModule[ \t]++%?[A-Za-z_][\w.\-]*+[^\n]*?\\++n(?:[\"'`]|\\++n|%|ENTRY[ \t]|FileNames\\|[A-Za-z_][\w.\-]*+ (?:\(|\{))",
    re.ASCII,
)
_STRING = lazy_pattern(r"[ \t]*+[\[(]*+[A-Za-z]{0,2}([\"'])")
_BODY = {quote: lazy_pattern(rf"(?:[^\\{quote}]++|\\.)*+", re.DOTALL) for quote in ("'", '"', "`")}
_COMMA = lazy_pattern(r"[\"'][ \t]*+,[ \t]*+(?:(?=\n|\Z)|[A-Za-z]{0,2}([\"']))")
"""The end of a string in a list, with the start of the next string if that is on the same line."""

_COLON = lazy_pattern(r"[\"'][ \t]*+:")


def header_in_strings(line: str, following: Iterable[str], start: int = 0) -> int | None:
    r"""Return the index of the first header in a string of a line, from `start` on, or None.

    After it the string has `\n` as two characters, outside the header's own strings, or the next string of a list has HLO.
    """
    header = line.find("HloModule", start)
    for _ in range(MAX_TRIED):
        if header < 0:
            break
        quote = line[max(start, header - MAX_TRIED) : header].rstrip()[-1:]
        end = string_end(line, header, quote) + 1 if quote in _BODY else 0
        escaped = _ESCAPED.match(line, header)
        if escaped is not None and (escaped.end() <= end if end else "ENTRY" in line[escaped.end() - 6 :]):
            return header
        if end and quote == line[header - 1] and any(map(is_content, islice(_rest_of_list(line, header, following), WINDOW))):
            return header
        header = line.find("HloModule", header + 1)
    return None


def string_start(line: str, quote: str) -> int | None:
    """Return the start of the string that a line begins with, if it is written like one in the quotes `quote`."""
    string = _STRING.match(line)
    is_alike = string is not None and quote != "" and (string[1] == quote or quote in "\"'")
    return string.end() if string is not None and is_alike else None


def string_end(line: str, start: int, quote: str) -> int:
    """Return the end of the string that begins at `start`; that of the line if it has no quotes or is not closed."""
    body = _BODY[quote].match(line, start) if quote in _BODY else None
    return body.end() if body is not None else len(line)


def next_string(line: str, end: int) -> tuple[bool, int | None]:
    """Return True if a comma follows the string that ends at `end`, and the start of the next string of the line.

    A key of JSON is no next string.
    """
    comma = _COMMA.match(line, end)
    if comma is None or comma[1] is None:
        return comma is not None, None
    is_key = _COLON.match(line, string_end(line, comma.end(), comma[1])) is not None
    return True, None if is_key else comma.end()


def _rest_of_list(line: str, start: int, following: Iterable[str]) -> Iterator[str]:
    """Yield the strings of a list after the one that begins at `start`; it can continue in the `following` lines."""
    lines = (text for text in following if text.strip())
    end = string_end(line, start, line[start - 1])
    while True:
        goes_on, position = next_string(line, end)
        if goes_on and position is None:
            line = next(lines, "")
            position = string_start(line, '"')
        if position is None:
            return
        end = string_end(line, position, line[position - 1])
        yield line[position:end]

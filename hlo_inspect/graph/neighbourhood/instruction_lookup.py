"""Look up instructions by name, line, opcode or pattern, and the user's source lines: `gen.py:160`, `gen.py`, `train/*.py`."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from fnmatch import fnmatchcase
from typing import NamedTuple

from hlo_inspect.errors import NoSuchInstructionError, did_you_mean
from hlo_inspect.graph.view import View, Views
from hlo_inspect.hlo.module import Module
from hlo_inspect.hlo.values.op_names import Origin
from hlo_inspect.lazy_pattern import lazy_pattern

WILDCARD = "*"
_AS_PRINTED_IN_TABLES = lazy_pattern(r"%?(.*?)(?: × [\d,]+)?", re.ASCII | re.DOTALL)
_ELEMENT = lazy_pattern(r"\{[\d,]*+\}$", re.ASCII)
_NUMBER = lazy_pattern(r"(?:\.\d++)++$", re.ASCII)
_PLAIN = lazy_pattern(r"[\w./\- ]++", re.ASCII)
_MOST_COMPARED = 20_000
"""Above this number of names, the search for the nearest is limited to names with the same first letters."""


class RowPlace(NamedTuple):
    """A row of a computation."""

    computation: str
    row: int


def find_rows(module: Module, views: Views, query: str) -> list[RowPlace]:
    """Return the rows that `query` names, in the order of the text.

    It is a name (in any computation), a line number, an opcode, an op_name, or a pattern with `*` for any text. Raise
    NoSuchInstructionError if nothing fits. Names may be as tables print them: `%name`, `name{0}`, `fusion.* × 24`.
    """
    text = _strip_additions(query)
    if text.isascii() and text.isdigit():
        return [_on_line(module, views, int(text[:18]))]
    places = fitting_rows(views, query)
    if not places:
        raise NoSuchInstructionError(_no_such(module, views, text))
    return places


def fitting_rows(views: Views, query: str) -> list[RowPlace]:
    """Return the rows with a name, else an opcode, else an op_name as `query`; with `*` those that fit it in any of these."""
    text = _strip_additions(query)
    if WILDCARD in text:
        return list(_fitting(views, text))
    places = _select(views, lambda view: (row for row, name in enumerate(view.names) if name == text))
    places = places or _select(views, lambda view: (row for row, opcode in enumerate(view.opcodes) if opcode == text))
    return places or list(_fitting(views, text))


def _strip_additions(query: str) -> str:
    """Return the text to look up, without the additions of tables around a name."""
    match = _AS_PRINTED_IN_TABLES.fullmatch(query.strip())
    return _ELEMENT.sub("", match[1] if match is not None else query)


def _select(views: Views, rows_of: Callable[[View], Iterator[int]]) -> list[RowPlace]:
    return [RowPlace(name, row) for name in views.computations for row in rows_of(views.for_computation(name))]


# -- patterns ---------------------------------------------------------------------------------------------------------------


def fits(text: str, parts: list[str]) -> bool:
    """Return True if a text fits a pattern, given as its parts between the wildcards."""
    if len(parts) == 1:
        return text == parts[0]
    first, *middle, last = parts
    if not text.startswith(first) or len(text) < len(first) + len(last) or not text.endswith(last):
        return False
    position, end = len(first), len(text) - len(last)
    for part in middle:
        position = text.find(part, position, end)
        if position < 0:
            return False
        position += len(part)
    return True


def _fitting(views: Views, pattern: str) -> Iterator[RowPlace]:
    parts = pattern.split(WILDCARD)
    longest = max(_PLAIN.findall(pattern), key=len, default="")  # without characters that are escaped in quotes
    opcodes: dict[str, bool] = {}
    for name in views.computations:
        view = views.for_computation(name)
        for row, (_, instruction, _, tail) in enumerate(view.rows):
            opcode = view.opcodes[row]
            if opcode not in opcodes:
                opcodes[opcode] = fits(opcode, parts)
            if opcodes[opcode] or fits(instruction, parts) or (longest in tail and fits(view.op_name(row), parts)):
                yield RowPlace(name, row)


# -- lines ------------------------------------------------------------------------------------------------------------------


def _on_line(module: Module, views: Views, line: int) -> RowPlace:
    last = module.first_line + module.lines - 1
    if not module.first_line <= line <= last:
        raise NoSuchInstructionError(f"line {line} is not one of {module.name}, lines {module.first_line} to {last}")
    before, after = 0, 0
    for name, computation in views.computations.items():
        lines = computation.rows.lines
        row = bisect_left(lines, line)
        if row < len(lines) and lines[row] == line:
            return RowPlace(name, row)
        before = max(before, lines[row - 1] if row else 0)
        after = min(after or last + 1, lines[row] if row < len(lines) else last + 1)
    nearest = [str(near) for near in (before, after) if 0 < near <= last]
    phrase = "the nearest are on lines" if len(nearest) > 1 else "the nearest is on line"
    hint = f"; {phrase} {' and '.join(nearest)}" if nearest else ""
    raise NoSuchInstructionError(f"line {line} of {module.name} holds no instruction{hint}")


# -- errors -----------------------------------------------------------------------------------------------------------------


def _no_such(module: Module, views: Views, text: str) -> str:
    if WILDCARD in text:
        return f"no instruction of {module.name} fits {text!r}, by its name, opcode or op_name"
    if text in module.computations:
        computation = module.computations[text]
        return f"{text} is a computation of {module.name} (line {computation.line}), not an instruction"
    names = list(dict.fromkeys(row[1] for computation in views.computations.values() for row in computation.rows))
    if len(names) > _MOST_COMPARED:
        stem = _NUMBER.sub("", text)[:3]
        names = [name for name in names if name.startswith(stem)][:_MOST_COMPARED]
    hint = did_you_mean(text, names) or "; a pattern has a *, for example '*gather*'"
    return f"{module.name} has no instruction {text!r}{hint}"


# -- source lines -------------------------------------------------------------------------------------------------------------


_QUERY = lazy_pattern(r"\S*\.[A-Za-z]{1,4}(?::\d{1,9})?", re.ASCII)
"""Pattern of a file with its extension, and perhaps a line."""
_MOST_NEAR = 2
_MOST_CALLED = 5


def is_source_query(query: str) -> bool:
    """Return True if a query is written as a source file, or a line of one."""
    return _QUERY.fullmatch(query) is not None


def find_sources(query: str, sources: Iterable[str], origins: Iterable[Origin], module: str) -> set[str]:
    """Return the source lines that a query names; a file names all of its lines.

    A path may begin at any folder, and `*` is any text. Raise NoSuchInstructionError if there is none. It names the lines
    that the queried line calls by the stacks of `origins`, else the nearest lines.
    """
    sources = set(sources)
    matching = {source for source in sources if _matches(query, source)}
    if not matching:
        hint = _called(query, origins) or _nearest(query, sources)
        raise NoSuchInstructionError(f"no instruction of {module} is from {query}{hint}")
    return matching


def _called(query: str, origins: Iterable[Origin]) -> str:
    """Return the source lines that have a line of the query further out in their call stacks."""
    called = {origin.source for origin in origins if any(_matches(query, line.place) for line in origin.stack)}
    more = f" and {len(called) - _MOST_CALLED} more" if len(called) > _MOST_CALLED else ""
    return f" itself; it calls {', '.join(sorted(called, key=_by_line)[:_MOST_CALLED])}{more}" if called else ""


def _matches(query: str, source: str) -> bool:
    text = source if _split(query)[1] else _split(source)[0]
    return fnmatchcase(text, query) or fnmatchcase(text, f"*/{query}")


def _split(source: str) -> tuple[str, str]:
    """Return the file and the line of a source line; the line is empty if there is none."""
    file, _, line = source.rpartition(":")
    return (file, line) if file and line.isdigit() else (source, "")


def _by_line(source: str) -> tuple[str, int]:
    file, line = _split(source)
    return file, int(line or 0)


def _nearest(query: str, sources: set[str]) -> str:
    """Return the lines of the same file that are nearest to the one of a query, else files with a similar name."""
    file, line = _split(query)
    lines = [(abs(int(own) - int(line)), source) for source in sources if (own := _split(source)[1]) and line]
    of_file = sorted((distance, source) for distance, source in lines if _matches(file, source))
    if of_file:
        return f"; the nearest lines are {' and '.join(source for _, source in of_file[:_MOST_NEAR])}"
    names = {_split(source)[0].rpartition("/")[2] for source in sources}
    return did_you_mean(file, names) or "; `cost` lists the source lines"

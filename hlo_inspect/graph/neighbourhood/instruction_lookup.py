"""Look up instructions by name, line, opcode or pattern."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator
from typing import NamedTuple

from hlo_inspect.errors import NoSuchInstructionError, did_you_mean
from hlo_inspect.graph.view import View, Views
from hlo_inspect.hlo.module import Module
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

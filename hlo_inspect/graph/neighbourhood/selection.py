"""Which instruction is meant: by its name, its line, its opcode, or a pattern."""

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
"""The nearest of more names are sought among those that begin alike."""


class RowPlace(NamedTuple):
    """A row of a computation."""

    computation: str
    row: int


def find_rows(module: Module, views: Views, asked: str) -> list[RowPlace]:
    """The rows that are meant, in the order of the text: those of that name, in whatever computations, the one on that line,
    those of that opcode or op_name, or those of which name, opcode or op_name fits a pattern in which `*` is any text.
    `NoSuchInstructionError` where there is none. Names may be as other tables print them: `%name`, `name{0}`, `fusion.* × 24`.
    """
    text = _plain(asked)
    if text.isascii() and text.isdigit():
        return [_on_line(module, views, int(text[:18]))]
    if WILDCARD in text:
        found = list(_fitting(views, text))
    else:
        found = _where(views, lambda view: (row for row, one in enumerate(view.rows) if one[1] == text))
        found = found or _where(views, lambda view: (row for row, one in enumerate(view.opcodes) if one == text))
        found = found or list(_fitting(views, text))
    if not found:
        raise NoSuchInstructionError(_no_such(module, views, text))
    return found


def _plain(asked: str) -> str:
    """What is asked for, without what tables print around a name."""
    match = _AS_PRINTED_IN_TABLES.fullmatch(asked.strip())
    return _ELEMENT.sub("", match[1] if match is not None else asked)


def _where(views: Views, rows_of: Callable[[View], Iterator[int]]) -> list[RowPlace]:
    return [RowPlace(name, row) for name in views.computations for row in rows_of(views.of(name))]


# -- patterns ---------------------------------------------------------------------------------------------------------------


def fits(text: str, parts: list[str]) -> bool:
    """Whether a text fits a pattern, given as its parts between the wildcards."""
    if len(parts) == 1:
        return text == parts[0]
    first, *middle, last = parts
    if not text.startswith(first) or len(text) < len(first) + len(last) or not text.endswith(last):
        return False
    at, end = len(first), len(text) - len(last)
    for part in middle:
        at = text.find(part, at, end)
        if at < 0:
            return False
        at += len(part)
    return True


def _fitting(views: Views, pattern: str) -> Iterator[RowPlace]:
    parts = pattern.split(WILDCARD)
    longest = max(_PLAIN.findall(pattern), key=len, default="")  # of which a text in quotes has nothing escaped
    opcodes: dict[str, bool] = {}
    for name in views.computations:
        view = views.of(name)
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
        at = bisect_left(lines, line)
        if at < len(lines) and lines[at] == line:
            return RowPlace(name, at)
        before = max(before, lines[at - 1] if at else 0)
        after = min(after or last + 1, lines[at] if at < len(lines) else last + 1)
    nearest = [str(one) for one in (before, after) if 0 < one <= last]
    where = "the nearest are on lines" if len(nearest) > 1 else "the nearest is on line"
    hint = f"; {where} {' and '.join(nearest)}" if nearest else ""
    raise NoSuchInstructionError(f"line {line} of {module.name} holds no instruction{hint}")


# -- what is not there ------------------------------------------------------------------------------------------------------


def _no_such(module: Module, views: Views, text: str) -> str:
    if WILDCARD in text:
        return f"no instruction of {module.name} fits {text!r}, by its name, opcode or op_name"
    if text in module.computations:
        computation = module.computations[text]
        return f"{text} is a computation of {module.name} (line {computation.line}), not an instruction"
    names = list(dict.fromkeys(row[1] for one in views.computations.values() for row in one.rows))
    if len(names) > _MOST_COMPARED:
        stem = _NUMBER.sub("", text)[:3]
        names = [name for name in names if name.startswith(stem)][:_MOST_COMPARED]
    hint = did_you_mean(text, names) or "; a pattern has a *, as '*gather*'"
    return f"{module.name} has no instruction {text!r}{hint}"

"""Instructions whose attributes cannot be read to their end."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from hlo_inspect.hlo import tokens
from hlo_inspect.hlo.instruction import operands_end
from hlo_inspect.hlo.module import Computation, Module
from hlo_inspect.hlo.rows import NO_ROWS
from hlo_inspect.lazy_pattern import lazy_pattern

_PLAIN = lazy_pattern(rf"""[^()"'/=]*+\)(?:, [A-Za-z_][\w.\-]*+=(?:{"|".join(tokens.COMMON_VALUES)})(?=, |$))*+""")
"""Pattern of most tails: operands without shapes, and attributes in their common forms."""


class MalformedRow(NamedTuple):
    """An instruction with unreadable attributes."""

    name: str
    line: int
    reason: str


def malformed_rows(module: Module) -> Iterator[MalformedRow]:
    """Yield the kept instructions whose attributes cannot be read to their end, in text order."""
    for computation in module.computations.values():
        if computation.is_sound:
            continue
        if module.wants.graph and computation.rows is not NO_ROWS:
            yield from _instructions_of(computation)
            continue
        for instruction in computation.instructions:
            fault = instruction.attribute_fault(_PLAIN)
            if fault:
                yield MalformedRow(instruction.name, instruction.line, fault)


def _instructions_of(computation: Computation) -> Iterator[MalformedRow]:
    rows = computation.rows
    for name, tail, line in zip(rows.names, rows.tails, rows.lines, strict=True):
        if _PLAIN.fullmatch(tail) is None:
            reason = _fault(tail)
            if reason:
                yield MalformedRow(name, line, reason)


def _fault(tail: str) -> str:
    """Return the fault of a tail's attributes; empty if they are valid or the operands are not closed."""
    try:
        end = operands_end(tail)
    except tokens.ScanError:  # the reader reports it
        return ""
    try:
        for _ in tokens.attributes(tail, end + 1):
            pass
    except tokens.ScanError as error:
        return error.message
    return ""

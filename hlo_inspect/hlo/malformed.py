"""Instructions whose attributes stop making sense: a question to the module, whoever has looked at them before."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from hlo_inspect.hlo.module import Computation, Module
from hlo_inspect.hlo.read import tokens
from hlo_inspect.hlo.read.operands import operands_end
from hlo_inspect.lazy_pattern import lazy_pattern

_PLAIN = lazy_pattern(rf"""[^()"'/=]*+\)(?:, [A-Za-z_][\w.\-]*+=(?:{"|".join(tokens.COMMON_VALUES)})(?=, |$))*+""")
"""Most rows: operands without shapes, and attributes as printers write most."""


class MalformedRow(NamedTuple):
    """An instruction of which the attributes behind a place cannot be read."""

    name: str
    line: int
    reason: str


def malformed_rows(module: Module) -> Iterator[MalformedRow]:
    """Yield the instructions that were kept of a module and whose attributes stop making sense, in the order of the text."""
    for computation in module.computations.values():
        if len(computation.rows):
            yield from _of_rows(computation)
            continue
        for instruction in computation.instructions:
            text = instruction.untouched
            if text is None or _PLAIN.fullmatch("".join(text)) is None:
                form, _ = instruction.attribute_parts
                if form.fault:
                    yield MalformedRow(instruction.name, instruction.line, form.fault)


def _of_rows(computation: Computation) -> Iterator[MalformedRow]:
    rows = computation.rows
    for name, tail, line in zip(rows.names, rows.tails, rows.lines, strict=True):
        if _PLAIN.fullmatch(tail) is None:
            reason = _fault(tail)
            if reason:
                yield MalformedRow(name, line, reason)


def _fault(tail: str) -> str:
    """Why the attributes of a tail stop making sense; empty if they do not, or if its operands are not closed."""
    try:
        end = operands_end(tail)
    except tokens.ScanError:  # the reader says so
        return ""
    try:
        for _ in tokens.attributes(tail, end + 1):
            pass
    except tokens.ScanError as error:
        return error.message
    return ""

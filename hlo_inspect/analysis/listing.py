"""The rows of a computation as plain text, taken apart once for all that follow a module's whole graph."""

from __future__ import annotations

import re
from collections.abc import Mapping

from hlo_inspect.analysis.cost.forms import Forms
from hlo_inspect.hlo.module import Computation
from hlo_inspect.hlo.opcodes import LITERAL_OPCODES
from hlo_inspect.hlo.rows import ROW, Row

_NAME = r"[A-Za-z_][A-Za-z0-9_.\-]*+"
_ARRAY = r"[a-z][a-z0-9]*+\[[0-9,]*+\](?:\{[^{}%\"\n]*+\})?"
_TUPLE = r"\((?:[^()%\"\n]++|\([^()%\"\n]*+\))*+\)"
_SHAPED = rf"(?:{_ARRAY}|{_TUPLE}) %({_NAME})"
_BARE_OPERANDS = re.compile(rf"(?:%?{_NAME}(?:, %?{_NAME})*+)?+(?=\))")
_SHAPED_OPERAND = re.compile(rf"{_SHAPED}\)")
_TWO_OPERANDS = re.compile(rf"{_SHAPED}, {_SHAPED}\)")
_OPERANDS = re.compile(rf"((?:(?:/\*index=[0-9]++\*/)?(?:(?:{_ARRAY}|{_TUPLE}) )?%{_NAME}(?:, )?)*+)\)")
_NAMED = re.compile(rf"%({_NAME})")


class Listing:
    """The rows of one computation and the lines on which they stand."""

    __slots__ = ("_operands", "computation", "lines", "rows")

    def __init__(self, computation: Computation) -> None:
        self.computation = computation
        self.rows: list[Row] = []
        self.lines: list[int] = []
        for line, chunk in computation.chunks:
            rows = ROW.findall(chunk) if isinstance(chunk, str) else [chunk]
            self.rows += rows
            self.lines += range(line, line + len(rows))
        self._operands: list[list[str] | None] = [None] * len(self.rows)

    def operands(self, index: int) -> list[str] | None:
        """The names of a row's operands, `None` where they are not spelled as printers do."""
        known = self._operands[index]
        if known is None:
            _, _, head, tail = self.rows[index]
            is_literal = head.rpartition(" ")[2] in LITERAL_OPCODES
            known = self._operands[index] = [] if is_literal else plain_operands(tail)
        return known


class Listings:
    """The listings of a module's computations by name, and their forms, each made when first asked for."""

    def __init__(self, computations: Mapping[str, Computation]) -> None:
        self.computations = computations
        self.forms = Forms(computations)
        self._known: dict[str, Listing] = {}

    def of(self, name: str) -> Listing:
        known = self._known.get(name)
        if known is None:
            known = self._known[name] = Listing(self.computations[name])
        return known


def plain_operands(tail: str) -> list[str] | None:
    """The operands in the text behind an opening parenthesis as printers write most of them: names, with shapes or without;
    `None` for all others.
    """
    bare = _BARE_OPERANDS.match(tail)
    if bare is not None:
        return bare[0].replace("%", "").split(", ") if bare[0] else []
    single = _SHAPED_OPERAND.match(tail)
    if single is not None:
        return [single[1]]
    two = _TWO_OPERANDS.match(tail)
    if two is not None:
        return list(two.groups())
    many = _OPERANDS.match(tail)
    return _NAMED.findall(many[1]) if many is not None else None

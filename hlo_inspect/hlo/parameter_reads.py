"""Which of the entry's parameters nothing reads, and of a tuple which elements."""

from __future__ import annotations

import re

from hlo_inspect.hlo import scan
from hlo_inspect.hlo.lines import Lines
from hlo_inspect.hlo.opcodes import LITERAL_OPCODES
from hlo_inspect.hlo.operands import operands_of
from hlo_inspect.hlo.shapes import TupleShape

_INDEX = re.compile(r", index=(\d{1,9})", re.ASCII)


class ParameterReads:
    """Follows the uses in one computation.

    `unread` are the parameters that no instruction reads, `elements` which elements are read of the tuples that are only taken
    apart; both hold only if they are `known`: operands can be printed without names.
    """

    def __init__(self) -> None:
        self.unread: set[str] = set()
        self.elements: dict[str, set[int]] = {}
        self.known = True

    def take(self, lines: Lines, uses: set[str]) -> None:
        """Takes rows, and the names that stand as operands in them."""
        for index, (row, opcode) in enumerate(zip(lines.rows, lines.opcodes, strict=True)):
            if opcode == "parameter":
                self.unread.add(row[1])
                if isinstance(lines.head(index).shape, TupleShape):
                    self.elements[row[1]] = set()
        self.unread -= uses
        if not uses.isdisjoint(self.elements):
            self._take_elements(lines)

    def _take_elements(self, lines: Lines) -> None:
        """Of a tuple that is only taken apart the elements are read, of any other all."""
        for row, opcode in zip(lines.rows, lines.opcodes, strict=True):
            if opcode in LITERAL_OPCODES:
                continue
            try:
                operands = operands_of(row[3])
            except scan.ScanError:
                continue
            for operand in operands:
                if operand.name not in self.elements:
                    continue
                index = _INDEX.search(row[3]) if opcode == "get-tuple-element" else None
                if operand.path:
                    self.elements[operand.name].add(operand.path[0])
                elif index is not None:
                    self.elements[operand.name].add(int(index[1]))
                else:
                    self.elements.pop(operand.name)

"""Which of the entry's parameters nothing reads, and of a tuple which elements."""

from __future__ import annotations

import re
from collections.abc import Sequence

from hlo_inspect.hlo import scan
from hlo_inspect.hlo.module import LITERAL_OPCODES, Computation, Head, parse_operands
from hlo_inspect.hlo.rows import Row
from hlo_inspect.hlo.shapes import TupleShape

_INDEX = re.compile(r", index=(\d{1,9})", re.ASCII)


class ParameterReads:
    """Follows the uses in one computation, and keeps there what is left unread."""

    def __init__(self, computation: Computation) -> None:
        self._computation = computation
        self._tuples: set[str] = set()

    def take(self, found: Sequence[Row], heads: Sequence[Head], uses: set[str]) -> None:
        """Takes rows, and the names that stand as operands in them."""
        unread = self._computation.unread
        for row, head in zip(found, heads, strict=True):
            if head.opcode == "parameter":
                unread.add(row[1])
                if isinstance(head.shape, TupleShape):
                    self._tuples.add(row[1])
                    self._computation.read_elements[row[1]] = set()
        unread -= uses
        if not self._tuples.isdisjoint(uses):
            self._take_elements(found, heads)

    def _take_elements(self, found: Sequence[Row], heads: Sequence[Head]) -> None:
        """Of a tuple that is only taken apart the elements are read, of any other all."""
        for row, head in zip(found, heads, strict=True):
            if head.opcode in LITERAL_OPCODES:
                continue
            try:
                operands = parse_operands(row[3])[1]
            except scan.ScanError:
                continue
            for operand in operands:
                if operand.name not in self._tuples:
                    continue
                index = _INDEX.search(row[3]) if head.opcode == "get-tuple-element" else None
                if operand.path:
                    self._computation.read_elements[operand.name].add(operand.path[0])
                elif index is not None:
                    self._computation.read_elements[operand.name].add(int(index[1]))
                else:
                    self._computation.read_elements.pop(operand.name)
                    self._tuples.remove(operand.name)

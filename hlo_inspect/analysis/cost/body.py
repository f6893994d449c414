"""A computation, opened for counting, and the order in which XLA goes through it.

Most rows need no more than their head and the names of their operands, so no instruction is made of them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cached_property

from hlo_inspect.analysis.cost.model import Gap, UnknownCostError
from hlo_inspect.analysis.cost.operation import CALLERS, Operation
from hlo_inspect.hlo import scan
from hlo_inspect.hlo.instruction import LITERAL_OPCODES, Instruction, head_of, parse_operands
from hlo_inspect.hlo.module import Computation
from hlo_inspect.hlo.rows import ROW, Row
from hlo_inspect.hlo.shapes import Shape

_CALLERS = frozenset(CALLERS) | {f"{opcode}-start" for opcode in CALLERS}

Structure = tuple[int | None, tuple[str, ...], tuple[int | str, ...]]

_OPERAND = r"(?:/\*index=\d++\*/)?(?:[a-z]\w*+\[[\d,]*+\](?:\{[\d,]*+\})? )?%?([A-Za-z_][\w.\-]*+)(?:, )?"
_NAMES = re.compile(_OPERAND, re.ASCII)
_OPERANDS = re.compile(rf"((?:{_OPERAND})*+)\)", re.ASCII)
"""Operands as printers write most of them; the others take the long way."""
_UNCOMMON = re.compile(r"[(\[#/]")


class Body:
    """The rows of one computation, their heads and opcodes, and the index of the root.

    What calls others is kept as an operation: its callees have to be counted before it.
    """

    def __init__(self, computation: Computation) -> None:
        self.computation = computation
        self.rows: list[Row] = []
        self._lines: list[int] = []
        for line, chunk in computation.chunks:
            rows = ROW.findall(chunk) if isinstance(chunk, str) else [chunk]
            self.rows += rows
            self._lines += range(line, line + len(rows))
        self.heads = [head_of(row[2]) for row in self.rows]
        self.opcodes = [head.opcode for head in self.heads]
        self.root = _root(self.rows)
        self._callers: dict[int, Operation] = {}
        if not _CALLERS.isdisjoint(self.opcodes):
            self._open_callers()

    def _open_callers(self) -> None:
        for index, opcode in enumerate(self.opcodes):
            if opcode in _CALLERS:
                with suppress(UnknownCostError):  # raised again where the row is counted
                    self._callers[index] = self.operation(index)

    @property
    def callers(self) -> Iterable[Operation]:
        return self._callers.values()

    @cached_property
    def shapes(self) -> dict[str, Shape | None]:
        """The shape of each instruction by name; none for a name that is defined twice."""
        shapes = {row[1]: head.shape for row, head in zip(self.rows, self.heads, strict=True)}
        if len(shapes) != len(self.rows):
            counts = Counter(row[1] for row in self.rows)
            shapes |= {name: None for name, count in counts.items() if count > 1}
        return shapes

    def operation(self, index: int) -> Operation:
        """A row as the rules see it; `UnknownCostError` where its operands are not closed."""
        known = self._callers.get(index)
        if known is not None:
            return known
        try:
            instruction = Instruction(self.computation, self.rows[index], self.heads[index], self._lines[index])
        except scan.ScanError as error:
            raise UnknownCostError(error.message) from None
        return Operation(instruction, self)

    def gap(self, index: int, error: UnknownCostError) -> Gap:
        """The gap that an error leaves at a row."""
        return error.gap or Gap(self._lines[index], f"{self.rows[index][1]}: {error.reason}")

    def parameter_number(self, index: int) -> int:
        text = self.rows[index][3].partition(")")[0]
        if text.isascii() and text.isdigit() and len(text) < 10:
            return int(text)
        number = self.operation(index).instruction.parameter_number
        if number is None:
            raise UnknownCostError("a parameter's number cannot be read")
        return number

    def uses(self, index: int) -> list[str]:
        """The operands of a row as they are spelled, with the tuple index of the compact form: `name`, `name#0#1`; nothing
        for what has no name.
        """
        if self.opcodes[index] in LITERAL_OPCODES:
            return []
        tail = self.rows[index][3]
        match = _OPERANDS.match(tail)
        if match is not None:
            return _NAMES.findall(match[1])
        try:
            operands = parse_operands(tail)[1]
        except scan.ScanError:
            return [""]
        return [(operand.name or "") + "".join(f"#{i}" for i in operand.path) for operand in operands]

    def structure(self) -> Structure | None:
        """The root, all heads, and which rows, parameters and literals stand as operands; `None` where that is not easily
        told. But for attributes, computations of the same structure are the same.
        """
        text = ", ;, ".join([row[3][: row[3].find(")")] for row in self.rows]).replace("%", "")
        if _UNCOMMON.search(text):
            return None
        indices = {row[1]: i for i, row in enumerate(self.rows)}
        if len(indices) != len(self.rows):
            return None
        words = [indices.get(word, word) for word in text.split(", ")]
        return self.root, tuple([row[2] for row in self.rows]), tuple(words)

    def in_xla_order(self) -> Iterator[int]:
        """Every row in the order of `HloComputation::Accept`: depth first, operands before their users, first from what
        nothing uses and last from the root. Control dependencies are left aside.
        """
        indices = {row[1]: i for i, row in enumerate(self.rows)}
        operands = [[indices.get(use.partition("#")[0], -1) for use in self.uses(i)] for i in range(len(self.rows))]
        used = {i for found in operands for i in found} | {self.root}
        state = bytearray(len(self.rows))  # 1 where the operands are on their way, 2 where all is done
        ends = [i for i in range(len(self.rows)) if i not in used]
        roots = [self.root] if self.root is not None else []
        for end in (*ends, *roots, *range(len(self.rows))):  # the last for what uses itself, as no program does
            pending = [end]
            while pending:
                index = pending[-1]
                if state[index] == 0:
                    state[index] = 1
                    pending += [i for i in reversed(operands[index]) if i >= 0 and state[i] != 2]
                    continue
                pending.pop()
                if state[index] == 1:
                    state[index] = 2
                    yield index


def _root(rows: list[Row]) -> int | None:
    """The index of the row that is marked, else of the last one."""
    marked = [i for i, row in enumerate(rows) if row[0]]
    return marked[0] if marked else len(rows) - 1 if rows else None

"""A computation, opened for counting, and the order in which XLA goes through it.

Most rows need no more than their head and the names of their operands, so no instruction is made of them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

from hlo_inspect.analysis.cost.model import Gap, UnknownCostError
from hlo_inspect.analysis.cost.operation import CALLERS, Operation, Role, callees
from hlo_inspect.analysis.listing import Listing
from hlo_inspect.hlo import scan
from hlo_inspect.hlo.instruction import Instruction, head_of, parse_operands
from hlo_inspect.hlo.module import Computation
from hlo_inspect.hlo.rows import CALLS, Row
from hlo_inspect.hlo.shapes import Shape

_CALLERS = frozenset(CALLERS) | {f"{opcode}-start" for opcode in CALLERS}

_KIND = re.compile(r", kind=(\w++)", re.ASCII)


class Fusing(NamedTuple):
    """What a fusion says of itself: `kLoop`, …, and the name of the computation that it calls."""

    kind: str
    callee: str


class Body:
    """The rows of one computation, their heads and opcodes, the index of the root, and those of rows that call others."""

    def __init__(self, computation: Computation, listing: Listing | None = None) -> None:
        self.computation = computation
        self._listing = listing or Listing(computation)
        self.rows = self._listing.rows
        self.heads = [head_of(row[2]) for row in self.rows]
        self.opcodes = [head.opcode for head in self.heads]
        self.root = _root(self.rows)
        self._fusings: dict[int, Fusing] = {}
        self._uses: list[list[str] | None] = [None] * len(self.rows)
        self.callers = [i for i, opcode in enumerate(self.opcodes) if opcode in _CALLERS]

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
        try:
            instruction = Instruction(self.computation, self.rows[index], self.heads[index], self._listing.lines[index])
        except scan.ScanError as error:
            raise UnknownCostError(error.message) from None
        return Operation(instruction, self.uses(index), self)

    def gap(self, index: int, error: UnknownCostError) -> Gap:
        """The gap that an error leaves at a row."""
        return error.gap or Gap(self._listing.lines[index], f"{self.rows[index][1]}: {error.reason}")

    def parameter_number(self, index: int) -> int:
        text = self.rows[index][3].partition(")")[0]
        if text.isascii() and text.isdigit() and len(text) < 10:
            return int(text)
        number = self.operation(index).instruction.parameter_number
        if number is None:
            raise UnknownCostError("a parameter's number cannot be read")
        return number

    def fusing(self, index: int) -> Fusing:
        """What a fusion calls; `UnknownCostError` where it does not name it."""
        known = self._fusings.get(index)
        if known is None:
            known = self._fusings[index] = self._fusing(index)
        return known

    def _fusing(self, index: int) -> Fusing:
        tail = self.rows[index][3]
        kind, calls = _KIND.search(tail), CALLS.search(tail)
        if kind and calls and '"' not in tail[: max(kind.end(), calls.end())]:
            return Fusing(kind[1], calls[1])
        op = self.operation(index)
        names = op.callees.get("calls")
        if not names:
            raise UnknownCostError("the computation that it calls is not named")
        return Fusing(op.attributes.get("kind", ""), names[0])

    def callees(self, index: int, caller: Role) -> list[tuple[Role, str]]:
        """The computations that a row calls, as far as that can be told, by the role in which they count."""
        try:
            if self.opcodes[index] == "fusion":
                return [("fused", self.fusing(index).callee)]
            return callees(self.operation(index), caller)
        except UnknownCostError:  # raised again where the row is counted
            return []

    def uses(self, index: int) -> list[str]:
        """The operands of a row as they are spelled, with the tuple index of the compact form: `name`, `name#0#1`; nothing
        for what has no name.
        """
        known = self._uses[index]
        if known is None:
            plain = self._listing.operands(index)
            known = self._uses[index] = plain if plain is not None else _uncommon_uses(self.rows[index][3])
        return known

    def in_xla_order(self) -> Iterator[int]:
        """Every row in the order of `HloComputation::Accept`: depth first, operands before their users, first from what
        nothing uses and last from the root. Control dependencies are left aside.
        """
        count = len(self.rows)
        operands = self._operand_rows()
        used = {i for found in operands for i in found} | {self.root}
        state = bytearray(count)  # 1 where the operands are on their way, 2 where all is done
        ends = [i for i in range(count) if i not in used]
        roots = [self.root] if self.root is not None else []
        for end in (*ends, *roots, *range(count)):  # the last for what uses itself, as no program does
            pending = [end]
            while pending:
                index = pending[-1]
                if state[index] == 0:
                    state[index] = 1
                    pending += [i for i in reversed(operands[index]) if state[i] != 2]
                    continue
                pending.pop()
                if state[index] == 1:
                    state[index] = 2
                    yield index

    def _operand_rows(self) -> list[list[int]]:
        """The rows that each row uses."""
        indices = {row[1]: i for i, row in enumerate(self.rows)}
        found = []
        for index in range(len(self.rows)):
            uses = self.uses(index)
            rows = [indices.get(use, -1) for use in uses]
            if -1 in rows:
                rows = [i for use in uses if (i := indices.get(use.partition("#")[0], -1)) >= 0]
            found.append(rows)
        return found


def _root(rows: list[Row]) -> int | None:
    """The index of the row that is marked, else of the last one."""
    marked = [i for i, row in enumerate(rows) if row[0]]
    return marked[0] if marked else len(rows) - 1 if rows else None


def _uncommon_uses(tail: str) -> list[str]:
    """The operands that stand in a tail, however they are spelled."""
    try:
        operands = parse_operands(tail)[1]
    except scan.ScanError:
        return [""]
    return [(operand.name or "") + "".join(f"#{i}" for i in operand.path) for operand in operands]

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
from hlo_inspect.analysis.view import View
from hlo_inspect.hlo import scan
from hlo_inspect.hlo.rows import CALLS
from hlo_inspect.hlo.shapes import Shape

_CALLERS = frozenset(CALLERS) | {f"{opcode}-start" for opcode in CALLERS}

_KIND = re.compile(r", kind=(\w++)", re.ASCII)


class Fusing(NamedTuple):
    """What a fusion says of itself: `kLoop`, …, and the name of the computation that it calls."""

    kind: str
    callee: str


class Body:
    """The rows of one computation, their heads and opcodes, the index of the root, and those of rows that call others."""

    def __init__(self, view: View) -> None:
        self.view = view
        self.computation = view.computation
        self.rows = view.rows
        self.heads = view.heads
        self.opcodes = view.opcodes
        self.root = view.root
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
            instruction = self.view.instruction(index)
        except scan.ScanError as error:
            raise UnknownCostError(error.message) from None
        return Operation(instruction, self.uses(index), self)

    def gap(self, index: int, error: UnknownCostError) -> Gap:
        """The gap that an error leaves at a row."""
        return error.gap or Gap(self.view.lines[index], f"{self.rows[index][1]}: {error.reason}")

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
            operands = self.view.operands(index)
            known = self._uses[index] = [(name or "") + "".join([f"#{i}" for i in path]) for name, path, _ in operands]
        return known

    def in_xla_order(self) -> Iterator[int]:
        """Every row in the order of `HloComputation::Accept`: depth first, operands before their users, first from what
        nothing uses and last from the root. Control dependencies are left aside.
        """
        count = len(self.rows)
        operands = [[i for i in self.view.operand_rows(index) if i is not None] for index in range(count)]
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

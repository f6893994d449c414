"""Selection of the parts of a module that a command needs."""

from __future__ import annotations

from operator import or_
from typing import NamedTuple


class Wants(NamedTuple):
    """The parts of a module that a pass needs; the reader reads their union and skips the rest.

    `opcodes`: instructions to keep in any computation, and the instructions that call a computation with kept instructions.
    `targets`: custom calls to keep too, in the same computations.
    `operands`: opcodes of kept instructions whose operand shapes are needed.
    `noted`: opcodes of which the reader notes computations only, in `Module.noted`.
    `entry`: the entry's parameters and root.
    `unused`: the entry parameters without users; goes with `entry`.
    `every_line`: read each instruction: opcodes per computation, count of unreadable lines.
    `checked`: report names that are undefined or defined twice; implies `every_line`.
    `graph`: keep every instruction in `Computation.rows`; implies `every_line`.
    `loops`: keep the integer scalars that decide trip counts of kept loops in `Computation.scalars`.
    """

    opcodes: frozenset[str] = frozenset()
    targets: frozenset[str] = frozenset()
    entry: bool = False
    unused: bool = False
    every_line: bool = False
    checked: bool = False
    graph: bool = False
    loops: bool = False
    operands: frozenset[str] = frozenset()
    noted: frozenset[str] = frozenset()

    @property
    def reads_every_line(self) -> bool:
        return self.every_line or self.checked or self.graph

    def __or__(self, other: Wants) -> Wants:
        return Wants(*map(or_, self, other))

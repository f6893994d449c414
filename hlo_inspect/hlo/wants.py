"""What a command needs of a module."""

from __future__ import annotations

from operator import or_
from typing import NamedTuple


class Wants(NamedTuple):
    """What a pass needs of a module; the reader reads for the union and skips the rest.

    `opcodes`: instructions to keep, wherever they are, and what calls the computations that hold them.
    `targets`: custom calls to keep beside them, in the same computations.
    `operands`: kept instructions of which the shapes of the operands are wanted too.
    `entry`: the entry computation's parameters and root.
    `unused`: which of the entry's parameters nothing reads; goes with `entry`.
    `every_line`: each instruction is read: opcodes per computation, unreadable lines counted.
    `checked`: every name that is used has to be defined, once; implies `every_line`.
    `graph`: every instruction is kept, in `Computation.rows`; implies `every_line`.
    `loops`: the integer scalars are kept that the trip counts of kept loops depend on, in `Computation.scalars`.
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

    @property
    def reads_every_line(self) -> bool:
        return self.every_line or self.checked or self.graph

    def __or__(self, other: Wants) -> Wants:
        return Wants(*map(or_, self, other))

"""The integer scalars that a loop's trip count can depend on, picked out while the text streams by.

A counter, its step and its limit are integer scalars: handed to the loop in a tuple, compared by its condition, changed by its
body. A callee stands before its caller, so a condition is not known as one when it is read, and a second reading is no way
out: the input may be a pipe. What it takes is little, though. Conditions, and the fusions and calls that compare or count,
have an integer scalar as their root, which few computations have (3 of 12,249 in a dump of 14 MB): the reader does not skip
those. Bodies, and what holds loops and calls, it reads anyway for what is wanted of them. Of each, the instructions stay that
feed its root or what it hands to a loop or a call, and no others: a handful, even where the body has hundreds.
"""

from __future__ import annotations

import re

from hlo_inspect.hlo import scan
from hlo_inspect.hlo.module import Computation, Head, Instruction
from hlo_inspect.hlo.rows import Row
from hlo_inspect.hlo.shapes import Shape, TupleShape

HANDING_OPCODES = frozenset({"while", "call"})
"""Their operands are another computation's parameters."""

FOLLOWED_OPCODES = HANDING_OPCODES | frozenset(
    "add bitcast compare convert copy copy-done copy-start fusion get-tuple-element opt-barrier subtract tuple".split()
)
"""Their result is known where their operands are."""

_INTEGER = re.compile(r"[su]\d+|pred", re.ASCII)


def holds_scalar(shape: Shape | None) -> bool:
    """Whether a shape is an integer or truth value without dimensions, or a tuple with one in it."""
    if isinstance(shape, TupleShape):
        return any(map(holds_scalar, shape.elements))
    return shape is not None and not shape.dimensions and _INTEGER.fullmatch(shape.dtype) is not None


class Scalars:
    """The integer scalars of one computation, and the tuples that hold some."""

    def __init__(self) -> None:
        self._found: dict[str, tuple[Row, Head, int]] = {}

    def add(self, row: Row, head: Head, line: int) -> None:
        self._found[row[1]] = (row, head, line)

    def kept(self, computation: Computation, root: str | None) -> dict[str, Instruction]:
        """Those that feed the `root` or what the computation's loops and calls are handed, by name.

        The root counts where it is a scalar, or where the computation can be a loop's body: from a tuple to a tuple. The
        entry's root feeds nothing.
        """
        names = [o.name for i in computation.instructions if i.opcode in HANDING_OPCODES for o in i.operands]
        if root is not None and not computation.is_entry and self._counts(root):
            names.append(root)
        kept: dict[str, Instruction] = {}
        while names:
            name = names.pop()
            if name is None or name in kept or name not in self._found:
                continue
            row, head, line = self._found[name]
            try:
                instruction = Instruction(computation, ("ROOT " if name == root else "", *row[1:]), head, line)
            except scan.ScanError:
                continue  # whoever wants the instruction itself is told
            kept[name] = instruction
            if head.opcode in FOLLOWED_OPCODES:
                names += [operand.name for operand in instruction.operands]
        return kept

    def _counts(self, root: str) -> bool:
        if root not in self._found or not isinstance(self._found[root][1].shape, TupleShape):
            return True
        return any(h.opcode == "parameter" and isinstance(h.shape, TupleShape) for _, h, _ in self._found.values())

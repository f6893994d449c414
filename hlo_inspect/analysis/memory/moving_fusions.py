"""Fusions that only move what one row of them is: convert it, transpose it, copy it. Most of a program's fusions that a way
from an array to a parameter goes through are of this kind.

The rows that move it stand below each other, each with the one above as its operand, so that the heads tell what is done. That
is found once for all computations that have the same heads.
"""

from __future__ import annotations

from typing import NamedTuple

from hlo_inspect.analysis.optimizer.frames import UNCHANGED
from hlo_inspect.hlo.module import Computation
from hlo_inspect.hlo.rows import HeadColumn
from hlo_inspect.hlo.shapes import ArrayShape

_MOVING = UNCHANGED - {"all-gather", "copy-done", "copy-start", "opt-barrier"}
"""What has one operand, an array."""


class Moved(NamedTuple):
    """The row that a result is, its opcode, and the opcodes by which it is moved, the first one first."""

    row: int
    opcode: str
    opcodes: tuple[str, ...]


_UNKNOWN = Moved(-1, "", ())


class MovingFusions:
    """What computations return. Equal heads are looked at once."""

    def __init__(self) -> None:
        self._known: dict[HeadColumn, Moved | None] = {}

    def of(self, fused: Computation) -> Moved | None:
        """What a computation returns that is run by a fusion; `None` where that is not easily found."""
        rows = fused.rows
        moved = self._known.get(rows.column, _UNKNOWN)
        if moved is _UNKNOWN:
            moved = self._known[rows.column] = _moved(rows.column)
        if moved is not None and moved.opcodes:
            names, tails = rows.names, rows.tails
            for row in range(moved.row, moved.row + len(moved.opcodes)):
                operand = f"{names[row]})"
                if not tails[row + 1].startswith(operand, 1 if tails[row + 1].startswith("%") else 0):
                    return None
        return moved


def _moved(rows: HeadColumn) -> Moved | None:
    """What is returned where each row that moves something has the one above as its operand."""
    if len(rows.marked) != 1:
        return None
    row = root = min(rows.marked)
    while row >= 0 and rows.opcodes[row] in _MOVING:
        shape = rows.shapes[row]
        if not isinstance(shape, ArrayShape) or (rows.opcodes[row] == "convert" and shape.dtype[:1] in {"s", "u"}):
            return None  # whether a conversion to integers changes values depends on what is converted
        row -= 1
    return Moved(row, rows.opcodes[row], tuple(rows.opcodes[row + 1 : root + 1])) if row >= 0 else None

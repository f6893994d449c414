"""Buffers that TPU allocates and writes arrays into, one behind the other, in place of a concatenation."""

from __future__ import annotations

from hlo_inspect.graph.frames import Frames, Place
from hlo_inspect.optimizer.operations import BUFFER_TARGET

MAX_WRITES = 1024  # into one buffer

Write = tuple[Place, ...]
"""The operands of a dynamic-update-slice: the buffer before it, the array that is written, and where it starts."""


class FilledBuffers:
    """How much of a buffer that held nothing each dynamic-update-slice leaves written."""

    def __init__(self, frames: Frames) -> None:
        self._frames = frames
        self._written: dict[Place, int | None] = {}

    def written(self, place: Place) -> int | None:
        """How many elements were written up to a place, each time that they were; `None` for another array."""
        frames, known = self._frames, self._written
        chain: list[tuple[Place, int]] = []
        before: Place | None = place
        while before is not None and before not in known and frames.opcode(before) == "dynamic-update-slice":
            known[before] = None  # what a text defines by itself
            array, part = frames.operand(before, 0), frames.operand(before, 1)
            chain.append((before, frames.size(part) if part is not None else 0))
            before = frames.made_at(array) if array is not None else None
        is_buffer = before is not None and frames.opcode(before) == "custom-call" and frames.target(before) == BUFFER_TARGET
        total = 0 if is_buffer else known.get(before) if before is not None else None
        for at, elements in reversed(chain):
            total = known[at] = total + elements if total is not None and elements else None
        return known.get(place)

    def writes(self, place: Place) -> list[Write]:
        """The writes into a buffer up to a place, the last one first."""
        found: list[Write] = []
        while self._frames.opcode(place) == "dynamic-update-slice" and len(found) < MAX_WRITES:
            found.append(self._frames.operands(place))
            place = self._frames.made_at(found[-1][0])
        return found

"""Values that fusions compute, element by element and by reductions: compilers for GPUs compute one again in each fusion that
uses it.

Inside of a fusion a value is known by its operations and by what the fusion is handed; equal ones have one number.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Literal

from hlo_inspect.graph.frames import Frames, Place
from hlo_inspect.optimizer.operations import ELEMENTWISE, HANDED_ON

MAX_STEPS = 256  # to all that one value is made of

_ATTRIBUTES: dict[str, Literal["dimensions", "direction"]] = {
    "broadcast": "dimensions",
    "compare": "direction",
    "reduce": "dimensions",
    "transpose": "dimensions",
}
_LOOKED_INTO = ELEMENTWISE | {"bitcast", "broadcast", "convert", "copy", "reduce", "reshape", "transpose"}
_LEFT_OUT = "..."
"""What printers write for the elements of a large constant."""
_COMBINERS = ("add", "maximum", "minimum", "multiply")


class FusedValues:
    """The numbers of values in `frames`."""

    def __init__(self, frames: Frames) -> None:
        self._frames = frames
        self._known: dict[Place, int] = {}
        self._numbers: dict[Hashable, int] = {}

    def number(self, place: Place) -> int | None:
        """The number of a value in a called computation, `None` where it is made of too much, or of something else."""
        if self._frames[place[0]].caller is None:
            return None
        stack, steps = [place], 0
        while stack:
            top = stack[-1]
            operands = self._frames.operands(top) if top not in self._known else ()
            missing = [operand for operand in operands if operand not in self._known]
            steps += 1 + len(operands)
            if steps > MAX_STEPS:
                return None
            if missing:
                stack += missing
                continue
            stack.pop()
            key = self._key(top, operands) if top not in self._known else None
            if key is not None:
                self._known[top] = self._numbers.setdefault(key, len(self._numbers))
            elif top not in self._known:
                return None
        return self._known[place]

    def _key(self, place: Place, operands: tuple[Place, ...]) -> Hashable:
        """What equal values share."""
        frames = self._frames
        opcode, shape = frames.opcode(place), str(frames.shape(place))
        if opcode == "parameter":
            return opcode, frames.made_at(place, HANDED_ON)
        instruction = frames.instruction(place) if opcode == "constant" or opcode in _ATTRIBUTES else None
        if opcode == "constant":
            literal = (instruction is not None and instruction.literal) or _LEFT_OUT
            return None if _LEFT_OUT in literal else (opcode, shape, literal)
        combiner = next((op for op in _COMBINERS if opcode == "reduce" and frames.applies(place, op)), "")
        if opcode not in _LOOKED_INTO or place[2] or not operands or (opcode == "reduce" and not combiner):
            return None
        attribute = instruction.attr(_ATTRIBUTES[opcode]) if instruction is not None else None
        # The elements of a bitcast are where the layouts of its result and of its operand have them.
        arrays = tuple(map(frames.shape, (place, *operands))) if opcode == "bitcast" else ()
        return opcode, shape, combiner, str(attribute), arrays, tuple(map(self._known.__getitem__, operands))

"""Which inputs of a step a value is made of, element by element."""

from __future__ import annotations

from hlo_inspect.analysis.optimizer.dataflow import ELEMENTWISE, SOME_VALUES
from hlo_inspect.analysis.optimizer.frames import Frames
from hlo_inspect.analysis.optimizer.graph import Input, Place

MAX_HOLDING = 400  # values between one and an input that it holds
MOVING = SOME_VALUES | {"broadcast", "concatenate", "dynamic-update-slice"}
_SOLVERS = ("lapack_", "cusolver_", "hipsolver_", "Qr", "Eigh", "LuDecomposition", "ProductOfElementaryHouseholderReflectors")

SOLVED: Input = (-1, -1, ())
"""Stands for the result of a linear solver among inputs."""


class HeldInputs:
    """The inputs that values hold. `is_cut_short`: of one of them not all were found."""

    def __init__(self, frames: Frames) -> None:
        self.is_cut_short = False
        self._frames = frames
        self._known: dict[Place, frozenset[Input]] = {}

    def of(self, place: Place) -> frozenset[Input]:
        """The inputs that a value is made of, and `SOLVED`."""
        known = self._known.get(place)
        if known is None:
            known = self._known[place] = frozenset(self._find(place))
        return known

    def source(self, place: Place) -> Input | None:
        """The input at a place."""
        number = self._frames.parameter_number(place) if self._frames.opcode(place) == "parameter" else None
        return (place[0], number, place[2]) if number is not None else None

    def is_solved(self, place: Place) -> bool:
        """Whether a linear solver makes a value."""
        opcode = self._frames.opcode(place)
        if opcode == "custom-call":
            return self._frames.target(place).startswith(_SOLVERS)
        return opcode in {"triangular-solve", "cholesky"}

    def _find(self, place: Place) -> set[Input]:
        frames = self._frames
        found: set[Input] = set()
        seen: set[Place] = set()
        stack = [place]
        while stack and len(seen) < MAX_HOLDING:
            top = stack.pop()
            if top in seen:
                continue
            seen.add(top)
            before = frames.step_back(top)
            opcode = frames.opcode(top)
            if before is not None:
                stack.append(before)
            elif opcode == "parameter":
                source = self.source(top)
                found |= {source} if source is not None else set()
            elif opcode in ELEMENTWISE or opcode in MOVING:
                stack += frames.operands(top)
            elif self.is_solved(top):
                found.add(SOLVED)
        self.is_cut_short |= bool(stack)
        return found

"""The inputs of a step that a value depends on element by element."""

from __future__ import annotations

from hlo_inspect.graph.frames import Frames, Input, Place
from hlo_inspect.hlo.opcodes import MOVES
from hlo_inspect.optimizer.operations import ELEMENTWISE, SOME_VALUES

MAX_HOLDING = 400  # values between a value and an input that it holds
MOVING = SOME_VALUES | MOVES
_SOLVERS = ("lapack_", "cusolver_", "hipsolver_", "Qr", "Eigh", "LuDecomposition", "ProductOfElementaryHouseholderReflectors")

SOLVED: Input = (-1, -1, ())
"""Stands for the result of a linear solver among inputs."""

UNSEEN: Input = (-1, -2, ())
"""Stands for the inputs behind more than `MAX_HOLDING` values, which were not followed."""


class ElementwiseInputs:
    """The inputs that values hold."""

    def __init__(self, frames: Frames) -> None:
        self._frames = frames
        self._known: dict[Place, frozenset[Input]] = {}
        self._steps: dict[Place, tuple[tuple[Place, ...], Input | None]] = {}

    def get(self, place: Place) -> frozenset[Input]:
        """Return the inputs in a value, with `SOLVED` and `UNSEEN`."""
        inputs = self._known.get(place)
        if inputs is None:
            inputs = self._known[place] = frozenset(self._find(place))
        return inputs

    def is_solved(self, place: Place) -> bool:
        """Return True if a value is the result of a linear solver."""
        opcode = self._frames.opcode(place)
        if opcode == "custom-call":
            return self._frames.target(place).startswith(_SOLVERS)
        return opcode in {"triangular-solve", "cholesky"}

    def _find(self, place: Place) -> set[Input]:
        inputs: set[Input] = set()
        seen: set[Place] = set()
        stack = [place]
        steps = self._steps
        while stack and len(seen) < MAX_HOLDING:
            top = stack.pop()
            if top in seen:
                continue
            seen.add(top)
            step = steps.get(top)
            if step is None:
                step = steps[top] = self._step(top)
            before, source = step
            stack += before
            if source is not None:
                inputs.add(source)
        return inputs | {UNSEEN} if stack else inputs

    def _step(self, place: Place) -> tuple[tuple[Place, ...], Input | None]:
        """Return the values that a value is made of element by element, and its own input or `SOLVED`."""
        before = self._frames.step_back(place)
        if before is not None:
            return (before,), None
        opcode = self._frames.opcode(place)
        if opcode == "parameter":
            return (), self._frames.input(place)
        if opcode in ELEMENTWISE or opcode in MOVING:
            return self._frames.operands(place), None
        return (), SOLVED if self.is_solved(place) else None

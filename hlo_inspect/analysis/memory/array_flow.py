"""The way of an array back through a program: through copies, conversions, slices, fusions, calls and loops."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set

from hlo_inspect.graph.frames import MAX_DEPTH, MAX_STEPS, Frames, Place
from hlo_inspect.graph.loops import RUNNING_OPCODES
from hlo_inspect.graph.view import View, Views
from hlo_inspect.hlo.instruction import Callee
from hlo_inspect.hlo.module import Module
from hlo_inspect.hlo.opcodes import CALLING_OPCODES, TABLE, opcodes_that_are, opcodes_that_give
from hlo_inspect.hlo.values.header import ShapeIndex

ArrayPlace = tuple[str, int, ShapeIndex]
"""A computation, a row of it, and an index into the result of that row."""

PARTS = opcodes_that_give("part") - opcodes_that_are("collective") - {"gather", "reverse"}
"""Opcodes whose result is a part of the first operand."""

_OF_FIRST_OPERAND = PARTS | opcodes_that_are("update") | {"broadcast"}
_ENDS_OF_PARTS = frozenset(f"{name}-done" for name in PARTS)
_SLICES = _ENDS_OF_PARTS | PARTS | {"bitcast"}
_RESULT_OF_START = {"all-gather-start": (1,), "copy-start": (0,), **dict.fromkeys((f"{name}-start" for name in PARTS), (1,))}
_JOINED_SLICES = "ConcatBitcast"
"""A custom call of TPU that joins slices of an array which were copied separately."""

_RUNNING = frozenset({"run", "body", "condition", "branch"})


class ArrayFlow:
    """The arrays of the computations that a program runs unfused, and the arrays that they come from."""

    def __init__(self, module: Module, views: Views) -> None:
        self.frames = Frames(views)
        self.views: list[View] = []
        self._entry = module.entry.name if module.entry is not None else ""
        self._numbers: dict[str, int | None] = {}
        self._loops: dict[int, Place] = {}
        self._branches: dict[tuple[int, int], dict[str, int]] = {}
        for caller, computation in _computations_run(module, views):
            self.views.append(views.for_computation(computation))
            self._enter(caller, computation)

    def _enter(self, caller: ArrayPlace | None, computation: str) -> None:
        """Open the frame of a computation at the first instruction that runs it."""
        place = self.place(caller) if caller is not None else None
        if place is not None and self.frames.opcode(place) != "while":
            self._numbers[computation] = self.frames.call(place, computation, self._arguments(place, computation))
            return
        number = self._numbers[computation] = self.frames.open(computation)
        if number is not None and place is not None:
            self._loops[number] = place

    def _arguments(self, place: Place, computation: str) -> tuple[Place, ...]:
        """Return the arguments of a computation: the operands of its caller, or for a branch its operand after the index."""
        if self.frames.opcode(place) != "conditional":
            return self.frames.operands(place)
        numbers = self._branches.get(place[:2])
        if numbers is None:
            numbers = self._branches[place[:2]] = {}
            for number, branch in enumerate(self.frames.instruction(place).called, 1):
                numbers.setdefault(branch.name, number)
        argument = self.frames.operand(place, numbers[computation]) if computation in numbers else None
        return (argument,) if argument is not None else ()

    # -- places ---------------------------------------------------------------------------------------------------------

    def place(self, array: ArrayPlace) -> Place | None:
        """Return the place of an array; None if its computation is not run."""
        number = self._numbers.get(array[0])
        return (number, *array[1:]) if number is not None else None

    def place_of_name(self, computation: str, name: str) -> Place | None:
        """Return the place of the result of a named instruction; None if its computation is not run."""
        number = self._numbers.get(computation)
        row = self.frames[number].view.index(name) if number is not None else None
        return (number, row, ()) if number is not None and row is not None else None

    def array(self, place: Place) -> ArrayPlace:
        """Return the array at a place."""
        frame, row, index = place
        return self.frames[frame].view.computation.name, row, index

    def parameter(self, place: Place) -> int | None:
        """Return the number of the entry's parameter at a place; None if another instruction makes the array."""
        view = self.frames[place[0]].view
        is_parameter = place[1] >= 0 and view.opcodes[place[1]] == "parameter" and view.computation.name == self._entry
        return view.parameter_number(place[1]) if is_parameter else None

    def finished(self, place: Place) -> Place:
        """Return the array that an asynchronous start has when its end is reached; other places unchanged."""
        is_result = place[1] >= 0 and place[2][:1] == _RESULT_OF_START.get(self.frames.opcode(place))
        return (*place[:2], place[2][1:]) if is_result else place

    def is_joined(self, place: Place) -> bool:
        """Return True if an instruction joins slices of one array."""
        return self.frames.opcode(place) == "custom-call" and self.frames.target(place) == _JOINED_SLICES

    # -- steps ----------------------------------------------------------------------------------------------------------

    def source(self, place: Place) -> Place | None:
        """Return the place that the elements of an array come from; None if the array is computed."""
        frames = self.frames
        opcode = frames.opcode(place)
        if opcode in _OF_FIRST_OPERAND:
            return frames.operand(place, 0)
        if opcode in _RESULT_OF_START:
            return frames.operand(place, place[2][0] if place[2] else 0, place[2][1:])
        if opcode in _ENDS_OF_PARTS and not frames.callee(frames.start(place), "calls"):
            return frames.operand(frames.start(place), 0)
        if self.is_joined(place):
            return self._joined_array(place)
        if opcode == "parameter" and place[0] in self._loops:
            return self.initial((*self._loops[place[0]][:2], place[2]))
        return frames.step_back(place)

    def _joined_array(self, place: Place) -> Place | None:
        part = self.frames.operand(place, 0)
        for _ in range(MAX_STEPS):
            if part is None or self.frames.opcode(part) not in _SLICES:
                break
            part = self.source(part)
        return part

    def loop(self, frame: int) -> Place | None:
        """Return the innermost loop that runs a frame in its body or condition."""
        for _ in range(MAX_DEPTH):
            if frame in self._loops:
                return self._loops[frame]
            caller = self.frames[frame].caller
            if caller is None:
                break
            frame = caller[0]
        return None

    def loops(self) -> Iterable[Place]:
        """Return the loops that the program runs, those with the same body once."""
        return dict.fromkeys(self._loops.values())

    def is_state(self, frame: int) -> bool:
        """Return True if the parameter of a frame is the state of a loop."""
        return frame in self._loops

    def initial(self, loop: Place) -> Place | None:
        """Return the initial value of an element of a loop's state that the loop never changes; None if it changes it."""
        frames, body = self.frames, self._body(loop)
        maker = frames.find_maker(frames.root(body, loop[2])) if body is not None else None
        is_same = maker is not None and (maker[0], maker[2]) == (body, loop[2]) and frames.opcode(maker) == "parameter"
        return frames.operand(loop, 0, loop[2]) if is_same else None

    def last_state(self, loop: Place) -> Place | None:
        """Return the array that an iteration leaves as an element of a loop's state."""
        body = self._body(loop)
        return self.frames.root(body, loop[2]) if body is not None else None

    def _body(self, loop: Place) -> int | None:
        return self._numbers.get(self.frames.callee(loop, "body"))


def _computations_run(module: Module, views: Views) -> Iterator[tuple[ArrayPlace | None, str]]:
    """Yield the computations that run unfused, callers first, each with the first instruction that runs it.

    Without an entry, start with the computations that no instruction fuses or applies.
    """
    if module.entry is not None:
        waiting: list[tuple[ArrayPlace | None, str]] = [(None, module.entry.name)]
    else:
        inner = {
            callee.name for name in views.computations for _, callee in _called(views.for_computation(name), CALLING_OPCODES)
        }
        waiting = [(None, name) for name in views.computations if name not in inner]
    seen = {name for _, name in waiting}
    for caller, name in waiting:
        yield caller, name
        for row, callee in _called(views.for_computation(name), RUNNING_OPCODES):
            if callee.role in _RUNNING and callee.name in views.computations and callee.name not in seen:
                seen.add(callee.name)
                waiting.append(((name, row, ()), callee.name))


def _called(view: View, opcodes: Set[str]) -> Iterator[tuple[int, Callee]]:
    """Yield the computations that rows of these opcodes call, except computations that starts wrap."""
    for row, opcode in enumerate(view.opcodes):
        if opcode in opcodes and not TABLE[opcode].half:
            yield from ((row, callee) for callee in view.called_at(row))

"""Places in the text where values are, and the way from one to the one before it.

A place is the frame of a computation (a region, or one call of another), an instruction, and an index into its tuple. Tuples,
fusions, calls, asynchronous pairs and what only moves values (`opcodes.SAME`) are stepped through.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from hlo_inspect.analysis.optimizer import opcodes
from hlo_inspect.analysis.optimizer.graph import Index, Place
from hlo_inspect.analysis.optimizer.text import Body, Statement, small_number
from hlo_inspect.analysis.view import Views
from hlo_inspect.hlo.shapes import ArrayShape, subshape

MAX_DEPTH = 500  # of calls in calls
MAX_STEPS = 10_000  # through tuples, calls and copies
MAX_FAULTS = 1000


@dataclass(slots=True)
class Frame:
    """One call of a computation: where its parameters come from, nothing for the frame in which a region starts."""

    body: Body
    arguments: tuple[Place, ...] | None
    depth: int = 0


@dataclass(frozen=True, slots=True)
class Made:
    """Where a value is made: the instruction's computation and line, and the fusion of the region that holds it."""

    fusion: str
    computation: str
    line: int | None


@dataclass(slots=True)
class Faults:
    """What could not be followed: (computation, instruction, why)."""

    found: dict[tuple[str, str, str], None] = field(default_factory=dict)

    def note(self, frame: Frame, name: str, reason: str) -> None:
        if len(self.found) < MAX_FAULTS:
            self.found[frame.body.name, name, reason] = None


class Places:
    """The frames of a module's computations, and what lies behind a place in them."""

    def __init__(self, views: Views) -> None:
        self.faults = Faults()
        self.frames: list[Frame] = []
        self.views = views
        self._bodies: dict[str, Body] = {}
        self._calls: dict[tuple[int, str, str], int] = {}
        self._called_frames: dict[tuple[int, str], int] = {}
        self._made: dict[Place, Made] = {}

    # -- frames ---------------------------------------------------------------------------------------------------------

    def region(self, computation: str) -> int | None:
        """A new frame of a computation whose parameters are inputs."""
        body = self.body(computation)
        return None if body is None else self._add(Frame(body, None))

    def body(self, computation: str) -> Body | None:
        found = self._bodies.get(computation)
        if found is None and computation in self.views.computations:
            found = self._bodies[computation] = Body(self.views.of(computation))
        return found

    def call(self, place: Place, computation: str, arguments: tuple[Place, ...]) -> int | None:
        """The frame of the computation that the instruction at `place` calls."""
        key = (place[0], place[1], computation)
        known = self._calls.get(key)
        if known is not None:
            return known
        body = self.body(computation)
        depth = self.frames[place[0]].depth + 1
        if body is None or depth > MAX_DEPTH:
            return None
        self._calls[key] = number = self._add(Frame(body, arguments, depth))
        return number

    def _add(self, frame: Frame) -> int:
        self.frames.append(frame)
        return len(self.frames) - 1

    def root(self, frame: int, index: Index) -> Place:
        return frame, self.frames[frame].body.root, index

    def statement(self, place: Place) -> Statement | None:
        return self.frames[place[0]].body.statement(place[1])

    @staticmethod
    def operands(place: Place, statement: Statement) -> tuple[Place, ...]:
        """Where the operands of an instruction are."""
        return tuple([(place[0], name, index) for name, index in statement.operands])

    def size(self, place: Place) -> int:
        """The elements at a place, 0 where that is unknown."""
        statement = self.statement(place)
        if statement is None:
            return 0
        if not place[2]:
            return statement.size
        shape = subshape(statement.shape, place[2]) if statement.shape is not None else None
        return (shape.elements or 0) if isinstance(shape, ArrayShape) else 0

    # -- stepping through -----------------------------------------------------------------------------------------------

    def behind(self, place: Place, statement: Statement) -> Place | None:
        """Where the values at a place come from unchanged, `None` where they are made there."""
        step = _STEPS.get(statement.opcode)
        if step is not None:
            return step(self, place, statement)
        return self._started(place, statement) if statement.opcode.endswith("-done") else None

    def made_at(self, place: Place) -> Made:
        """The instruction that makes the value at a place."""
        known = self._made.get(place)
        if known is None:
            known = self._made[place] = self._find_made(place)
        return known

    def _find_made(self, place: Place) -> Made:
        fusion = ""
        for _ in range(MAX_STEPS):
            statement = self.statement(place)
            if statement is None:
                break
            if statement.opcode == "fusion" and not fusion:
                fusion = place[1]
            target = self.behind(place, statement)
            if target is None:
                break
            place = target
        body = self.frames[place[0]].body
        return Made(fusion, body.name, body.line(place[1]))

    def _element(self, place: Place, statement: Statement) -> Place | None:
        number = small_number(statement.word("index"))
        if number is None or not statement.operands:
            return None
        name, index = statement.operands[0]
        return place[0], name, (*index, number, *place[2])

    def _member(self, place: Place, statement: Statement) -> Place | None:
        index = place[2]
        if not index or index[0] >= len(statement.operands):
            return None
        name, before = statement.operands[index[0]]
        return place[0], name, before + index[1:]

    def _argument(self, place: Place, statement: Statement) -> Place | None:
        arguments = self.frames[place[0]].arguments
        number = statement.parameter_number
        if arguments is None or number is None or number >= len(arguments):
            return None
        frame, name, index = arguments[number]
        return frame, name, index + place[2]

    def _called(self, place: Place, statement: Statement) -> Place | None:
        at = (place[0], place[1])
        frame = self._called_frames.get(at)
        if frame is None:
            name = statement.word("calls") or statement.word("to_apply")
            frame = self.call(place, name, self.operands(place, statement))
            if frame is None:
                return None
            self._called_frames[at] = frame
        return self.root(frame, place[2])

    def _started(self, place: Place, statement: Statement) -> Place | None:
        """Behind the end of an asynchronous pair: the wrapped computation, or the operand of a copy or gather."""
        start_place, start = self.start(place, statement)
        if start.opcode == "async-start" or (start.opcode.endswith("-start") and ", calls=" in start.tail):
            return self._called(start_place, start)
        if start.opcode in {"copy-start", "all-gather-start"}:
            return self._same(start_place, start)
        return None

    def start(self, place: Place, statement: Statement) -> tuple[Place, Statement]:
        """The instruction that starts what ends at a place, and its own place; the end itself where there is none."""
        for _ in range(64):
            if not statement.operands or not (statement.opcode.endswith("-done") or statement.opcode == "async-update"):
                break
            before = (place[0], statement.operands[0][0], place[2])
            following = self.statement(before)
            if following is None:
                break
            place, statement = before, following
        return place, statement

    def _converted(self, place: Place, statement: Statement) -> Place | None:
        """Behind a conversion, unless that cuts digits off."""
        if statement.dtype[:1] in {"s", "u"} and statement.operands:
            operand = self.statement((place[0], statement.operands[0][0], ()))
            if operand is None or operand.dtype[:1] not in {"s", "u", "p"}:
                return None
        return self._same(place, statement)

    def _repeated(self, place: Place, statement: Statement) -> Place | None:
        """Behind a broadcast of a scalar."""
        operands = self.operands(place, statement)
        return operands[0] if operands and self.size(operands[0]) == 1 else None

    def _handed_on(self, place: Place, statement: Statement) -> Place | None:
        return self._same(place, statement) if target_of(statement) in opcodes.SAME_TARGETS else None

    def _same(self, place: Place, statement: Statement) -> Place | None:
        """The operand that an instruction hands on."""
        frame, _, index = place
        operands = statement.operands
        if len(operands) == 1:
            return frame, operands[0][0], operands[0][1] + index
        if index and index[0] < len(operands):
            return frame, operands[index[0]][0], operands[index[0]][1] + index[1:]
        return None


def target_of(statement: Statement) -> str:
    """The target of a custom call."""
    return statement.attribute("custom_call_target").strip('"')


_Step = Callable[[Places, Place, Statement], Place | None]
_STEPS: dict[str, _Step] = {
    **dict.fromkeys(opcodes.SAME, Places._same),
    "get-tuple-element": Places._element,
    "tuple": Places._member,
    "parameter": Places._argument,
    "fusion": Places._called,
    "call": Places._called,
    "async-update": Places._started,
    "copy-done": Places._started,
    "convert": Places._converted,
    "custom-call": Places._handed_on,
    "broadcast": Places._repeated,
}

"""Calls of computations, and where the values in them come from unchanged.

A place is a value of the text: the frame of a computation (the entry, or one call of another), the row of an instruction, and
an index into its tuple. Tuples, fusions, calls, asynchronous pairs and what only moves or converts values are stepped through,
from a place to the one before it. `value_graph.py` says why there is a graph of all values beside this.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from hlo_inspect.graph.slices import rendezvous
from hlo_inspect.graph.view import View, Views
from hlo_inspect.hlo.instruction import Instruction
from hlo_inspect.hlo.opcodes import COLLECTIVE_KINDS, UNCHANGED_TARGETS, CalleeAttribute, opcodes_that_give
from hlo_inspect.hlo.values.header import ShapeIndex
from hlo_inspect.hlo.values.shapes import ArrayShape, Shape, subshape

Place = tuple[int, int, ShapeIndex]
"""Frame, row of an instruction, index into its tuple."""

Input = tuple[int, int, ShapeIndex]
"""Frame of a computation whose parameters are inputs, number of a parameter, index into it."""

_COPY_HALVES = {"copy-start", "copy-done"}
UNCHANGED = (opcodes_that_give("same") - {"add-dependency", "domain"}) | {"all-gather", "transpose"} | _COPY_HALVES
"""The result holds the values of the operand: another type, order, shape or memory, or more copies of them."""

MAX_DEPTH = 500  # of calls in calls
CHECKED_DEPTH = 16  # whether a computation calls itself is looked at in each so many calls of calls
MAX_STEPS = 10_000  # through tuples, calls and copies
MAX_LOOPS = 3  # loops in loops that hand a value on
MAX_CARRYING = 200  # loops and writes of parts one after the other
MAX_NESTING = 64  # of tuples in tuples: in a text without ids an element can be one of itself
MAX_FAULTS = 1000
NO_NAME, NO_INDEX = "has an operand without a name", "does not say which element it takes"
"""Why instructions are not followed of which a printer left something out."""
NOT_DEFINED = "calls a computation that is not defined"
LEAST_PLACES = 60_000  # that are looked at, visited ones included: nested calls multiply
MAX_VISITS = 4  # of each row, beside these


@dataclass(slots=True)
class Frame:
    """One call of a computation. `arguments`: where its parameters come from, `None` where they are inputs. `caller`: frame and
    row of the instruction that calls it.
    """

    view: View
    arguments: tuple[Place, ...] | None
    depth: int = 0
    caller: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class DefinedAt:
    """Where a value is made: the instruction's computation and line, and the outermost fusion that it is part of."""

    fusion: str
    computation: str
    line: int | None


class Fault(NamedTuple):
    """An instruction that could not be followed, and why."""

    computation: str
    instruction: str
    reason: str


class Frames:
    """The calls of a module's computations, by number. `max_places` is how many places may be looked at, by the size of the
    text; `is_cut_short` says that there were more, or something else that is not followed.

    An operand that nothing defines has a place too: its row is the complement of the row that uses it, its index the number of
    the operand.
    """

    def __init__(self, views: Views) -> None:
        self.views = views
        self.faults: dict[Fault, None] = {}
        self.is_cut_short = False
        self.max_places = LEAST_PLACES + MAX_VISITS * views.row_count
        self._frames: list[Frame] = []
        self._calls: dict[tuple[int, int, str], int] = {}
        self._called_frames: dict[tuple[int, int], int] = {}
        self._bodies: dict[tuple[int, int], int | None] = {}
        self._body_frames: dict[str, int | None] = {}
        self._carried: dict[tuple[int, ShapeIndex, frozenset[str], int], bool] = {}
        self._origins: dict[Place, DefinedAt] = {}
        self._made: dict[frozenset[str] | None, dict[Place, Place]] = {}
        self._sent: dict[int, dict[str, Place]] = {}

    def __len__(self) -> int:
        return len(self._frames)

    def __getitem__(self, number: int) -> Frame:
        return self._frames[number]

    def open(self, computation: str) -> int | None:
        """A new frame of a computation whose parameters are inputs; `None` where there is no such computation."""
        return self._add(computation, None, 0)

    def call(self, place: Place, computation: str, arguments: tuple[Place, ...]) -> int | None:
        """The frame of the computation that the instruction at `place` calls; `None` where there is none, or too deep."""
        key = (place[0], place[1], computation)
        known = self._calls.get(key)
        if known is None:
            reason = self._why_not(place[0], computation)
            if reason:
                self.give_up(place, reason)
                return None
            known = self._add(computation, arguments, self._frames[place[0]].depth + 1, place[:2])
            if known is not None:
                self._calls[key] = known
            elif computation:
                self.note_fault(place, NOT_DEFINED)
        return known

    def _why_not(self, caller: int, computation: str) -> str:
        """Why a call is not followed; empty where it is."""
        frame = self._frames[caller]
        if frame.depth >= MAX_DEPTH:
            return "lies in too many calls of calls"
        is_checked = frame.depth % CHECKED_DEPTH == CHECKED_DEPTH - 1
        while is_checked:
            if frame.view.computation.name == computation:
                return "calls a computation that it is part of"
            if frame.caller is None:
                break
            frame = self._frames[frame.caller[0]]
        return ""

    def _add(
        self, computation: str, arguments: tuple[Place, ...] | None, depth: int, caller: tuple[int, int] | None = None
    ) -> int | None:
        if computation not in self.views.computations:
            return None
        self._frames.append(Frame(self.views.of(computation), arguments, depth, caller))
        return len(self._frames) - 1

    def give_up(self, place: Place, reason: str) -> None:
        """Notes what is not followed although the text may be right: then it is not known what all of the step does."""
        self.note_fault(place, reason)
        self.is_cut_short = True

    def note_fault(self, place: Place, reason: str) -> None:
        """Notes what could not be followed; of an operand without a name the instruction that uses it."""
        view, name = self._frames[place[0]].view, self.name(place)
        if not name:
            name = view.rows[~place[1]][1] if view.rows else view.computation.name
            reason = NO_NAME if view.rows else "is empty"
        if len(self.faults) < MAX_FAULTS:
            self.faults[Fault(view.computation.name, name, reason)] = None

    # -- instructions ---------------------------------------------------------------------------------------------------

    def root(self, frame: int, index: ShapeIndex) -> Place:
        """An element of what a computation returns."""
        row = self._frames[frame].view.root
        return frame, ~0 if row is None else row, index

    def opcode(self, place: Place) -> str:
        """The opcode of the instruction at a place, empty for what is not defined."""
        return self._frames[place[0]].view.opcodes[place[1]] if place[1] >= 0 else ""

    def shape(self, place: Place) -> Shape | None:
        """The shape at a place, `None` where it is unknown."""
        if place[1] < 0:
            return None
        shape = self._frames[place[0]].view.shapes[place[1]]
        return shape if shape is None or not place[2] else subshape(shape, place[2])

    def size(self, place: Place) -> int:
        """Elements at a place, 0 where that is unknown or it is no array."""
        shape = self.shape(place)
        return (shape.elements or 0) if isinstance(shape, ArrayShape) else 0

    def dtype(self, place: Place) -> str:
        shape = self.shape(place)
        return shape.dtype if isinstance(shape, ArrayShape) else ""

    def operands(self, place: Place) -> tuple[Place, ...]:
        """Where the operands of the instruction at a place are."""
        frame, row, _ = place
        view = self._frames[frame].view
        whole = view.whole_operands(row)
        if whole is not None:
            return tuple([(frame, defined, ()) for defined in whole])
        return tuple(
            [
                (frame, defined, operand.path) if defined is not None else (frame, ~row, (number, *operand.path))
                for number, (defined, operand) in enumerate(zip(view.operand_rows(row), view.operands(row), strict=True))
            ]
        )

    def operand(self, place: Place, number: int, index: ShapeIndex = ()) -> Place | None:
        """Where an element of one operand is; `None` where there is no such operand. A tuple can have thousands of them."""
        frame, row, _ = place
        view = self._frames[frame].view
        whole = view.whole_operands(row)
        if whole is not None:
            return (frame, whole[number], index) if number < len(whole) else None
        operand = view.operand(row, number)
        if operand is None:
            return None
        defined, path = view.operand_row(row, number), operand.path + index
        return (frame, defined, path) if defined is not None else (frame, ~row, (number, *path))

    def name(self, place: Place) -> str:
        """The name of the instruction at a place; of an operand that is not defined its own, empty where it has none."""
        view = self._frames[place[0]].view
        if place[1] >= 0:
            return view.rows[place[1]][1]
        operand = view.operand(~place[1], place[2][0]) if place[2] and view.rows else None
        return (operand.name if operand is not None else None) or ""

    def instruction(self, place: Place) -> Instruction:
        """The instruction at a place; without operands and attributes where the operands are not closed."""
        return self._frames[place[0]].view.instruction_at(place[1])

    def callee(self, place: Place, attribute: CalleeAttribute) -> str:
        """The first computation that an attribute names, empty where there is none."""
        view = self._frames[place[0]].view
        if attribute == "calls" and view.opcodes[place[1]] == "fusion":
            return next((one.name for one in view.called_at(place[1])), "")
        return self.instruction(place).callee(attribute) or ""

    def target(self, place: Place) -> str:
        """The target of a custom call."""
        return self.instruction(place).attr("custom_call_target") or ""

    def input(self, place: Place) -> Input | None:
        """The input at a place: a parameter of a computation that was opened with its parameters as inputs."""
        frame = self._frames[place[0]]
        is_input = frame.arguments is None and self.opcode(place) == "parameter"
        number = frame.view.parameter_number(place[1]) if is_input else None
        return None if number is None else (place[0], number, place[2])

    # -- stepping through -----------------------------------------------------------------------------------------------

    def step_back(self, place: Place) -> Place | None:
        """Where the value at a place comes from unchanged; `None` where it is made there."""
        opcode = self.opcode(place)
        step = _STEPS.get(opcode)
        if step is not None:
            return step(self, place)
        return self._started(place) if opcode.endswith("-done") else None

    def back_from(self, place: Place) -> Iterator[Place]:
        """A place and those that its value comes from unchanged, up to where it is made."""
        for _ in range(MAX_STEPS):
            yield place
            before = self.step_back(place)
            if before is None:
                break
            place = before

    def made_at(self, place: Place, through: frozenset[str] | None = None) -> Place:
        """Where the value at a place is made, before which it does not come from anywhere unchanged; `through` are the opcodes
        of the instructions that are stepped through, where these are not all that there are.
        """
        known = self._made.setdefault(through, {})
        passed: list[Place] = []
        for before in self.back_from(place):
            passed.append(before)
            if before in known or (through is not None and self.opcode(before) not in through):
                break
        made = known.get(passed[-1], passed[-1])
        known |= dict.fromkeys(passed, made)
        return made

    def carried_input(self, place: Place, writing: frozenset[str] = frozenset(), loops: int = MAX_LOOPS) -> Input | None:
        """The input that a value is, also where loops hand it on, so many in one another; with `writing` also after operations
        of these opcodes wrote parts of it. `None` for another value.
        """
        for _ in range(MAX_CARRYING):
            place = self.made_at(place)
            source = self.input(place)
            if source is not None:
                return source
            opcode = self.opcode(place)
            is_handed_on = opcode in writing or (opcode == "while" and loops > 0 and self.is_carried(place, writing, loops - 1))
            operand = self.operand(place, 0, place[2]) if is_handed_on else None
            if operand is None:
                break
            place = operand
        return None

    def is_carried(self, loop: Place, writing: frozenset[str] = frozenset(), loops: int = MAX_LOOPS) -> bool:
        """Whether the body of a loop returns an element of the loop's state as it came."""
        body = self.body(loop)
        if body is None:
            return False
        key = body, loop[2], writing, loops
        if key not in self._carried:
            self._carried[key] = self.carried_input(self.root(body, loop[2]), writing, loops) == (body, 0, loop[2])
        return self._carried[key]

    def body(self, loop: Place) -> int | None:
        """The frame of a loop's body, the same for all loops that have it."""
        at = (loop[0], loop[1])
        if at not in self._bodies:
            name = self.callee(loop, "body")
            if name not in self._body_frames:
                self._body_frames[name] = self.open(name)
            self._bodies[at] = self._body_frames[name]
        return self._bodies[at]

    def origin(self, place: Place) -> DefinedAt:
        """Where the value at a place is made."""
        known = self._origins.get(place)
        if known is None:
            fusion = ""
            last = place
            for last in self.back_from(place):
                if not fusion and self.opcode(last) == "fusion":
                    fusion = self.name(last)
            view = self._frames[last[0]].view
            line = view.lines[last[1]] if last[1] >= 0 else None
            known = self._origins[place] = DefinedAt(fusion, view.computation.name, line)
        return known

    def start(self, place: Place) -> Place:
        """The instruction that starts what ends at a place; the place itself where nothing ends there."""
        for _ in range(64):
            opcode = self.opcode(place)
            is_end = opcode.endswith("-done") or opcode == "async-update"
            before = self.operand(place, 0) if is_end else None
            if before is None or before[1] < 0:
                break
            place = before[0], before[1], place[2]
        return place

    def _element(self, place: Place) -> Place | None:
        number = self._frames[place[0]].view.element_number(place[1])
        if number is None or len(place[2]) >= MAX_NESTING:
            return None
        return self.operand(place, 0, (number, *place[2]))

    def _member(self, place: Place) -> Place | None:
        index = place[2]
        return self.operand(place, index[0], index[1:]) if index else None

    def _argument(self, place: Place) -> Place | None:
        view, arguments = self._frames[place[0]].view, self._frames[place[0]].arguments
        number = view.parameter_number(place[1]) if arguments is not None else None
        if arguments is None or number is None or number >= len(arguments):
            return None
        frame, row, index = arguments[number]
        return frame, row, index + place[2]

    def called(self, place: Place) -> Place | None:
        """The result of the computation that a fusion, a call or the start of one runs."""
        at = (place[0], place[1])
        frame = self._called_frames.get(at)
        if frame is None:
            name = self.callee(place, "calls") or self.callee(place, "to_apply")
            frame = self.call(place, name, self.operands(place))
            if frame is None:
                return None
            self._called_frames[at] = frame
        return self.root(frame, place[2])

    def _started(self, place: Place) -> Place | None:
        """From the end of an asynchronous pair: the wrapped computation, or the operand of a copy or all-gather."""
        start = self.start(place)
        opcode = self.opcode(start)
        if opcode.endswith("-start") and self.callee(start, "calls"):
            return self.called(start)
        if opcode == "recv" and place[2][:1] == (0,):
            sent = self.sent(start, "ALL_GATHER")
            return (*sent[:2], sent[2] + place[2][1:]) if sent is not None else None
        return self._same(start) if opcode in {"copy-start", "all-gather-start"} else None

    def applies(self, place: Place, opcode: str) -> bool:
        """Whether the computation that an instruction applies to pairs of elements ends with an operation."""
        applied = self.callee(place, "to_apply")
        view = self.views.of(applied) if applied in self.views.computations else None
        return view is not None and view.root is not None and view.opcodes[view.root] == opcode

    def sent(self, place: Place, kind: str = "") -> Place | None:
        """What is sent for the `recv` at a place: TPU slices exchange arrays over the network of their hosts by pairs of `send`
        and `recv` that name the collective (`kind`) and where they meet.
        """
        received = self.instruction(place)
        if kind not in {"", (received.attr("frontend_attributes") or {}).get("_xla_megascale_transfer_type")}:
            return None
        frame = place[0]
        if frame not in self._sent:
            view = self._frames[frame].view
            sends = [(frame, row, ()) for row, opcode in enumerate(view.opcodes) if opcode == "send"]
            met = [(rendezvous(self.instruction(send)), self.operand(send, 0)) for send in sends]
            self._sent[frame] = {name: operand for name, operand in met if operand is not None}
        return self._sent[frame].get(rendezvous(received) or "-")

    def _converted(self, place: Place) -> Place | None:
        """The operand of a conversion, except of one from floating point to integers."""
        operand = self.operand(place, 0)
        is_integer = self.dtype((place[0], place[1], ()))[:1] in {"s", "u"}
        if is_integer and operand is not None and self.dtype((operand[0], operand[1], ()))[:1] not in {"s", "u", "p"}:
            return None
        return self._same(place)

    def _repeated(self, place: Place) -> Place | None:
        """The operand of a broadcast, where that is a scalar or as large as the result."""
        operand = self.operand(place, 0)
        return operand if operand is not None and self.size(operand) in {1, self.size(place)} else None

    def _custom_call(self, place: Place) -> Place | None:
        target = self.target(place)
        if target in UNCHANGED_TARGETS:
            return self._same(place)
        return self._async_collective(place, target) if target.startswith("AsyncCollective") else None

    def _async_collective(self, place: Place, target: str) -> Place | None:
        """The collective that ends where TPU marks it, or what is handed on where it starts: the operand of the collective."""
        operands = self.operands(place)
        collective = next((operand for operand in operands if self.opcode(operand) in COLLECTIVE_KINDS), None)
        if collective is None or target not in {"AsyncCollectiveStart", "AsyncCollectiveDone"}:
            return None
        if target == "AsyncCollectiveDone":
            return (*collective[:2], place[2])
        return self.operand(collective, 0) if place[2] == (0,) else None

    def _same(self, place: Place) -> Place | None:
        """The operand that an instruction returns: the only one, or that of an element of its tuple."""
        if len(self._frames[place[0]].view.operand_rows(place[1])) == 1:
            return self.operand(place, 0, place[2])
        return self._member(place)


_STEPS: dict[str, Callable[[Frames, Place], Place | None]] = {
    **dict.fromkeys(UNCHANGED, Frames._same),
    "get-tuple-element": Frames._element,
    "tuple": Frames._member,
    "parameter": Frames._argument,
    "fusion": Frames.called,
    "call": Frames.called,
    "async-update": Frames._started,
    "copy-done": Frames._started,
    "convert": Frames._converted,
    "custom-call": Frames._custom_call,
    "broadcast": Frames._repeated,
}

"""Calls of computations, and the origins of values that are passed on unchanged.

A place is a value of the text: a frame (the entry, or one call of a computation), a row, and a tuple index. A step
leads from a place to the previous one: through tuples, fusions, calls, asynchronous pairs, moves and conversions.
`value_graph.py` says why there is a graph of all values too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from hlo_inspect.graph.slices import rendezvous
from hlo_inspect.graph.view import View, Views
from hlo_inspect.hlo.instruction import Instruction
from hlo_inspect.hlo.opcodes import COLLECTIVE_KINDS, SLICES, UNCHANGED_TARGETS, CalleeAttribute, opcodes_that_give
from hlo_inspect.hlo.values.header import ShapeIndex
from hlo_inspect.hlo.values.shapes import ArrayShape, Shape, subshape

Place = tuple[int, int, ShapeIndex]
"""Frame, row of an instruction, index into its tuple."""

Input = tuple[int, int, ShapeIndex]
"""Frame of a computation whose parameters are inputs, number of a parameter, index into it."""

_COPY_HALVES = {"copy-start", "copy-done"}
UNCHANGED = (opcodes_that_give("same") - {"add-dependency", "domain"}) | {"all-gather", "transpose"} | _COPY_HALVES
"""Opcodes whose result holds the values of the operand: another type, order, shape or memory, or more copies of them."""

MAX_DEPTH = 500  # nested calls
CHECKED_DEPTH = 16  # recursion is checked at every 16th depth of nested calls
MAX_STEPS = 10_000  # through tuples, calls and copies
MAX_LOOPS = 3  # nested loops that carry a value
MAX_CARRYING = 200  # loops and writes of parts in sequence
MAX_NESTING = 64  # nested tuples: in a text without ids a tuple can hold itself
MAX_FAULTS = 1000
NO_NAME, NO_INDEX = "has an operand without a name", "has no tuple index"
"""Reasons for instructions with parts that a printer left out."""
NOT_DEFINED = "calls a computation that is not defined"
LEAST_PLACES = 60_000  # minimum of `Frames.max_places`: nested calls multiply
MAX_VISITS = 4  # further places for each row of the module


@dataclass(slots=True)
class Frame:
    """A call of a computation.

    `arguments` are the places of its parameters; None if they are inputs. `caller` is the frame and row of the instruction that
    calls it.
    """

    view: View
    arguments: tuple[Place, ...] | None
    depth: int
    caller: tuple[int, int] | None


class DefinedAt(NamedTuple):
    """The origin of a value: computation and line of its instruction, and the outermost fusion around the instruction."""

    fusion: str
    computation: str
    line: int | None


class Fault(NamedTuple):
    """An instruction that could not be followed, and the reason."""

    computation: str
    instruction: str
    reason: str


class Frames:
    """The calls of a module's computations, by number.

    `max_places` limits the places that callers may visit; it grows with the text. `is_cut_short` is true if the limit was
    reached, or if a call or value was not followed.

    An undefined operand has a place too: its row is the complement (`~`) of its user's row, its index the operand's number.
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
        """Add a frame of a computation whose parameters are inputs. Return None if there is no such computation."""
        return self._add(computation, None, None)

    def call(self, place: Place, computation: str, arguments: tuple[Place, ...]) -> int | None:
        """Return the frame of the computation that the instruction at `place` calls; None if it is missing or too deep."""
        key = (place[0], place[1], computation)
        frame = self._calls.get(key)
        if frame is None:
            reason = self._not_followed_reason(place[0], computation)
            if reason:
                self.give_up(place, reason)
                return None
            frame = self._add(computation, arguments, place[:2])
            if frame is not None:
                self._calls[key] = frame
            elif computation:
                self.note_fault(place, NOT_DEFINED)
        return frame

    def _not_followed_reason(self, caller: int, computation: str) -> str:
        """Return why a call cannot be followed, else an empty string."""
        frame = self._frames[caller]
        if frame.depth >= MAX_DEPTH:
            return "is nested in too many calls"
        is_checked = frame.depth % CHECKED_DEPTH == CHECKED_DEPTH - 1
        while is_checked:
            if frame.view.computation.name == computation:
                return "calls a computation that contains it"
            if frame.caller is None:
                break
            frame = self._frames[frame.caller[0]]
        return ""

    def _add(self, computation: str, arguments: tuple[Place, ...] | None, caller: tuple[int, int] | None) -> int | None:
        view = self.views.find(computation)
        if view is None:
            return None
        depth = self._frames[caller[0]].depth + 1 if caller is not None else 0
        self._frames.append(Frame(view, arguments, depth, caller))
        return len(self._frames) - 1

    def give_up(self, place: Place, reason: str) -> None:
        """Note that a place of a possibly valid text is not followed, so that a part of the step is unknown."""
        self.note_fault(place, reason)
        self.is_cut_short = True

    def note_fault(self, place: Place, reason: str) -> None:
        """Note an instruction that could not be followed. For an operand without a name, note its user."""
        view, name = self._frames[place[0]].view, self.name(place)
        if not name:
            name = view.rows[~place[1]][1] if view.rows else view.computation.name
            reason = NO_NAME if view.rows else "is empty"
        if len(self.faults) < MAX_FAULTS:
            self.faults[Fault(view.computation.name, name, reason)] = None

    # -- instructions ---------------------------------------------------------------------------------------------------

    def root(self, frame: int, index: ShapeIndex) -> Place:
        """Return an element of a computation's result."""
        row = self._frames[frame].view.root
        return frame, ~0 if row is None else row, index

    def opcode(self, place: Place) -> str:
        """Return the opcode of the instruction at a place; empty if nothing defines it."""
        return self._frames[place[0]].view.opcodes[place[1]] if place[1] >= 0 else ""

    def shape(self, place: Place) -> Shape | None:
        """Return the shape at a place; None if unknown."""
        shape = self._frames[place[0]].view.shapes[place[1]] if place[1] >= 0 else None
        return shape if shape is None or not place[2] else subshape(shape, place[2])

    def size(self, place: Place) -> int:
        """Return the number of elements at a place; 0 if unknown or no array."""
        shape = self.shape(place)
        return (shape.elements or 0) if isinstance(shape, ArrayShape) else 0

    def dtype(self, place: Place) -> str:
        shape = self.shape(place)
        return shape.dtype if isinstance(shape, ArrayShape) else ""

    def operands(self, place: Place) -> tuple[Place, ...]:
        """Return the places of the operands of the instruction at a place."""
        frame, row, _ = place
        view = self._frames[frame].view
        whole = view.whole_operands(row)
        if whole is not None:
            return tuple([(frame, defined, ()) for defined in whole])
        operands = [self.operand(place, number) for number in range(len(view.operand_rows(row)))]
        return tuple([operand for operand in operands if operand is not None])

    def operand(self, place: Place, number: int, index: ShapeIndex = ()) -> Place | None:
        """Return the place of an element of one operand; None if there is no such operand.

        Read only this operand, because a tuple can have thousands.
        """
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
        """Return the name of the instruction at a place.

        For an operand that nothing defines, return its own name, empty if it has none.
        """
        view = self._frames[place[0]].view
        if place[1] >= 0:
            return view.rows[place[1]][1]
        operand = view.operand(~place[1], place[2][0]) if place[2] and view.rows else None
        return (operand.name if operand is not None else None) or ""

    def instruction(self, place: Place) -> Instruction:
        """Return the instruction at a place, without operands and attributes if its operands are not closed."""
        return self._frames[place[0]].view.instruction_at(place[1])

    def callee(self, place: Place, attribute: CalleeAttribute) -> str:
        """Return the first computation that an attribute names; empty if there is none."""
        view = self._frames[place[0]].view
        if attribute == "calls" and view.opcodes[place[1]] == "fusion":
            return next((callee.name for callee in view.called_at(place[1])), "")
        return self.instruction(place).callee(attribute) or ""

    def target(self, place: Place) -> str:
        """Return the target of a custom call."""
        return self.instruction(place).attr("custom_call_target") or ""

    def input(self, place: Place) -> Input | None:
        """Return the input at a place, if it is a parameter of a computation that `open` opened."""
        frame = self._frames[place[0]]
        is_input = frame.arguments is None and self.opcode(place) == "parameter"
        number = frame.view.parameter_number(place[1]) if is_input else None
        return None if number is None else (place[0], number, place[2])

    # -- stepping through -----------------------------------------------------------------------------------------------

    def step_back(self, place: Place) -> Place | None:
        """Return the place that the value at a place comes from unchanged; None if it is made there."""
        opcode = self.opcode(place)
        step = _STEPS.get(opcode)
        if step is not None:
            return step(self, place)
        return self._enter_async(place) if opcode.endswith("-done") else None

    def trace_back(self, place: Place) -> Iterator[Place]:
        """Yield a place, then each earlier place of its unchanged value, up to the place that makes the value."""
        for _ in range(MAX_STEPS):
            yield place
            before = self.step_back(place)
            if before is None:
                break
            place = before

    def find_maker(self, place: Place, through: frozenset[str] | None = None) -> Place:
        """Return the place that makes the value at a place, stepping back while it is unchanged.

        `through` restricts the opcodes to step through.
        """
        cache = self._made.setdefault(through, {})
        passed: list[Place] = []
        for before in self.trace_back(place):
            passed.append(before)
            if before in cache or (through is not None and self.opcode(before) not in through):
                break
        made = cache.get(passed[-1], passed[-1])
        cache |= dict.fromkeys(passed, made)
        return made

    def carried_input(self, place: Place, writing: frozenset[str] = frozenset(), loops: int = MAX_LOOPS) -> Input | None:
        """Return the input that a value equals, stepping through up to `loops` nested loops that carry it.

        With `writing`, step through operations of these opcodes too, which write parts of it. A `concatenate` among them joins
        slices of one input again. Return None for other values.
        """
        for _ in range(MAX_CARRYING):
            place = self.find_maker(place)
            source = self.input(place)
            if source is not None:
                return source
            opcode = self.opcode(place)
            if opcode == "concatenate" and opcode in writing:
                return self._joined_input(place, writing, loops)
            is_handed_on = opcode in writing or (opcode == "while" and loops > 0 and self.is_carried(place, writing, loops - 1))
            operand = self.operand(place, 0, place[2]) if is_handed_on else None
            if operand is None:
                break
            place = operand
        return None

    def _joined_input(self, place: Place, writing: frozenset[str], loops: int) -> Input | None:
        """Return the input that all operands of a concatenation are slices of."""
        inside = (writing | SLICES) - {"concatenate"}
        sources = {self.carried_input(operand, inside, loops) for operand in self.operands(place)}
        return sources.pop() if len(sources) == 1 else None

    def is_carried(self, loop: Place, writing: frozenset[str] = frozenset(), loops: int = MAX_LOOPS) -> bool:
        """Return True if the body of a loop returns an element of the loop's state unchanged."""
        body = self.body(loop)
        if body is None:
            return False
        key = body, loop[2], writing, loops
        if key not in self._carried:
            self._carried[key] = self.carried_input(self.root(body, loop[2]), writing, loops) == (body, 0, loop[2])
        return self._carried[key]

    def body(self, loop: Place) -> int | None:
        """Return the frame of a loop's body. Loops with the same body share it."""
        key = (loop[0], loop[1])
        if key not in self._bodies:
            name = self.callee(loop, "body")
            if name not in self._body_frames:
                self._body_frames[name] = self.open(name)
            self._bodies[key] = self._body_frames[name]
        return self._bodies[key]

    def origin(self, place: Place) -> DefinedAt:
        """Return the origin of the value at a place."""
        origin = self._origins.get(place)
        if origin is None:
            way = list(self.trace_back(place))
            fusion = next((self.name(step) for step in way if self.opcode(step) == "fusion"), "")
            last = way[-1]
            view = self._frames[last[0]].view
            line = view.lines[last[1]] if last[1] >= 0 else None
            origin = self._origins[place] = DefinedAt(fusion, view.computation.name, line)
        return origin

    def start(self, place: Place) -> Place:
        """Return the instruction that starts the asynchronous pair that ends at a place, else the place itself."""
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
        """Return the result of the computation that a fusion, a call or an asynchronous start runs."""
        key = (place[0], place[1])
        frame = self._called_frames.get(key)
        if frame is None:
            frame = self.call(place, self.callee(place, "calls") or self.callee(place, "to_apply"), self.operands(place))
            if frame is None:
                return None
            self._called_frames[key] = frame
        return self.root(frame, place[2])

    def _enter_async(self, place: Place) -> Place | None:
        """Step from the end of an asynchronous pair to the computation that it runs, or the operand of a copy or all-gather."""
        start = self.start(place)
        opcode = self.opcode(start)
        if opcode.endswith("-start") and self.callee(start, "calls"):
            return self.called(start)
        if opcode == "recv" and place[2][:1] == (0,):
            sent = self.sent(start, "ALL_GATHER")
            return (*sent[:2], sent[2] + place[2][1:]) if sent is not None else None
        return self._passed_operand(start) if opcode in {"copy-start", "all-gather-start"} else None

    def applies(self, place: Place, opcode: str) -> bool:
        """Return True if the root of the computation that an instruction applies (`to_apply`) has this opcode."""
        view = self.views.find(self.callee(place, "to_apply"))
        return view is not None and view.root is not None and view.opcodes[view.root] == opcode

    def sent(self, place: Place, kind: str = "") -> Place | None:
        """Return the place of the value that arrives at the `recv` at a place.

        TPU slices exchange arrays over the network of their hosts by pairs of `send` and `recv`. These name the collective
        (`kind`) and their rendezvous.
        """
        received = self.instruction(place)
        if kind not in {"", (received.attr("frontend_attributes") or {}).get("_xla_megascale_transfer_type")}:
            return None
        frame = place[0]
        if frame not in self._sent:
            sends = [(frame, row, ()) for row, opcode in enumerate(self._frames[frame].view.opcodes) if opcode == "send"]
            transfers = [(rendezvous(self.instruction(send)), self.operand(send, 0)) for send in sends]
            self._sent[frame] = {name: operand for name, operand in transfers if operand is not None}
        return self._sent[frame].get(rendezvous(received) or "-")

    def _conversion_operand(self, place: Place) -> Place | None:
        """Return the operand of a conversion, unless it converts floats to integers."""
        operand = self.operand(place, 0)
        is_integer = self.dtype((place[0], place[1], ()))[:1] in {"s", "u"}
        if is_integer and operand is not None and self.dtype((operand[0], operand[1], ()))[:1] not in {"s", "u", "p"}:
            return None
        return self._passed_operand(place)

    def _broadcast_operand(self, place: Place) -> Place | None:
        """Return the operand of a broadcast if it is a scalar or as large as the result."""
        operand = self.operand(place, 0)
        return operand if operand is not None and self.size(operand) in {1, self.size(place)} else None

    def _custom_call(self, place: Place) -> Place | None:
        """Step through a marker; TPU's lead from the end of a collective to its start, and from the start to the operand."""
        target = self.target(place)
        if target in UNCHANGED_TARGETS:
            return self._passed_operand(place)
        operands = self.operands(place) if target in {"AsyncCollectiveStart", "AsyncCollectiveDone"} else ()
        collective = next((operand for operand in operands if self.opcode(operand) in COLLECTIVE_KINDS), None)
        if collective is None:
            return None
        if target == "AsyncCollectiveDone":
            return (*collective[:2], place[2])
        return self.operand(collective, 0) if place[2] == (0,) else None

    def _passed_operand(self, place: Place) -> Place | None:
        """Return the operand that an instruction passes on: its only operand, or the operand of the same tuple index."""
        if len(self._frames[place[0]].view.operand_rows(place[1])) == 1:
            return self.operand(place, 0, place[2])
        return self._member(place)


_STEPS: dict[str, Callable[[Frames, Place], Place | None]] = {
    **dict.fromkeys(UNCHANGED, Frames._passed_operand),
    "get-tuple-element": Frames._element,
    "tuple": Frames._member,
    "parameter": Frames._argument,
    "fusion": Frames.called,
    "call": Frames.called,
    "async-update": Frames._enter_async,
    "copy-done": Frames._enter_async,
    "convert": Frames._conversion_operand,
    "custom-call": Frames._custom_call,
    "broadcast": Frames._broadcast_operand,
}

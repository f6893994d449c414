"""From the text of computations to one graph of expressions.

A value is asked for by its place: the frame of a computation (the entry, or one call of another), an instruction, and an index
into its tuple. Only what is asked for is read. Fusions, calls and asynchronous pairs are stepped into; tuples are stepped
through; what only moves values is left out (`opcodes.SAME`). Reductions, products of matrices and everything else become opaque
leaves, which `source` and `operand_of` look behind when somebody asks.

Everything runs on explicit stacks: neither deep nor cyclic text can exhaust Python's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from hlo_inspect.analysis.optimizer import opcodes
from hlo_inspect.analysis.optimizer.graph import Graph
from hlo_inspect.analysis.optimizer.templates import Templates
from hlo_inspect.analysis.optimizer.text import Body, Statement
from hlo_inspect.hlo.module import Computation
from hlo_inspect.hlo.shapes import ArrayShape, subshape

Index = tuple[int, ...]
Place = tuple[int, str, Index]
"""Frame, instruction, index into its tuple."""

MAX_STEPS = 10_000  # through tuples, calls and copies
MAX_PLACES = 3_000_000  # of one module: repeated calls of calls multiply


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
        if len(self.found) < 1000:
            self.found[frame.body.name, name, reason] = None


class Flow:
    """The values of a module's computations as nodes of `graph`."""

    def __init__(self, computations: Mapping[str, Computation], special: Mapping[str, Step]) -> None:
        self.graph = Graph()
        self.faults = Faults()
        self.frames: list[Frame] = []
        self._computations = computations
        self._bodies: dict[str, Body] = {}
        self._calls: dict[tuple[int, str, str], int] = {}
        self._nodes: dict[Place, int] = {}
        self._special = special
        self._templates = Templates(self.graph, self.region, lambda frame, index: self.node(self.root(frame, index)))

    # -- frames ---------------------------------------------------------------------------------------------------------

    def region(self, computation: str) -> int | None:
        """A new frame of a computation whose parameters are inputs."""
        body = self.body(computation)
        return None if body is None else self._add(Frame(body, None))

    def body(self, computation: str) -> Body | None:
        found = self._bodies.get(computation)
        if found is None and computation in self._computations:
            found = self._bodies[computation] = Body(self._computations[computation])
        return found

    def call(self, place: Place, computation: str, arguments: tuple[Place, ...]) -> int | None:
        """The frame of the computation that the instruction at `place` calls."""
        key = (place[0], place[1], computation)
        known = self._calls.get(key)
        if known is not None:
            return known
        body = self.body(computation)
        depth = self.frames[place[0]].depth + 1
        if body is None or depth > 500:
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

    # -- nodes ----------------------------------------------------------------------------------------------------------

    def node(self, place: Place) -> int:
        """The expression at a place."""
        nodes, frames = self._nodes, self.frames
        stack = [place]
        active: set[Place] = set()
        while stack:
            top = stack[-1]
            if top in nodes:
                stack.pop()
                active.discard(top)
                continue
            body = frames[top[0]].body
            statement = body.statements.get(top[1]) or body.statement(top[1])
            if statement is not None and statement.is_elementwise and not top[2]:
                found = self._operation(top, statement)
            else:
                found = self._step(top, statement)
            if isinstance(found, int):
                nodes[top] = found
            elif active.isdisjoint(found) and top not in found and len(nodes) < MAX_PLACES:
                active.add(top)
                stack += found
            else:
                reason = "depends on itself" if len(nodes) < MAX_PLACES else "lies behind too many expressions to follow"
                self.faults.note(frames[top[0]], top[1], reason)
                nodes[top] = self.opaque(top)
        return nodes[place]

    def opaque(self, place: Place) -> int:
        """A leaf that stands for what is not looked into."""
        return self.graph.make("opaque", (), place, self.size(place))

    def _step(self, place: Place, statement: Statement | None) -> int | list[Place]:
        """The node at a place, or the places that have to be known before it."""
        if statement is None:
            self.faults.note(self.frames[place[0]], place[1], "is not defined")
            return self.graph.make("opaque", (), place, 0)
        if statement.opcode == "fusion":
            found = self._from_template(place, statement)
            if found is not None:
                return found
        target = self.behind(place, statement)
        if target is not None:
            known = self._nodes.get(target)
            return [target] if known is None else known
        special = self._special.get(statement.opcode)
        return special(self, place, statement) if special is not None else self.opaque(place)

    def _from_template(self, place: Place, statement: Statement) -> int | list[Place] | None:
        """The node of a fusion whose computation is like others."""
        computation = self._computations.get(statement.word("calls"))
        recipe = self._templates.recipe(computation, place[2]) if computation is not None else None
        if recipe is None:
            return None
        operands = self.operands(place, statement)
        known: dict[int, int] = {}
        missing: list[Place] = []
        for node, (number, index) in recipe.arguments:
            if number >= len(operands):
                return None
            frame, name, before = operands[number]
            argument = self._nodes.get((frame, name, before + index))
            if argument is None:
                missing.append((frame, name, before + index))
            else:
                known[node] = argument
        return missing or recipe.cook(self.graph, known)

    def _operation(self, place: Place, statement: Statement) -> int | list[Place]:
        """The node of an operation on all operands."""
        nodes, frame = self._nodes, place[0]
        args: list[int] = []
        missing: list[Place] = []
        for name, index in statement.operands:
            operand = (frame, name, index)
            node = nodes.get(operand)
            if node is None:
                missing.append(operand)
            else:
                args.append(node)
        if missing:
            return missing
        if not args:
            self.faults.note(self.frames[frame], place[1], "has operands that cannot be read")
            return self.opaque(place)
        op = statement.opcode
        return self.graph.make(op, tuple(args), statement.word("direction") if op == "compare" else None)

    def known(self, places: tuple[Place, ...]) -> tuple[int, ...] | list[Place]:
        """The nodes at these places, or those places whose nodes have to be known first."""
        nodes = self._nodes
        missing = [place for place in places if place not in nodes]
        return missing or tuple([nodes[place] for place in places])

    def made_at(self, place: Place) -> Made:
        """The instruction that makes the value at a place."""
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

    # -- stepping through -----------------------------------------------------------------------------------------------

    def behind(self, place: Place, statement: Statement) -> Place | None:
        """Where the values at a place come from unchanged, `None` where they are made there."""
        frame, name, index = place
        opcode, operands = statement.opcode, statement.operands
        if opcode == "get-tuple-element":
            number = statement.word("index")
            return (frame, operands[0][0], (*operands[0][1], int(number), *index)) if operands and number.isdigit() else None
        if opcode == "tuple":
            if index and index[0] < len(operands):
                return frame, operands[index[0]][0], (*operands[index[0]][1], *index[1:])
            return None
        if opcode == "parameter":
            return self._argument(place, statement)
        if opcode in _CALLS:
            return self._called(place, statement, _CALLS[opcode])
        if opcode.endswith("-done") or opcode == "async-update":
            return self._started(place, statement)
        if opcode == "convert" and statement.dtype[:1] in {"s", "u"} and self._is_float(place, statement):
            return None
        if opcode in opcodes.SAME or (opcode == "custom-call" and target_of(statement) in opcodes.SAME_TARGETS):
            return self._same(place, statement)
        if opcode == "broadcast" and operands:
            operand = frame, *operands[0]
            return operand if self.size(operand) == 1 else None
        return None

    def _is_float(self, place: Place, statement: Statement) -> bool:
        operand = self.statement((place[0], statement.operands[0][0], ())) if statement.operands else None
        return operand is None or operand.dtype[:1] not in {"s", "u", "p"}

    def size(self, place: Place) -> int:
        """The elements at a place, 0 where that is unknown."""
        statement = self.statement(place)
        if statement is None:
            return 0
        if not place[2]:
            return statement.size
        shape = subshape(statement.shape, place[2]) if statement.shape is not None else None
        return (shape.elements or 0) if isinstance(shape, ArrayShape) else 0

    def _argument(self, place: Place, statement: Statement) -> Place | None:
        arguments = self.frames[place[0]].arguments
        number = statement.literal.strip()
        if arguments is None or not number.isdigit() or int(number) >= len(arguments):
            return None
        frame, name, index = arguments[int(number)]
        return frame, name, index + place[2]

    def _called(self, place: Place, statement: Statement, attribute: str) -> Place | None:
        frame = self.call(place, statement.word(attribute), self.operands(place, statement))
        return None if frame is None else self.root(frame, place[2])

    @staticmethod
    def operands(place: Place, statement: Statement) -> tuple[Place, ...]:
        """Where the operands of an instruction are."""
        return tuple([(place[0], name, index) for name, index in statement.operands])

    def _started(self, place: Place, statement: Statement) -> Place | None:
        """Behind the end of an asynchronous pair: the wrapped computation, or the operand of a copy or gather."""
        start_place, start = self.start(place, statement)
        if start.opcode == "async-start" or (start.opcode.endswith("-start") and ", calls=" in start.tail):
            return self._called(start_place, start, "calls")
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

    @staticmethod
    def _same(place: Place, statement: Statement) -> Place | None:
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


_CALLS = {"fusion": "calls", "call": "to_apply"}
Step = Callable[[Flow, Place, Statement], int | list[Place]]
"""What makes the node of an instruction, or names the places that it has to know before."""

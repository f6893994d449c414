"""The graph of the instructions of a step.

It is the graph of the step's values (`graph/value_graph.py`), seen as instructions. A fusion is one instruction, and so is the
start of an asynchronous computation with a single instruction. Paths inside of an instruction have no length. So the arrays of
a loop or of a combined collective keep their operands apart.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from hlo_inspect.graph.graph_reader import read_values
from hlo_inspect.graph.neighbourhood.instruction_lookup import RowPlace
from hlo_inspect.graph.value_graph import PARAMETER, CallFrame, Value, ValueGraph, nodes_in
from hlo_inspect.graph.view import View, Views
from hlo_inspect.hlo.instruction import Instruction
from hlo_inspect.hlo.module import Module
from hlo_inspect.hlo.opcodes import CALLING_OPCODES, NAMING, TABLE
from hlo_inspect.hlo.values.header import ShapeIndex

Edges = Sequence[Sequence[int]]
_HANDING_ON = NAMING | {"parameter"}


class ReachedNode(NamedTuple):
    """A node at a distance of `steps`; `before` is the node that led to it, None for a start of the search."""

    node: int
    steps: int
    before: int | None


class InstructionGraph:
    """The nodes of one run of `computation`: `feeds` has the operands of each, `reads` its users.

    `instruction_of` numbers the instruction that makes each node; `places` are the rows of the instructions. A fused
    computation counts as one instruction, unless it is in `opened`. `is_whole` means that all calls could be followed.
    `computations` are those that run.
    """

    def __init__(self, views: Views, computation: str, opened: Collection[str] = ()) -> None:
        self._views = views
        self._values = read_values(views, computation)
        self.is_whole = self._values.is_whole
        self.computations = self._values.frames_by_name.keys()
        self._owners = _owners(self._values, opened)
        self.places: list[RowPlace] = []
        self._numbers: dict[RowPlace, int] = {}
        self.instruction_of = [self._number(node) for node in range(len(self._values))]
        self.feeds: Edges = self._values.operands

    def _number(self, node: int) -> int:
        """Return the number of the instruction that makes a node."""
        frame = self._values.frame_of[node]
        place = self._owners[frame] or RowPlace(self._values.frames[frame].name, self._values.row_of[node])
        number = self._numbers.setdefault(place, len(self.places))
        if number == len(self.places):
            self.places.append(place)
        return number

    @cached_property
    def reads(self) -> Edges:
        reads: list[list[int]] = [[] for _ in self.feeds]
        for node, operands in enumerate(self.feeds):
            for operand in operands:
                reads[operand].append(node)
        return reads

    def number(self, place: RowPlace) -> int | None:
        """Return the number of an instruction; None if it only names or passes on arrays."""
        return self._numbers.get(place)

    def view(self, number: int) -> View:
        return self._views.for_computation(self.places[number].computation)

    def name(self, number: int) -> str:
        return self.view(number).rows[self.places[number].row][1]

    def line(self, number: int) -> int:
        return self.view(number).lines[self.places[number].row]

    # -- from instructions to nodes and back ----------------------------------------------------------------------------

    def nodes_made_by(self, place: RowPlace) -> list[int]:
        """Return the nodes that an instruction makes; none if it only names or passes on arrays."""
        number = self.number(place)
        return [] if number is None else self._made[number]

    @cached_property
    def _made(self) -> list[list[int]]:
        made: list[list[int]] = [[] for _ in self.places]
        for node, number in enumerate(self.instruction_of):
            made[number].append(node)
        return made

    def result_nodes(self, place: RowPlace) -> list[int]:
        """Return the nodes of an instruction's result, in all calls of its computation."""
        frames = self._values.frames_by_name.get(place.computation, ())
        return list(dict.fromkeys(node for frame in frames for node in nodes_in(frame.value(place.row))))

    def maker(self, place: RowPlace) -> int | None:
        """Return the only instruction that makes the arrays which this instruction passes on.

        Return None if several make them, or the instruction itself.
        """
        makers = {self.instruction_of[node] for node in self.result_nodes(place)}
        number = makers.pop() if len(makers) == 1 else None
        return None if number is None or self.places[number] == place else number

    def is_parameter(self, node: int) -> bool:
        """Return True if a node is an array of a parameter of the step."""
        return bool(self._values.kinds[node] & PARAMETER)

    def outputs(self, nodes: Collection[int]) -> list[ShapeIndex]:
        """Return the indices of the step's result that hold one of these nodes."""
        wanted = set(nodes)
        return list(dict.fromkeys(index for index, node in _leaves(self._values.result()) if node in wanted))

    # -- searching ------------------------------------------------------------------------------------------------------

    def search(self, edges: Edges, starts: Sequence[int]) -> Iterator[ReachedNode]:
        """Yield the nodes reachable along `feeds` or `reads`, the starts included, the nearest first.

        A step leads from one instruction to another.
        """
        steps = dict.fromkeys(starts, 0)
        before: dict[int, int | None] = dict.fromkeys(starts)
        waiting = deque((node, 0) for node in steps)
        done: set[int] = set()
        while waiting:
            node, so_far = waiting.popleft()
            if node in done:
                continue
            done.add(node)
            yield ReachedNode(node, so_far, before[node])
            instruction = self.instruction_of[node]
            for other in edges[node]:
                distance = so_far + (self.instruction_of[other] != instruction)
                if other not in steps or distance < steps[other]:
                    steps[other], before[other] = distance, node
                    if distance > so_far:
                        waiting.append((other, distance))
                    else:
                        waiting.appendleft((other, distance))


def _leaves(value: Value) -> Iterator[tuple[ShapeIndex, int]]:
    """Yield the nodes of a value, each with its index; nodes of an array in parts share the array's index."""
    waiting: list[tuple[ShapeIndex, Value]] = [((), value)]
    while waiting:
        index, part = waiting.pop()
        if isinstance(part, tuple):
            waiting += [((*index, number), element) for number, element in reversed(list(enumerate(part)))]
        else:
            yield from ((index, node) for node in nodes_in(part))


def _owners(values: ValueGraph, opened: Collection[str]) -> list[RowPlace | None]:
    """Return for each call the instruction that stands for it; None if its rows count as separate instructions."""
    owners: list[RowPlace | None] = []
    for frame in values.frames:
        owner = None
        if frame.caller is not None:
            caller, row = values.frames[frame.caller[0]], frame.caller[1]
            owner = owners[caller.number]
            if owner is None and frame.name not in opened and _is_single(caller, row, frame):
                owner = RowPlace(caller.name, row)
        owners.append(owner)
    return owners


def _is_single(caller: CallFrame, row: int, called: CallFrame) -> bool:
    """Return True if a call is shown as the instruction that makes it: a fusion, or an asynchronous single instruction."""
    info = TABLE.get(caller.view.opcodes[row])
    if info is None or info.half != "start":
        return info is not None and info.name == "fusion"
    return sum(opcode not in _HANDING_ON for opcode in called.view.opcodes) <= 1


def callers(views: Views) -> dict[str, list[Instruction]]:
    """Return the instructions that call each computation, in any role."""
    instructions: dict[str, list[Instruction]] = {}
    for view, row in views.rows_with(CALLING_OPCODES):
        instruction = view.instruction_at(row)
        for callee in dict.fromkeys(called.name for called in instruction.called):
            instructions.setdefault(callee, []).append(instruction)
    return instructions


def graph_around(
    module: Module, views: Views, places: Sequence[RowPlace], calling: Mapping[str, Sequence[Instruction]]
) -> InstructionGraph:
    """Return the graph of one run of the entry.

    If the entry runs none of the instructions, return the graph of the first one's computation. Fused computations around them
    are opened. `calling` has the callers of each computation.
    """
    opened = _enclosing_fusions(calling, dict.fromkeys(place.computation for place in places))
    if module.entry is not None:
        graph = InstructionGraph(views, module.entry.name, opened)
        if any(place.computation in graph.computations for place in places):
            return graph
    return InstructionGraph(views, places[0].computation, opened)


def _enclosing_fusions(calling: Mapping[str, Sequence[Instruction]], computations: Iterable[str]) -> frozenset[str]:
    """Return the computations, and the computations of the fusions around them."""
    opened = dict.fromkeys(computations)
    waiting = list(opened)
    for name in waiting:
        for caller in calling.get(name, ()):
            around = caller.computation.name
            if around not in opened and caller.opcode == "fusion":
                opened[around] = None
                waiting.append(around)
    return frozenset(opened)

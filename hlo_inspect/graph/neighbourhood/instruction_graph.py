"""The graph of a step's arrays, seen as that of its instructions: which makes an array of what others make.

Its nodes and edges are those of the values of the step (`phases/value_graph.py`): tuples, their elements, calls, bitcasts,
barriers and the ends of asynchronous pairs make no array and are stepped through; each array of a loop's state is made of its
initial value and of what the body returns for it. A fusion is one instruction, and so is the start of an asynchronous
computation that holds only one. Ways inside of one instruction have no length, so that what one array of a loop or of a
combined collective is made of is not mixed up with what the others are.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from hlo_inspect.graph.neighbourhood.selection import RowPlace
from hlo_inspect.graph.value_graph import PARAMETER, CallFrame, Value, ValueGraph, nodes_in
from hlo_inspect.graph.values import read_values
from hlo_inspect.graph.view import View, Views
from hlo_inspect.hlo.opcodes import NAMING, TABLE
from hlo_inspect.hlo.values.header import ShapeIndex

Edges = Sequence[Sequence[int]]


class ReachedNode(NamedTuple):
    """A node so many steps away; `before` is the node through which it was reached, `None` of one where the search began."""

    node: int
    steps: int
    before: int | None


class InstructionGraph:
    """The nodes of one run of `computation`: `feeds` has those of which each is made, `reads` those that are made of it.

    `instruction_of` is the number of the instruction that makes each, and `places` where the instructions stand. Fused
    computations are one instruction, except those that are `opened`. `is_whole`: all calls could be followed.
    """

    def __init__(self, views: Views, computation: str, opened: Collection[str] = ()) -> None:
        self._views = views
        self._values = read_values(views, computation)
        self.is_whole = self._values.is_whole
        self._owners = _owners(self._values, opened)
        self.places: list[RowPlace] = []
        self._numbers: dict[RowPlace, int] = {}
        self.instruction_of = [self._number(node) for node in range(len(self._values))]
        self.feeds: Edges = self._values.operands

    def _number(self, node: int) -> int:
        """The instruction that makes a node."""
        frame = self._values.frame_of[node]
        place = self._owners[frame]
        if place is None:
            place = RowPlace(self._values.frames[frame].view.computation.name, self._values.row_of[node])
        known = self._numbers.get(place)
        if known is None:
            known = self._numbers[place] = len(self.places)
            self.places.append(place)
        return known

    @cached_property
    def reads(self) -> Edges:
        reads: list[list[int]] = [[] for _ in self.feeds]
        for node, operands in enumerate(self.feeds):
            for operand in operands:
                reads[operand].append(node)
        return reads

    def __len__(self) -> int:
        return len(self.places)

    def runs(self, computation: str) -> bool:
        """Whether the step runs a computation."""
        return computation in self._values.frames_by_name

    def number(self, place: RowPlace) -> int | None:
        """The number of an instruction; `None` of one that makes no array by itself."""
        return self._numbers.get(place)

    def view(self, number: int) -> View:
        return self._views.of(self.places[number].computation)

    def name(self, number: int) -> str:
        return self.view(number).rows[self.places[number].row][1]

    def line(self, number: int) -> int:
        return self.view(number).lines[self.places[number].row]

    # -- from instructions to nodes and back ----------------------------------------------------------------------------

    def made_by(self, place: RowPlace) -> list[int]:
        """The nodes that an instruction makes; none of one that only names or hands on what others make."""
        number = self.number(place)
        return [] if number is None else self._made[number]

    @cached_property
    def _made(self) -> list[list[int]]:
        made: list[list[int]] = [[] for _ in self.places]
        for node, number in enumerate(self.instruction_of):
            made[number].append(node)
        return made

    def handed_on_by(self, place: RowPlace) -> list[int]:
        """The nodes of what an instruction returns, in all calls of its computation."""
        frames = self._values.frames_by_name.get(place.computation, ())
        return list(dict.fromkeys(node for frame in frames for node in nodes_in(frame.value(place.row))))

    def maker(self, place: RowPlace) -> int | None:
        """The instruction that makes what another one hands on; `None` where that is itself, or there are several."""
        found = {self.instruction_of[node] for node in self.handed_on_by(place)}
        number = found.pop() if len(found) == 1 else None
        return None if number is None or self.places[number] == place else number

    def is_parameter(self, node: int) -> bool:
        """Whether a node is an array of a parameter of the step."""
        return bool(self._values.kinds[node] & PARAMETER)

    def outputs(self, nodes: Collection[int]) -> list[ShapeIndex]:
        """Where the result of the step holds one of these nodes."""
        wanted = set(nodes)
        return list(dict.fromkeys(index for index, node in _leaves(self._values.result()) if node in wanted))

    # -- searching ------------------------------------------------------------------------------------------------------

    def search(self, edges: Edges, starts: Sequence[int]) -> Iterator[ReachedNode]:
        """The nodes that can be reached along `feeds` or `reads`, the starts among them, the nearest first. A step leads from
        one instruction to another.
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
                further = so_far + (self.instruction_of[other] != instruction)
                if other not in steps or further < steps[other]:
                    steps[other], before[other] = further, node
                    if further > so_far:
                        waiting.append((other, further))
                    else:
                        waiting.appendleft((other, further))


def _leaves(value: Value) -> Iterator[tuple[ShapeIndex, int]]:
    """The nodes of a value, each with its index; of an array in parts all have that of the array."""
    waiting: list[tuple[ShapeIndex, Value]] = [((), value)]
    while waiting:
        at, one = waiting.pop()
        if isinstance(one, tuple):
            waiting += [((*at, number), element) for number, element in reversed(list(enumerate(one)))]
        else:
            yield from ((at, node) for node in nodes_in(one))


def _owners(values: ValueGraph, opened: Collection[str]) -> list[RowPlace | None]:
    """For each call the instruction as a part of which it counts, `None` where its rows are instructions of their own."""
    owners: list[RowPlace | None] = []
    for frame in values.frames:
        if frame.caller is None:
            owners.append(None)
            continue
        caller = values.frames[frame.caller[0]]
        owner = owners[caller.number]
        if owner is None and frame.view.computation.name not in opened and _is_one(caller, frame.caller[1], frame):
            owner = RowPlace(caller.view.computation.name, frame.caller[1])
        owners.append(owner)
    return owners


def _is_one(caller: CallFrame, row: int, called: CallFrame) -> bool:
    """Whether a call is shown as the instruction that makes it: a fusion, and an asynchronous one of a single instruction."""
    opcode = caller.view.opcodes[row]
    if opcode == "fusion":
        return True
    known = TABLE.get(opcode)
    if known is None or known.half != "start":
        return False
    return sum(one not in _HANDING_ON for one in called.view.opcodes) <= 1


_HANDING_ON = NAMING | {"parameter"}

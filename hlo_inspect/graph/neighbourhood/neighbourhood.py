"""The neighbours of one instruction, and the ways between some instructions and others.

They are found in the graph of the values of a step (`graph/value_graph.py`), seen as that of its instructions: which makes an
array of what others make. A fusion is one instruction, and so is the start of an asynchronous computation that holds only one.
Ways inside of one instruction have no length, so that what one array of a loop or of a combined collective is made of is not
mixed up with what the others are.
"""

from __future__ import annotations

import heapq
from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import count
from typing import NamedTuple

from hlo_inspect.graph.neighbourhood.selection import RowPlace
from hlo_inspect.graph.value_graph import PARAMETER, CallFrame, Value, ValueGraph, nodes_in
from hlo_inspect.graph.values import read_values
from hlo_inspect.graph.view import View, Views
from hlo_inspect.hlo import tokens
from hlo_inspect.hlo.instruction import Instruction
from hlo_inspect.hlo.module import Module
from hlo_inspect.hlo.opcodes import CALLING_OPCODES, NAMING, TABLE
from hlo_inspect.hlo.values.header import ShapeIndex
from hlo_inspect.hlo.values.shapes import array_leaves

Edges = Sequence[Sequence[int]]


class ReachedNode(NamedTuple):
    """A node so many steps away; `before` is the node through which it was reached, `None` of one where the search began."""

    node: int
    steps: int
    before: int | None


class InstructionGraph:
    """The nodes of one run of `computation`: `feeds` has those of which each is made, `reads` those that are made of it.

    `instruction_of` is the number of the instruction that makes each, and `places` where the instructions stand. Fused
    computations are one instruction, except those that are `opened`. `is_whole`: all calls could be followed. `computations`
    are those that run.
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
        """The instruction that makes a node."""
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
        owner = None
        if frame.caller is not None:
            caller, row = values.frames[frame.caller[0]], frame.caller[1]
            owner = owners[caller.number]
            if owner is None and frame.name not in opened and _is_one(caller, row, frame):
                owner = RowPlace(caller.name, row)
        owners.append(owner)
    return owners


def _is_one(caller: CallFrame, row: int, called: CallFrame) -> bool:
    """Whether a call is shown as the instruction that makes it: a fusion, and an asynchronous one of a single instruction."""
    known = TABLE.get(caller.view.opcodes[row])
    if known is None or known.half != "start":
        return known is not None and known.name == "fusion"
    return sum(one not in _HANDING_ON for one in called.view.opcodes) <= 1


_HANDING_ON = NAMING | {"parameter"}


MAX_NEIGHBOURS = 2_000
"""So many are looked at on each side."""
MAX_WAYS = 8
MAX_ARRAYS = 4
"""Ways from parameters are sought by so many arrays."""
MAX_BEGUN = 20_000
"""Beginnings of ways that are looked at where there are many."""

Way = list[int]
"""The numbers of its instructions, both ends included."""


class Neighbour(NamedTuple):
    """An instruction so many steps away; `by` is the number of the one before it, `None` where that is the one asked for."""

    number: int
    steps: int
    by: int | None


class Neighbourhood:
    """What feeds and what reads one instruction, up to `depth` steps away.

    `feeds` and `reads` have the nearest first, the first `MAX_NEIGHBOURS` of them; `edges` says which of all feeds which.
    `callers` are what calls its computation.
    """

    def __init__(self, module: Module, views: Views, place: RowPlace, depth: int) -> None:
        self.place, self.row = place, place.row
        self.depth = depth
        self.is_in_entry = module.entry is not None and place.computation == module.entry.name
        self.view = views.of(place.computation)
        self.name, self.line = self.view.names[self.row], self.view.lines[self.row]
        calling = callers(views)
        self.callers = calling.get(place.computation, [])
        self.graph = graph_around(module, views, [place], calling)
        made = self.graph.made_by(place)
        self._makes = bool(made)
        self._nodes = made or self.graph.handed_on_by(place)
        self.feeds, self._above = self._near(self.graph.feeds, 0 if made else 1)
        self.reads, self._below = self._near(self.graph.reads, 0)

    def _near(self, edges: Edges, away: int) -> tuple[list[Neighbour], dict[int, None]]:
        """The neighbours in one direction, and their nodes; what an instruction hands on is `away` steps from it."""
        graph = self.graph
        own = {graph.instruction_of[node] for node in self._nodes} if not away else set()
        found: dict[int, Neighbour] = {}
        nodes: dict[int, None] = {}
        for reached in graph.search(edges, self._nodes):
            steps = reached.steps + away
            if steps > self.depth or len(found) >= MAX_NEIGHBOURS:
                break
            nodes[reached.node] = None
            number = graph.instruction_of[reached.node]
            if steps and number not in own and number not in found:
                by = None if steps == 1 or reached.before is None else graph.instruction_of[reached.before]
                found[number] = Neighbour(number, steps, by)
        return list(found.values()), nodes

    @cached_property
    def instruction(self) -> Instruction | None:
        """The instruction; `None` where its operands are not closed."""
        try:
            return self.view.instruction(self.row)
        except tokens.ScanError:
            return None

    @cached_property
    def outputs(self) -> list[ShapeIndex]:
        """Where the program returns what it makes or hands on."""
        return self.graph.outputs(self._nodes)

    @cached_property
    def from_parameters(self) -> list[Way]:
        """The shortest way from a parameter by each of the first arrays that it is made of. No two begin at one parameter."""
        graph = self.graph
        own = {graph.instruction_of[node] for node in self._nodes} if self._makes else set()
        arrays = [one for node in self._nodes for one in graph.feeds[node]] if self._makes else self._nodes
        found: dict[int, Way] = {}
        for array in list(dict.fromkeys(one for one in arrays if graph.instruction_of[one] not in own))[:MAX_ARRAYS]:
            way = way_from_parameter(graph, array)
            if way:
                found.setdefault(way[0], way)
        return sorted(found.values(), key=len)

    @cached_property
    def edges(self) -> list[tuple[RowPlace, RowPlace]]:
        """Which of all these instructions feeds which."""
        own = set(self._nodes)
        if self._makes:
            return self._joined(self._above | self._below)
        joined = self._joined(self._above)
        joined += [(self._place(node), self.place) for node in self._nodes if node in self._above]
        joined += [
            (self.place if one in own else self._place(one), self._place(node))
            for node in self._below
            if node not in own
            for one in self.graph.feeds[node]
            if one in self._below
        ]
        return list(dict.fromkeys(edge for edge in joined if edge[0] != edge[1]))

    def _joined(self, nodes: Collection[int]) -> list[tuple[RowPlace, RowPlace]]:
        """Which instructions feed which by these nodes."""
        joined = ((self._place(one), self._place(node)) for node in nodes for one in self.graph.feeds[node] if one in nodes)
        return list(dict.fromkeys(edge for edge in joined if edge[0] != edge[1]))

    def _place(self, node: int) -> RowPlace:
        return self.graph.places[self.graph.instruction_of[node]]


class Ways:
    """The ways along which arrays go from any of some instructions to any of others.

    `found` are the shortest ones, `joined` all instructions on some way, each with those that it feeds there. `is_backwards`:
    there is none, but there is one the other way round, which is given.
    """

    def __init__(self, module: Module, views: Views, starts: Sequence[RowPlace], goals: Sequence[RowPlace]) -> None:
        self.starts, self.goals = starts, goals
        self.graph = graph_around(module, views, [*starts, *goals], callers(views))
        self.found, self.joined = self._between(starts, goals)
        self.is_backwards = False
        if not self.found:
            self.found, self.joined = self._between(goals, starts)
            self.is_backwards = bool(self.found)

    def _between(self, starts: Sequence[RowPlace], goals: Sequence[RowPlace]) -> tuple[list[Way], dict[int, list[int]]]:
        first, last = self._nodes(starts), self._nodes(goals)
        joined = joined_between(self.graph, first, last)
        of = self.graph.instruction_of
        return shortest_ways(joined, [of[node] for node in first], [of[node] for node in last]), joined

    def _nodes(self, places: Sequence[RowPlace]) -> list[int]:
        """The nodes that the instructions make, or hand on."""
        return [node for place in places for node in self.graph.made_by(place) or self.graph.handed_on_by(place)]

    @cached_property
    def edges(self) -> list[tuple[RowPlace, RowPlace]]:
        """Which of the instructions on some way feeds which."""
        places = self.graph.places
        return [(places[one], places[other]) for one, others in self.joined.items() for other in others if other in self.joined]


def callers(views: Views) -> dict[str, list[Instruction]]:
    """The instructions that call each computation, in whatever role."""
    found: dict[str, list[Instruction]] = {}
    for name in views.computations:
        view = views.of(name)
        for row, opcode in enumerate(view.opcodes):
            if opcode in CALLING_OPCODES:
                instruction = view.instruction_at(row)
                for callee in dict.fromkeys(called.name for called in instruction.called):
                    found.setdefault(callee, []).append(instruction)
    return found


def graph_around(
    module: Module, views: Views, places: Sequence[RowPlace], calling: Mapping[str, Sequence[Instruction]]
) -> InstructionGraph:
    """The graph of one run of the entry; where this runs none of the instructions that of the computation of the first one. The
    fused computations that they stand in are taken apart; `calling` has what calls each computation.
    """
    opened = _fused_around(calling, dict.fromkeys(place.computation for place in places))
    if module.entry is not None:
        graph = InstructionGraph(views, module.entry.name, opened)
        if any(place.computation in graph.computations for place in places):
            return graph
    return InstructionGraph(views, places[0].computation, opened)


def _fused_around(calling: Mapping[str, Sequence[Instruction]], computations: Iterable[str]) -> frozenset[str]:
    """The computations with those that call them as a part of one instruction."""
    found = dict.fromkeys(computations)
    waiting = list(found)
    for one in waiting:
        for caller in calling.get(one, ()):
            around = caller.computation.name
            if around not in found and caller.opcode == "fusion":
                found[around] = None
                waiting.append(around)
    return frozenset(found)


# -- ways --------------------------------------------------------------------------------------------------------------------


def way_from_parameter(graph: InstructionGraph, node: int) -> Way:
    """Find the shortest way from a parameter to a node, if any; of equally short ones that from the largest parameter."""
    before: dict[int, int | None] = {}
    goals: list[int] = []
    shortest = 0
    for reached in graph.search(graph.feeds, [node]):
        if goals and reached.steps > shortest:
            break
        before[reached.node] = reached.before
        if graph.is_parameter(reached.node):
            goals.append(reached.node)
            shortest = reached.steps
    if not goals:
        return []

    def size(goal: int) -> int:
        number = graph.instruction_of[goal]
        leaves = array_leaves(graph.view(number).shapes[graph.places[number].row])
        return sum(leaf.bytes or 0 for _, leaf in leaves)

    way: Way = []
    one: int | None = max(goals, key=size)
    while one is not None:
        if not way or way[-1] != graph.instruction_of[one]:
            way.append(graph.instruction_of[one])
        one = before[one]
    return way


def joined_between(graph: InstructionGraph, starts: Sequence[int], goals: Sequence[int]) -> dict[int, list[int]]:
    """Every instruction on a way from one of the nodes `starts` to one of `goals`, each with those that it feeds directly on
    such ways; the nearest to the starts first. Empty where there is no way.
    """
    up = {reached.node for reached in graph.search(graph.feeds, goals)}
    down = [reached.node for reached in graph.search(graph.reads, starts) if reached.node in up]
    joined: dict[int, dict[int, None]] = {}
    for node in down:
        fed = (graph.instruction_of[other] for other in graph.reads[node] if other in up)
        joined.setdefault(graph.instruction_of[node], {}).update(dict.fromkeys(fed))
    return {one: [other for other in others if other != one] for one, others in joined.items()}


def shortest_ways(joined: Mapping[int, Sequence[int]], starts: Sequence[int], goals: Sequence[int]) -> list[Way]:
    """Find the shortest ways from any start to any goal, given as instructions, that pass nothing twice. `joined` is what feeds
    what.
    """
    left = _distances(joined, goals)
    ends, order = frozenset(goals), count()
    waiting = [(left[one], left[one], next(order), [one]) for one in dict.fromkeys(starts) if one in left]  # nearly done first
    heapq.heapify(waiting)
    found: list[Way] = []
    begun = 0
    while waiting and len(found) < MAX_WAYS and begun < MAX_BEGUN:
        begun += 1
        *_, way = heapq.heappop(waiting)
        if way[-1] in ends:
            found.append(way)
            continue
        for other in joined.get(way[-1], ()):
            if other in left and other not in way:
                heapq.heappush(waiting, (len(way) + left[other], left[other], next(order), [*way, other]))
    return found


def _distances(joined: Mapping[int, Sequence[int]], goals: Sequence[int]) -> dict[int, int]:
    """How many steps each instruction is from the nearest goal."""
    back: defaultdict[int, list[int]] = defaultdict(list)
    for one, others in joined.items():
        for other in others:
            back[other].append(one)
    found = dict.fromkeys(goals, 0)
    waiting = list(found)
    for one in waiting:
        new = {other: found[one] + 1 for other in back[one] if other not in found}
        found |= new
        waiting += new
    return found

"""The neighbours of an instruction, and the paths between instructions.

The graph of the values of a step (`graph/value_graph.py`) is seen as a graph of its instructions. A fusion is one instruction,
and so is the start of an asynchronous computation that holds only one. Paths inside of an instruction have no length. So the
arrays of a loop or of a combined collective keep their operands apart.
"""

from __future__ import annotations

import heapq
from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import count
from typing import NamedTuple

from hlo_inspect.graph.graph_reader import read_values
from hlo_inspect.graph.neighbourhood.instruction_lookup import RowPlace
from hlo_inspect.graph.value_graph import PARAMETER, CallFrame, Value, ValueGraph, nodes_in
from hlo_inspect.graph.view import View, Views
from hlo_inspect.hlo import tokens
from hlo_inspect.hlo.instruction import Instruction
from hlo_inspect.hlo.module import Module
from hlo_inspect.hlo.opcodes import CALLING_OPCODES, NAMING, TABLE
from hlo_inspect.hlo.values.header import ShapeIndex
from hlo_inspect.hlo.values.shapes import array_leaves

Edges = Sequence[Sequence[int]]


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
        """Return the number of an instruction; None if it makes no array by itself."""
        return self._numbers.get(place)

    def view(self, number: int) -> View:
        return self._views.of(self.places[number].computation)

    def name(self, number: int) -> str:
        return self.view(number).rows[self.places[number].row][1]

    def line(self, number: int) -> int:
        return self.view(number).lines[self.places[number].row]

    # -- from instructions to nodes and back ----------------------------------------------------------------------------

    def made_by(self, place: RowPlace) -> list[int]:
        """Return the nodes that an instruction makes; none if it only names or passes on arrays."""
        number = self.number(place)
        return [] if number is None else self._made[number]

    @cached_property
    def _made(self) -> list[list[int]]:
        made: list[list[int]] = [[] for _ in self.places]
        for node, number in enumerate(self.instruction_of):
            made[number].append(node)
        return made

    def handed_on_by(self, place: RowPlace) -> list[int]:
        """Return the nodes of an instruction's result, in all calls of its computation."""
        frames = self._values.frames_by_name.get(place.computation, ())
        return list(dict.fromkeys(node for frame in frames for node in nodes_in(frame.value(place.row))))

    def maker(self, place: RowPlace) -> int | None:
        """Return the single other instruction that makes the arrays that this one passes on; else None."""
        makers = {self.instruction_of[node] for node in self.handed_on_by(place)}
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
                further = so_far + (self.instruction_of[other] != instruction)
                if other not in steps or further < steps[other]:
                    steps[other], before[other] = further, node
                    if further > so_far:
                        waiting.append((other, further))
                    else:
                        waiting.appendleft((other, further))


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
    """Return for each call the instruction that it counts as; None if its rows are instructions of their own."""
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


_HANDING_ON = NAMING | {"parameter"}


MAX_NEIGHBOURS = 2_000
"""Limit of neighbours on each side."""
MAX_WAYS = 8
MAX_ARRAYS = 4
"""Limit of arrays for which paths from parameters are sought."""
MAX_BEGUN = 20_000
"""Limit of partial paths that are tried."""

Way = list[int]
"""The numbers of the instructions of a path, both ends included."""


class Neighbour(NamedTuple):
    """An instruction at a distance of `steps`; `by` is the number of the previous one, None if that is the centre."""

    number: int
    steps: int
    by: int | None


class Neighbourhood:
    """The instructions that feed and read one instruction, up to `depth` steps away.

    `feeds` and `reads` have the nearest first, at most `MAX_NEIGHBOURS`; `edges` connects all of them. `callers` are the
    instructions that call its computation.
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
        """Return the neighbours in one direction, and their nodes.

        Arrays that the instruction only passes on are `away` steps from it.
        """
        graph = self.graph
        own = {graph.instruction_of[node] for node in self._nodes} if not away else set()
        neighbours: dict[int, Neighbour] = {}
        nodes: dict[int, None] = {}
        for reached in graph.search(edges, self._nodes):
            steps = reached.steps + away
            if steps > self.depth or len(neighbours) >= MAX_NEIGHBOURS:
                break
            nodes[reached.node] = None
            number = graph.instruction_of[reached.node]
            if steps and number not in own and number not in neighbours:
                by = None if steps == 1 or reached.before is None else graph.instruction_of[reached.before]
                neighbours[number] = Neighbour(number, steps, by)
        return list(neighbours.values()), nodes

    @cached_property
    def instruction(self) -> Instruction | None:
        """The instruction; None if its operands are not closed."""
        try:
            return self.view.instruction(self.row)
        except tokens.ScanError:
            return None

    @cached_property
    def outputs(self) -> list[ShapeIndex]:
        """The indices of the program's result that hold an array that it makes or passes on."""
        return self.graph.outputs(self._nodes)

    @cached_property
    def from_parameters(self) -> list[Way]:
        """The shortest path from a parameter to each of the first `MAX_ARRAYS` operands, one for each parameter."""
        graph = self.graph
        own = {graph.instruction_of[node] for node in self._nodes} if self._makes else set()
        arrays = [operand for node in self._nodes for operand in graph.feeds[node]] if self._makes else self._nodes
        paths: dict[int, Way] = {}
        for array in list(dict.fromkeys(node for node in arrays if graph.instruction_of[node] not in own))[:MAX_ARRAYS]:
            path = path_from_parameter(graph, array)
            if path:
                paths.setdefault(path[0], path)
        return sorted(paths.values(), key=len)

    @cached_property
    def edges(self) -> list[tuple[RowPlace, RowPlace]]:
        """Pairs of these instructions: the second reads the first."""
        own = set(self._nodes)
        if self._makes:
            return self._joined(self._above | self._below)
        joined = self._joined(self._above)
        joined += [(self._place(node), self.place) for node in self._nodes if node in self._above]
        joined += [
            (self.place if operand in own else self._place(operand), self._place(node))
            for node in self._below
            if node not in own
            for operand in self.graph.feeds[node]
            if operand in self._below
        ]
        return list(dict.fromkeys(edge for edge in joined if edge[0] != edge[1]))

    def _joined(self, nodes: Collection[int]) -> list[tuple[RowPlace, RowPlace]]:
        """Return the pairs of instructions that these nodes connect."""
        joined = (
            (self._place(operand), self._place(node))
            for node in nodes
            for operand in self.graph.feeds[node]
            if operand in nodes
        )
        return list(dict.fromkeys(edge for edge in joined if edge[0] != edge[1]))

    def _place(self, node: int) -> RowPlace:
        return self.graph.places[self.graph.instruction_of[node]]


class Ways:
    """The paths of arrays from any of some instructions to any of others.

    `found` are the shortest ones. `joined` has all instructions on some path, each with those that it feeds there.
    `is_backwards` means that paths exist only from the goals to the starts; these are given then.
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
        instruction_of = self.graph.instruction_of
        return shortest_paths(joined, [instruction_of[node] for node in first], [instruction_of[node] for node in last]), joined

    def _nodes(self, places: Sequence[RowPlace]) -> list[int]:
        """Return the nodes that the instructions make or pass on."""
        return [node for place in places for node in self.graph.made_by(place) or self.graph.handed_on_by(place)]

    @cached_property
    def edges(self) -> list[tuple[RowPlace, RowPlace]]:
        """Pairs of instructions on some path: the second reads the first."""
        places = self.graph.places
        return [
            (places[number], places[user]) for number, users in self.joined.items() for user in users if user in self.joined
        ]


def callers(views: Views) -> dict[str, list[Instruction]]:
    """Return the instructions that call each computation, in any role."""
    instructions: dict[str, list[Instruction]] = {}
    for name in views.computations:
        view = views.of(name)
        for row, opcode in enumerate(view.opcodes):
            if opcode in CALLING_OPCODES:
                instruction = view.instruction_at(row)
                for callee in dict.fromkeys(called.name for called in instruction.called):
                    instructions.setdefault(callee, []).append(instruction)
    return instructions


def graph_around(
    module: Module, views: Views, places: Sequence[RowPlace], calling: Mapping[str, Sequence[Instruction]]
) -> InstructionGraph:
    """Return the graph of one run of the entry.

    If the entry runs none of the instructions, return that of the computation of the first one. Fused computations around them
    are opened. `calling` has the callers of each computation.
    """
    opened = _fused_around(calling, dict.fromkeys(place.computation for place in places))
    if module.entry is not None:
        graph = InstructionGraph(views, module.entry.name, opened)
        if any(place.computation in graph.computations for place in places):
            return graph
    return InstructionGraph(views, places[0].computation, opened)


def _fused_around(calling: Mapping[str, Sequence[Instruction]], computations: Iterable[str]) -> frozenset[str]:
    """Return the computations, and those of the fusions around them."""
    opened = dict.fromkeys(computations)
    waiting = list(opened)
    for name in waiting:
        for caller in calling.get(name, ()):
            around = caller.computation.name
            if around not in opened and caller.opcode == "fusion":
                opened[around] = None
                waiting.append(around)
    return frozenset(opened)


# -- paths -------------------------------------------------------------------------------------------------------------------


def path_from_parameter(graph: InstructionGraph, node: int) -> Way:
    """Return the shortest path from a parameter to a node; empty if there is none.

    Of equally short paths take that from the largest parameter.
    """
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

    path: Way = []
    current: int | None = max(goals, key=size)
    while current is not None:
        if not path or path[-1] != graph.instruction_of[current]:
            path.append(graph.instruction_of[current])
        current = before[current]
    return path


def joined_between(graph: InstructionGraph, starts: Sequence[int], goals: Sequence[int]) -> dict[int, list[int]]:
    """Return every instruction on a path from `starts` to `goals` (nodes), with those that it feeds on such paths.

    The nearest to the starts come first. Empty if there is no path.
    """
    up = {reached.node for reached in graph.search(graph.feeds, goals)}
    down = [reached.node for reached in graph.search(graph.reads, starts) if reached.node in up]
    joined: dict[int, dict[int, None]] = {}
    for node in down:
        fed = (graph.instruction_of[other] for other in graph.reads[node] if other in up)
        joined.setdefault(graph.instruction_of[node], {}).update(dict.fromkeys(fed))
    return {number: [user for user in users if user != number] for number, users in joined.items()}


def shortest_paths(joined: Mapping[int, Sequence[int]], starts: Sequence[int], goals: Sequence[int]) -> list[Way]:
    """Return the shortest paths without repeats from any start to any goal, all given as instructions.

    `joined` has the users of each instruction.
    """
    left = _distances(joined, goals)
    ends, order = frozenset(goals), count()
    waiting = [
        (left[start], left[start], next(order), [start]) for start in dict.fromkeys(starts) if start in left
    ]  # nearly done first
    heapq.heapify(waiting)
    paths: list[Way] = []
    begun = 0
    while waiting and len(paths) < MAX_WAYS and begun < MAX_BEGUN:
        begun += 1
        *_, path = heapq.heappop(waiting)
        if path[-1] in ends:
            paths.append(path)
            continue
        for other in joined.get(path[-1], ()):
            if other in left and other not in path:
                heapq.heappush(waiting, (len(path) + left[other], left[other], next(order), [*path, other]))
    return paths


def _distances(joined: Mapping[int, Sequence[int]], goals: Sequence[int]) -> dict[int, int]:
    """Return the number of steps from each instruction to the nearest goal."""
    back: defaultdict[int, list[int]] = defaultdict(list)
    for number, users in joined.items():
        for user in users:
            back[user].append(number)
    distances = dict.fromkeys(goals, 0)
    waiting = list(distances)
    for number in waiting:
        new = {operand: distances[number] + 1 for operand in back[number] if operand not in distances}
        distances |= new
        waiting += new
    return distances

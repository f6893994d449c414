"""The shortest paths of arrays between instructions."""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import count

from hlo_inspect.graph.neighbourhood.instruction_graph import InstructionGraph, callers, graph_around
from hlo_inspect.graph.neighbourhood.instruction_lookup import RowPlace
from hlo_inspect.graph.view import Views
from hlo_inspect.hlo.module import Module
from hlo_inspect.hlo.values.shapes import array_leaves

MAX_PATHS = 8
MAX_BEGUN = 20_000
"""Limit of partial paths that are tried."""

InstructionPath = list[int]
"""The numbers of the instructions of a path, both ends included."""


class InstructionPaths:
    """The paths of arrays from any of some instructions to any of others.

    `shortest` are the shortest paths. `joined` maps each instruction on some path to its users on these paths. `is_backwards`
    means that paths exist only from the goals to the starts; then these paths are stored.
    """

    def __init__(self, module: Module, views: Views, starts: Sequence[RowPlace], goals: Sequence[RowPlace]) -> None:
        self.starts, self.goals = starts, goals
        self.graph = graph_around(module, views, [*starts, *goals], callers(views))
        self.shortest, self.joined = self._connect(starts, goals)
        self.is_backwards = False
        if not self.shortest:
            self.shortest, self.joined = self._connect(goals, starts)
            self.is_backwards = bool(self.shortest)

    def _connect(
        self, starts: Sequence[RowPlace], goals: Sequence[RowPlace]
    ) -> tuple[list[InstructionPath], dict[int, list[int]]]:
        first, last = self._nodes(starts), self._nodes(goals)
        joined = instructions_between(self.graph, first, last)
        instruction_of = self.graph.instruction_of
        return shortest_paths(joined, [instruction_of[node] for node in first], [instruction_of[node] for node in last]), joined

    def _nodes(self, places: Sequence[RowPlace]) -> list[int]:
        return [node for place in places for node in self.graph.nodes_made_by(place) or self.graph.result_nodes(place)]

    @cached_property
    def edges(self) -> list[tuple[RowPlace, RowPlace]]:
        """Pairs of instructions on some path: the second reads the first."""
        places = self.graph.places
        return [
            (places[number], places[user]) for number, users in self.joined.items() for user in users if user in self.joined
        ]


def path_from_parameter(graph: InstructionGraph, node: int) -> InstructionPath:
    """Return the shortest path from a parameter to a node; empty if there is none.

    If paths are equally short, take the path from the largest parameter.
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
        return sum(leaf.bytes or 0 for _, leaf in array_leaves(graph.view(number).shapes[graph.places[number].row]))

    path: InstructionPath = []
    current: int | None = max(goals, key=size)
    while current is not None:
        if not path or path[-1] != graph.instruction_of[current]:
            path.append(graph.instruction_of[current])
        current = before[current]
    return path


def instructions_between(graph: InstructionGraph, starts: Sequence[int], goals: Sequence[int]) -> dict[int, list[int]]:
    """Return every instruction on a path from `starts` to `goals` (nodes), with its users on such paths.

    The nearest to the starts come first. Empty if there is no path.
    """
    ancestors = {reached.node for reached in graph.search(graph.feeds, goals)}
    nodes = [reached.node for reached in graph.search(graph.reads, starts) if reached.node in ancestors]
    joined: dict[int, dict[int, None]] = {}
    for node in nodes:
        fed = (graph.instruction_of[other] for other in graph.reads[node] if other in ancestors)
        joined.setdefault(graph.instruction_of[node], {}).update(dict.fromkeys(fed))
    return {number: [user for user in users if user != number] for number, users in joined.items()}


def shortest_paths(joined: Mapping[int, Sequence[int]], starts: Sequence[int], goals: Sequence[int]) -> list[InstructionPath]:
    """Return the shortest paths without repeats from any start to any goal, all given as instructions.

    `joined` has the users of each instruction.
    """
    left = _distances(joined, goals)
    ends, order = frozenset(goals), count()
    waiting = [
        (left[start], left[start], next(order), [start]) for start in dict.fromkeys(starts) if start in left
    ]  # nearly done first
    heapq.heapify(waiting)
    paths: list[InstructionPath] = []
    begun = 0
    while waiting and len(paths) < MAX_PATHS and begun < MAX_BEGUN:
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
    feeders: defaultdict[int, list[int]] = defaultdict(list)
    for number, users in joined.items():
        for user in users:
            feeders[user].append(number)
    distances = dict.fromkeys(goals, 0)
    waiting = list(distances)
    for number in waiting:
        new = {operand: distances[number] + 1 for operand in feeders[number] if operand not in distances}
        distances |= new
        waiting += new
    return distances

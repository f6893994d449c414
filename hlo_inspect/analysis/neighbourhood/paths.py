"""Ways along the arrays of a step: from the parameters to an instruction, and from some instructions to others.

A way is the numbers of its instructions, both ends included.
"""

from __future__ import annotations

import heapq
from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from itertools import count

from hlo_inspect.analysis.neighbourhood.instruction_graph import InstructionGraph
from hlo_inspect.hlo.shapes import array_leaves

MAX_BEGUN = 20_000
"""Beginnings of ways that are looked at where there are many."""

Way = list[int]


def way_from_parameter(graph: InstructionGraph, node: int) -> Way:
    """The shortest way from a parameter to a node, of several equally short ones that from the largest parameter; empty where
    no parameter leads to it.
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
    way: Way = []
    one: int | None = max(goals, key=lambda goal: _size(graph, goal))
    while one is not None:
        if not way or way[-1] != graph.instruction_of[one]:
            way.append(graph.instruction_of[one])
        one = before[one]
    return way


def _size(graph: InstructionGraph, node: int) -> int:
    number = graph.instruction_of[node]
    shape = graph.view(number).shapes[graph.places[number].row]
    return sum(leaf.bytes or 0 for _, leaf in array_leaves(shape))


def joined_between(graph: InstructionGraph, starts: Sequence[int], goals: Sequence[int]) -> dict[int, list[int]]:
    """Every instruction on a way from one of the nodes `starts` to one of `goals`, each with those that it feeds directly on
    such ways; the nearest to the starts first. Empty where there is no way.
    """
    up = {reached.node for reached in graph.search(graph.feeds, goals)}
    down = [reached.node for reached in graph.search(graph.reads, starts) if reached.node in up]
    joined: dict[int, dict[int, None]] = {}
    for node in down:
        own = joined.setdefault(graph.instruction_of[node], {})
        own |= dict.fromkeys(graph.instruction_of[other] for other in graph.reads[node] if other in up)
    return {one: [other for other in others if other != one] for one, others in joined.items()}


def shortest_ways(joined: Mapping[int, Sequence[int]], starts: Sequence[int], goals: Sequence[int], limit: int) -> list[Way]:
    """The `limit` shortest ways from any start to any goal, given as instructions, that pass nothing twice; the shortest first.
    `joined` is what feeds what.
    """
    left = _distances(joined, goals)
    ends, order = frozenset(goals), count()
    waiting = [(left[one], left[one], next(order), [one]) for one in dict.fromkeys(starts) if one in left]  # nearly done first
    heapq.heapify(waiting)
    found: list[Way] = []
    for _ in range(MAX_BEGUN):
        if not waiting or len(found) >= limit:
            break
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
    waiting = deque(found)
    while waiting:
        one = waiting.popleft()
        for other in back[one]:
            if other not in found:
                found[other] = found[one] + 1
                waiting.append(other)
    return found

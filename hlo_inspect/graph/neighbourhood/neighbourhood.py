"""The neighbours of an instruction."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import cached_property
from typing import NamedTuple

from hlo_inspect.graph.neighbourhood.instruction_graph import Edges, callers, graph_around
from hlo_inspect.graph.neighbourhood.instruction_lookup import RowPlace
from hlo_inspect.graph.neighbourhood.paths import InstructionPath, path_from_parameter
from hlo_inspect.graph.view import Views
from hlo_inspect.hlo import tokens
from hlo_inspect.hlo.instruction import Instruction
from hlo_inspect.hlo.module import Module
from hlo_inspect.hlo.values.header import ShapeIndex

MAX_NEIGHBOURS = 2_000
"""Limit of neighbours on each side."""
MAX_ARRAYS = 4
"""Limit of arrays for which paths from parameters are sought."""


class Neighbour(NamedTuple):
    """An instruction at a distance of `steps`. `by` is the number of the previous instruction, None if that is the centre."""

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
        self.view = views.for_computation(place.computation)
        self.name, self.line = self.view.names[self.row], self.view.lines[self.row]
        calling = callers(views)
        self.callers = calling.get(place.computation, [])
        self.graph = graph_around(module, views, [place], calling)
        made = self.graph.nodes_made_by(place)
        self._makes = bool(made)
        self._nodes = made or self.graph.result_nodes(place)
        self.feeds, self._above = self._find_neighbours(self.graph.feeds, 0 if made else 1)
        self.reads, self._below = self._find_neighbours(self.graph.reads, 0)

    def _find_neighbours(self, edges: Edges, distance: int) -> tuple[list[Neighbour], dict[int, None]]:
        """Return the neighbours in one direction, and their nodes.

        Arrays that the instruction only passes on are `distance` steps from it.
        """
        graph = self.graph
        own = {graph.instruction_of[node] for node in self._nodes} if not distance else set()
        neighbours: dict[int, Neighbour] = {}
        nodes: dict[int, None] = {}
        for reached in graph.search(edges, self._nodes):
            steps = reached.steps + distance
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
        """The indices of the program's result that hold an array which the instruction makes or passes on."""
        return self.graph.outputs(self._nodes)

    @cached_property
    def parameter_paths(self) -> list[InstructionPath]:
        """The shortest path from a parameter to each of the first `MAX_ARRAYS` operands, one for each parameter."""
        graph = self.graph
        own = {graph.instruction_of[node] for node in self._nodes} if self._makes else set()
        arrays = [operand for node in self._nodes for operand in graph.feeds[node]] if self._makes else self._nodes
        paths: dict[int, InstructionPath] = {}
        for array in list(dict.fromkeys(node for node in arrays if graph.instruction_of[node] not in own))[:MAX_ARRAYS]:
            path = path_from_parameter(graph, array)
            if path:
                paths.setdefault(path[0], path)
        return sorted(paths.values(), key=len)

    @cached_property
    def edges(self) -> list[tuple[RowPlace, RowPlace]]:
        """Pairs of these instructions: the second reads the first."""
        if self._makes:
            joined = self._connected_instructions(self._above | self._below)
        else:
            own = set(self._nodes)
            joined = self._connected_instructions(self._above)
            joined += [(self._place(node), self.place) for node in self._nodes if node in self._above]
            joined += [
                (self.place if operand in own else self._place(operand), self._place(node))
                for operand, node in self._connected_nodes(self._below)
                if node not in own
            ]
        return list(dict.fromkeys(edge for edge in joined if edge[0] != edge[1]))

    def _connected_instructions(self, nodes: Collection[int]) -> list[tuple[RowPlace, RowPlace]]:
        return [(self._place(operand), self._place(node)) for operand, node in self._connected_nodes(nodes)]

    def _connected_nodes(self, nodes: Collection[int]) -> Iterator[tuple[int, int]]:
        """Yield the pairs of these nodes of which the second is made of the first."""
        return ((operand, node) for node in nodes for operand in self.graph.feeds[node] if operand in nodes)

    def _place(self, node: int) -> RowPlace:
        return self.graph.places[self.graph.instruction_of[node]]

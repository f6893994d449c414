"""Arrays that are flattened into one, updated there, and cut apart again.

A step may concatenate all weights (`ravel_pytree`, ZeRO-1 by hand), update a long array and cut the new weights out of it, or
keep its moments as one long array. A cut and an operation element by element can change places: a cut out of `a + b` is the sum
of the cuts out of `a` and `b`, and one out of a concatenation is the operand that lies there. So the new value of a weight is
what it would be by itself, and a long array of state is as many arrays as parts are cut out of it.
"""

from __future__ import annotations

from collections.abc import Sequence

from hlo_inspect.analysis.optimizer.dataflow import ELEMENTWISE
from hlo_inspect.analysis.optimizer.graph import Graph
from hlo_inspect.hlo.values import SliceDimension

MAX_MADE = 200_000  # nodes: each part of a long expression is an expression of its own


def flat_range(graph: Graph, node: int) -> SliceDimension | None:
    """The range that a slice takes of the flattened array, `None` for another node."""
    part = graph.attributes[node]
    if graph.ops[node] != "slice" or not isinstance(part, tuple) or len(part) != 1 or not isinstance(part[0], SliceDimension):
        return None
    return part[0]


def flat_ranges(graph: Graph, nodes: Sequence[int]) -> list[int]:
    """The nodes that are ranges of flattened arrays."""
    return [node for node in nodes if graph.ops[node] == "slice" and flat_range(graph, node) is not None]


class Cuts:
    """Cuts out of expressions, moved to their leaves."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._known: dict[tuple[int, SliceDimension], int] = {}

    def moved(self, nodes: Sequence[int]) -> list[int]:
        """The nodes with all cuts moved to leaves."""
        graph = self._graph
        below = graph.below(nodes)
        if not flat_ranges(graph, below):
            return list(nodes)
        known: dict[int, int] = {}
        for node in below:
            args = tuple([known[arg] for arg in graph.args[node]])
            part = flat_range(graph, node)
            if part is not None:
                known[node] = self.cut(args[0], part)
            elif args == graph.args[node]:
                known[node] = node
            else:
                known[node] = graph.make(graph.ops[node], args, graph.attributes[node], graph.sizes[node])
        return [known[node] for node in nodes]

    def cut(self, node: int, part: SliceDimension) -> int:
        """A part of the flattened value of a node."""
        stack = [(node, part)]
        while stack:
            top = stack[-1]
            if top in self._known:
                stack.pop()
                continue
            found = self._step(*top)
            if isinstance(found, int):
                self._known[top] = found
            else:
                stack += found
        return self._known[node, part]

    def _step(self, node: int, part: SliceDimension) -> int | list[tuple[int, SliceDimension]]:
        """A part of a node, or the parts of other nodes that have to be known before it."""
        graph = self._graph
        op, args = graph.ops[node], graph.args[node]
        size = part.limit - part.start
        if graph.sizes[node] == 1 or (size == graph.sizes[node] and not part.start):
            return node
        below: list[tuple[int, SliceDimension]] = []
        if len(self._known) < MAX_MADE:
            inner = flat_range(graph, node)
            if inner is not None:
                below = [(args[0], SliceDimension(inner.start + part.start, inner.start + part.limit, 1))]
            elif op == "concatenate" and graph.attributes[node]:
                below = self._operand(args, part)
            elif op in ELEMENTWISE:
                below = [(arg, part) for arg in args]
        if not below:
            return graph.make("slice", (node,), (part,), size)
        missing = [one for one in below if one not in self._known]
        if missing:
            return missing
        parts = tuple([self._known[one] for one in below])
        return graph.make(op, parts, graph.attributes[node]) if op in ELEMENTWISE else parts[0]

    def _operand(self, args: tuple[int, ...], part: SliceDimension) -> list[tuple[int, SliceDimension]]:
        """The operand of a concatenation in which a part lies, and where in it."""
        start = 0
        for arg in args:
            limit = start + self._graph.sizes[arg]
            if start <= part.start and part.limit <= limit:
                return [(arg, SliceDimension(part.start - start, part.limit - start, 1))]
            start = limit
        return []

"""Arrays that are flattened into one, updated there, and cut apart again.

A step may concatenate all weights (`ravel_pytree`, ZeRO-1 by hand), update a long array and cut the new weights out of it. Or
it keeps its moments as one long array.

A cut and an elementwise operation can change places. A cut out of `a + b` is the sum of the cuts out of `a` and `b`; a cut out
of a concatenation is a cut out of an operand. So a weight has the same new value as without the flattening. A long array of
state becomes an array for each part.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from itertools import combinations

from hlo_inspect.hlo.values.attributes import SliceDimension
from hlo_inspect.optimizer.graph import Graph
from hlo_inspect.optimizer.operations import ELEMENTWISE

MAX_SLICES = 64  # slices that are joined again
MAX_MADE = 200_000  # nodes: each part of a long expression is an expression of its own


def flat_part(parts: Sequence[SliceDimension], dimensions: Sequence[int | None]) -> SliceDimension | None:
    """Return the range of a slice in the flattened array, row-major.

    It is a range if the slice takes whole rows, or a part of a single row.
    """
    inner = 1
    start, is_whole = 0, True
    for part, size in zip(reversed(parts), reversed(dimensions), strict=False):
        count = len(slice_indices(part))
        if size is None or (part.stride or 1) != 1 or (not is_whole and count != 1):
            return None
        start += part.start * inner
        is_whole = is_whole and count == size
        inner *= size
    return SliceDimension(start, start + math.prod(len(slice_indices(part)) for part in parts), 1)


def slice_indices(part: SliceDimension) -> range:
    """Return the indices that a slice takes of one dimension."""
    return range(part.start, part.limit, part.stride or 1)


def has_one_element(attribute: Hashable) -> bool:
    """Return True if a slice, from start to limit, takes one element."""
    parts = _bounds(attribute)
    return bool(parts) and all(len(slice_indices(part)) == 1 for part in parts)


def are_whole(graph: Graph, slices: Sequence[int], source: int) -> bool:
    """Return True if slices of an array hold each of its elements once."""
    if sum(graph.sizes[node] for node in slices) != graph.sizes[source] or len(slices) > MAX_SLICES:
        return False
    parts = [graph.attributes[node] for node in slices]
    return all(_are_apart(first, second) for first, second in combinations(parts, 2))


def _are_apart(first: Hashable, second: Hashable) -> bool:
    """Return True if two slices, from start to limit, share no element."""
    left, right = _bounds(first), _bounds(second)
    if not left or len(left) != len(right):
        return False
    return any(a.limit <= b.start or b.limit <= a.start for a, b in zip(left, right, strict=True))


def _bounds(attributes: Hashable) -> list[SliceDimension]:
    """Return the bounds of a slice in each dimension; empty if its attribute could not be read."""
    parts = attributes if isinstance(attributes, tuple) else ()
    read = [part for part in parts if isinstance(part, SliceDimension)]
    return read if len(read) == len(parts) else []


def flat_range(graph: Graph, node: int) -> SliceDimension | None:
    """Return the range that a slice takes of the flattened array, None for another node."""
    part = graph.attributes[node]
    if graph.ops[node] != "slice" or not isinstance(part, tuple) or len(part) != 1 or not isinstance(part[0], SliceDimension):
        return None
    return part[0]


def flat_ranges(graph: Graph, nodes: Sequence[int]) -> list[int]:
    """Return the nodes that are ranges of flattened arrays."""
    return [node for node in nodes if graph.ops[node] == "slice" and flat_range(graph, node) is not None]


class Cuts:
    """Cuts out of expressions, moved to their leaves."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._known: dict[tuple[int, SliceDimension], int] = {}

    def moved(self, nodes: Sequence[int]) -> list[int]:
        """Return the nodes with all cuts moved to leaves."""
        graph = self._graph
        below = graph.reachable(nodes)
        if not flat_ranges(graph, below):
            return list(nodes)
        moved: dict[int, int] = {}
        for node in below:
            args = tuple(map(moved.__getitem__, graph.args[node]))
            part = flat_range(graph, node)
            if part is not None:
                moved[node] = self.cut(args[0], part)
            elif args == graph.args[node]:
                moved[node] = node
            else:
                moved[node] = graph.make(graph.ops[node], args, graph.attributes[node], graph.sizes[node])
        return [moved[node] for node in nodes]

    def cut(self, node: int, part: SliceDimension) -> int:
        """Return a part of the flattened value of a node."""
        stack = [(node, part)]
        while stack:
            top = stack[-1]
            if top in self._known:
                stack.pop()
                continue
            step = self._step(*top)
            if isinstance(step, int):
                self._known[top] = step
            else:
                stack += step
        return self._known[node, part]

    def _step(self, node: int, part: SliceDimension) -> int | list[tuple[int, SliceDimension]]:
        """Return a part of a node, or the parts of other nodes to cut first."""
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
        missing = [operand for operand in below if operand not in self._known]
        if missing:
            return missing
        parts = tuple([self._known[operand] for operand in below])
        return graph.make(op, parts, graph.attributes[node]) if op in ELEMENTWISE else parts[0]

    def _operand(self, args: tuple[int, ...], part: SliceDimension) -> list[tuple[int, SliceDimension]]:
        """Return the operand of a concatenation that holds a part, and the part in that operand."""
        start = 0
        for arg in args:
            limit = start + self._graph.sizes[arg]
            if start <= part.start and part.limit <= limit:
                return [(arg, SliceDimension(part.start - start, part.limit - start, 1))]
            start = limit
        return []

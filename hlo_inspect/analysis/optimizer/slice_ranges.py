"""Slices of arrays: which range of the flattened array one is, and whether several are all of it."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from itertools import combinations

from hlo_inspect.analysis.optimizer.graph import Graph
from hlo_inspect.hlo.values import SliceDimension

MAX_SLICES = 64  # that are put together again


def flat_part(parts: Sequence[SliceDimension], dimensions: Sequence[int | None]) -> SliceDimension | None:
    """The range of a slice in the flattened array, row-major, where it is one: whole rows, or a part of a single one."""
    inner = 1
    start, is_whole = 0, True
    for part, size in zip(reversed(parts), reversed(dimensions), strict=False):
        count = len(elements_of(part))
        if size is None or (part.stride or 1) != 1 or (not is_whole and count != 1):
            return None
        start += part.start * inner
        is_whole = is_whole and count == size
        inner *= size
    return SliceDimension(start, start + math.prod(len(elements_of(part)) for part in parts), 1)


def elements_of(part: SliceDimension) -> range:
    """What a slice takes of one dimension."""
    return range(part.start, part.limit, part.stride or 1)


def has_one_element(attribute: Hashable) -> bool:
    """Whether a slice, from start to limit, takes one element."""
    found = _bounds(attribute)
    return bool(found) and all(len(elements_of(part)) == 1 for part in found)


def are_whole(graph: Graph, slices: Sequence[int], source: int) -> bool:
    """Whether slices of an array hold each of its elements once."""
    if sum(graph.sizes[node] for node in slices) != graph.sizes[source] or len(slices) > MAX_SLICES:
        return False
    parts = [graph.attributes[node] for node in slices]
    return all(_are_apart(one, other) for one, other in combinations(parts, 2))


def _are_apart(one: Hashable, other: Hashable) -> bool:
    """Whether two slices, from start to limit, share no element."""
    left, right = _bounds(one), _bounds(other)
    if not left or len(left) != len(right):
        return False
    return any(a.limit <= b.start or b.limit <= a.start for a, b in zip(left, right, strict=True))


def _bounds(attributes: Hashable) -> list[SliceDimension]:
    """From where to where a slice goes; nothing where its attribute could not be read."""
    parts = attributes if isinstance(attributes, tuple) else ()
    read = [part for part in parts if isinstance(part, SliceDimension)]
    return read if len(read) == len(parts) else []

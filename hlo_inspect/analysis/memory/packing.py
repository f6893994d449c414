"""Where in a heap each buffer lies.

Follows `GlobalDecreasingSizeBestFitHeap` (xla/service/heap_simulator/heap_simulator.cc): buffers in a fixed order, each in the
smallest gap that is free at all its times, on ties the lowest. Of two orders, by size and by duration, the one with the lower
heap is taken (`ChooseBestHeapAlgorithm`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

from hlo_inspect.analysis.memory.heap import Interval

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MANY, _TOO_MANY = 1 << 30, 1 << 62
"""Numbers below the first, and their differences, have 32 bits, those below the second 64; damaged shapes have any size."""


@dataclass(frozen=True, slots=True)
class Packing:
    """The height of a heap in bytes, and by value that has memory of its own the offset."""

    bytes: int
    offsets: Mapping[int, int]


class _Group(NamedTuple):
    """Values in one place: the first one, which has the size, and the spans of ticks that they are there."""

    value: int
    bytes: int
    duration: int
    spans: Sequence[tuple[int, int]]


def pack(intervals: Mapping[int, Interval], alignment: int) -> Packing:
    """The lower of the two packings of these intervals, with offsets that are multiples of `alignment`."""
    groups = _groups(intervals)
    by_size = sorted(groups, key=lambda one: (-one.bytes, -one.duration, one.value))
    by_duration = sorted(groups, key=lambda one: (one.spans[0][0] - one.spans[-1][1], -one.bytes, one.value))
    spatial = _pack(by_size, alignment)
    if by_size == by_duration:
        return spatial
    load, tick = _highest_load(groups, alignment)
    if spatial.bytes <= load:
        return spatial
    for some in (_placed_before(by_duration, tick), by_duration):
        temporal = _pack(some, alignment, enough=spatial.bytes)
        if temporal.bytes >= spatial.bytes:
            return spatial
    return temporal


def _highest_load(groups: Sequence[_Group], alignment: int) -> tuple[int, int]:
    """Bytes that no packing of these groups is lower than, and the first tick at which they are there. One of all that are
    there lies at least as high as the others are together, and what it leaves unused of its last unit may be above the heap.
    """
    changes = [0] * (max((group.spans[-1][1] for group in groups), default=0) + 2)
    unused = 0
    for group in groups:
        units = -(-group.bytes // alignment)
        unused = max(unused, units * alignment - group.bytes)
        for start, end in group.spans:
            changes[start] += units
            changes[end + 1] -= units
    loads = list(accumulate(changes))
    highest = max(loads)
    return highest * alignment - unused, loads.index(highest)


def _placed_before(order: Sequence[_Group], tick: int) -> list[_Group]:
    """In the same order what is there at a tick, and all that the places of these depend on: what comes before one of them and
    is there at the same time. It is a part of the schedule around the tick where short groups come last.
    """
    found: list[_Group] = []
    first = last = tick
    for group in reversed(order):
        start, end = group.spans[0][0], group.spans[-1][1]
        if start <= last and end >= first:
            found.append(group)
            first, last = min(first, start), max(last, end)
    return found[::-1]


def _groups(intervals: Mapping[int, Interval]) -> list[_Group]:
    members: dict[int, list[Interval]] = defaultdict(list)
    for interval in intervals.values():
        if interval.bytes:
            members[interval.base].append(interval)
    groups = []
    for base, sharing in members.items():
        own = intervals[base]
        groups.append(_Group(base, own.bytes, own.end - own.start, _merged([(one.start, one.end) for one in sharing])))
    return groups


def _merged(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Spans in order, those that meet as one: no other buffer fits between them."""
    spans.sort()
    merged = [spans[0]]
    for start, end in spans[1:]:
        if start <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    return merged


class _Placed:
    """The spans of a heap that have their place, sorted by offset in units of the alignment, with room for `count` spans."""

    def __init__(self, count: int, largest: int) -> None:
        import numpy as np

        self._np = np
        kind = np.int32 if largest < _MANY else np.int64 if largest < _TOO_MANY else object
        self._table: NDArray[Any] = np.empty((4, count), kind)
        self._columns = tuple(self._table)
        self._overlap, self._second = np.empty(count, np.bool_), np.empty(count, np.bool_)
        self._count = 0

    def offset(self, spans: Sequence[tuple[int, int]], units: int) -> int:
        """Of the smallest gaps of so many units that are free at all times of the spans the lowest one, else the end of all."""
        np, count = self._np, self._count
        starts, ends, bottoms, tops = self._columns
        overlap, second = self._overlap[:count], self._second[:count]
        (first, last), *others = spans
        np.less_equal(starts[:count], last, overlap)
        np.greater_equal(ends[:count], first, second)
        overlap &= second
        for start, end in others:
            overlap |= (starts[:count] <= end) & (ends[:count] >= start)
        found = overlap.nonzero()[0]
        if not len(found):
            return 0
        used = bottoms.take(found)
        free_from = np.maximum.accumulate(tops.take(found))  # the lowest offset above all that lie lower
        lowest: int = used.item(0)
        gaps = used[1:] - free_from[:-1]
        fitting = (gaps >= units).nonzero()[0]
        if len(fitting):
            sizes = gaps.take(fitting)
            smallest = sizes.argmin()
            if lowest < units or sizes.item(smallest) < lowest:
                offset: int = free_from.item(fitting.item(smallest))
                return offset
        return 0 if lowest >= units else int(free_from[-1])

    def add(self, spans: Sequence[tuple[int, int]], bottom: int, top: int) -> None:
        """Spans of what lies from one offset to the other."""
        table = self._table
        at = int(self._columns[2][: self._count].searchsorted(bottom))
        end = self._count + len(spans)
        table[:, at + len(spans) : end] = table[:, at : self._count]
        table[:2, at : at + len(spans)] = tuple(zip(*spans, strict=True))
        table[2:, at : at + len(spans)] = ((bottom,), (top,))
        self._count = end


def _pack(order: Sequence[_Group], alignment: int, enough: int | None = None) -> Packing:
    """The packing of groups in this order, as far as it is lower than `enough`."""
    spans = sum(len(group.spans) for group in order)
    whole = sum(-(-group.bytes // alignment) for group in order)
    placed = _Placed(spans, max([whole, *(group.spans[-1][1] for group in order)], default=0))
    height = 0
    offsets: dict[int, int] = {}
    for group in order:
        units = -(-group.bytes // alignment)
        offset = placed.offset(group.spans, units)
        offsets[group.value] = offset * alignment
        height = max(height, offset * alignment + group.bytes)
        if enough is not None and height >= enough:
            break
        placed.add(group.spans, offset, offset + units)
    return Packing(height, offsets)

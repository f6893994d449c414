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
    spatial = _pack(sorted(groups, key=lambda one: (-one.bytes, -one.duration, one.value)), alignment)
    load, tick = _highest_load(groups, alignment)
    if spatial.bytes <= load:
        return spatial
    by_duration = sorted(groups, key=lambda one: (one.spans[0][0] - one.spans[-1][1], -one.bytes, one.value))
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
    spans: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for interval in intervals.values():
        if interval.bytes:
            spans[interval.base].append((interval.start, interval.end))
    owners = [intervals[base] for base in spans]
    return [_Group(own.value, own.bytes, own.end - own.start, _merged(spans[own.value])) for own in owners]


def _merged(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Spans in order, those that meet as one: no other buffer fits between them."""
    if len(spans) == 1:
        return spans
    spans.sort()
    merged = [spans[0]]
    for start, end in spans[1:]:
        if start <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    return merged


class _Placed:
    """The spans of a heap that have their place, in units of the alignment. Each span of the groups that are to be placed has a
    slot, in the order in which they start; what is not placed yet ends before all others start.
    """

    def __init__(self, groups: Sequence[_Group], height: int) -> None:
        import numpy as np

        spans = np.array([span for group in groups for span in group.spans], np.int32)
        order = spans[:, 0].argsort()
        starting = spans[order, 0].searchsorted(spans[:, 1], "right")
        self._slots = zip(order.argsort().tolist(), starting.tolist(), strict=True)
        kind = np.int32 if height < _MANY else np.int64 if height < _TOO_MANY else object
        self._ends = np.full(len(order), -1, np.int32)
        self._bottoms: NDArray[Any] = np.zeros(len(order), kind)
        self._tops: NDArray[Any] = np.zeros(len(order), kind)

    def place(self, spans: Sequence[tuple[int, int]], units: int) -> int:
        """Places the next group, which has so many units at these spans, and gives its offset."""
        slot, starting = next(self._slots)
        slots, there = [slot], self._ends[:starting] >= spans[0][0]
        for start, _ in spans[1:]:
            slot, starting = next(self._slots)
            slots.append(slot)
            more = self._ends[:starting] >= start
            more[: len(there)] |= there
            there = more
        offset = self._offset(there.nonzero()[0], units)
        for slot, (_, end) in zip(slots, spans, strict=True):
            self._ends[slot], self._bottoms[slot], self._tops[slot] = end, offset, offset + units
        return offset

    def _offset(self, there: NDArray[Any], units: int) -> int:
        """Of the smallest gaps of so many units between what is in these slots the lowest one, else the end of all."""
        if not len(there):
            return 0
        used, free_from = self._bottoms.take(there), self._tops.take(there)
        used.sort()
        free_from.sort()  # before a gap are as many bottoms as tops
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


def _pack(order: Sequence[_Group], alignment: int, enough: int | None = None) -> Packing:
    """The packing of groups in this order, as far as it is lower than `enough`."""
    if not order:
        return Packing(0, {})
    placed = _Placed(order, sum(-(-group.bytes // alignment) for group in order))
    height = 0
    offsets: dict[int, int] = {}
    for group in order:
        offset = offsets[group.value] = placed.place(group.spans, -(-group.bytes // alignment)) * alignment
        height = max(height, offset + group.bytes)
        if enough is not None and height >= enough:
            break
    return Packing(height, offsets)

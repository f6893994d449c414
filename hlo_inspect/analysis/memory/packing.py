"""Where in a heap each buffer lies.

Follows `GlobalDecreasingSizeBestFitHeap` (xla/service/heap_simulator/heap_simulator.cc): buffers in a fixed order, each in the
smallest gap that is free at all its times, on ties the lowest. Of two orders, by size and by duration, the one with the lower
heap is taken (`ChooseBestHeapAlgorithm`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from hlo_inspect.analysis.memory.heap import Interval
from hlo_inspect.records import dataclass


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
    highest = max((group.bytes for group in groups), default=0)
    if spatial.bytes == highest or by_size == by_duration:
        return spatial
    temporal = _pack(by_duration, alignment)
    return temporal if temporal.bytes < spatial.bytes else spatial


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


def _pack(order: Sequence[_Group], alignment: int) -> Packing:
    import numpy as np

    count = sum(len(group.spans) for group in order)
    starts, ends = np.empty(count, np.int64), np.empty(count, np.int64)
    bottoms, tops = np.empty(count, np.int64), np.empty(count, np.int64)
    placed, height = 0, 0
    offsets: dict[int, int] = {}
    for group in order:
        first, last = group.spans[0]
        overlapping = (starts[:placed] <= last) & (ends[:placed] >= first)
        for start, end in group.spans[1:]:
            overlapping |= (starts[:placed] <= end) & (ends[:placed] >= start)
        found = np.flatnonzero(overlapping)
        offset = 0
        if len(found):
            used = bottoms[found]
            by_offset = np.argsort(used, kind="stable")
            used = used[by_offset]
            free_from = np.maximum.accumulate(tops[found][by_offset])  # the lowest offset above all used so far
            aligned = -(-free_from // alignment) * alignment
            begins = np.concatenate(([0], aligned[:-1]))
            gaps = used - begins
            is_gap = np.concatenate(([True], used[1:] >= free_from[:-1])) & (gaps >= group.bytes)
            fitting = np.flatnonzero(is_gap)
            offset = int(begins[fitting[np.argmin(gaps[fitting])]]) if len(fitting) else int(aligned[-1])
        offsets[group.value] = offset
        height = max(height, offset + group.bytes)
        for start, end in group.spans:
            starts[placed], ends[placed] = start, end
            bottoms[placed], tops[placed] = offset, offset + group.bytes
            placed += 1
    return Packing(height, offsets)

"""The spans that are placed in a heap, and the gap for the next ones: lists for few, arrays of numpy for many.

Lists spare most commands the import of numpy, which takes as long as placing 2,000 groups.
"""

from __future__ import annotations

import sys
from bisect import bisect_right
from collections.abc import Sequence
from itertools import islice
from operator import sub
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

Spans = Sequence[tuple[int, int]]
"""First and last tick of each time in which a group of values is live, in order."""

MANY_GROUPS = 2_000
"""Groups from which arrays are faster, with the import of numpy."""

_MANY, _TOO_MANY = 1 << 30, 1 << 62
"""Numbers below the first limit, and their differences, fit in 32 bits; below the second in 64.

Damaged shapes have any size.
"""


def placed_spans(groups: Sequence[Spans], height: int) -> PlacedSpans | PlacedSpanArrays:
    """Return an empty heap for these groups, which will be placed in their order; `height` bounds it in units.

    Browsers have no numpy.
    """
    if len(groups) < MANY_GROUPS or sys.platform == "emscripten":
        return PlacedSpans(groups)
    return PlacedSpanArrays(groups, height)


class PlacedSpans:
    """The placed spans of a heap with their offsets, in units of the alignment.

    A span overlaps another if it is live at the other's start, or starts within the other. A segment tree over the ticks has
    the first. Its node 1 stands for all ticks, nodes 2n and 2n + 1 for the halves of node n. A span is in the fewest nodes
    that make it up.
    """

    def __init__(self, groups: Sequence[Spans]) -> None:
        self._leaves = 1 << max((spans[-1][1] for spans in groups), default=0).bit_length()
        self._nodes: dict[int, tuple[list[int], list[int]]] = {}  # bottoms and tops of the spans of a node
        self._starts: list[int] = []
        self._bottoms: list[int] = []
        self._tops: list[int] = []

    def place(self, spans: Spans, units: int) -> int:
        """Place the next group, which takes `units` in these spans, and return its offset."""
        bottoms: list[int] = []
        tops: list[int] = []
        for start, end in spans:
            node = self._leaves + start
            while node:
                if node in self._nodes:
                    bottoms += self._nodes[node][0]
                    tops += self._nodes[node][1]
                node >>= 1
            later = slice(bisect_right(self._starts, start), bisect_right(self._starts, end))
            bottoms += self._bottoms[later]
            tops += self._tops[later]
        offset = _offset(sorted(bottoms), sorted(tops), units)
        for start, end in spans:
            self._add(start, end, offset, offset + units)
        return offset

    def _add(self, start: int, end: int, bottom: int, top: int) -> None:
        index = bisect_right(self._starts, start)
        self._starts.insert(index, start)
        self._bottoms.insert(index, bottom)
        self._tops.insert(index, top)
        first, behind = self._leaves + start, self._leaves + end + 1
        while first < behind:
            nodes = [first] * (first & 1) + [behind - 1] * (behind & 1)
            for node in nodes:
                bottoms, tops = self._nodes.setdefault(node, ([], []))
                bottoms.append(bottom)
                tops.append(top)
            first, behind = (first + 1) >> 1, behind >> 1


def _offset(bottoms: Sequence[int], tops: Sequence[int], units: int) -> int:
    """Return the lowest of the smallest gaps that hold `units` between these spans, else their end.

    Below a gap, bottoms and tops are equally many. Both are sorted, each by itself.
    """
    if not bottoms:
        return 0
    lowest = bottoms[0]
    gaps = list(map(sub, islice(bottoms, 1, None), tops))
    if gaps and max(gaps) >= units:
        smallest, offset = min((gap, top) for gap, top in zip(gaps, tops, strict=False) if gap >= units)
        if lowest < units or smallest < lowest:
            return offset
    return 0 if lowest >= units else tops[-1]


class PlacedSpanArrays:
    """The same as arrays of numpy, which are five times as fast for 10,000 groups of which a thousand are live at once.

    Each span of the groups to place has a slot, in the order of the starts. The slot of an unplaced span ends before all others
    start.
    """

    def __init__(self, groups: Sequence[Spans], height: int) -> None:
        import numpy as np

        spans = np.array([span for group in groups for span in group], np.int32)
        order = spans[:, 0].argsort()
        starting = spans[order, 0].searchsorted(spans[:, 1], "right")
        self._slots = zip(order.argsort().tolist(), starting.tolist(), strict=True)
        kind = np.int32 if height < _MANY else np.int64 if height < _TOO_MANY else object
        self._ends = np.full(len(order), -1, np.int32)
        self._bottoms: NDArray[Any] = np.zeros(len(order), kind)
        self._tops: NDArray[Any] = np.zeros(len(order), kind)

    def place(self, spans: Spans, units: int) -> int:
        """Place the next group, which takes `units` in these spans, and return its offset."""
        slot, starting = next(self._slots)
        slots, occupied = [slot], self._ends[:starting] >= spans[0][0]
        for start, _ in spans[1:]:
            slot, starting = next(self._slots)
            slots.append(slot)
            is_started = self._ends[:starting] >= start
            is_started[: len(occupied)] |= occupied
            occupied = is_started
        offset = self._offset(occupied.nonzero()[0], units)
        for slot, (_, end) in zip(slots, spans, strict=True):
            self._ends[slot], self._bottoms[slot], self._tops[slot] = end, offset, offset + units
        return offset

    def _offset(self, occupied: NDArray[Any], units: int) -> int:
        """Return the lowest of the smallest gaps that hold `units` in these slots, else the end of the heap."""
        if not len(occupied):
            return 0
        used, free_from = self._bottoms.take(occupied), self._tops.take(occupied)
        used.sort()
        free_from.sort()  # below a gap, bottoms and tops are equally many
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

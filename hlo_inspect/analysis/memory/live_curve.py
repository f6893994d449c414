"""How many bytes are live over the schedule of a program, with the phase and the loop of each part of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from heapq import nlargest
from operator import itemgetter
from typing import NamedTuple

from hlo_inspect.analysis.memory.device_memory import DeviceMemory
from hlo_inspect.analysis.memory.heap import Change, Interval
from hlo_inspect.analysis.memory.schedule import ComputationRun
from hlo_inspect.graph.view import View
from hlo_inspect.hlo.values.op_names import UNKNOWN

MAX_POINTS = 512
_LEAST_LOOKED_AT = 16
"""So many instructions of a part of the schedule are asked for their phase at least, or all where there are fewer; less than
twice as many, at equal distances.
"""
LARGEST = 3
"""So many temporaries of a part of the curve are named."""


class CurvePoint(NamedTuple):
    """A part of the schedule, from its first to its last time: the most bytes that are live at one of them, of which `highest`
    is the first. `phase` is the one that most of its instructions have that have one, `loop` the innermost loop.
    """

    first: int
    last: int
    bytes: int
    phase: str
    loop: str
    highest: int


class LargestLive(NamedTuple):
    """How many temporaries are live where a part of the curve is highest, and the largest of them: value and bytes."""

    arrays: int
    largest: tuple[tuple[int, int], ...]


def live_curve(device: DeviceMemory, phase_of: Callable[[View, int], str]) -> list[CurvePoint]:
    """The static part and the heap whose highest point makes the peak, in parts of equal length."""
    curve, schedule = device.curve(), device.schedule
    count = min(len(curve) - 1, MAX_POINTS)
    points = []
    for number in range(count):
        first, last = number * (len(curve) - 1) // count, (number + 1) * (len(curve) - 1) // count
        phases: Counter[str] = Counter()
        for time in range(first, last, max(1, (last - first) // _LEAST_LOOKED_AT)):
            phases[phase_of(schedule.view(time), schedule.rows[time])] += 1
        phases.pop(UNKNOWN, None)
        phase = phases.most_common(1)[0][0] if phases else UNKNOWN
        loop = loop_around(device, schedule.run_at[(first + last - 1) // 2])
        highest = max(range(first, last), key=curve.__getitem__)
        points.append(CurvePoint(first, last - 1, device.static_bytes + curve[highest], phase, loop, highest))
    return points


def loop_around(device: DeviceMemory, run: ComputationRun | None) -> str:
    """The name of the while that runs a computation, directly or not; empty where none does."""
    schedule = device.schedule
    while run is not None and run.caller >= 0:
        if run.role in {"body", "condition"}:
            return schedule.name(run.caller)
        run = schedule.run_at[run.caller]
    return ""


def largest_live(device: DeviceMemory, points: Sequence[CurvePoint]) -> list[LargestLive]:
    """What is live in each part of the curve of the heap that makes the peak."""
    heap = device.peak_heap
    if heap is None:
        return [LargestLive(0, ()) for _ in points]
    changes, live = heap.trace.changes, _LiveTemporaries(heap.trace.intervals)
    found, at = [], 0
    for point in points:
        begin = at
        while at < len(changes) and changes[at].time <= point.last:
            at += 1
        found.append(live.at_highest(changes[begin:at]))
    return found


class _LiveTemporaries:
    """The temporaries that are live at a time, as changes are followed."""

    def __init__(self, intervals: Mapping[int, Interval]) -> None:
        self._intervals = intervals
        self._bytes = 0
        self._held: dict[int, int] = {}  # allocated value -> the value that holds its memory now

    def at_highest(self, changes: Sequence[Change]) -> LargestLive:
        """Follows some changes. What is live where most bytes are, before the first of them or after one."""
        highest = max((change.live for change in changes), default=self._bytes)
        found = self._largest() if highest <= self._bytes else None
        for change in changes:
            self._follow(change)
            if found is None and self._bytes == highest:
                found = self._largest()
        return found or self._largest()

    def _follow(self, change: Change) -> None:
        self._bytes = change.live
        if change.gets:
            self._held[change.base] = change.value
        else:
            self._held.pop(change.base, None)

    def _largest(self) -> LargestLive:
        sized = ((value, self._intervals[base].bytes) for base, value in self._held.items())
        return LargestLive(len(self._held), tuple(nlargest(LARGEST, sized, key=itemgetter(1))))

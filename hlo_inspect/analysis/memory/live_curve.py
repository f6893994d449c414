"""How many bytes are live over the schedule of a program, with the phase and the loop of each part of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from heapq import nlargest
from operator import itemgetter
from typing import NamedTuple

from hlo_inspect.analysis.memory.device_memory import DeviceMemory
from hlo_inspect.analysis.memory.schedule import ComputationRun
from hlo_inspect.analysis.op_names import UNKNOWN
from hlo_inspect.analysis.view import View

MAX_POINTS = 512
_LOOKED_AT = 16
"""So many instructions of a part of the schedule are asked for their phase."""


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


def live_curve(device: DeviceMemory, phase_of: Callable[[View, int], str]) -> list[CurvePoint]:
    """The static part and the heap whose highest point makes the peak, in parts of equal length."""
    curve, schedule = device.curve(), device.schedule
    count = min(len(curve) - 1, MAX_POINTS)
    points = []
    for number in range(count):
        first, last = number * (len(curve) - 1) // count, (number + 1) * (len(curve) - 1) // count
        phases: Counter[str] = Counter()
        for time in range(first, last, max(1, (last - first) // _LOOKED_AT)):
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


LARGEST = 3
"""So many temporaries of a part of the curve are named."""


class LargestLive(NamedTuple):
    """How many temporaries are live where a part of the curve is highest, and the largest of them: value and bytes."""

    arrays: int
    largest: tuple[tuple[int, int], ...]


def largest_live(device: DeviceMemory, points: Sequence[CurvePoint]) -> list[LargestLive]:
    """What is live in each part of the curve of the heap that makes the peak."""
    heap = device.peak_heap
    if heap is None:
        return [LargestLive(0, ()) for _ in points]
    changes, intervals = heap.trace.changes, heap.trace.intervals
    held: dict[int, int] = {}  # by the value that memory was allocated for, the one that has it
    found, at, live = [], 0, 0

    def now() -> LargestLive:
        sized = ((value, intervals[base].bytes) for base, value in held.items())
        return LargestLive(len(held), tuple(nlargest(LARGEST, sized, key=itemgetter(1))))

    for point in points:
        begin = at
        while at < len(changes) and changes[at].time <= point.last:
            at += 1
        highest = max((change.live for change in changes[begin:at]), default=live)
        at_highest = now() if highest <= live else None
        for change in changes[begin:at]:
            live = change.live
            if change.gets:
                held[change.base] = change.value
            else:
                held.pop(change.base, None)
            if at_highest is None and live == highest:
                at_highest = now()
        found.append(at_highest or now())
    return found

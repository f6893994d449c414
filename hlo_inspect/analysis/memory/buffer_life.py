"""The life of one buffer: its definition, writes, reads and end, and the buffers that share its memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

from hlo_inspect.analysis.memory.allocations import Allocation
from hlo_inspect.analysis.memory.device_memory import DeviceMemory, LiveBuffer
from hlo_inspect.hlo.opcodes import CONTROL_FLOW
from hlo_inspect.hlo.values.header import ShapeIndex

Happening = Literal["defined", "written in place", "passed on", "read", "freed"]


class BufferEvent(NamedTuple):
    """An event of a buffer at a position of the schedule."""

    time: int
    what: Happening


class BufferLife(NamedTuple):
    """A buffer with a value of the requested instruction.

    `live` is the array that takes its bytes. `offset` is its offset in the allocation, or in the heap of its memory space.
    `shared` are other buffers that use this memory at other times.
    """

    element: ShapeIndex
    live: LiveBuffer
    offset: int
    start: int
    end: int
    events: list[BufferEvent]
    shared: list[int]


def find_lives(device: DeviceMemory, name: str) -> list[BufferLife]:
    """Return the lives of the buffers that hold the result of an instruction of that name, in the order of the result."""
    schedule = device.schedule
    lives: dict[int, BufferLife] = {}
    for time in range(schedule.end):
        if time not in schedule.wrapped and schedule.name(time) == name:
            for place, value in enumerate(device.values.result(time)):
                buffer = device.buffers.buffer_of_value[value]
                if buffer not in lives and device.sizes[buffer]:
                    lives[buffer] = _life(device, buffer, value, device.values.trees.index(schedule.shapes[time], place))
    return list(lives.values())


def names_of(device: DeviceMemory) -> Iterator[str]:
    """Return the names of all instructions of the schedule."""
    schedule = device.schedule
    return (schedule.name(time) for time in range(schedule.end) if time not in schedule.wrapped)


def _life(device: DeviceMemory, buffer: int, value: int, element: ShapeIndex) -> BufferLife:
    allocation = device.assignment.allocation_of_buffer.get(buffer)
    space = device.spaces[buffer]
    kind = allocation.kind if allocation is not None else "heap"
    live = LiveBuffer(device.sizes[buffer], 0, kind, space, value, buffer, allocation)
    offset, shared = _place(device, buffer, allocation)
    start, end = device.live_range(buffer)
    return BufferLife(element, live, offset, start, end, _events(device, buffer, end), shared)


def _events(device: DeviceMemory, buffer: int, end: int) -> list[BufferEvent]:
    members = device.buffers.members[buffer]
    defined = sorted({device.values.times[member] for member in members})
    read = {use for member in members for use in device.uses.get(member)}
    events = [BufferEvent(time, "defined" if time == defined[0] else _rewritten(device, time)) for time in defined]
    events += [BufferEvent(time, "read") for time in read if time not in set(defined[1:])]
    events.append(BufferEvent(end, "freed"))
    return sorted(events, key=lambda member: (member.time, member.what == "freed"))


_PASSING_ON = CONTROL_FLOW | {"parameter"}


def _rewritten(device: DeviceMemory, time: int) -> Happening:
    """Return the kind of a later definition in a buffer: a write in place, or the next iteration of a loop."""
    return "passed on" if device.schedule.opcodes[time] in _PASSING_ON else "written in place"


def _place(device: DeviceMemory, buffer: int, allocation: Allocation | None) -> tuple[int, list[int]]:
    """Return the offset of a buffer, and the other buffers that share its memory."""
    if allocation is not None:
        return 0, [member for member in allocation.buffers if member != buffer]
    heap = device.heaps[device.spaces[buffer]]
    intervals, offsets = heap.trace.intervals, heap.packing.offsets
    bases = {intervals[member].base for member in device.buffers.members[buffer] if member in intervals}
    own = [offsets[base] for base in bases if base in offsets]
    if not own:
        return 0, []
    offset, size = own[0], device.sizes[buffer]
    others: dict[int, None] = {}
    for value, interval in intervals.items():
        other, begin = device.buffers.buffer_of_value[value], offsets.get(interval.base)
        if other != buffer and begin is not None and begin < offset + size and offset < begin + device.sizes[other]:
            others[other] = None
    return offset, list(others)

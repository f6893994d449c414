"""The page of `memory INPUT NAME`: the life of the buffers of an instruction's result."""

from __future__ import annotations

from collections.abc import Iterator
from operator import attrgetter
from typing import NamedTuple

from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.memory.buffer_life import BufferEvent, BufferLife, find_lives, names_of
from hlo_inspect.analysis.memory.device_memory import DeviceMemory
from hlo_inspect.analysis.provenance import printed
from hlo_inspect.errors import UsageError, did_you_mean
from hlo_inspect.passes.params import index_text
from hlo_inspect.report.table import Column, Table
from hlo_inspect.report.table_spec import TableSpec


class _Buffer(NamedTuple):
    life: BufferLife
    shape: str

    @property
    def start(self) -> int:
        return self.life.start

    @property
    def end(self) -> int:
        return self.life.end


class _Event(NamedTuple):
    life: BufferLife
    event: BufferEvent
    name: str
    opcode: str
    phase: str
    source: str
    line: int


class _Sharer(NamedTuple):
    life: BufferLife
    name: str
    shape: str
    size: int
    start: int
    end: int


def buffer_tables(context: Context, device: DeviceMemory, name: str) -> Iterator[Table]:
    """Yield the buffers of an instruction, their events, and the buffers in the same place.

    Raise UsageError if the schedule has no such instruction.
    """
    name = name.removeprefix("%").partition("{")[0]
    lives = find_lives(device, name)
    if not lives:
        names = list(dict.fromkeys(names_of(device)))
        what = "defines no array" if name in names else "is not an instruction of the schedule"
        raise UsageError(
            f"{name} {what} of {context.module.name}{did_you_mean(name, [other for other in names if other != name])}"
        )
    yield _BUFFERS.of([_Buffer(life, str(device.shape(life.live.value))) for life in lives])
    events = [_event(context, device, life, event) for life in lives for event in life.events]
    yield _EVENTS.of(events, without=() if len(lives) > 1 else ("shape_index",))
    shared = [_sharer(device, life, other) for life in lives for other in life.shared]
    if shared:
        yield _SHARED.of(sorted(shared, key=lambda row: (row.life.start, row.start)))


def _allocation(life: BufferLife) -> str:
    """Return the purpose of the allocation."""
    allocation = life.live.allocation
    if allocation is None:
        return "temporaries"
    if allocation.parameter is None:
        return {"temporary": "tuple table"}.get(allocation.kind, allocation.kind)
    donated = ", in which an output is" if allocation.is_output else ""
    return f"parameter {allocation.parameter}{donated}"


def _event(context: Context, device: DeviceMemory, life: BufferLife, event: BufferEvent) -> _Event:
    time = min(event.time, device.schedule.end - 1)
    place = device.place(time)
    labels = context.labels_of(device.schedule.view(time), place.row)
    at_end = event.time >= device.schedule.end
    name = "(the end of the program)" if at_end else place.name
    opcode = "" if at_end else device.schedule.opcodes[time]
    return _Event(life, event, name, opcode, labels.phase, "" if at_end else printed(labels.source), place.line)


def _sharer(device: DeviceMemory, life: BufferLife, buffer: int) -> _Sharer:
    value = device.buffers.members[buffer][0]
    name = device.place(device.values.times[value]).name
    return _Sharer(life, name, str(device.shape(value)), device.sizes[buffer], *device.live_range(buffer))


_LIVE_RANGE = (
    Column("live_from", "number", get=attrgetter("start")),
    Column("live_to", "number", get=attrgetter("end")),
)
_BUFFERS = TableSpec("buffers", "Buffers", page_rows=0).with_columns(
    Column("shape_index", get=lambda row: index_text(row.life.element)),
    Column("shape"),
    Column("bytes", "bytes", summed=True, get=attrgetter("life.live.bytes")),
    Column("allocation", meaning="allocation of XLA that holds the buffer", get=lambda row: _allocation(row.life)),
    Column("offset", "bytes", detail=2, meaning="first byte in the allocation", get=attrgetter("life.offset")),
    Column("memory_space", "number", detail=2, get=attrgetter("life.live.space")),
    *_LIVE_RANGE,
)
_EVENTS = TableSpec("buffer_events", "Events of these buffers", page_rows=60).with_columns(
    Column("shape_index", get=lambda row: index_text(row.life.element)),
    Column("time", "number", meaning="position in the schedule", get=attrgetter("event.time")),
    Column("event", meaning="defined, written, read or freed", get=attrgetter("event.what")),
    Column("by", meaning="instruction that does it", get=attrgetter("name")),
    Column("opcode", detail=2),
    Column("phase", detail=2),
    Column("source", detail=1),
    Column("line", "number", detail=3),
)
_SHARED = TableSpec("buffer_shared_with", "Other values in the same memory").with_columns(
    Column("name"),
    Column("shape"),
    Column("bytes", "bytes", get=attrgetter("size")),
    *_LIVE_RANGE,
)

TABLES = (_BUFFERS, _EVENTS, _SHARED)

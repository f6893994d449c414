"""The page of `memory INPUT NAME`: the life of the buffers of an instruction's result."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import NamedTuple

from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.memory.buffer_life import BufferEvent, BufferLife, find_lives, names_of
from hlo_inspect.analysis.memory.device_memory import DeviceMemory
from hlo_inspect.analysis.provenance import printed
from hlo_inspect.errors import UsageError, did_you_mean
from hlo_inspect.passes.params import index_text
from hlo_inspect.report.table import Column, Table


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
    yield _buffers(device, lives)
    yield _events(context, device, lives)
    shared = [_sharer(device, life, other) for life in lives for other in life.shared]
    if shared:
        yield _shared(sorted(shared, key=lambda row: (row.life.start, row.start)))


def _allocation(life: BufferLife) -> str:
    """Return the purpose of the allocation."""
    allocation = life.live.allocation
    if allocation is None:
        return "temporaries"
    if allocation.parameter is None:
        return {"temporary": "tuple table"}.get(allocation.kind, allocation.kind)
    donated = ", in which an output is" if allocation.is_output else ""
    return f"parameter {allocation.parameter}{donated}"


def _buffers(device: DeviceMemory, lives: Sequence[BufferLife]) -> Table:
    columns = (
        Column("shape_index", get=lambda life: index_text(life.element)),
        Column("shape", get=lambda life: str(device.shape(life.live.value))),
        Column("bytes", "bytes", summed=True, get=lambda life: life.live.bytes),
        Column("allocation", get=_allocation),
        Column("offset", "bytes", detail=2, get=attrgetter("offset")),
        Column("memory_space", "number", detail=2, get=lambda life: life.live.space),
        Column("live_from", "number", get=attrgetter("start")),
        Column("live_to", "number", get=attrgetter("end")),
    )
    return Table.of("buffers", "Buffers", columns, lives, page_rows=0)


def _events(context: Context, device: DeviceMemory, lives: Sequence[BufferLife]) -> Table:
    events = [_event(context, device, life, event) for life in lives for event in life.events]
    element = Column("shape_index", get=lambda row: index_text(row.life.element))
    columns = (
        *([element] if len(lives) > 1 else []),
        Column("time", "number", get=lambda row: row.event.time),
        Column("event", get=lambda row: row.event.what),
        Column("by", get=attrgetter("name")),
        Column("opcode", detail=2, get=attrgetter("opcode")),
        Column("phase", detail=2, get=attrgetter("phase")),
        Column("source", detail=1, get=attrgetter("source")),
        Column("line", "number", detail=3, get=attrgetter("line")),
    )
    return Table.of("buffer_events", "Events of these buffers", columns, events, page_rows=60)


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


def _shared(shared: Sequence[_Sharer]) -> Table:
    columns = (
        Column("name", get=attrgetter("name")),
        Column("shape", get=attrgetter("shape")),
        Column("bytes", "bytes", get=attrgetter("size")),
        Column("live_from", "number", get=attrgetter("start")),
        Column("live_to", "number", get=attrgetter("end")),
    )
    return Table.of("buffer_shared_with", "Other values in the same memory", columns, shared)

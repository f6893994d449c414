"""The estimated timeline of a step, event by event."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter
from typing import NamedTuple

from hlo_inspect.analysis.collectives.logical_collectives import KERNEL_WANTS
from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.cost.kernels import Kernel
from hlo_inspect.analysis.phases import phases
from hlo_inspect.analysis.time.timeline_events import StreamEvent, timeline_events
from hlo_inspect.analysis.time.timelines import Timelines
from hlo_inspect.errors import UsageError
from hlo_inspect.graph.calls import place
from hlo_inspect.graph.view import InstructionPlace
from hlo_inspect.hlo.instruction import Instruction
from hlo_inspect.hlo.values.op_names import origin_of
from hlo_inspect.passes.base import Pass
from hlo_inspect.report.model import Section
from hlo_inspect.report.table import Column, Table, TablePlace
from hlo_inspect.report.table_spec import TableSpec

_TIME_EVENTS = TableSpec("time_events", "Estimated timeline of a step").with_columns(
    Column("stream", get=attrgetter("event.stream")),
    Column("event", get=attrgetter("event.kind")),
    Column("name", get=lambda row: row.event.place[2]),
    Column("begin_s", "seconds", get=attrgetter("event.begin")),
    Column("end_s", "seconds", get=attrgetter("event.end")),
    Column("iterations", "count", get=attrgetter("event.iterations")),
    Column("kind"),
    Column("bytes", "bytes", optional=True),
    Column("flops", "flops", optional=True),
    Column("phase", optional=True),
    Column("computation", get=lambda row: row.event.place[0]),
    Column("op_name"),
    Column("source"),
    Column("line", "number", get=lambda row: row.event.place[1]),
)


def _tables(context: Context) -> Iterator[Table]:
    timelines = context.on_machine.timelines
    if timelines is None:
        raise UsageError(f"there is no timeline: {'; '.join(context.on_machine.profile_choice.notes)}")
    if not timelines.is_scheduled:
        raise UsageError(f"there is no timeline of {context.module.name}: it is not scheduled")
    yield _TIME_EVENTS.of(described_events(context, timelines))
    if context.measured is not None:
        from hlo_inspect.passes.measured.measured_events import measured_events

        yield from measured_events(context, context.measured)


class EventRow(NamedTuple):
    """An event with its instruction, and with the cost of a kernel or a collective."""

    event: StreamEvent
    kind: str
    op_name: str
    source: str
    phase: str | None
    bytes: int | None
    flops: int | None


def described_events(context: Context, timelines: Timelines) -> Iterator[EventRow]:
    """Yield the events of one step in the estimate."""
    return map(_Descriptions(context).row, timeline_events(timelines.estimate.timeline))


class _Descriptions:
    """The descriptions of events, one for each instruction."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._kernels = {kernel.place: kernel for kernel in context.kernels.launched}
        self._known: dict[InstructionPlace, EventRow] = {}

    def row(self, event: StreamEvent) -> EventRow:
        row = self._known.get(event.place)
        if row is None:
            row = self._known[event.place] = self._describe(event)
        return row._replace(event=event)

    def _describe(self, event: StreamEvent) -> EventRow:
        context, timelines = self._context, self._context.on_machine.timelines
        collective = timelines.estimate.collective_at(event.place) if timelines is not None else None
        if collective is not None:
            origin = collective.origin
            phase = context.phases.for_instruction(collective.inner).phase
            sent = collective.wire_bytes
            return EventRow(event, collective.kind, origin.op_name, origin.source, phase, sent, None)
        kernel = self._kernels.get(event.place)
        if kernel is not None:
            labels = kernel.labels
            return EventRow(event, kernel.kind, labels.op_name, labels.source, labels.phase, *_cost(kernel))
        instruction = self._instruction(event.place)
        if instruction is None:
            return EventRow(event, "", "", "", None, None, None)
        origin = origin_of(instruction.attr("metadata"), context.module.frames)
        return EventRow(event, instruction.opcode, origin.op_name, origin.source, None, None, None)

    def _instruction(self, wanted: InstructionPlace) -> Instruction | None:
        computation = self._context.module.computations.get(wanted[0])
        instructions = computation.instructions if computation is not None else ()
        return next((instruction for instruction in instructions if place(instruction) == wanted), None)


def _cost(kernel: Kernel) -> tuple[int | None, int | None]:
    """Return the bytes and FLOPs of one run; None if unknown."""
    cost = kernel.parts[0].cost
    moved = None if "bytes" in cost.gaps and kernel.started is None else sum(size for _, size in kernel.moved)
    return moved, None if kernel.is_unknown or "flops" in cost.gaps else cost.amounts[0]


MOST_EVENTS = 20_000
"""Events up to which each has a mark of its own."""
RESOLUTION = 4_000
"""Consecutive events of more than `MOST_EVENTS` share a mark if they take less than this part of the step together."""


class _Mark(NamedTuple):
    """An event, or several in a row with the longest of them; `busy` is the sum of their seconds."""

    longest: EventRow
    begin: float
    end: float
    busy: float
    events: int = 1

    def with_next(self, row: EventRow) -> _Mark:
        event = row.event
        longest = max(self.longest, row, key=lambda candidate: candidate.event.end - candidate.event.begin)
        return _Mark(longest, self.begin, event.end, self.busy + event.end - event.begin, self.events + 1)


TIMELINE = TableSpec("timeline", "Estimated timeline of a step", TablePlace("step", ""), on_page=False).with_columns(
    Column("stream", get=attrgetter("longest.event.stream")),
    Column("event", get=attrgetter("longest.event.kind")),
    Column("name", get=lambda mark: mark.longest.event.place[2]),
    Column("events", "count"),
    Column("iterations", "count", get=attrgetter("longest.event.iterations")),
    Column("begin_s", "seconds", get=attrgetter("begin")),
    Column("end_s", "seconds", get=attrgetter("end")),
    Column("span_s", "seconds", get=lambda mark: mark.end - mark.begin),
    Column("busy_s", "seconds", get=attrgetter("busy")),
    Column("kind", get=attrgetter("longest.kind")),
    Column("phase", optional=True, get=attrgetter("longest.phase")),
    Column("source", get=attrgetter("longest.source")),
    Column("line", "number", get=lambda mark: mark.longest.event.place[1]),
)


def timeline_table(context: Context) -> Iterator[Table]:
    """Yield the events of each stream in time; nothing without a schedule or without an accelerator."""
    timelines = context.on_machine.timelines
    if timelines is None or not timelines.is_scheduled or context.module.entry is None:
        return
    rows = [
        row for row in described_events(context, timelines) if row.event.kind != "iteration" and row.event.end > row.event.begin
    ]
    if not rows:
        return
    marks = list(_marks(rows))
    grouped = f", {len(rows):,} events in {len(marks):,} marks" if len(rows) > len(marks) else ""
    yield TIMELINE.of(marks, title=f"{TIMELINE.title}{grouped}")


def _marks(events: Sequence[EventRow]) -> Iterator[_Mark]:
    """Yield the marks by stream, in the order of their first event."""
    streams: dict[str, list[EventRow]] = {}
    end = 0.0
    for row in events:
        streams.setdefault(row.event.stream, []).append(row)
        end = max(end, row.event.end)
    shortest = end / RESOLUTION if len(events) > MOST_EVENTS else 0.0
    for of_stream in streams.values():
        yield from _marks_of(of_stream, shortest)


def _marks_of(stream: Iterable[EventRow], shortest: float) -> Iterator[_Mark]:
    """Yield a mark for events that follow each other within `shortest`; waits and iterations stay apart from other events."""
    mark: _Mark | None = None
    for row in stream:
        event = row.event
        if mark is not None and event.kind == mark.longest.event.kind and event.end - mark.begin <= shortest:
            mark = mark.with_next(row)
            continue
        if mark is not None:
            yield mark
        mark = _Mark(row, event.begin, event.end, event.end - event.begin)
    if mark is not None:
        yield mark


class TimeEvents(Pass):
    """List the events of a step's estimated timeline: stream, begin and duration.

    No command of its own: `time --format perfetto` writes it.
    """

    name = "time-events"
    uses_profile = True
    wants = KERNEL_WANTS | phases.WANTS
    tables = (_TIME_EVENTS,)

    def run(self, context: Context) -> Section:
        return Section({}, _tables(context))

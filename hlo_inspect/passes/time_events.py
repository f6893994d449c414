"""The timeline of a step by the model, event by event."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from hlo_inspect.analysis.calls import place
from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.cost.kernels import WANTS, Kernel
from hlo_inspect.analysis.op_names import origin_of
from hlo_inspect.analysis.phases import phases
from hlo_inspect.analysis.time.steps import Place
from hlo_inspect.analysis.time.timeline_events import StreamEvent, timeline_events
from hlo_inspect.errors import UsageError
from hlo_inspect.hlo.instruction import Instruction
from hlo_inspect.passes.base import Pass
from hlo_inspect.report.model import Column, Section, Table


class TimeEvents(Pass):
    """The timeline of a step by the model, event by event: what each stream does, and when.

    No command of its own: `time --format perfetto` writes it.
    """

    name = "time-events"
    wants = WANTS | phases.WANTS
    specs = ()

    def run(self, context: Context) -> Section:
        return Section({}, _tables(context))


class _EventRow(NamedTuple):
    """An event with what it is about: an instruction, of a kernel or a collective with what it costs."""

    event: StreamEvent
    kind: str
    op_name: str
    source: str
    phase: str | None
    bytes: int | None
    flops: int | None


def _tables(context: Context) -> Iterator[Table]:
    timelines = context.timelines
    if timelines is None:
        raise UsageError(f"there is no timeline: {'; '.join(context.profile_choice.notes)}")
    if not timelines.is_scheduled:
        raise UsageError(f"there is no timeline of {context.module.name}: the text is no schedule")
    describe = _Descriptions(context)
    columns = (
        Column("stream", get=lambda row: row.event.stream),
        Column("event", get=lambda row: row.event.kind),
        Column("name", get=lambda row: row.event.place[2]),
        Column("begin_s", "seconds", get=lambda row: row.event.begin),
        Column("end_s", "seconds", get=lambda row: row.event.end),
        Column("iterations", "count", get=lambda row: row.event.iterations),
        Column("kind", get=lambda row: row.kind),
        Column("bytes", "bytes", optional=True, get=lambda row: row.bytes),
        Column("flops", "flops", optional=True, get=lambda row: row.flops),
        Column("phase", optional=True, get=lambda row: row.phase),
        Column("computation", get=lambda row: row.event.place[0]),
        Column("op_name", get=lambda row: row.op_name),
        Column("source", get=lambda row: row.source),
        Column("line", "number", get=lambda row: row.event.place[1]),
    )
    rows = map(describe.row, timeline_events(timelines.estimate.timeline))
    yield Table.of("time_events", "The timeline of a step by the model", columns, rows)


class _Descriptions:
    """What the events of one instruction are about, which is looked up once for each."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._kernels = {place(kernel.instruction): kernel for kernel in context.kernels.found}
        self._known: dict[Place, _EventRow] = {}

    def row(self, event: StreamEvent) -> _EventRow:
        known = self._known.get(event.place)
        if known is None:
            known = self._known[event.place] = self._describe(event)
        return known._replace(event=event)

    def _describe(self, event: StreamEvent) -> _EventRow:
        context = self._context
        collective = context.timelines.estimate.collective_at(event.place) if context.timelines is not None else None
        if collective is not None:
            origin = collective.origin
            phase = context.phases.of(collective.inner).phase
            sent = collective.wire_bytes
            return _EventRow(event, collective.kind, origin.op_name, origin.source, phase, sent, None)
        kernel = self._kernels.get(event.place)
        if kernel is not None:
            labels = kernel.labels
            return _EventRow(event, kernel.kind, labels.op_name, labels.source, labels.phase, *_cost(kernel))
        instruction = self._instruction(event.place)
        if instruction is None:
            return _EventRow(event, "", "", "", None, None, None)
        origin = origin_of(instruction, context.module.frames)
        return _EventRow(event, instruction.opcode, origin.op_name, origin.source, None, None, None)

    def _instruction(self, at: Place) -> Instruction | None:
        computation = self._context.module.computations.get(at[0])
        found = computation.instructions if computation is not None else ()
        return next((one for one in found if place(one) == at), None)


def _cost(kernel: Kernel) -> tuple[int, int]:
    """Bytes and FLOPs of one run, as far as they are known."""
    return sum(size for _, size in kernel.moved), kernel.parts[0].cost.amounts[0]

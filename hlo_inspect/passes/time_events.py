"""The timeline of a step by the model, event by event."""

from __future__ import annotations

from collections.abc import Iterator

from hlo_inspect.analysis.collectives import KERNEL_WANTS
from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.phases import phases
from hlo_inspect.errors import UsageError
from hlo_inspect.passes.base import Pass
from hlo_inspect.passes.timeline_table import described_events
from hlo_inspect.report.model import Column, Section, Table


class TimeEvents(Pass):
    """The timeline of a step by the model, event by event: what each stream does, and when.

    No command of its own: `time --format perfetto` writes it.
    """

    name = "time-events"
    uses_profile = True
    wants = KERNEL_WANTS | phases.WANTS
    specs = ()

    def run(self, context: Context) -> Section:
        return Section({}, _tables(context))


def _tables(context: Context) -> Iterator[Table]:
    timelines = context.on_machine.timelines
    if timelines is None:
        raise UsageError(f"there is no timeline: {'; '.join(context.on_machine.profile_choice.notes)}")
    if not timelines.is_scheduled:
        raise UsageError(f"there is no timeline of {context.module.name}: it is not scheduled")
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
    yield Table.of("time_events", "The timeline of a step by the model", columns, described_events(context, timelines))

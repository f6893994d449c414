"""The executions of one measured run on one device, for a trace beside the estimated timeline."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import NamedTuple

from hlo_inspect.analysis.context import Context
from hlo_inspect.passes.measured.measured_rows import KernelRow, MeasuredRows
from hlo_inspect.profiler.measurements import SECONDS_PER_PS, ExecutedInstruction, RecordedProgram, labels_of_devices
from hlo_inspect.report.table import Column, Table
from hlo_inspect.report.table_spec import TableSpec

MOSTEVENTS = 100_000
"""Limit of the executions in a trace, as of the estimated events."""

MOST_LANES = 64
"""Limit of the lanes of executions that overlap."""


class _LanedExecution(NamedTuple):
    """An execution in a lane, in which others follow it or lie within it; `start` counts from the first execution."""

    lane: str
    execution: ExecutedInstruction
    row: KernelRow | None
    start: int


EVENTS = TableSpec("measured_events", "Measured events").with_columns(
    Column("stream", get=attrgetter("lane")),
    Column("event", get=lambda _: "execution"),
    Column("name", get=attrgetter("execution.name")),
    Column("begin_s", "seconds", get=lambda laned: laned.start * SECONDS_PER_PS),
    Column("end_s", "seconds", get=lambda laned: (laned.start + laned.execution.duration) * SECONDS_PER_PS),
    Column("kind", get=lambda laned: laned.row and laned.row.kind),
    Column("phase", optional=True, get=lambda laned: laned.row and laned.row.labels.phase),
    Column("computation", get=lambda laned: laned.row and laned.row.computation),
    Column("op_name", get=lambda laned: laned.row and laned.row.labels.op_name),
    Column("source", get=lambda laned: laned.row and laned.row.labels.source),
    Column("line", "number", get=lambda laned: laned.row and laned.row.line),
)


def measured_events(context: Context, recorded: RecordedProgram) -> Iterator[Table]:
    """Yield the executions of the run whose step is nearest to the median; nothing if they were not kept."""
    timeline = recorded.times.typical_timeline
    if timeline is None:
        return
    rows = {row.name: row for row in MeasuredRows(context, recorded).kernels}
    sample = timeline.sample
    executions = timeline.executions[:MOSTEVENTS]
    first = min((execution.start for execution in executions), default=0)
    laned = [
        _LanedExecution(lane, execution, rows.get(execution.name), execution.start - first)
        for lane, execution in in_lanes(executions)
    ]
    device = labels_of_devices(recorded.times.devices)[sample.device]
    more = len(timeline.executions) - len(laned)
    left_out = f", without {more:,} events" if more else ""
    yield EVENTS.of(laned, title=f"measured on device {device}, run {sample.run}{left_out}")


def in_lanes(executions: Sequence[ExecutedInstruction]) -> Iterator[tuple[str, ExecutedInstruction]]:
    """Yield executions with the first lane in which each follows or lies within all others; none beyond the last lane.

    Executions of several threads overlap; in a trace those of one thread may not.
    """
    for is_transfer, what in ((False, "device"), (True, "transfers")):
        lanes: list[list[int]] = []
        chosen = [execution for execution in executions if execution.is_transfer == is_transfer]
        for execution in sorted(chosen, key=lambda execution: (execution.start, -execution.duration)):
            number = _lane_for(execution, lanes)
            if number < MOST_LANES:
                yield what if not number else f"{what} {number + 1}", execution


def _lane_for(execution: ExecutedInstruction, lanes: list[list[int]]) -> int:
    """Return the number of the lane of an execution, and put it there. Lanes hold the ends of executions that last."""
    end = execution.start + execution.duration
    for number, ends in enumerate(lanes):
        while ends and ends[-1] <= execution.start:
            ends.pop()
        if not ends or end <= ends[-1]:
            ends.append(end)
            return number
    if len(lanes) < MOST_LANES:
        lanes.append([end])
        return len(lanes) - 1
    return MOST_LANES

"""Executions on CPU devices, which all stand in the plane `/host:CPU`. Its lines are threads.

An event is the call of a thunk, not its work: a thunk that runs on a thread pool returns at once. Its end is an event `end: …`
whose `_c` is the `_p` of the call, often on another thread.
"""

from __future__ import annotations

from hlo_inspect.profiler.device_events import ABSURD, DeviceEvents, Sample
from hlo_inspect.profiler.events import Event, StatReader, events_of, integer, marks_of, metadata_of, text
from hlo_inspect.profiler.programs import ProgramLabels
from hlo_inspect.profiler.space import Plane
from hlo_inspect.profiler.window import ByteWindow

CPU_PLANE = "/host:CPU"
_NO_RUN = -(1 << 63)
"""Run of the events of an old jaxlib, which states no runs."""
_WANTED = frozenset({"hlo_op", "hlo_module", "program_id", "run_id", "device_ordinal", "_p", "_c"})
_END = "end: "


def read_cpu(window: ByteWindow, plane: Plane, programs: ProgramLabels) -> DeviceEvents:
    """Read the executions of all threads."""
    read = _CpuEvents(plane, programs)
    marks = marks_of(plane, ("hlo_op", "_c"))
    for line in plane.lines if marks else ():
        for event in events_of(window, line, marks):
            read.take(event)
    return read.events


class _CpuEvents:
    """Collects executions. `_open` are calls whose end is not read yet, by producer; `_ended` are ends without their call."""

    def __init__(self, plane: Plane, programs: ProgramLabels) -> None:
        self.events = DeviceEvents("cpu")
        self._plane = plane
        self._programs = programs
        self._stats = StatReader(plane, _WANTED)
        self._open: dict[int, int] = {}
        self._ended: dict[int, int] = {}

    def take(self, event: Event | None) -> None:
        if event is None:
            self.events.faults[ABSURD] += 1
            return
        values = self._stats.values(event.stats)
        op = text(values, "hlo_op")
        if op:
            device, run = integer(values, "device_ordinal") or 0, integer(values, "run_id")
            if run is None:
                self.events.runs_from = "order"
            program = self._programs.label(integer(values, "program_id"), text(values, "hlo_module"))
            number = self.events.sample_number(Sample(program, device, _NO_RUN if run is None else run))
            self._add(op, number, event, integer(values, "_p"))
            return
        consumed = integer(values, "_c")
        if consumed is not None and metadata_of(self._plane, event).name.startswith(_END):
            index = self._open.pop(consumed, None)
            if index is None:
                self._ended[consumed] = event.start
            else:
                self._end(index, event.start)

    def _add(self, op: str, sample: int, event: Event, producer: int | None) -> None:
        executions = self.events.executions
        executions.add(self.events.name_number(op), sample, event.start, event.duration)
        if producer is not None:
            end = self._ended.pop(producer, None)
            if end is None:
                self._open[producer] = len(executions) - 1
            else:
                self._end(len(executions) - 1, end)

    def _end(self, index: int, end: int) -> None:
        """Let an execution last until its end."""
        executions = self.events.executions
        executions.durations[index] = max(executions.durations[index], end - executions.starts[index])

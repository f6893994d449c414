"""Executions on one TPU: the lines `XLA Modules`, `XLA Ops` and `Async XLA Ops` of its plane."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator

from hlo_inspect.lazy_pattern import lazy_pattern
from hlo_inspect.profiler.device_events import ABSURD, OUTSIDE, DeviceEvents, Sample
from hlo_inspect.profiler.events import MAX_DURATION_PS, Event, StatReader, events_of, integer, metadata_of, text
from hlo_inspect.profiler.programs import ProgramLabels
from hlo_inspect.profiler.space import Plane, StatValue
from hlo_inspect.profiler.window import ByteWindow

TPU_PLANE = lazy_pattern(r"/device:TPU:(\d{1,9})", re.ASCII)
"""Pattern of the planes of TensorCores: other engines of a chip have more in their names."""
_MODULES, _OPS, _ASYNC = "XLA Modules", "XLA Ops", "Async XLA Ops"
_NAME = lazy_pattern(r"(?:ROOT )?%?([A-Za-z_][\w.\-]*)", re.ASCII)
_WANTED = frozenset({"run_id", "hlo_op", "program_id", "hlo_module", "device_offset_ps", "device_duration_ps"})


def read_tpu(window: ByteWindow, plane: Plane, device: int, programs: ProgramLabels) -> DeviceEvents:
    """Read the runs and the executions of one device."""
    return _TpuEvents(window, plane, device, programs).events


def _device_span(event: Event, values: dict[str, StatValue]) -> tuple[int, int]:
    """Return start and duration by the clock of the device if the event states both, as XProf does."""
    start, duration = integer(values, "device_offset_ps"), integer(values, "device_duration_ps")
    if start is None or duration is None or not 0 <= duration < MAX_DURATION_PS:
        return event.start, event.duration
    return start, duration


class _TpuEvents:
    def __init__(self, window: ByteWindow, plane: Plane, device: int, programs: ProgramLabels) -> None:
        self.events = DeviceEvents("tpu", runs_from="modules")
        self._window, self._plane, self._device, self._programs = window, plane, device, programs
        self._stats = StatReader(plane, _WANTED)
        self._ops: dict[int, tuple[str, int | None]] = {}
        runs = sorted(self._runs(), key=lambda run: run.span or ())
        self._runs_in_order = [self.events.sample_number(run) for run in runs]
        self._spans = [run.span for run in runs if run.span is not None]
        self._starts = [start for start, _ in self._spans]
        if not self._starts:
            self.events.runs_from = "order"
        for line in plane.lines:
            if line.name == _OPS:
                self._read_ops(line.name)
            elif line.name == _ASYNC:
                self.events.has_transfers = True
                self._read_ops(line.name)

    def _events(self, name: str) -> Iterator[Event]:
        """Yield the events of a line; count those that are absurd."""
        for line in self._plane.lines:
            if line.name == name:
                for event in events_of(self._window, line):
                    if event is None:
                        self.events.faults[ABSURD] += 1
                    else:
                        yield event

    def _runs(self) -> Iterator[Sample]:
        """Yield the runs. One that states no `run_id` is numbered by order."""
        for number, event in enumerate(self._events(_MODULES)):
            values = self._stats.values(event.stats)
            run = integer(values, "run_id")
            label = self._programs.label(None, metadata_of(self._plane, event).name)
            yield Sample(label, self._device, number if run is None else run, _device_span(event, values))

    def _read_ops(self, line: str) -> None:
        events, is_async = self.events, line == _ASYNC
        column = events.transfers if is_async else events.executions
        for event in self._events(line):
            values = self._stats.values(event.stats) if event.stats else {}
            name, program_id = self._op(event)
            name = text(values, "hlo_op") or name if is_async else name or text(values, "hlo_op")
            start, duration = _device_span(event, values)
            sample = self._sample(start, program_id)
            if sample is None:
                events.faults[OUTSIDE] += 1
            elif not name:
                events.leave_unattributed(events.samples[sample].program, metadata_of(self._plane, event).name, duration)
            else:
                column.add(events.name_number(name), sample, start, duration)

    def _op(self, event: Event) -> tuple[str, int | None]:
        """Return the instruction and the program of an event, by its metadata: most have the whole instruction as name."""
        op = self._ops.get(event.metadata_id)
        if op is None:
            metadata = metadata_of(self._plane, event)
            match = _NAME.match(metadata.name) if metadata.name.startswith(("%", "ROOT %")) else None
            name = metadata.display_name or (match[1] if match is not None else "")
            values = self._stats.values(metadata.stats)
            op = self._ops[event.metadata_id] = name, integer(values, "program_id")
        return op

    def _sample(self, start: int, program_id: int | None) -> int | None:
        """Return the run that contains a start; without stated runs the only one; None if no run contains it."""
        if not self._starts:
            return self.events.sample_number(Sample(self._programs.label(program_id, ""), self._device, 0))
        index = bisect_right(self._starts, start) - 1
        if index < 0 or start > sum(self._spans[index]):
            return None
        return self._runs_in_order[index]

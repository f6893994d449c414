"""Executions on one TPU: the lines `XLA Modules`, `XLA Ops` and `Async XLA Ops` of its plane."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from hlo_inspect.lazy_pattern import lazy_pattern
from hlo_inspect.profiler.device_events import ABSURD, OUTSIDE, DeviceEvents, Sample
from hlo_inspect.profiler.events import MAX_DURATION_PS, EventBlock, EventReader, mapped
from hlo_inspect.profiler.programs import ProgramLabels
from hlo_inspect.profiler.space import EventMetadata, Plane, read_stat
from hlo_inspect.profiler.window import ByteWindow

if TYPE_CHECKING:
    from hlo_inspect.profiler.event_fields import Numbers

TPU_PLANE = lazy_pattern(r"/device:TPU:(\d{1,9})", re.ASCII)
"""Pattern of the planes of TensorCores: other engines of a chip have more in their names."""
_MODULES, _OPS, _ASYNC = "XLA Modules", "XLA Ops", "Async XLA Ops"
_NAME = lazy_pattern(r"(?:ROOT )?%?([A-Za-z_][\w.\-]*)", re.ASCII)
_OFFSET, _DURATION = "device_offset_ps", "device_duration_ps"


def read_tpu(window: ByteWindow, plane: Plane, device: int, programs: ProgramLabels) -> DeviceEvents:
    """Read the runs and the executions of one device."""
    return _TpuEvents(window, plane, device, programs).events


def _device_spans(block: EventBlock) -> tuple[Numbers, Numbers]:
    """Return starts and durations, by the clock of the device if events state both, as XProf does."""
    import numpy as np

    offset, duration = block.integers[_OFFSET], block.integers[_DURATION]
    stated = offset.is_present & duration.is_present & (duration.values >= 0) & (duration.values < MAX_DURATION_PS)
    stated &= np.abs(offset.values) < MAX_DURATION_PS
    return np.where(stated, offset.values, block.starts), np.where(stated, duration.values, block.durations)


class _TpuEvents:
    def __init__(self, window: ByteWindow, plane: Plane, device: int, programs: ProgramLabels) -> None:
        import numpy as np

        self.events = DeviceEvents("tpu", runs_from="modules")
        self._window, self._plane, self._device, self._programs = window, plane, device, programs
        self._reader = EventReader(plane, ("run_id", _OFFSET, _DURATION), ("hlo_op",))
        runs = sorted(self._runs(), key=lambda run: run.span or ())
        self._runs_in_order = np.array([self.events.sample_number(run) for run in runs], np.int64)
        spans = np.array([run.span for run in runs], np.int64).reshape(-1, 2)
        self._starts, self._ends = spans[:, 0], spans.sum(axis=1)
        if not runs:
            self.events.runs_from = "order"
        for name in (_OPS, _ASYNC):
            for block in self._blocks(name):
                self._take(block, is_async=name == _ASYNC)
        self.events.has_transfers = any(line.name == _ASYNC for line in plane.lines)

    def _blocks(self, name: str) -> Iterator[EventBlock]:
        """Yield the events of the lines of a name; count those that are absurd."""
        for line in self._plane.lines:
            if line.name == name:
                for block in self._reader.blocks(self._window, line):
                    self.events.faults[ABSURD] += block.faults
                    yield block

    def _runs(self) -> Iterator[Sample]:
        """Yield the runs. One that states no `run_id` is numbered by order."""
        number = 0
        for block in self._blocks(_MODULES):
            starts, durations = _device_spans(block)
            run_id = block.integers["run_id"]
            columns = (block.metadata, run_id.is_present, run_id.values, starts, durations)
            for metadata, has_run, run, start, duration in zip(*(column.tolist() for column in columns), strict=True):
                label = self._programs.label(None, self._reader.metadata_of(metadata).name)
                yield Sample(label, self._device, run if has_run else number, (start, duration))
                number += 1

    def _take(self, block: EventBlock, *, is_async: bool) -> None:
        import numpy as np

        events = self.events
        names = self._reader.by_metadata(block.metadata, lambda metadata: self._reader.number_of(_instruction(metadata)))
        stated = block.texts["hlo_op"]
        first, second = (stated, names) if is_async else (names, stated)
        names = np.where(first > 0, first, second)
        starts, durations = _device_spans(block)
        samples = self._samples(block.metadata, starts)
        events.faults[OUTSIDE] += int((samples < 0).sum())
        for row in np.flatnonzero((samples >= 0) & (names == 0)).tolist():
            name = self._reader.metadata_of(int(block.metadata[row])).name
            events.leave_unattributed(events.samples[samples[row]].program, name, int(durations[row]))
        rows = np.flatnonzero((samples >= 0) & (names > 0))
        numbers = self._reader.by_text(names[rows], events.name_number)
        (events.transfers if is_async else events.executions).extend(numbers, samples[rows], starts[rows], durations[rows])

    def _samples(self, metadata: Numbers, starts: Numbers) -> Numbers:
        """Return the run that contains each start, -1 if none does; without stated runs the only one of the program."""
        import numpy as np

        if not len(self._starts):
            return mapped(metadata, self._only_sample)
        index = np.searchsorted(self._starts, starts, side="right") - 1
        is_inside = (index >= 0) & (starts <= self._ends[index])
        return np.where(is_inside, self._runs_in_order[index], -1)

    def _only_sample(self, metadata: int) -> int:
        stats = dict(read_stat(stat, self._plane.stat_names) for stat in self._reader.metadata_of(metadata).stats)
        program = stats.get("program_id")
        label = self._programs.label(program if isinstance(program, int) else None, "")
        return self.events.sample_number(Sample(label, self._device, 0))


def _instruction(metadata: EventMetadata) -> str:
    """Return the instruction of events by their metadata, whose name is mostly the whole instruction."""
    match = _NAME.match(metadata.name) if metadata.name.startswith(("%", "ROOT %")) else None
    return metadata.display_name or (match[1] if match is not None else "")

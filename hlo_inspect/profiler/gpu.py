"""Executions on one GPU: the kernels and copies of its streams."""

from __future__ import annotations

import re
from typing import NamedTuple

from hlo_inspect.lazy_pattern import lazy_pattern
from hlo_inspect.profiler.device_events import ABSURD, DeviceEvents, ExecutionColumns, Sample
from hlo_inspect.profiler.events import StatReader, events_of, integer, metadata_of, text
from hlo_inspect.profiler.programs import ProgramLabels
from hlo_inspect.profiler.space import Plane
from hlo_inspect.profiler.window import ByteWindow

GPU_PLANE = lazy_pattern(r"/device:GPU:(\d{1,9})", re.ASCII)
_STREAM = "Stream #"
_WANTED = frozenset({"hlo_op", "hlo_module", "program_id"})


def read_gpu(window: ByteWindow, plane: Plane, device: int, programs: ProgramLabels) -> DeviceEvents:
    """Read the kernels of one device. Lines other than streams are derived from them, or no work of the device.

    Its runs are those of the order of its instructions, so all events of a program have the run 0 here.
    """
    events = DeviceEvents("gpu", runs_from="order")
    stats = StatReader(plane, _WANTED)
    kernels = _Kernels(events, device)
    for stream, line in enumerate(plane.lines):
        if not line.name.startswith(_STREAM):
            continue
        for event in events_of(window, line):
            if event is None:
                events.faults[ABSURD] += 1
                continue
            values = stats.values(event.stats)
            op = text(values, "hlo_op").rpartition("::")[2]
            program = programs.label(integer(values, "program_id"), text(values, "hlo_module"))
            name = "" if op else metadata_of(plane, event).name
            kernels.add(stream, event.start, event.duration, program, op, name)
    kernels.finish()
    return events


class _LastKernel(NamedTuple):
    """The last execution of a stream: its row, its kernel's number in the order of starts, and its end."""

    row: int
    number: int
    end: int


class _Kernels:
    """Kernels of a device in the order of their starts, of which several can be one execution.

    Two kernels of one instruction are one execution if they follow each other on their stream and no other kernel begins
    between them. A split matrix product and its reduction are an example.
    """

    def __init__(self, events: DeviceEvents, device: int) -> None:
        self._events, self._device = events, device
        self._keys: dict[tuple[str, str, str], int] = {}
        self._columns = ExecutionColumns()  # number of the key and of the stream, start, duration

    def add(self, stream: int, start: int, duration: int, program: str, op: str, name: str) -> None:
        key = self._keys.setdefault((program, op, name), len(self._keys))
        self._columns.add(key, stream, start, duration)

    def finish(self) -> None:
        """Add the executions to the events."""
        import numpy as np

        columns, events = self._columns, self._events
        keys = list(self._keys)
        last: dict[int, _LastKernel] = {}
        program = next((key[0] for key in keys if key[0]), "")
        latest = -1
        order = np.argsort(np.frombuffer(columns.starts, dtype=np.int64), kind="stable") if len(columns) else ()
        for number, row in enumerate(order):
            stream, start, duration = columns.samples[row], columns.starts[row], columns.durations[row]
            of_program, op, name = keys[columns.names[row]]
            program = of_program or program
            if not op:
                events.leave_unattributed(program, name, duration)
                last.pop(stream, None)
            else:
                sample = events.sample_number(Sample(program, self._device, 0))
                before = last.get(stream)
                name_number, executions = events.name_number(op), events.executions
                is_same = before is not None and (executions.names[before.row], executions.samples[before.row]) == (
                    name_number,
                    sample,
                )
                if before is not None and is_same and (before.number == number - 1 or latest < before.end):
                    executions.durations[before.row] = max(before.end, start + duration) - executions.starts[before.row]
                    events.merged[before.row] += 1
                    last[stream] = _LastKernel(before.row, number, max(before.end, start + duration))
                else:
                    executions.add(name_number, sample, start, duration)
                    last[stream] = _LastKernel(len(executions) - 1, number, start + duration)
            latest = start

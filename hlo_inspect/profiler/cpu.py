"""Executions on CPU devices, which all stand in the plane `/host:CPU`. Its lines are threads.

Newer AMD profiles name the instruction of each launch of a kernel too. A launch has the `correlation_id` of its kernel.

An event is the call of a thunk, not its work: a thunk that runs on a thread pool returns at once. Its end is an event `end: …`
whose `_c` is the `_p` of the call, often on another thread.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

from hlo_inspect.profiler.device_events import ABSURD, DeviceEvents, Sample
from hlo_inspect.profiler.events import EventBlock, EventReader
from hlo_inspect.profiler.programs import ProgramLabels
from hlo_inspect.profiler.space import Plane
from hlo_inspect.profiler.window import ByteWindow

if TYPE_CHECKING:
    from hlo_inspect.profiler.event_fields import Numbers

CPU_PLANE = "/host:CPU"
_NO_RUN = -(1 << 63)
"""Run of the events of an old jaxlib, which states no runs."""
_LAUNCH = "correlation_id"
_INTEGERS, _TEXTS = ("program_id", "run_id", "device_ordinal", "_p", "_c", _LAUNCH), ("hlo_op", "hlo_module")
_END = "end: "


def read_cpu(window: ByteWindow, plane: Plane, programs: ProgramLabels) -> DeviceEvents:
    """Read the executions of all threads."""
    reader = EventReader(plane, _INTEGERS, _TEXTS, needed=("hlo_op", "_c"))
    read = _CpuEvents(reader, programs)
    for line in plane.lines:
        for block in reader.blocks(window, line):
            read.take(block)
    read.finish()
    return read.events


class _CpuEvents:
    """Collects executions. `_calls` and `_rows` are producers and their rows, `_ends` and `_end_starts` consumers."""

    def __init__(self, reader: EventReader, programs: ProgramLabels) -> None:
        self.events = DeviceEvents("cpu")
        self._reader = reader
        self._programs = programs
        self._calls, self._rows = array("q"), array("i")
        self._ends, self._end_starts = array("q"), array("q")

    def take(self, block: EventBlock) -> None:
        import numpy as np

        self.events.faults[ABSURD] += block.faults
        is_op = (block.texts["hlo_op"] > 0) & ~block.integers[_LAUNCH].is_present
        consumed = block.integers["_c"]
        is_end = self._reader.by_metadata(block.metadata, lambda metadata: metadata.name.startswith(_END)) == 1
        is_end &= ~is_op & consumed.is_present
        self._ends.frombytes(consumed.values[is_end].tobytes())
        self._end_starts.frombytes(block.starts[is_end].tobytes())
        rows = np.flatnonzero(is_op)
        if len(rows):
            self._take_calls(block, rows)

    def _take_calls(self, block: EventBlock, rows: Numbers) -> None:
        import numpy as np

        executions = self.events.executions
        names = self._reader.by_text(block.texts["hlo_op"][rows], self.events.name_number)
        producers = block.integers["_p"]
        calls = np.flatnonzero(producers.is_present[rows])
        self._calls.frombytes(producers.values[rows][calls].tobytes())
        self._rows.frombytes((calls + len(executions)).astype(np.int32).tobytes())
        executions.extend(names, self._samples(block, rows), block.starts[rows], block.durations[rows])

    def _samples(self, block: EventBlock, rows: Numbers) -> Numbers:
        """Return the number of the sample of each event. Events in a row are mostly of one sample."""
        import numpy as np

        run, program = block.integers["run_id"], block.integers["program_id"]
        if not run.is_present[rows].all():
            self.events.runs_from = "order"
        columns = np.stack(
            [
                np.where(run.is_present, run.values, _NO_RUN)[rows],
                block.integers["device_ordinal"].values[rows],
                program.is_present[rows],
                program.values[rows],
                block.texts["hlo_module"][rows],
            ]
        )
        begins = np.flatnonzero(np.concatenate(([True], (columns[:, 1:] != columns[:, :-1]).any(axis=0))))
        samples = []
        for run_id, device, has_program, program_id, module in columns[:, begins].T.tolist():
            label = self._programs.label(program_id if has_program else None, self._reader.texts[module])
            samples.append(self.events.sample_number(Sample(label, device, run_id)))
        return np.repeat(np.array(samples), np.diff(begins, append=len(rows)))

    def finish(self) -> None:
        """Let calls last until their ends."""
        import numpy as np

        if not self._ends or not self._calls:
            return
        ends, end_starts = np.frombuffer(self._ends, np.int64), np.frombuffer(self._end_starts, np.int64)
        order = np.argsort(ends, kind="stable")
        calls, rows = np.frombuffer(self._calls, np.int64), np.frombuffer(self._rows, np.int32)
        places = np.minimum(np.searchsorted(ends[order], calls), len(ends) - 1)
        has_end = ends[order][places] == calls
        rows, until = rows[has_end], end_starts[order][places[has_end]]
        durations = np.frombuffer(self.events.executions.durations, np.int64)
        starts = np.frombuffer(self.events.executions.starts, np.int64)
        durations[rows] = np.maximum(durations[rows], until - starts[rows])

"""Executions on one GPU: the kernels and copies of its streams."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from hlo_inspect.lazy_pattern import lazy_pattern
from hlo_inspect.profiler.device_events import ABSURD, DeviceEvents, ExecutionColumns, Sample
from hlo_inspect.profiler.events import EventBlock, EventReader
from hlo_inspect.profiler.programs import ProgramLabels
from hlo_inspect.profiler.space import Plane
from hlo_inspect.profiler.window import ByteWindow

if TYPE_CHECKING:
    from hlo_inspect.profiler.event_fields import Numbers

GPU_PLANE = lazy_pattern(r"/device:GPU:(\d{1,9})", re.ASCII)
_STREAM = "Stream #"


def read_gpu(window: ByteWindow, plane: Plane, device: int, programs: ProgramLabels) -> DeviceEvents:
    """Read the kernels of one device. Lines other than streams are derived from them, or no work of the device.

    Its runs are those of the order of its instructions, so all events of a program have the run 0 here.
    """
    events = DeviceEvents("gpu", runs_from="order")
    reader = EventReader(plane, ("program_id",), ("hlo_op", "hlo_module"))
    kernels = _Kernels(events, device)
    for stream, line in enumerate(plane.lines):
        for block in reader.blocks(window, line) if line.name.startswith(_STREAM) else ():
            events.faults[ABSURD] += block.faults
            kernels.extend(_keys(reader, block, programs, kernels), stream, block)
    kernels.finish()
    return events


def _keys(reader: EventReader, block: EventBlock, programs: ProgramLabels, kernels: _Kernels) -> Numbers:
    """Return the number of the key of each kernel. Kernels in a row often have one program and instruction."""
    import numpy as np

    program, ops = block.integers["program_id"], block.texts["hlo_op"]
    unnamed = np.where(ops == 0, block.metadata, 0)
    columns = np.stack([ops, program.is_present, program.values, block.texts["hlo_module"], unnamed])
    distinct, inverse = np.unique(columns, axis=1, return_inverse=True)
    numbers = []
    for op, has_program, program_id, module, metadata in distinct.T.tolist():
        label = programs.label(program_id if has_program else None, reader.texts[module])
        instruction = reader.texts[op].rpartition("::")[2]
        numbers.append(kernels.key_number(label, instruction, "" if instruction else reader.metadata_of(metadata).name))
    return np.array(numbers, np.int64)[inverse.reshape(-1)]


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

    def key_number(self, program: str, op: str, name: str) -> int:
        """Return the number of a program with an instruction, or with the name of an event without one."""
        return self._keys.setdefault((program, op, name), len(self._keys))

    def extend(self, keys: Numbers, stream: int, block: EventBlock) -> None:
        """Add the kernels of a block of a stream."""
        import numpy as np

        self._columns.extend(keys, np.full(len(keys), stream), block.starts, block.durations)

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

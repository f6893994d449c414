"""Saved arrays that recomputation reads: the inputs of `jax.checkpoint`, which it has to keep."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from hlo_inspect.analysis.memory.device_memory import DeviceMemory
from hlo_inspect.graph.readers import MOVES, ViewRow, readers_behind
from hlo_inspect.graph.view import View, Views
from hlo_inspect.hlo.opcodes import SLICES
from hlo_inspect.hlo.values.op_names import RECOMPUTE

if TYPE_CHECKING:
    from hlo_inspect.analysis.memory.live_arrays import LiveArray

_PASSING = SLICES | MOVES | {"convert"}
MAX_STEPS = 64
"""Slices and conversions that are followed from one use."""


def is_checkpoint_input(views: Views, device: DeviceMemory, array: LiveArray, phase_of: Callable[[View, int], str]) -> bool:
    """Return True if the backward pass computes something again of a live array, or of slices of it."""
    if array.buffer is None:
        return False
    schedule = device.schedule
    times = (time for value in device.buffers.members[array.buffer] for time in device.uses.get(value))
    uses = dict.fromkeys(ViewRow(schedule.view(time), schedule.rows[time]) for time in times)
    readers = (reader for use in uses for reader in _readers(views, use, array))
    return any(reader is not None and phase_of(*reader) == RECOMPUTE for reader in readers)


def _readers(views: Views, use: ViewRow, array: LiveArray) -> Iterator[ViewRow | None]:
    """Yield a use, and the readers behind it if it takes a slice. In a fusion these are the readers of its parameter."""
    yield use
    fused = views.fused(*use) if use.opcode == "fusion" else None
    starts = [use] if use.opcode in _PASSING else []
    if fused is not None:
        inner = views.for_computation(fused.name)
        rows = (ViewRow(inner, row) for row in inner.parameters_by_number.values())
        starts = [row for row in rows if str(row.shape) == str(array.shape)]
    for start in starts:
        yield from readers_behind(views, start, (), lambda reader: reader.opcode in _PASSING, MAX_STEPS)

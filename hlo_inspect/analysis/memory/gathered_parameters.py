"""Parameters that are gathered from other devices: how long each gathered copy lives."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from hlo_inspect.analysis.memory.device_memory import DeviceMemory
from hlo_inspect.analysis.memory.parameter_relations import GATHERED, Relation
from hlo_inspect.analysis.op_names import BACKWARD, FORWARD, LOSS
from hlo_inspect.analysis.optimizer.graph import Index
from hlo_inspect.analysis.view import View
from hlo_inspect.hlo.opcodes import TABLE


class GatheredParameter(NamedTuple):
    """A gathered copy of a parameter, of so many bytes. `is_kept`: a forward and a backward pass read it."""

    name: str
    line: int
    parameter: int
    bytes: int
    live_from: int
    live_to: int
    is_kept: bool


def find_gathered(
    device: DeviceMemory,
    relation_of: Callable[[View, int, Index], Relation | None],
    phase_of: Callable[[View, int], str],
) -> list[GatheredParameter]:
    """The results of all-gathers of parameters, in the order of time."""
    found: list[tuple[int, int, Relation]] = []
    schedule, values = device.schedule, device.values
    for value, time in enumerate(values.times):
        kind = TABLE.get(schedule.opcodes[time])
        if kind is not None and kind.collective == "all-gather" and time not in schedule.wrapped:
            relation = relation_of(schedule.view(time), schedule.rows[time], device.values.index(value))
            if relation is not None and GATHERED in relation.steps:
                found.append((value, time, relation))
    return [_gathered(device, *one, phase_of) for one in found if device.sizes[device.buffers.of[one[0]]]]


def _gathered(
    device: DeviceMemory,
    value: int,
    time: int,
    relation: Relation,
    phase_of: Callable[[View, int], str],
) -> GatheredParameter:
    place, buffer = device.place(time), device.buffers.of[value]
    schedule = device.schedule
    phases = {phase_of(schedule.view(use), schedule.rows[use]) for use in device.uses.of(value)}
    is_kept = BACKWARD in phases and not phases.isdisjoint({FORWARD, LOSS})
    start, end = device.live_range(buffer)
    return GatheredParameter(place.name, place.line, relation.parameter, device.sizes[buffer], start, end, is_kept)

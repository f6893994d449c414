"""Donated parameters that no output takes: their memory is idle after their last reading.

`BufferAssigner` places temporaries into the memory of a parameter only where `input_output_alias` names it
(`AssignSpecialHloBuffer`, xla/service/buffer_assignment.cc); a `buffer_donor` alone is not enough. Into the aliased ones it
places every temporary that fits, so nothing is left to find there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from hlo_inspect.analysis.memory.device_memory import DeviceMemory
from hlo_inspect.analysis.memory.live_arrays import LiveArray
from hlo_inspect.graph.parameters import ParameterLeaf


class IdleDonation(NamedTuple):
    """A donated parameter that no output takes, and a temporary of the peak that is made after `last_read`, which reads the
    parameter last (`""` where nothing does), and fits into it.
    """

    leaf: ParameterLeaf
    bytes: int
    last_read: str
    temporary: LiveArray


def find_idle_donations(
    device: DeviceMemory, leaves: Iterable[ParameterLeaf], live: Sequence[LiveArray], least: int
) -> list[IdleDonation]:
    """The idle donations, the smallest first, each with the largest temporary that fits it and that no other one has.
    Temporaries below `least` bytes are left out.
    """
    donors = {(leaf.number, leaf.index): leaf for leaf in leaves if leaf.donor and leaf.alias is None}
    idle = [one for one in device.assignment.allocations if (one.parameter, one.index) in donors and one.bytes >= least]
    temporaries = [one for one in live if one.kind == "heap" and one.bytes >= least]
    found = []
    for allocation in sorted(idle, key=lambda one: one.bytes):
        times = [time for value in _values(device, allocation.buffers) for time in device.uses.of(value)]
        last = max(times, default=-1)
        fitting = [
            one
            for one in temporaries
            if one.space == allocation.space
            and one.bytes <= allocation.bytes
            and one.live_from is not None
            and one.live_from > last
        ]
        if fitting:
            largest = max(fitting, key=lambda one: one.bytes)
            temporaries.remove(largest)
            leaf = donors[allocation.parameter or 0, allocation.index]
            name = device.schedule.name(last) if last >= 0 else ""
            found.append(IdleDonation(leaf, allocation.bytes, name, largest))
    return found


def _values(device: DeviceMemory, buffers: Iterable[int]) -> list[int]:
    return [value for buffer in buffers for value in device.buffers.members[buffer]]

"""Devices that a text names and that do not fit: the program does not have them, groups contradict each other.

A dump that was cut, edited or put together from two has them; XLA refuses such a module.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

from hlo_inspect.analysis.collectives import Collective
from hlo_inspect.analysis.groups import DeviceCounts, GroupMode, stray_device
from hlo_inspect.analysis.mesh_lists import sharding_fault
from hlo_inspect.hlo.module import Module
from hlo_inspect.hlo.sharding import DeviceListError, source_target_pairs

FaultKind = Literal["unreadable groups", "uneven groups", "contradictory groups", "contradictory pairs"]


class CollectiveFault(NamedTuple):
    """What does not fit in the devices of a collective; `reason` says which device, empty for groups that differ in size."""

    kind: FaultKind
    collective: Collective
    reason: str = ""


def collective_faults(collectives: Sequence[Collective], counts: DeviceCounts) -> list[CollectiveFault]:
    """At most one fault of each collective, in the order of the text."""
    return [fault for collective in collectives for fault in _of_collective(collective, counts)]


def sharding_faults(module: Module, counts: DeviceCounts) -> list[str]:
    """What does not fit in each sharding of the entry computation."""
    faults = (sharding_fault(one, counts, stated=module.header.states_devices) for one in module.shardings)
    return [fault for fault in faults if fault is not None]


def _of_collective(collective: Collective, counts: DeviceCounts) -> Iterator[CollectiveFault]:
    members = collective.participants
    stray = _stray_pair(collective.source_target_pairs, collective.mode, counts)
    if members.contradicts:
        yield CollectiveFault("contradictory groups", collective, members.fault or "")
    elif stray is not None:
        yield CollectiveFault("contradictory pairs", collective, stray)
    elif members.fault is not None and members.groups == () and collective.replica_groups:
        yield CollectiveFault("unreadable groups", collective, members.fault)
    elif not members.uniform:
        yield CollectiveFault("uneven groups", collective)


@lru_cache(maxsize=1 << 8)
def _stray_pair(text: str, mode: GroupMode, counts: DeviceCounts) -> str | None:
    """What is wrong with source-target pairs: a device may send once and receive once."""
    try:
        pairs = source_target_pairs(text) if text else ()
    except DeviceListError as error:
        return str(error)
    for end in (0, 1):
        fault = stray_device((pair[end] for pair in pairs), mode, counts)
        if fault is not None:
            return fault
    return None

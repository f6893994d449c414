"""What is wrong with the devices that a module's text names: in groups, in pairs, in shardings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

from hlo_inspect.analysis.collectives import Collective
from hlo_inspect.analysis.groups import DeviceCounts, GroupMode, stray_device
from hlo_inspect.analysis.mesh_lists import sharding_fault
from hlo_inspect.hlo.module import Module
from hlo_inspect.hlo.sharding import DeviceListError, source_target_pairs


class DeviceFault(NamedTuple):
    """`rule` is that of the finding that it becomes, `subject` the collective it is about, `bytes` those of its operands."""

    rule: str
    severity: Literal["error", "warning", "info"]
    message: str
    line: int | None
    subject: str | None = None
    bytes: int = 0


def device_faults(module: Module, collectives: Sequence[Collective], counts: DeviceCounts) -> list[DeviceFault]:
    """The faults of collectives in the order of the text, then those of shardings, at the entry's line."""
    found = [fault for collective in collectives for fault in _of_collective(collective, counts)]
    line = module.entry.line if module.entry is not None else None
    faults = (sharding_fault(one, counts, stated=module.header.states_devices) for one in module.shardings)
    return found + [DeviceFault("HI204", "error", fault, line) for fault in faults if fault is not None]


def _of_collective(collective: Collective, counts: DeviceCounts) -> Iterator[DeviceFault]:
    members, name = collective.participants, collective.start.name
    place = (collective.start.line, name, collective.operand_bytes or 0)
    stray = _stray_pair(collective.source_target_pairs, collective.mode, counts)
    if members.contradicts:
        yield DeviceFault("HI203", "error", f"{name}: {members.fault}, so that its group size is not known", *place)
    elif stray is not None:
        yield DeviceFault("HI203", "error", f"{name}: {stray}", *place)
    elif members.fault is not None and members.groups == () and collective.replica_groups:
        yield DeviceFault("HI201", "warning", f"{name}: {members.fault}, so that its group size is not known", *place)
    elif not members.uniform:
        message = f"{name}: its groups differ in size; the largest, of {members.size} devices, is counted"
        yield DeviceFault("HI202", "info", message, *place)


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

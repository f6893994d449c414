"""Contradictions between collectives and the devices of the program."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from hlo_inspect.analysis.collectives.logical_collectives import Collective
from hlo_inspect.analysis.devices.participants import DeviceCounts, GroupMode, device_list_fault
from hlo_inspect.hlo.values.attributes import MalformedValue
from hlo_inspect.hlo.values.device_groups import DevicePairs

FaultKind = Literal["unreadable groups", "uneven groups", "contradictory groups", "contradictory pairs"]


class CollectiveFault(NamedTuple):
    """A contradiction between a collective and the devices of the program.

    `reason` names the device, and is empty for groups that differ in size. Dumps that were truncated, edited or joined have
    such faults; XLA refuses them.
    """

    kind: FaultKind
    collective: Collective
    reason: str = ""


def collective_faults(collectives: Sequence[Collective], counts: DeviceCounts) -> list[CollectiveFault]:
    """Return at most one fault of each collective, in the order of the text."""
    return [fault for collective in collectives for fault in _faults_of(collective, counts)]


def _faults_of(collective: Collective, counts: DeviceCounts) -> Iterator[CollectiveFault]:
    members = collective.participants
    is_unreadable = members.fault is not None and members.listed is None and collective.groups is not None
    stray = _stray_pair(collective.pairs, collective.mode, counts) if collective.pairs is not None else None
    if members.contradicts:
        yield CollectiveFault("contradictory groups", collective, members.fault or "")
    elif stray is not None:
        yield CollectiveFault("contradictory pairs", collective, stray)
    elif is_unreadable and collective.properties.is_known:
        yield CollectiveFault("unreadable groups", collective, members.fault or "")
    elif not members.uniform:
        yield CollectiveFault("uneven groups", collective)


def _stray_pair(pairs: DevicePairs | MalformedValue, mode: GroupMode, counts: DeviceCounts) -> str | None:
    """Describe the first fault of the source-target pairs: a device may send once and receive once."""
    if isinstance(pairs, MalformedValue):
        return pairs.reason
    faults = (device_list_fault((pair[end] for pair in pairs.pairs), mode, counts) for end in (0, 1))
    return next((fault for fault in faults if fault is not None), None)

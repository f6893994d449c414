"""Communications: each collective of a module as its ranks see it, with the group or the peers of each rank.

A rank is a device, `replica × partitions + partition`, counted over all slices. Equal member lists share one group number.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from hlo_inspect.analysis.collectives.logical_collectives import Collective
from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.devices.mesh import StatedGroups, device_groups, ids_named
from hlo_inspect.analysis.devices.mesh_axes import most_named
from hlo_inspect.analysis.devices.participants import DeviceCounts, GroupMode, device_list_fault
from hlo_inspect.errors import InputError, Location
from hlo_inspect.hlo.collective_kinds import WORKLOAD_WORDS
from hlo_inspect.hlo.values.attributes import MalformedValue
from hlo_inspect.hlo.values.device_groups import MAX_DEVICES, DeviceListError, DevicePairs, Groups

EVERYBODY = 0
"""Number of the group of all ranks, which needs no entry in a file of groups."""

MAX_SIZE = 2**63 - 1
"""The largest size that clients store."""
_NO_SIZE = "its operand bytes are unknown"


class Communication(NamedTuple):
    """A collective as its ranks see it.

    `groups` maps ranks to the numbers of their groups, without groups of one rank. `targets` maps senders to receivers,
    `sources` the other way round. `reason` says why ranks exchange nothing that a simulator can replay; empty if they do.
    """

    collective: Collective
    axis: str | None
    groups: dict[int, int]
    targets: dict[int, int]
    sources: dict[int, int]
    reason: str

    @property
    def kind(self) -> str:
        return self.collective.kind

    @property
    def size(self) -> int:
        """Bytes of the operands on one rank; 0 if unknown."""
        return self.collective.operand_bytes or 0

    @property
    def key(self) -> tuple[object, ...]:
        """The key that communications share if every rank exchanges the same bytes with the same peers."""
        peers = tuple(self.groups.items()), tuple(self.targets.items())
        return self.kind, self.collective.operand_bytes, *peers, self.reason


class Communications:
    """The communications of a module, in the order of its collectives, and the numbers of their groups.

    Raise InputError if the number of devices is unknown or larger than any system has.
    """

    def __init__(self, context: Context) -> None:
        counts = context.device_counts
        if counts.devices is None:
            reason = "the number of devices is unknown: the header has neither num_partitions nor replica_count"
            raise InputError(reason, Location(context.module.path, context.module.first_line))
        if counts.devices > MAX_DEVICES:
            reason = f"the program is for {counts.devices:,} devices, more than {MAX_DEVICES:,}"
            raise InputError(reason, Location(context.module.path, context.module.first_line))
        self.ranks = counts.devices
        self._counts = counts
        self._numbers: dict[tuple[int, ...], int] = {tuple(range(self.ranks)): EVERYBODY}
        self._known: dict[object, dict[int, int]] = {}
        self._left = most_named(context.module)
        self.listed = [
            self._communication(collective, axis) for collective, axis in zip(context.collectives, context.axes, strict=True)
        ]

    @cached_property
    def groups(self) -> dict[int, tuple[int, ...]]:
        """The members of each group by its number, ascending; without the group of all ranks."""
        return {number: members for members, number in self._numbers.items() if number != EVERYBODY}

    def _communication(self, collective: Collective, axis: str | None) -> Communication:
        try:
            reason = _unsupported(collective)
            if not reason and collective.properties.names_pairs:
                targets = dict(self._pairs(collective))
                reason = "" if targets else "every device sends to itself, which moves nothing"
                sources = {target: source for source, target in targets.items()}
                return Communication(collective, axis, {}, targets, sources, reason)
            groups = {} if reason else self._groups_of(collective)
            reason = reason or ("" if groups else "its groups have one device each, which moves nothing")
        except DeviceListError as error:
            groups, reason = {}, f"its devices are unknown: {error}"
        return Communication(collective, axis, groups, {}, {}, reason)

    def _groups_of(self, collective: Collective) -> dict[int, int]:
        """Return the group number of each rank in a group of two or more. Raise DeviceListError for unknown groups."""
        if collective.participants.fault:
            raise DeviceListError(collective.participants.fault)
        key = collective.groups, collective.mode
        known_groups = self._known.get(key)
        if known_groups is None:
            self._left -= ids_named(collective, self._counts) + self.ranks
            if self._left < 0:
                raise DeviceListError("the groups of the module name too many devices")
            listed = all_groups(collective.groups, collective.mode, self._counts)
            groups = [tuple(sorted(group)) for group in listed if len(group) > 1]
            known_groups = self._known[key] = {rank: self._number(group) for group in groups for rank in group}
        return known_groups

    def _number(self, members: tuple[int, ...]) -> int:
        return self._numbers.setdefault(members, len(self._numbers))

    def _pairs(self, collective: Collective) -> Iterator[tuple[int, int]]:
        """Yield sender and receiver of each message. Raise DeviceListError for unknown pairs."""
        pairs = collective.pairs
        if not isinstance(pairs, DevicePairs):
            raise DeviceListError(pairs.reason if isinstance(pairs, MalformedValue) else "the text does not print its pairs")
        for end in (0, 1):
            fault = device_list_fault((pair[end] for pair in pairs.pairs), collective.mode, self._counts)
            if fault is not None:
                raise DeviceListError(fault)
        self._left -= len(pairs.pairs)
        if self._left < 0:
            raise DeviceListError("the pairs of the module name too many devices")
        for source, target in pairs.pairs:
            if source != target:
                yield from _copies(source, target, collective.mode, self._counts)


def _copies(source: int, target: int, mode: GroupMode, counts: DeviceCounts) -> Iterator[tuple[int, int]]:
    """Yield the pair of ranks in each replica, partition and slice that repeats a pair of the text."""
    step = (counts.partitions or 1) if mode is GroupMode.CROSS_REPLICA else 1
    for offset in _offsets(mode, counts):
        yield source * step + offset, target * step + offset


def all_groups(groups: StatedGroups, mode: GroupMode, counts: DeviceCounts) -> Groups:
    """Return the groups of all replicas, partitions and slices as ranks. Raise DeviceListError for too many devices."""
    first = device_groups(groups, mode, counts)
    return tuple(tuple(device + offset for device in group) for offset in _offsets(mode, counts) for group in first)


def _offsets(mode: GroupMode, counts: DeviceCounts) -> Sequence[int]:
    """Return the offsets of the replicas or partitions that have the same groups, in each slice."""
    replicas, partitions, of_slice = counts.replicas or 1, counts.partitions or 1, counts.devices_per_slice or 1
    repeated: Sequence[int] = (0,)
    if mode is GroupMode.CROSS_PARTITION:
        repeated = range(0, replicas * partitions, partitions)
    elif mode is GroupMode.CROSS_REPLICA:
        repeated = range(partitions)
    return [number * of_slice + offset for number in range(counts.slices) for offset in repeated]


def _unsupported(collective: Collective) -> str:
    """Return the reason why no simulator replays a kind of collective; empty if one does."""
    if collective.is_point_to_point:
        if collective.transfer is not None:
            return "it goes between slices, through the hosts"
        return "it goes through the host" if collective.inner.attr("is_host_transfer") else "it names no ranks"
    if not (collective.properties.names_pairs or collective.kind in WORKLOAD_WORDS):
        return f"the clients know no {collective.kind}"
    if collective.operand_bytes is None:
        return _NO_SIZE
    return "" if collective.operand_bytes <= MAX_SIZE else "its operands have more bytes than 63 bits can count"

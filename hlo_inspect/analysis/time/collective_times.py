"""Time of each collective on the links of an accelerator: a bound, and an estimate.

The level of links follows from the groups and from the placement of devices (`placement.py`). The bound is that of `links.py`:
sent bytes over the bandwidth of the group's links. The estimate adds latencies and the bandwidth that links reach. It uses
NCCL's own model on NVIDIA's GPUs, hops and colours of rings on a torus. It is unknown if the profile lacks a figure for it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence
from typing import NamedTuple

from hlo_inspect.analysis.collectives.logical_collectives import Collective, operand_of_result, wire_bytes
from hlo_inspect.analysis.devices.participants import DeviceCounts
from hlo_inspect.analysis.hardware import HardwareProfile, Link
from hlo_inspect.analysis.time.links import NOTHING_SENT, LinkTime, TorusLinks, with_model
from hlo_inspect.analysis.time.node_links import NodeLinks
from hlo_inspect.analysis.time.placement import CollectiveGroups, Placement, UnknownTimeError
from hlo_inspect.errors import UsageError
from hlo_inspect.figure import Quantity, add, known_part, least, reason
from hlo_inspect.graph.calls import CallGraph

TOGETHER, POINT_TO_POINT = "collectives", "point-to-point"
"""The streams of a GPU."""
RECEIVING = "-receive"
"""Suffix of the stream of data from another slice, after the name of its level."""


class CollectiveTime(NamedTuple):
    """The time of one run of a collective.

    `bound_s` and `estimate_s` are seconds, None if `reason` says what is missing. `level` is the level of links that takes the
    longest, `levels` the bound on each level. `bus_bandwidth` belongs to the estimate, in bytes/s, as nccl-tests defines it:
    sent bytes by time. No other collective runs on any of `streams` at the same time.
    """

    bound_s: float | None
    estimate_s: float | None
    level: str | None
    bus_bandwidth: float | None
    streams: tuple[str, ...]
    levels: tuple[tuple[str, float], ...] = ()
    reason: str = ""


def collective_times(
    collectives: Sequence[Collective],
    axes: Sequence[str | None],
    groups: CollectiveGroups,
    profile: HardwareProfile,
    placement: Placement,
) -> list[CollectiveTime]:
    """Return the time of each of `collectives`, which run over the mesh's `axes`.

    Raise UsageError if the placement has fewer devices than the program, or more than the machine.
    """
    _require_room(groups.counts, profile, placement)
    machine = _Machine(groups, profile, placement)
    return [machine.time(collective, axis) for collective, axis in zip(collectives, axes, strict=True)]


def _require_room(counts: DeviceCounts, profile: HardwareProfile, placement: Placement) -> None:
    available, required = placement.devices, counts.devices_per_slice
    if available is not None and required is not None and required > available * profile.devices_per_chip:
        axes = "x".join(map(str, placement.shape))
        raise UsageError(f"the topology {axes} has {available:,} devices, and the program is for {required:,}")
    torus = next((link for link in profile.networks if link.topology == "torus"), None)
    if torus is None or torus.devices is None:
        return
    sizes = sorted((size for size in placement.shape if size > 1), reverse=True)
    largest = sorted(torus.devices.axes, reverse=True)
    if len(sizes) > len(largest) or any(size > most for size, most in zip(sizes, largest, strict=False)):
        axes = "x".join(map(str, placement.shape))
        raise UsageError(f"the topology {axes} does not fit in the {torus.devices.stated} of {torus.name} of {profile.name}")


class _Machine:
    """The links between the devices of a program."""

    def __init__(self, groups: CollectiveGroups, profile: HardwareProfile, placement: Placement) -> None:
        self._profile = profile
        self._groups = groups
        networks = profile.networks
        self._between_slices = next((link for link in networks if link.topology == "network"), None)
        self._near = networks[0] if networks else None
        self._is_torus = self._near is not None and self._near.topology == "torus"
        self._links: TorusLinks | NodeLinks | None = None
        if self._near is not None:
            links = TorusLinks if self._is_torus else NodeLinks
            self._links = links(profile, placement, groups, self._near)
        self._known: dict[Hashable, CollectiveTime] = {}

    def time(self, collective: Collective, axis: str | None) -> CollectiveTime:
        """Return the time of a collective; collectives that send the same between the same devices share it."""
        sent = collective.kind, collective.operand_bytes, collective.result_bytes, collective.wire_bytes, collective.transfer
        devices = collective.groups, collective.pairs, collective.mode, collective.participants, axis
        key = (*sent, *devices, self._links.way_of(collective) if self._links is not None else None)
        time = self._known.get(key)
        if time is None:
            time = self._time(collective, axis)
            if time.bound_s is not None:  # else the reason names the collective
                self._known[key] = time
        return time

    def _time(self, collective: Collective, axis: str | None) -> CollectiveTime:
        streams = self._streams(collective, axis)
        try:
            link_time = self._link_time(collective)
        except UnknownTimeError as unknown:
            return CollectiveTime(None, None, None, None, streams, reason=f"{collective.start.name}: {unknown}")
        level = max(link_time.levels, key=lambda level_time: level_time[1])[0] if link_time.levels else None
        sent = collective.wire_bytes
        # models of rings give each device all adapters of its node, which the bound of the links shares
        estimate = max(link_time.estimate, link_time.bound) if link_time.estimate is not None else None
        bus = sent / estimate if sent and estimate else None
        return CollectiveTime(link_time.bound, estimate, level, bus, streams, link_time.levels, link_time.reason)

    def _streams(self, collective: Collective, axis: str | None) -> tuple[str, ...]:
        if collective.transfer is not None:
            name = self._between_slices.name if self._between_slices is not None else "dcn"
            return (name if collective.kind == "send" else name + RECEIVING,)
        if self._is_torus and self._near is not None:
            return tuple(axis.split(",")) if axis else (self._near.name,)
        return (TOGETHER if collective.forms_groups else POINT_TO_POINT,)

    def _link_time(self, collective: Collective) -> LinkTime:
        if collective.transfer is not None:
            return self._to_slices(collective, self._between_slices)
        if collective.is_point_to_point:
            raise UnknownTimeError("the text does not say which device sends to which")
        size, devices = collective.operand_bytes, collective.group_size or 1
        if size is None or (collective.wire_bytes is None and not collective.properties.names_pairs):
            raise UnknownTimeError(collective.reason_unknown)
        pairs = self._groups.pairs(collective) if collective.properties.names_pairs else []
        if not pairs and (collective.properties.names_pairs or devices == 1):
            return NOTHING_SENT
        if self._links is None:
            raise UnknownTimeError(f"the profile {self._profile.name} states no links")
        if pairs:
            return self._links.permute_time(pairs, size)
        return self._links.groups_time(collective, float(collective.properties.whole_of_operand(size, devices)))

    def _to_slices(self, collective: Collective, link: Link | None) -> LinkTime:
        """Return the time of data to or from another slice. Both directions are used at a time."""
        if link is None or link.send_bandwidth is None:
            raise UnknownTimeError(f"the profile {self._profile.name} states no bandwidth between slices")
        size = collective.wire_bytes if collective.kind == "send" else _received(collective)
        if size is None:
            raise UnknownTimeError(collective.reason_unknown)
        return with_model(link, size * self._profile.devices_per_chip / link.send_bandwidth, self._profile)


def _received(collective: Collective) -> int | None:
    """Return the bytes that a recv gets from other slices: the bytes that one slice sends."""
    transfer, result = collective.transfer, collective.result_bytes
    if transfer is None or transfer.kind is None or result is None:
        return None
    return wire_bytes(transfer.kind, operand_of_result(transfer.kind, result, transfer.slices), transfer.slices)


_OF_A_SECOND = 10**18
"""Sums over runs are of whole attoseconds, as for all other figures of one run."""

ALL = ""


def collective_seconds(
    collectives: Sequence[Collective], times: Sequence[CollectiveTime], graph: CallGraph
) -> dict[str, Quantity]:
    """Return the bound of the collectives of one step: the sum over all (`ALL`) and over each level of links.

    Data from another slice counts in the send of that slice.
    """
    own: defaultdict[str, dict[str, Quantity]] = defaultdict(dict)
    unknown = []
    for collective, time in zip(collectives, times, strict=True):
        if time.bound_s is None:
            unknown.append(time.reason)
        if collective.transfer is not None and collective.kind != "send":
            continue
        figures = own[collective.start.computation.name]
        for level, seconds in ((ALL, time.bound_s or 0.0), *time.levels):
            figures[level] = add(figures.get(level, 0), round(seconds * _OF_A_SECOND))
    missing = f"{len(unknown)} of {len(times)} collectives have no bound: {unknown[0]}" if unknown else ""
    totals = {ALL: 0, **graph.bounds(own)}
    return {level: known_part(least(amount) / _OF_A_SECOND, reason(amount) or missing) for level, amount in totals.items()}

"""Bounds of a collective's time over the links of one level, or of a torus.

S is the whole array (the result of an all-gather, the operand of the others), n the devices of a group. w is the bytes/s that
one device sends. Each formula gives the bytes that the device, the node or the part of a torus with the fewest links has to
send or receive. Sources: nccl-tests, `doc/PERFORMANCE.md`; "How to Scale Your Model", parts 3 and 12.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from math import prod
from typing import NamedTuple

from hlo_inspect.analysis.collectives.logical_collectives import Collective
from hlo_inspect.analysis.devices.mesh import Run
from hlo_inspect.analysis.hardware import HardwareProfile, Link
from hlo_inspect.analysis.time.placement import CollectiveGroups, NodeSpread, Placement, UnknownTimeError, best_shapes, extents
from hlo_inspect.hlo.collective_kinds import CollectiveKind
from hlo_inspect.lazy_pattern import lazy_pattern


class LinkTime(NamedTuple):
    """Seconds on each level by its name: the bound, and the estimate; None if `reason` says what is missing."""

    levels: tuple[tuple[str, float], ...]
    estimate: float | None
    reason: str = ""

    @property
    def bound(self) -> float:
        return max((seconds for _, seconds in self.levels), default=0.0)


NOTHING_SENT = LinkTime((), 0.0)


def slowest(link_times: Sequence[LinkTime]) -> LinkTime:
    """Return the slowest of several times, level by level."""
    levels: dict[str, float] = {}
    for link_time in link_times:
        for name, seconds in link_time.levels:
            levels[name] = max(levels.get(name, 0.0), seconds)
    estimates = [link_time.estimate for link_time in link_times]
    stated = [estimate for estimate in estimates if estimate is not None]
    reason = next((link_time.reason for link_time in link_times if link_time.reason), "")
    return LinkTime(tuple(levels.items()), max(stated, default=0.0) if len(stated) == len(estimates) else None, reason)


def with_model(link: Link, bound: float, profile: HardwareProfile, *, seconds: float | None = None, steps: int = 1) -> LinkTime:
    """Return the time over one level with its estimate.

    The estimate is `seconds`, or the bound, at the efficiency of the links, plus the latency of all steps. On a torus the first
    bytes travel while others are sent, so the longer of the two counts.
    """
    levels = ((link.name, bound),)
    if link.efficiency is None or link.latency is None:
        return LinkTime(levels, None, no_model(profile, [link]))
    sent, latency = (bound if seconds is None else seconds) / link.efficiency, steps * link.latency
    return LinkTime(levels, max(sent, latency) if link.topology == "torus" else sent + latency)


def known(seconds: float | None, profile: HardwareProfile, link: Link) -> float:
    """Return seconds or bytes/s of a level. Raise UnknownTimeError if the profile does not state its bandwidth."""
    if seconds is None:
        raise UnknownTimeError(f"the profile {profile.name} states no bandwidth of {link.name}")
    return seconds


def no_model(profile: HardwareProfile, links: Iterable[Link]) -> str:
    """Return the figures that an estimate over these levels lacks."""
    missing = [
        f"links.{link.name}.{name}"
        for link in links
        for name, value in (("latency", link.latency), ("efficiency", link.efficiency))
        if value is None
    ]
    return f"no estimate: the profile {profile.name} states no {' nor '.join(missing)}"


def node_share(kind: CollectiveKind, devices: int, link: Link) -> float:
    """Return the part of an array that a device sends over a switch, or links from each device to each.

    If the switch adds up, each device sends an array once.
    """
    factor = kind.share_sent(devices)
    return min(factor, 1.0) if kind.rounds == 2 and link.reduces else factor


def network_bound(kind: CollectiveKind, whole: float, spread: NodeSpread, node: float) -> float:
    """Return a bound in seconds over the network between nodes, each of which sends `node` bytes/s.

    Each node sends or receives the data that its devices do not have or keep.
    """
    if kind.sends_whole:
        return whole / node
    if kind.rounds == 2:
        return 2 * whole * (spread.nodes - 1) / spread.nodes / node
    sent = whole * (spread.devices - spread.fewest) / spread.devices
    return sent * (spread.fewest if kind.is_exchange else 1) / node


class TorusAxis(NamedTuple):
    """An axis that a group lies along: `size` devices, every `stride`-th of it, on a ring or on a line."""

    size: int
    stride: int
    is_ring: bool

    @property
    def links(self) -> float:
        """The links of the device that has the fewest, for each of the groups that share the axis."""
        return (2 if self.is_ring else 1) / self.stride


def torus_axes(runs: Mapping[int, Run], shape: tuple[int, ...], link: Link) -> list[TorusAxis]:
    """Return the axes of a group that lies along `runs` of a torus.

    An axis is a ring if all of it wraps round and the group covers it.
    """
    return [
        TorusAxis(run.size, run.stride, run.size * run.stride == shape[axis] and link.wraps(shape[axis]))
        for axis, run in runs.items()
    ]


def torus_bound(
    kind: CollectiveKind, whole: float, axes: Sequence[TorusAxis], bandwidth: float, links: float | None = None
) -> float:
    """Return a bound in seconds along axes of a torus whose links send `bandwidth` each way.

    `links` is the number of links used at a time; None counts those of the device with the fewest.
    """
    devices = prod(axis.size for axis in axes)
    if devices == 1:
        return 0.0
    if kind.is_exchange:
        return max(_all_to_all_seconds(whole, axis, bandwidth) for axis in axes)
    return whole * kind.share_sent(devices) / (bandwidth * (links or sum(axis.links for axis in axes)))


def _all_to_all_seconds(whole: float, axis: TorusAxis, bandwidth: float) -> float:
    """Return the seconds of an all-to-all across the middle of an axis: each half of the devices gets half of the data."""
    halves = (axis.size // 2) * (axis.size - axis.size // 2) / axis.size**2
    return whole * halves * axis.size / (axis.links * bandwidth)


def hops(kind: CollectiveKind, axes: Iterable[TorusAxis]) -> int:
    """Return the number of links on the longest path of any data."""
    steps = sum((axis.size // 2 if axis.is_ring else axis.size - 1) * axis.stride for axis in axes)
    return steps * kind.rounds


def most_crowded(
    pairs: Iterable[tuple[tuple[int, ...], tuple[int, ...]]], shape: tuple[int, ...], link: Link
) -> tuple[int, int]:
    """Return the number of arrays on the most crowded link, and the longest path, for pairs of places.

    Each array goes along one axis after the other, the shorter way round.
    """
    loads: dict[tuple[tuple[int, ...], int, int], int] = {}
    longest = 0
    for source, target in pairs:
        position, length = list(source), 0
        for axis, size in enumerate(shape):
            distance = target[axis] - position[axis]
            if link.wraps(size) and abs(distance) * 2 > size:
                distance -= size if distance > 0 else -size
            step = 1 if distance > 0 else -1
            for _ in range(abs(distance)):
                key = (tuple(position), axis, step)
                loads[key] = loads.get(key, 0) + 1
                position[axis] = (position[axis] + step) % size
            length += abs(distance)
        longest = max(longest, length)
    return max(loads.values(), default=0), longest


_WITHIN_A_CHIP = "its devices are cores of one chip, and no source states the bandwidth between them"
_MOST_STEPS = 1 << 18
"""Limit of steps from chip to chip followed for the most crowded link. Longer lists of pairs count one array."""
_COLOURS = lazy_pattern(r"colors:(\d{1,2})\b", re.ASCII)


class TorusLinks:
    """The links of a torus. Without a topology of the user, groups lie in the fastest way."""

    def __init__(self, profile: HardwareProfile, placement: Placement, groups: CollectiveGroups, link: Link) -> None:
        self._profile = profile
        self._placement = placement
        self._groups = groups
        self._link = link
        self._boxes: dict[int, list[list[TorusAxis]]] = {}
        self._along: dict[object, list[list[TorusAxis]]] = {}

    @staticmethod
    def way_of(collective: Collective) -> float | None:
        """Return what decides the time of a collective beside its bytes and devices.

        It is the number of directions in which TPU's compiler sends at a time, from its `backend_config`.
        """
        for part in collective.configs():
            debug = part.get("debug")
            match = _COLOURS.search(debug) if isinstance(debug, str) else None
            if match is not None:
                return float(max(1, int(match[1])))
        return None

    def groups_time(self, collective: Collective, whole: float) -> LinkTime:
        """Return the time of a collective of groups over an array of `whole` bytes."""
        spread = self._chip_spread(collective)
        if spread.nodes == 1:
            raise UnknownTimeError(_WITHIN_A_CHIP)
        link = self._link
        bandwidth = known(link.link_bandwidth, self._profile, link) * float(spread.part)
        kind = collective.properties
        if kind.is_exchange:
            whole *= spread.most
        colours = self.way_of(collective)
        link_times = []
        for axes in self._possible_axes(collective, spread.nodes):
            bound = torus_bound(kind, whole, axes, bandwidth)
            modelled = max(bound, torus_bound(kind, whole, axes, bandwidth, colours))
            link_times.append(with_model(link, bound, self._profile, seconds=modelled, steps=hops(kind, axes)))
        return slowest(link_times) if self._placement.shape else min(link_times, key=lambda link_time: link_time.bound)

    def _chip_spread(self, collective: Collective) -> NodeSpread:
        """Return the spread of the groups over chips, for devices that are parts of one."""
        on_a_chip, devices = self._profile.devices_per_chip, collective.group_size or 1
        if on_a_chip == 1:
            return NodeSpread(devices, devices, 1, 1, Fraction(1))
        spreads = self._groups.spreads(collective, Placement(), on_a_chip)
        if len(spreads) > 1:
            raise UnknownTimeError("its groups divide chips differently, and a device is a part of a chip")
        (spread,) = spreads
        return spread

    def _possible_axes(self, collective: Collective, chips: int) -> list[list[TorusAxis]]:
        """Return the axes of the groups: the actual axes if the placement is known, else all that fit."""
        if not self._placement.shape:
            if chips not in self._boxes:
                self._boxes[chips] = self._all_boxes(chips)
            return self._boxes[chips]
        key = (collective.groups, collective.mode)
        if key not in self._along:
            self._along[key] = self._along_axes(collective)
        return self._along[key]

    def _along_axes(self, collective: Collective) -> list[list[TorusAxis]]:
        """Return the distinct axes of the groups in the user's topology."""
        groupings: dict[tuple[TorusAxis, ...], None] = {}
        for group in self._groups.listed(collective):
            runs = extents(sorted({device // self._profile.devices_per_chip for device in group}), self._placement)
            if runs is None:
                raise UnknownTimeError("its groups do not follow axes of the topology")
            groupings[tuple(torus_axes(runs, self._placement.shape, self._link))] = None
        return [list(axes) for axes in groupings]

    def _all_boxes(self, chips: int) -> list[list[TorusAxis]]:
        link = self._link
        if link.devices is not None:
            sizes = link.devices.axes
        elif link.count is not None:
            sizes = (chips,) * (int(link.count.value) // 2)
        else:
            raise UnknownTimeError(f"the profile {self._profile.name} does not say how large {link.name} is")
        boxes = best_shapes(chips, sizes)
        if not boxes:
            large = "x".join(map(str, sizes))
            raise UnknownTimeError(f"a group over {chips:,} chips does not fit in the {large} of {link.name}")
        return [[TorusAxis(side, 1, link.wraps(side)) for side in box if side > 1] for box in boxes]

    def permute_time(self, pairs: Sequence[tuple[int, int]], size: int) -> LinkTime:
        """Return the time to send an array of `size` bytes from the first to the second device of each pair."""
        on_a_chip, link, shape = self._profile.devices_per_chip, self._link, self._placement.shape
        chips = [(source // on_a_chip, target // on_a_chip) for source, target in pairs]
        chips = [(source, target) for source, target in chips if source != target]
        if not chips:
            raise UnknownTimeError(_WITHIN_A_CHIP)
        crowd, steps = 1, 1
        if shape and len(chips) * sum(shape) <= _MOST_STEPS:
            places = [(self._placement.coordinates(source), self._placement.coordinates(target)) for source, target in chips]
            crowd, steps = most_crowded(places, shape, link)
        return with_model(link, size * crowd / known(link.link_bandwidth, self._profile, link), self._profile, steps=steps)

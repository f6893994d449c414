"""The time of each collective on the links of an accelerator: a bound, and what a latency and bandwidth model expects.

The level of links follows from the groups and from where devices are (`placement.py`). The bound is that of `links.py`: wire
bytes over the bandwidth of the links that the group has. The estimate adds latencies and what links reach: NCCL's own model on
NVIDIA's GPUs, hops and colours of rings on a torus. Where the profile lacks a figure for it, there is none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

from hlo_inspect.analysis.collectives import Collective
from hlo_inspect.analysis.devices import DeviceCounts, GroupMode
from hlo_inspect.analysis.hardware import HardwareProfile, Link
from hlo_inspect.analysis.mesh import device_groups
from hlo_inspect.analysis.time import nccl
from hlo_inspect.analysis.time.links import (
    TorusAxis,
    along_torus,
    between_nodes,
    bus_factor,
    hops,
    most_crowded,
    torus_axes,
    within_node,
)
from hlo_inspect.analysis.time.placement import Placement, Spread, best_shapes, extents, spreads
from hlo_inspect.errors import UsageError
from hlo_inspect.hlo.device_groups import DeviceGroups, DeviceListError, DevicePairs, Groups

TOGETHER, POINT_TO_POINT = "collectives", "point-to-point"
"""The streams of a GPU."""
RECEIVING = "-receive"
"""What the stream of data from another slice has behind the name of its level."""

MOST_IDS = 1 << 21
"""So many ids of devices are looked at in all groups of a module."""

_WITHIN_A_CHIP = "its devices are cores of one chip, and no source states the bandwidth between them"

_COLOURS = re.compile(r"colors:(\d{1,2})\b", re.ASCII)


class CollectiveTime(NamedTuple):
    """One run of a collective.

    `bound_s` and `estimate_s` are seconds, `None` where `reason` says what is missing. `level` is the level of links that takes
    the longest, `levels` the bound on each level. `bus_bandwidth` is that of the estimate in bytes/s, as nccl-tests defines it:
    wire bytes by time. While it runs no other collective does on any of `streams`.
    """

    bound_s: float | None
    estimate_s: float | None
    level: str | None
    bus_bandwidth: float | None
    streams: tuple[str, ...]
    levels: tuple[tuple[str, float], ...] = ()
    reason: str = ""


class _Way(NamedTuple):
    """One way of going: seconds at least, by level, and those of the model."""

    levels: tuple[tuple[str, float], ...]
    estimate: float | None
    reason: str = ""

    @property
    def bound(self) -> float:
        return max((seconds for _, seconds in self.levels), default=0.0)


class _UnknownError(Exception):
    """Why the time of a collective is not known."""


def collective_times(
    collectives: Sequence[Collective],
    axes: Sequence[str | None],
    counts: DeviceCounts,
    profile: HardwareProfile,
    placement: Placement,
) -> list[CollectiveTime]:
    """The time of each of `collectives`, which run over the mesh's `axes`. `UsageError` where the placement has fewer devices
    than the program.
    """
    machine = _Machine(counts, profile, placement)
    return [machine.time(collective, axis) for collective, axis in zip(collectives, axes, strict=True)]


class _Machine:
    """The links between the devices of a program."""

    def __init__(self, counts: DeviceCounts, profile: HardwareProfile, placement: Placement) -> None:
        chips = profile.devices_per_chip
        if placement.devices is not None and counts.of_slice is not None and counts.of_slice > placement.devices * chips:
            axes = "x".join(map(str, placement.shape))
            there = f"the topology {axes} has {placement.devices:,} devices"
            raise UsageError(f"{there}, and the program is for {counts.of_slice:,}")
        self._on_a_chip = chips
        self._counts = counts
        self._profile = profile
        self._placement = placement
        self._networks = profile.networks
        self._near = self._networks[0] if self._networks else None
        self._is_torus = self._near is not None and self._near.topology == "torus"
        self._groups: dict[object, Groups] = {}
        self._spreads: dict[object, set[Spread]] = {}
        self._ids = 0

    def time(self, collective: Collective, axis: str | None) -> CollectiveTime:
        streams = self._streams(collective, axis)
        try:
            way = self._way(collective)
        except _UnknownError as unknown:
            return CollectiveTime(None, None, None, None, streams, reason=f"{collective.start.name}: {unknown}")
        level = max(way.levels, key=lambda one: one[1])[0] if way.levels else None
        sent = collective.wire_bytes
        bus = sent / way.estimate if sent and way.estimate else None
        return CollectiveTime(way.bound, way.estimate, level, bus, streams, way.levels, way.reason)

    def _streams(self, collective: Collective, axis: str | None) -> tuple[str, ...]:
        if collective.transfer is not None:
            name = self._between_slices.name if self._between_slices is not None else "dcn"
            return (name if collective.kind == "send" else name + RECEIVING,)
        if self._is_torus:
            return tuple(axis.split(",")) if axis else (self._near.name,) if self._near is not None else ()
        return (POINT_TO_POINT if collective.kind in {"collective-permute", "send", "recv"} else TOGETHER,)

    @property
    def _between_slices(self) -> Link | None:
        return next((link for link in self._networks if link.topology == "network"), None)

    def _way(self, collective: Collective) -> _Way:
        if collective.transfer is not None:
            return self._to_slices(collective)
        if collective.is_point_to_point:
            raise _UnknownError("the text does not say which device sends to which")
        size = collective.operand_bytes
        if size is None or (collective.wire_bytes is None and collective.kind != "collective-permute"):
            raise _UnknownError(collective.why_unknown)
        if collective.kind == "collective-permute":
            return self._permute(collective, size)
        devices = collective.group_size or 1
        if devices == 1:
            return _Way((), 0.0)
        if self._near is None:
            raise _UnknownError(f"the profile {self._profile.name} states no links")
        whole = float(size * devices if collective.kind == "all-gather" else size)
        if self._is_torus:
            return self._in_torus(collective, whole, self._near)
        return self._over_nodes(collective, whole, self._near)

    def _listed(self, collective: Collective) -> Groups:
        """The groups as ids of devices."""
        groups = collective.groups
        key = (groups, collective.mode)
        if key not in self._groups:
            try:
                listed = groups.groups if isinstance(groups, DeviceGroups) else ()
                found = device_groups(listed, collective.mode, self._counts)
            except DeviceListError as error:
                raise _UnknownError(str(error)) from error
            self._ids += sum(map(len, found))
            if self._ids > MOST_IDS:
                raise _UnknownError(f"groups name devices more than {MOST_IDS:,} times")
            self._groups[key] = found
        return self._groups[key]

    # -- slices ---------------------------------------------------------------------------------------------------------------

    def _to_slices(self, collective: Collective) -> _Way:
        """Data to or from another slice. Both directions are used at a time."""
        link = self._between_slices
        if link is None or link.send_bandwidth is None:
            raise _UnknownError(f"the profile {self._profile.name} states no bandwidth between slices")
        size = collective.wire_bytes if collective.kind == "send" else collective.operand_bytes or collective.result_bytes
        if size is None:
            raise _UnknownError(collective.why_unknown)
        bound = size * self._on_a_chip / link.send_bandwidth
        return _with_model(((link.name, bound),), link, 1, bound, self._profile)

    # -- nodes ----------------------------------------------------------------------------------------------------------------

    def _per_node(self, near: Link) -> int:
        """The devices that the nearest links join."""
        if self._placement.per_node is not None:
            return self._placement.per_node
        joined = int(near.devices.value) if near.devices is not None else self._profile.devices_per_node
        if joined is None:
            missing = f"the profile {self._profile.name} does not say how many devices {near.name} joins"
            raise _UnknownError(f"{missing}: name them with --devices-per-node")
        return joined * self._on_a_chip

    def _network(self) -> Link:
        if len(self._networks) < 2:
            raise _UnknownError(f"its devices are on several nodes, and the profile {self._profile.name} states no network")
        return self._networks[1]

    def _over_nodes(self, collective: Collective, whole: float, near: Link) -> _Way:
        per_node = self._per_node(near)
        key = (collective.groups, collective.mode)
        if key not in self._spreads:
            self._spreads[key] = spreads(self._listed(collective), self._placement, per_node)
        ways = [
            self._by_spread(collective, whole, spread, near, per_node) for spread in self._spreads[key] if spread.devices > 1
        ]
        return _slowest(ways)

    def _by_spread(self, collective: Collective, whole: float, spread: Spread, near: Link, per_node: int) -> _Way:
        kind = collective.kind
        levels = []
        if spread.most > 1:
            inside = whole if kind != "all-to-all" else whole * spread.most / spread.devices
            seconds = within_node(kind, inside * self._on_a_chip, spread.most, near)
            if seconds is None:
                raise _UnknownError(_no_bandwidth(self._profile, near))
            levels.append((near.name, seconds))
        far = self._network() if spread.nodes > 1 else None
        if far is not None:
            seconds = between_nodes(kind, whole * self._on_a_chip, spread, per_node, far)
            if seconds is None:
                raise _UnknownError(_no_bandwidth(self._profile, far))
            levels.append((far.name, seconds))
        estimate = self._model(collective, whole, spread, near, far)
        reason = "" if estimate is not None else _no_model(self._profile, [near, far] if far is not None else [near])
        return _Way(tuple(levels), estimate, reason)

    def _model(self, collective: Collective, whole: float, spread: Spread, near: Link, far: Link | None) -> float | None:
        if self._profile.maker == "NVIDIA":
            if spread.nodes == 1 and _is_one_shot(collective):
                return nccl.one_shot_seconds(int(whole), spread.devices, near)
            return nccl.seconds(collective.kind, whole, spread, near, far)
        used = [near] if far is None else [near, far] if spread.most > 1 else [far]
        seconds = []
        for link in used:
            if link.send_bandwidth is None or link.efficiency is None or link.latency is None:
                return None
            width = spread.fewest if link is far else 1
            seconds.append(
                whole * bus_factor(collective.kind, spread.devices) / (link.send_bandwidth * link.efficiency * width)
            )
        steps = 1 if collective.kind == "all-to-all" else round(bus_factor(collective.kind, spread.devices) * spread.devices)
        return max(seconds) + steps * max(link.latency or 0.0 for link in used)

    # -- pairs ----------------------------------------------------------------------------------------------------------------

    def _permute(self, collective: Collective, size: int) -> _Way:
        if not isinstance(collective.pairs, DevicePairs):
            raise _UnknownError("the text does not say which device sends to which")
        step = (self._counts.partitions or 1) if collective.mode is GroupMode.CROSS_REPLICA else 1
        pairs = [(source * step, target * step) for source, target in collective.pairs.pairs if source != target]
        if not pairs:
            return _Way((), 0.0)
        near = self._near
        if near is None:
            raise _UnknownError(f"the profile {self._profile.name} states no links")
        if self._is_torus:
            chips = [(source // self._on_a_chip, target // self._on_a_chip) for source, target in pairs]
            return self._permute_in_torus([(source, target) for source, target in chips if source != target], size, near)
        per_node = self._per_node(near)
        nodes = [(self._placement.node(source, per_node), self._placement.node(target, per_node)) for source, target in pairs]
        leaving = [source for source, target in nodes if source != target]
        ways = []
        if len(leaving) < len(nodes):
            inside = within_node("collective-permute", size * self._on_a_chip, 2, near)
            if inside is None:
                raise _UnknownError(_no_bandwidth(self._profile, near))
            ways.append(self._hop((near.name, inside), near, size))
        if leaving:
            far = self._network()
            if far.send_bandwidth is None:
                raise _UnknownError(_no_bandwidth(self._profile, far))
            busiest = max(leaving.count(node) for node in set(leaving))
            seconds = size * self._on_a_chip * busiest / (far.send_bandwidth * per_node)
            ways.append(self._hop((far.name, seconds), far, size))
        return _slowest(ways)

    def _hop(self, bound: tuple[str, float], link: Link, size: int) -> _Way:
        """Data that goes over one link of a level."""
        bandwidth = link.link_bandwidth if link.topology == "mesh" else link.send_bandwidth
        extra = nccl.SIMPLE.ring[0] if self._profile.maker == "NVIDIA" else 0.0
        way = _with_model((bound,), link, 1, size / bandwidth if bandwidth else bound[1], self._profile)
        return way._replace(estimate=way.estimate + extra) if way.estimate is not None else way

    def _permute_in_torus(self, pairs: Sequence[tuple[int, int]], size: int, link: Link) -> _Way:
        if not pairs:
            raise _UnknownError(_WITHIN_A_CHIP)
        bandwidth = _link_bandwidth(self._profile, link)
        shape = self._placement.shape
        crowd, way = 1, 1
        if shape and len(pairs) * sum(shape) <= MOST_IDS:
            places = [(self._placement.coordinates(source), self._placement.coordinates(target)) for source, target in pairs]
            crowd, way = most_crowded(places, shape, link)
        bound = size * crowd / bandwidth
        return _with_model(((link.name, bound),), link, way, bound, self._profile)

    # -- torus ----------------------------------------------------------------------------------------------------------------

    def _in_torus(self, collective: Collective, whole: float, link: Link) -> _Way:
        spread = self._over_chips(collective)
        if spread.nodes == 1:
            raise _UnknownError(_WITHIN_A_CHIP)
        bandwidth = _link_bandwidth(self._profile, link) * float(spread.part)
        if collective.kind == "all-to-all":
            whole *= spread.most
        colours = _colours(collective)
        ways = []
        for axes in self._ways_to_lie(collective, link, spread.nodes):
            bound = along_torus(collective.kind, whole, axes, bandwidth)
            modelled = along_torus(collective.kind, whole, axes, bandwidth, colours)
            steps = hops(collective.kind, axes)
            ways.append(_with_model(((link.name, bound),), link, steps, max(bound, modelled), self._profile))
        return _slowest(ways) if self._placement.shape else min(ways, key=lambda way: way.bound)

    def _over_chips(self, collective: Collective) -> Spread:
        """How a group lies over chips, where a device is a part of one."""
        devices = collective.group_size or 1
        if self._on_a_chip == 1:
            return Spread(devices, devices, 1, 1, Fraction(1))
        found = spreads(self._listed(collective), Placement(), self._on_a_chip)
        if len(found) > 1:
            raise _UnknownError("its groups lie in different ways over the chips, of which a device is a part")
        return found.pop()

    def _ways_to_lie(self, collective: Collective, link: Link, chips: int) -> list[list[TorusAxis]]:
        """The axes of the groups, one way for each of them where the placement is known; else all ways that fit in."""
        shape = self._placement.shape
        if shape:
            found = {}
            for group in self._listed(collective):
                runs = extents(sorted({device // self._on_a_chip for device in group}), self._placement)
                if runs is None:
                    raise _UnknownError("its groups do not lie along axes of the topology")
                axes = torus_axes(runs, shape, link)
                found[tuple(axes)] = axes
            return list(found.values())
        if link.devices is not None:
            sizes = link.devices.axes
        elif link.count is not None:
            sizes = (chips,) * (int(link.count.value) // 2)
        else:
            raise _UnknownError(f"the profile {self._profile.name} does not say how large {link.name} is")
        boxes = best_shapes(chips, sizes)
        if not boxes:
            large = "x".join(map(str, sizes))
            raise _UnknownError(f"a group over {chips:,} chips does not fit in the {large} of {link.name}")
        return [[TorusAxis(side, 1, link.wraps(side)) for side in box if side > 1] for box in boxes]


def _link_bandwidth(profile: HardwareProfile, link: Link) -> float:
    bandwidth = link.link_bandwidth
    if bandwidth is None:
        raise _UnknownError(_no_bandwidth(profile, link))
    return bandwidth


def _no_bandwidth(profile: HardwareProfile, link: Link) -> str:
    return f"the profile {profile.name} states no bandwidth of {link.name}"


def _no_model(profile: HardwareProfile, links: Iterable[Link]) -> str:
    missing = [
        f"links.{link.name}.{name}"
        for link in links
        for name, value in (("latency", link.latency), ("efficiency", link.efficiency))
        if value is None
    ]
    return f"no estimate: the profile {profile.name} states no {' nor '.join(missing)}"


def _with_model(
    levels: tuple[tuple[str, float], ...], link: Link, steps: int, seconds: float, profile: HardwareProfile
) -> _Way:
    """A way with its estimate: the time of the bytes at what the links reach, or the latency of all steps if that is longer."""
    if link.efficiency is None or link.latency is None:
        return _Way(levels, None, _no_model(profile, [link]))
    if link.topology == "torus":  # data flows on while the first hop is on its way
        return _Way(levels, max(seconds / link.efficiency, steps * link.latency))
    return _Way(levels, seconds / link.efficiency + steps * link.latency)


def _slowest(ways: Sequence[_Way]) -> _Way:
    """What all ways together take at least: each level the longest of them."""
    levels: dict[str, float] = {}
    for way in ways:
        for name, seconds in way.levels:
            levels[name] = max(levels.get(name, 0.0), seconds)
    estimates = [way.estimate for way in ways]
    known = [estimate for estimate in estimates if estimate is not None]
    reason = next((way.reason for way in ways if way.reason), "")
    return _Way(tuple(levels.items()), max(known, default=0.0) if len(known) == len(estimates) else None, reason)


def _is_one_shot(collective: Collective) -> bool:
    """Whether XLA's own kernel does an all-reduce."""
    if collective.kind != "all-reduce" or (collective.operand_bytes or 0) > nccl.MAX_ONE_SHOT:
        return False
    return any(part.get("kernel_strategy") == "TRITON_ONE_SHOT" for part in _configs(collective))


def _configs(collective: Collective) -> Iterator[Mapping[str, object]]:
    for instruction in (collective.inner, collective.start):
        config = instruction.attr("backend_config")
        if config is not None:
            yield from config.objects()


def _colours(collective: Collective) -> float | None:
    """In how many directions TPU's compiler sends at a time, by its own words."""
    for part in _configs(collective):
        debug = part.get("debug")
        match = _COLOURS.search(debug) if isinstance(debug, str) else None
        if match is not None:
            return float(max(1, int(match[1])))
    return None

"""The least time of a collective over the links of one level: nothing that these links carry can be faster.

S is the whole array (the result of an all-gather, the operand of the others), n the devices of a group, w the bytes/s that one
device sends. Each formula is what the device, the node or the part of a torus with the fewest links has to send or receive.
Sources: nccl-tests, `doc/PERFORMANCE.md`; "How to Scale Your Model", parts 3 and 12.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from hlo_inspect.analysis.hardware import HardwareProfile, Link
from hlo_inspect.analysis.mesh import Run
from hlo_inspect.analysis.time.placement import NodeSpread, UnknownTimeError


class Way(NamedTuple):
    """Seconds that data takes at least on each level, by the level's name, and those of the model; `None` where `reason` says
    what is missing for it.
    """

    levels: tuple[tuple[str, float], ...]
    estimate: float | None
    reason: str = ""

    @property
    def bound(self) -> float:
        return max((seconds for _, seconds in self.levels), default=0.0)


NOTHING_SENT = Way((), 0.0)


def slowest(ways: Sequence[Way]) -> Way:
    """What all ways together take at least: each level the longest of them."""
    levels: dict[str, float] = {}
    for way in ways:
        for name, seconds in way.levels:
            levels[name] = max(levels.get(name, 0.0), seconds)
    estimates = [way.estimate for way in ways]
    known = [estimate for estimate in estimates if estimate is not None]
    reason = next((way.reason for way in ways if way.reason), "")
    return Way(tuple(levels.items()), max(known, default=0.0) if len(known) == len(estimates) else None, reason)


def with_model(link: Link, bound: float, profile: HardwareProfile, *, seconds: float | None = None, steps: int = 1) -> Way:
    """A way over one level with its estimate: `seconds`, or the bound, at what the links reach, and the latency of all steps.
    On a torus data flows on while its first part is on the way, so that the longer of the two counts.
    """
    levels = ((link.name, bound),)
    if link.efficiency is None or link.latency is None:
        return Way(levels, None, no_model(profile, [link]))
    sent, latency = (bound if seconds is None else seconds) / link.efficiency, steps * link.latency
    return Way(levels, max(sent, latency) if link.topology == "torus" else sent + latency)


def known(seconds: float | None, profile: HardwareProfile, link: Link) -> float:
    """Seconds or bytes/s of a level; `UnknownTimeError` where the profile does not state its bandwidth."""
    if seconds is None:
        raise UnknownTimeError(f"the profile {profile.name} states no bandwidth of {link.name}")
    return seconds


def no_model(profile: HardwareProfile, links: Iterable[Link]) -> str:
    """Which figures an estimate over these levels lacks."""
    missing = [
        f"links.{link.name}.{name}"
        for link in links
        for name, value in (("latency", link.latency), ("efficiency", link.efficiency))
        if value is None
    ]
    return f"no estimate: the profile {profile.name} states no {' nor '.join(missing)}"


REDUCED, PERMUTE = "all-reduce", "collective-permute"
_WHOLE = frozenset({"collective-broadcast", PERMUTE})


def bus_factor(kind: str, devices: int) -> float:
    """What one device sends of the whole array, as nccl-tests defines the bus bandwidth."""
    if kind in _WHOLE:
        return 1.0
    return (2 if kind == REDUCED else 1) * (devices - 1) / devices


def within_node(kind: str, whole: float, devices: int, link: Link) -> float | None:
    """Seconds over a switch, or links from each device to each, at least. Where the switch adds up, each device sends an array
    once. `None` where the profile does not state the bandwidth.
    """
    if link.send_bandwidth is None:
        return None
    factor = bus_factor(kind, devices)
    return whole * (min(factor, 1.0) if kind == REDUCED and link.reduces else factor) / link.send_bandwidth


def between_nodes(kind: str, whole: float, spread: NodeSpread, per_node: int, link: Link) -> float | None:
    """Seconds over the network between nodes of `per_node` devices, at least: each node sends or receives what its devices do
    not have or keep, over the part of its adapters that other groups leave.
    """
    if link.send_bandwidth is None:
        return None
    node = link.send_bandwidth * per_node * float(spread.part)
    if kind in _WHOLE:
        return whole / node
    if kind == REDUCED:
        return 2 * whole * (spread.nodes - 1) / spread.nodes / node
    sent = whole * (spread.devices - spread.fewest) / spread.devices
    return sent * (spread.fewest if kind == "all-to-all" else 1) / node


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
    """The axes of a group that lies along `runs` of a torus. An axis is a ring where all of it wraps round and the group goes
    all round it.
    """
    axes = []
    for axis, run in runs.items():
        is_whole = run.size * run.stride == shape[axis]
        axes.append(TorusAxis(run.size, run.stride, is_whole and link.wraps(shape[axis])))
    return axes


def along_torus(kind: str, whole: float, axes: Iterable[TorusAxis], bandwidth: float, links: float | None = None) -> float:
    """Seconds along axes of a torus whose links send `bandwidth` one way, at least. `links` is how many are used at a time,
    where that is known; else those of the device that has the fewest.
    """
    found = list(axes)
    devices = 1
    for axis in found:
        devices *= axis.size
    if devices == 1:
        return 0.0
    used = links or sum(axis.links for axis in found)
    if kind in _WHOLE:
        return whole / bandwidth if kind == PERMUTE else whole / (bandwidth * used)
    if kind == "all-to-all":
        return max(_across(whole, axis, bandwidth) for axis in found)
    return whole * bus_factor(kind, devices) / (bandwidth * used)


def _across(whole: float, axis: TorusAxis, bandwidth: float) -> float:
    """Seconds of an all-to-all across the middle of an axis: of what each device has, half goes to each half."""
    halves = (axis.size // 2) * (axis.size - axis.size // 2) / axis.size**2
    return whole * halves * axis.size / (axis.links * bandwidth)


def hops(kind: str, axes: Iterable[TorusAxis]) -> int:
    """How many links the farthest data goes over, one after the other."""
    steps = sum((axis.size // 2 if axis.is_ring else axis.size - 1) * axis.stride for axis in axes)
    return steps * (2 if kind == REDUCED else 1) if kind != PERMUTE else 1


def most_crowded(
    pairs: Iterable[tuple[tuple[int, ...], tuple[int, ...]]], shape: tuple[int, ...], link: Link
) -> tuple[int, int]:
    """How many of the arrays that go between pairs of places cross the link with the most, and the longest way: each goes along
    one axis after the other, the shorter way round.
    """
    loads: dict[tuple[tuple[int, ...], int, int], int] = {}
    longest = 0
    for source, target in pairs:
        at, way = list(source), 0
        for axis, size in enumerate(shape):
            distance = target[axis] - at[axis]
            if link.wraps(size) and abs(distance) * 2 > size:
                distance -= size if distance > 0 else -size
            step = 1 if distance > 0 else -1
            for _ in range(abs(distance)):
                key = (tuple(at), axis, step)
                loads[key] = loads.get(key, 0) + 1
                at[axis] = (at[axis] + step) % size
            way += abs(distance)
        longest = max(longest, way)
    return max(loads.values(), default=0), longest

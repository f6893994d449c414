"""Placement of the devices of a program: their nodes, and their positions in a torus.

A text has no positions. Unless a user names them, devices fill one node after the other by number, as JAX numbers the devices
of processes.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import permutations
from typing import NamedTuple

from hlo_inspect.analysis.collectives.logical_collectives import Collective
from hlo_inspect.analysis.devices.mesh import Run, device_groups, device_pairs, runs_of
from hlo_inspect.analysis.devices.participants import DeviceCounts
from hlo_inspect.errors import UsageError
from hlo_inspect.hlo.values.device_groups import MAX_DEVICES, DeviceGroups, DeviceListError, DevicePairs, Groups
from hlo_inspect.lazy_pattern import lazy_pattern

_TOPOLOGY = lazy_pattern(r"(?P<sizes>[1-9]\d{0,6}(?:x[1-9]\d{0,6})*)(?:T\((?P<order>\d(?:,\d)*)\))?", re.ASCII)
MAX_AXES = 6


class UnknownTimeError(Exception):
    """The reason why the time of a collective is unknown."""


class NodeSpread(NamedTuple):
    """The spread of a group over nodes: devices, nodes, and the fewest and most devices on a node.

    The share is the smallest part of a node's communicating devices that belongs to the group.
    """

    devices: int
    nodes: int
    fewest: int
    most: int
    part: Fraction


class Placement(NamedTuple):
    """The machine as a user describes it.

    `shape` holds the sizes of its axes, major to minor. `order` lists the axes, the one that changes slowest with the device
    number first. Without a shape only `per_node`, the devices of a node, is known.
    """

    shape: tuple[int, ...] = ()
    order: tuple[int, ...] = ()
    per_node: int | None = None

    @property
    def devices(self) -> int | None:
        """The number of devices of the machine, None if not stated."""
        return math.prod(self.shape) if self.shape else None

    def coordinates(self, device: int) -> tuple[int, ...]:
        """Return the coordinates of a device along the axes of the shape."""
        position = [0] * len(self.shape)
        for axis in reversed(self.order):
            device, position[axis] = divmod(device, self.shape[axis])
        return tuple(position)

    def node(self, device: int, per_node: int) -> int:
        """Return the node of a device. In a shape of several axes the last one is inside of nodes."""
        if not self.shape:
            return device // per_node
        *outer, inner = self.coordinates(device)
        number = 0
        for coordinate, size in zip(outer, self.shape, strict=False):
            number = number * size + coordinate
        return (number * self.shape[-1] + inner) // per_node


def given_placement(topology: str | None, devices_per_node: int | None) -> Placement:
    """Parse a topology and the devices of a node. Raise UsageError for anything else.

    `2x8` counts along the last axis first, `2x8T(1,0)` along the first.
    """
    if devices_per_node is not None and not 0 < devices_per_node <= MAX_DEVICES:
        raise UsageError(f"a node has 1 device or more, up to {MAX_DEVICES:,}, not {devices_per_node}")
    if topology is None:
        return Placement(per_node=devices_per_node)
    match = _TOPOLOGY.fullmatch(topology.strip())
    shape = tuple(map(int, match["sizes"].split("x"))) if match is not None else ()
    if match is None or len(shape) > MAX_AXES or math.prod(shape) > MAX_DEVICES:
        raise UsageError(f"{topology[:60]!r} is not a topology; write 2x8, or 2x8T(1,0) to count along the first axis")
    order = tuple(map(int, match["order"].split(","))) if match["order"] else tuple(range(len(shape)))
    if sorted(order) != list(range(len(shape))):
        raise UsageError(f"the order of {topology[:60]!r} does not name each of its {len(shape)} axes once, counted from 0")
    per_node = devices_per_node or (shape[-1] if len(shape) > 1 else None)
    if per_node is not None and math.prod(shape) % per_node:
        raise UsageError(f"{math.prod(shape)} devices do not fill nodes of {per_node}")
    return Placement(shape, order, per_node)


def spreads(groups: Groups, placement: Placement, per_node: int) -> set[NodeSpread]:
    """Return the spreads of the groups over nodes, each once."""
    nodes = [_by_node(group, placement, per_node) for group in groups]
    busy: Counter[int] = Counter()
    for counts in nodes:
        busy.update(counts)
    results = set()
    for group, counts in zip(groups, nodes, strict=True):
        least = min(Fraction(*part) for part in {(count, busy[node]) for node, count in counts.items()})
        results.add(NodeSpread(len(group), len(counts), min(counts.values()), max(counts.values()), least))
    return results


def _by_node(group: Sequence[int], placement: Placement, per_node: int) -> Counter[int]:
    if not placement.shape:
        return Counter([device // per_node for device in group])
    return Counter([placement.node(device, per_node) for device in group])


def extents(group: Sequence[int], placement: Placement) -> dict[int, Run] | None:
    """Return the axes of the shape that a group lies along, with its run on each; None if the group is no product of runs."""
    places = [placement.coordinates(device) for device in group]
    extent_of_axis = {}
    for axis in range(len(placement.shape)):
        runs = runs_of(sorted({place[axis] for place in places}))
        if runs is None or len(runs) > 1:
            return None
        if runs:
            extent_of_axis[axis] = runs[0]
    if math.prod(run.size for run in extent_of_axis.values()) != len(set(places)):
        return None
    return extent_of_axis


def best_shapes(devices: int, sizes: Iterable[int]) -> set[tuple[int, ...]]:
    """Return the boxes of `devices` devices along axes of at most these sizes, in any order."""
    return set().union(*(_boxes(devices, order) for order in set(permutations(sizes))))


def _boxes(devices: int, sizes: tuple[int, ...]) -> set[tuple[int, ...]]:
    """Return the boxes of `devices` devices, each side at most the size in its place."""
    if not sizes:
        return {()} if devices == 1 else set()
    low = [side for side in range(1, math.isqrt(devices) + 1) if devices % side == 0]
    fitting = (side for side in {*low, *(devices // side for side in low)} if side <= sizes[0])
    return {(side, *rest) for side in fitting for rest in _boxes(devices // side, sizes[1:])}


class CollectiveGroups:
    """The groups and pairs of collectives.

    Raise UnknownTimeError if the text does not state them, or once they name more than `most` devices in all.
    """

    def __init__(self, counts: DeviceCounts, most: int) -> None:
        self.counts = counts
        self._most = most
        self._spreads: dict[object, set[NodeSpread]] = {}
        self._ids = 0

    def listed(self, collective: Collective) -> Groups:
        """Return the groups, each a list of devices. They are written out each time."""
        groups = collective.groups
        self._ids += groups.count if isinstance(groups, DeviceGroups) and groups.count else self.counts.devices_per_slice or 0
        if self._ids > self._most:
            raise UnknownTimeError(f"the groups of the module name devices more than {self._most:,} times")
        try:
            return device_groups(groups, collective.mode, self.counts)
        except DeviceListError as error:
            raise UnknownTimeError(str(error)) from error

    def spreads(self, collective: Collective, placement: Placement, per_node: int) -> set[NodeSpread]:
        """Return the spreads of the groups over nodes of `per_node` devices."""
        key = (collective.groups, collective.mode, placement, per_node)
        if key not in self._spreads:
            self._spreads[key] = spreads(self.listed(collective), placement, per_node)
        return self._spreads[key]

    def pairs(self, collective: Collective) -> list[tuple[int, int]]:
        """Return the pairs of sender and receiver that differ."""
        if not isinstance(collective.pairs, DevicePairs):
            raise UnknownTimeError("the text does not say which device sends to which")
        pairs = device_pairs(collective.pairs, collective.mode, self.counts)
        return [(source, target) for source, target in pairs if source != target]

"""The device mesh: the fewest axes whose products are all groups of collectives and all tiles of shardings.

If a list of devices steps along axes of a row-major mesh, its strides are products of the sizes of more minor axes. So each
list names strides at which the mesh has to be cut. The coarsest mesh has just these cuts. It exists if each cut divides the
next, and is then unique.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

from hlo_inspect.analysis.collectives.logical_collectives import Collective
from hlo_inspect.analysis.devices.participants import DeviceCounts, GroupMode
from hlo_inspect.hlo.module import Module
from hlo_inspect.hlo.values.attributes import MalformedValue
from hlo_inspect.hlo.values.device_groups import MAX_DEVICES, DeviceGroups, DeviceListError, DevicePairs, Groups
from hlo_inspect.hlo.values.sharding import Sharding

MAX_ORDERED_DEVICES = 1 << 12
MAX_AXES = 12  # of size 2 or more, over MAX_ORDERED_DEVICES


class Run(NamedTuple):
    """An axis inside a device list: `size` steps of `stride` ids."""

    size: int
    stride: int

    @property
    def end(self) -> int:
        """The stride of the next more major axis, if the two are neighbours."""
        return self.size * self.stride


def runs_of(ids: Sequence[int]) -> tuple[Run, ...] | None:
    """Return the longest axes, minor to major, whose product lists `ids` in this order; None if no axes do."""
    first, runs, block = ids[0], [], 1
    while block < len(ids):
        stride, size = ids[block] - first, 1
        if stride <= 0:
            return None
        while block * size < len(ids) and ids[block * size] - first == stride * size:
            size += 1
        runs.append(Run(size, stride))
        block *= size
    listed = [first]
    for run in runs:
        listed = [base + step * run.stride for step in range(run.size) for base in listed]
    return tuple(runs) if listed == list(ids) and len(set(listed)) == len(listed) else None


def has_groups(collective: Collective) -> bool:
    """Return True if the devices of a collective are known as groups."""
    return collective.forms_groups and not collective.participants.fault


@dataclass(frozen=True, eq=False)
class Mesh:
    """A device mesh.

    `shape` holds the sizes of the axes, major to minor, and `names` their names. `order` is the device at each position, None
    for 0…n-1. If no mesh is known, `shape` is None and `reason` says why. `given_up` is True if the search would take too long.
    `partial_reason` says why the program may have more axes; empty if it has none. `note` says why the names of the user's mesh
    cannot be used.
    """

    shape: tuple[int, ...] | None
    order: tuple[int, ...] | None = None
    names: tuple[str, ...] = ()
    reason: str = ""
    note: str = ""
    partial_reason: str = ""
    given_up: bool = False

    @property
    def shape_text(self) -> str | None:
        """The shape as `2x8`."""
        return None if self.shape is None else "x".join(map(str, self.shape))

    @property
    def order_text(self) -> str | None:
        """`iota`, or the devices in the mesh's row-major order."""
        if self.shape is None:
            return None
        return "iota" if self.order is None else ",".join(map(str, self.order))

    @cached_property
    def axes(self) -> tuple[Run, ...]:
        """Size and stride of each axis, in positions."""
        shape = self.shape or ()
        return tuple(Run(size, math.prod(shape[number + 1 :])) for number, size in enumerate(shape))

    @cached_property
    def _positions(self) -> dict[int, int]:
        return {device: position for position, device in enumerate(self.order or ())}

    def position(self, device: int) -> int:
        """Return the position of a device; -1 for a device that the mesh does not have."""
        if self.order is None:
            return device if device < math.prod(self.shape or ()) else -1
        return self._positions.get(device, -1)


def find_mesh(lists: Sequence[Groups], devices: int) -> Mesh:
    """Return the coarsest mesh of `devices` devices, without names: one axis if each list has all devices in order."""
    whole = (tuple(range(devices)),)
    if all(groups == whole for groups in lists):
        return Mesh((devices,))
    shape = _row_major_shape(lists, devices)
    if shape is not None:
        return Mesh(shape)
    order = find_order(lists, devices)
    if order is not None:
        position = {device: index for index, device in enumerate(order)}
        shape = _row_major_shape([tuple(tuple(position[i] for i in group) for group in groups) for groups in lists], devices)
    if order is None or shape is None:
        return Mesh(None, reason=f"no row-major mesh of {devices} devices fits all groups, and the groups imply no other order")
    return Mesh(shape, order)


def _row_major_shape(lists: Sequence[Groups], devices: int) -> tuple[int, ...] | None:
    """Return the shape by the order of each list, else by its set of devices.

    The order can distinguish axes that the set cannot. Return None if neither gives a row-major mesh.
    """
    for ordered in (True, False):
        cuts = _cuts(lists, devices, ordered=ordered)
        if cuts is not None and is_chain(cuts):
            return tuple(larger // smaller for smaller, larger in pairwise(sorted(cuts)))[::-1]
    return None


def _cuts(lists: Sequence[Groups], devices: int, *, ordered: bool) -> set[int] | None:
    """Return the strides at which an axis ends; None if a list is no product of axes."""
    cuts = {1, devices}
    runs_by_pattern: dict[tuple[int, ...], tuple[Run, ...] | None] = {}
    for groups in lists:
        for group in groups:
            ids = group if ordered else sorted(group)
            pattern = tuple(device - ids[0] for device in ids)
            if pattern not in runs_by_pattern:
                runs_by_pattern[pattern] = runs_of(pattern)
            runs = runs_by_pattern[pattern]
            if runs is None or ids[-1] >= devices or not starts_axes(ids[0], runs):
                return None
            cuts.update(end for run in runs for end in (run.stride, run.end))
    return cuts


def starts_axes(position: int, runs: Iterable[Run]) -> bool:
    """Return True if a list that starts at `position` starts each of its axes there."""
    return all(position // run.stride % run.size == 0 for run in runs)


def is_chain(strides: Iterable[int]) -> bool:
    """Return True if each stride divides the next larger stride."""
    return all(larger % smaller == 0 for smaller, larger in pairwise(sorted(strides)))


# -- lists that a mesh has to explain ---------------------------------------------------------------------------------------

StatedGroups = DeviceGroups | MalformedValue | Groups | None


def device_groups(stated: StatedGroups, mode: GroupMode, counts: DeviceCounts) -> Groups:
    """Return the groups of a collective as flattened ids, `replica × partitions + partition`.

    If every replica has the same groups, return those of the first replica; likewise for partitions. No groups mean one group
    of all devices. Raise DeviceListError if there are too many devices.
    """
    replicas, partitions = counts.replicas or 1, counts.partitions or 1
    if replicas * partitions > MAX_DEVICES:
        raise DeviceListError(f"{replicas * partitions} devices")
    if isinstance(stated, DeviceGroups):
        groups = stated.groups
    else:
        groups = () if stated is None or isinstance(stated, MalformedValue) else stated
    if mode is GroupMode.FLATTENED_ID:
        return groups or (tuple(range(replicas * partitions)),)
    if mode is GroupMode.CROSS_PARTITION:
        return groups or (tuple(range(partitions)),)
    groups = groups or (tuple(range(replicas)),)
    together = range(partitions if mode is GroupMode.CROSS_REPLICA_AND_PARTITION else 1)
    if sum(map(len, groups)) * len(together) > MAX_DEVICES:
        raise DeviceListError("the groups name too many devices to compare")
    return tuple(tuple(replica * partitions + partition for replica in group for partition in together) for group in groups)


def device_pairs(pairs: DevicePairs, mode: GroupMode, counts: DeviceCounts) -> list[tuple[int, int]]:
    """Return the pairs of sender and receiver as flattened ids, in the first replica if the text names partitions."""
    step = (counts.partitions or 1) if mode is GroupMode.CROSS_REPLICA else 1
    return [(source * step, target * step) for source, target in pairs.pairs]


def ids_named(collective: Collective, counts: DeviceCounts) -> int:
    """Return the number of ids that `device_groups` returns for a collective, without listing them."""
    replicas, partitions = counts.replicas or 1, counts.partitions or 1
    together = partitions if collective.mode is GroupMode.CROSS_REPLICA_AND_PARTITION else 1
    if isinstance(collective.groups, DeviceGroups) and collective.groups.count:
        return collective.groups.count * together
    if collective.mode is GroupMode.FLATTENED_ID:
        return replicas * partitions
    return partitions if collective.mode is GroupMode.CROSS_PARTITION else replicas * together


def device_lists(collectives: Sequence[Collective], counts: DeviceCounts, shardings: Iterable[Sharding]) -> tuple[Groups, ...]:
    """Return every distinct list of groups, in the order of the text and in all slices, and every list of tiles."""
    lists: dict[Groups, None] = {}
    if counts.slices > 1:
        lists[tuple(zip(*_repeat_in_slices(tuple(range(counts.devices_per_slice or 0)), counts), strict=True))] = None
    for groups, mode in dict.fromkeys((c.groups, c.mode) for c in collectives if has_groups(c)):
        try:
            listed = device_groups(groups, mode, counts)
            if counts.slices > 1:
                listed = tuple(ids for group in listed for ids in _repeat_in_slices(group, counts))
            lists[listed] = None
        except DeviceListError:
            continue  # the participants of the collective say so
    for sharding in shardings:
        lists |= dict.fromkeys(tile_groups(sharding))
    return tuple(lists)


def _repeat_in_slices(group: tuple[int, ...], counts: DeviceCounts) -> list[tuple[int, ...]]:
    """Return the devices of every slice for a group with the ids of one slice."""
    devices = counts.devices_per_slice or 1
    return [tuple(number * devices + device for device in group) for number in range(counts.slices)]


def tile_groups(sharding: Sharding) -> tuple[Groups, ...]:
    """Return, for each divided dimension of an array, the devices along it; and the subgroups that hold the same data."""
    try:
        return tuple(sharding.device_lines())
    except DeviceListError:
        return ()


def module_shardings(module: Module) -> list[Sharding]:
    """Return the distinct readable shardings of the entry computation."""
    read = (module.values.read("sharding", text) for text in module.device_marks.shardings)
    return [sharding for sharding in read if isinstance(sharding, Sharding)]


def sharding_faults(module: Module, counts: DeviceCounts) -> list[str]:
    """Return the faults of the entry computation's shardings."""
    stated = module.header.states_devices
    faults = (sharding_fault(sharding, counts, stated=stated) for sharding in module_shardings(module))
    return [fault for fault in faults if fault is not None]


def sharding_fault(sharding: Sharding, counts: DeviceCounts, *, stated: bool) -> str | None:
    """Describe the fault in the number of devices of one array's sharding; None if there is none.

    If the header `stated` the number of partitions, a sharding has to cover all of them.
    """
    fault = sharding.tile_count_fault
    if fault is not None:
        return f"the sharding {sharding.text[:80]} {fault}"
    named = tiles_of(sharding)
    if stated and named > 1 and counts.sharded is not None and named != counts.sharded:
        return f"the sharding {sharding.text[:80]} is for {named} devices, the program has {counts.sharded} partitions"
    return None


def tiles_of(sharding: Sharding) -> int:
    """Return the number of devices over which an array is divided or repeated; 0 if none are named."""
    if sharding.mesh is not None:
        return sharding.mesh.size if sharding.mesh.axes else 0
    return math.prod(sharding.tile_sizes) if sharding.kind == "tiled" else 0


# -- device orders other than row-major -------------------------------------------------------------------------------------

Labels = tuple[int, ...]
"""The group number of each device."""


def find_order(lists: Sequence[Groups], devices: int) -> tuple[int, ...] | None:
    """Return the devices of a mesh in row-major order; None if the groups do not determine it.

    Each axis is the smallest intersection of groups that holds device 0 and another device. The axes have to reach every
    device. Along an axis devices are in the order of ids. If the second id of an axis is larger, the axis is more major.
    """
    if devices > MAX_ORDERED_DEVICES:
        return None
    partitions = [_labels(groups, devices) for groups in lists]
    distinct = [labels for labels in dict.fromkeys(partitions) if labels is not None]
    if not distinct or None in partitions:
        return None
    axes = _axes(distinct, devices)
    if axes is None:
        return None
    axes.sort(key=lambda labels: labels.index(labels[0], 1), reverse=True)
    lines = [[device for device in range(devices) if labels[device] == labels[0]] for labels in axes]
    if math.prod(map(len, lines)) != devices:
        return None
    positions = [0] * devices
    for number, line in enumerate(lines):
        coordinates = _coordinates(axes[:number] + axes[number + 1 :], line, devices)
        if coordinates is None:
            return None
        positions = [position * len(line) + coordinate for position, coordinate in zip(positions, coordinates, strict=True)]
    order = sorted(range(devices), key=positions.__getitem__)
    return tuple(order) if sorted(positions) == list(range(devices)) else None


def _labels(groups: Groups, devices: int) -> Labels | None:
    """Label each device with its group; None if groups differ in size or do not hold each device once."""
    labels = [-1] * devices
    for number, group in enumerate(groups):
        if len(group) != len(groups[0]):
            return None
        for device in group:
            if device >= devices or labels[device] >= 0:
                return None
            labels[device] = number
    return None if -1 in labels else tuple(labels)


def _axes(partitions: list[Labels], devices: int) -> list[Labels] | None:
    """Intersect each maximal set of groupings that put device 0 and one other device together; return the intersections.

    Return None above `MAX_AXES`.
    """
    together = {
        frozenset(i for i, labels in enumerate(partitions) if labels[device] == labels[0]) for device in range(1, devices)
    }
    largest: list[frozenset[int]] = []
    for shared in sorted(together, key=len, reverse=True):
        if not any(shared <= other for other in largest):
            largest.append(shared)
        if len(largest) > MAX_AXES:
            return None
    return [_intersection([partitions[i] for i in shared]) for shared in largest if shared]


def _intersection(partitions: list[Labels]) -> Labels:
    numbers: dict[Labels, int] = {}
    return tuple(numbers.setdefault(key, len(numbers)) for key in zip(*partitions, strict=True))


def _coordinates(others: list[Labels], line: list[int], devices: int) -> list[int] | None:
    """Return the coordinate of each device along an axis.

    It is the coordinate of the device on the line through device 0 that the other axes reach from it.
    """
    parents = list(range(devices))

    def top(device: int) -> int:
        while parents[device] != device:
            parents[device] = device = parents[parents[device]]
        return device

    for labels in others:
        firsts: dict[int, int] = {}
        for device, label in enumerate(labels):
            parents[top(device)] = top(firsts.setdefault(label, device))
    places = {top(device): coordinate for coordinate, device in enumerate(line)}
    if len(places) != len(line) or any(top(device) not in places for device in range(devices)):
        return None
    return [places[top(device)] for device in range(devices)]

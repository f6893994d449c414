"""Device orders other than row-major: what the groups themselves tell of who is whose neighbour along which axis."""

from __future__ import annotations

import math
from collections.abc import Sequence

from hlo_inspect.hlo.sharding import Groups

MAX_ORDERED_DEVICES = 1 << 12
MAX_AXES = 12  # of size 2 or more, over so many devices

Labels = tuple[int, ...]
"""For each device the number of the group that it is in."""


def find_order(lists: Sequence[Groups], devices: int) -> tuple[int, ...] | None:
    """The devices of a mesh in row-major order, `None` where the groups leave open which.

    Each axis is the smallest intersection of groups that holds device 0 and one more; the axes have to reach every device.
    Along an axis devices are taken by id, and of two axes the one with the larger second id is the more major.
    """
    if devices > MAX_ORDERED_DEVICES:
        return None
    partitions = [_labels(groups, devices) for groups in lists]
    known = [labels for labels in dict.fromkeys(partitions) if labels is not None]
    if not known or None in partitions:
        return None
    axes = _axes(known, devices)
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
        positions = [position * len(line) + at for position, at in zip(positions, coordinates, strict=True)]
    order = sorted(range(devices), key=positions.__getitem__)
    return tuple(order) if sorted(positions) == list(range(devices)) else None


def _labels(groups: Groups, devices: int) -> Labels | None:
    """`None` for groups that differ in size or do not hold each device once."""
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
    """The smallest intersections: those of the most partitions that hold device 0 and one other device together."""
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
    """Where each device is along an axis: at the device of its line through 0 that it reaches along the other axes."""
    parents = list(range(devices))

    def top(device: int) -> int:
        while parents[device] != device:
            parents[device] = device = parents[parents[device]]
        return device

    for labels in others:
        firsts: dict[int, int] = {}
        for device, label in enumerate(labels):
            parents[top(device)] = top(firsts.setdefault(label, device))
    places = {top(device): at for at, device in enumerate(line)}
    if len(places) != len(line) or any(top(device) not in places for device in range(devices)):
        return None
    return [places[top(device)] for device in range(devices)]

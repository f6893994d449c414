"""The device mesh: the fewest axes of which every group of a collective and every tile of a sharding is a product.

A list of devices that steps along axes of a row-major mesh has strides that are products of the sizes of more minor axes. So
each list tells at which strides the mesh has to be cut, and the coarsest mesh is the one with just these cuts: there is one
if each cut divides the next, and never more than one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from hlo_inspect.analysis.collectives import Collective
from hlo_inspect.analysis.groups import DeviceCounts, GroupMode
from hlo_inspect.analysis.mesh_lists import (
    Run,
    device_groups,
    device_lists,
    has_groups,
    runs_of,
    sharding_fault,
)
from hlo_inspect.analysis.mesh_names import axis_names, is_chain, printed_meshes, shardy_meshes
from hlo_inspect.analysis.mesh_order import find_order
from hlo_inspect.hlo.module import Module
from hlo_inspect.hlo.sharding import MAX_DEVICES, DeviceListError, Groups, source_target_pairs


@dataclass(frozen=True)
class Mesh:
    """`shape` holds the sizes of the axes, major to minor, `names` what they are called; `order` the device at each position,
    `None` for 0…n-1. Where no mesh is known, `shape` is `None` and `reason` says why. `note` tells why a mesh that the user
    gave lends no names.
    """

    shape: tuple[int, ...] | None
    order: tuple[int, ...] | None = None
    names: tuple[str, ...] = ()
    reason: str = ""
    note: str = ""

    @property
    def shape_text(self) -> str | None:
        """`2x8`."""
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
    def _positions(self) -> dict[int, int] | None:
        return None if self.order is None else {device: position for position, device in enumerate(self.order)}

    def position(self, device: int) -> int:
        """Where a device stands; -1 for one that the mesh does not have."""
        if self._positions is not None:
            return self._positions.get(device, -1)
        return device if device < math.prod(self.shape or ()) else -1


def mesh_of(module: Module, collectives: Sequence[Collective], counts: DeviceCounts, given: str | None = None) -> Mesh:
    """The mesh of a module; `given` is a mesh of the user's to take names from (`mesh_names.given_mesh`)."""
    devices = counts.devices
    if devices is None:
        return Mesh(None, reason="nothing tells how many devices the program has")
    if not 1 < devices <= MAX_DEVICES:
        return Mesh(None, reason="the program is for one device" if devices == 1 else f"{devices} devices are too many")
    stray = next((c for c in collectives if c.participants.contradicts), None)
    if stray is not None:
        return Mesh(None, reason=f"{stray.start.name} (line {stray.start.line}): {stray.participants.fault}")
    shardings = tuple(module.shardings)
    for sharding in shardings:
        fault = sharding_fault(sharding, counts, stated=module.header.states_devices)
        if fault is not None:
            return Mesh(None, reason=fault)
    mesh = find_mesh(device_lists(collectives, counts, shardings), devices)
    if mesh.shape is None:
        return mesh
    header = shardy_meshes(module.header.attributes.get("frontend_attributes", ""))
    printed = printed_meshes((*dict.fromkeys(c.replica_groups for c in collectives), *shardings))
    names = axis_names(mesh.shape, mesh.order, [given]) if given else None
    note = "" if names or not given else f"{given} does not fit the {mesh.shape_text} devices of the program"
    names = names or axis_names(mesh.shape, mesh.order, [*header, *printed])
    return Mesh(mesh.shape, mesh.order, names or tuple(f"d{number}" for number in range(len(mesh.shape))), note=note)


def find_mesh(lists: Sequence[Groups], devices: int) -> Mesh:
    """The coarsest mesh of `devices` devices, without names."""
    shape = _row_major_shape(lists, devices)
    if shape is not None:
        return Mesh(shape)
    order = find_order(lists, devices)
    if order is not None:
        position = {device: at for at, device in enumerate(order)}
        shape = _row_major_shape([tuple(tuple(position[i] for i in group) for group in groups) for groups in lists], devices)
    if order is None or shape is None:
        return Mesh(None, reason=f"no row-major mesh of {devices} devices has every group, and the groups tell no other order")
    return Mesh(shape, order)


def _row_major_shape(lists: Sequence[Groups], devices: int) -> tuple[int, ...] | None:
    """By the lists in their order, which tells axes that the set of devices does not; else by the sets."""
    for ordered in (True, False):
        cuts = _cuts(lists, devices, ordered=ordered)
        if cuts is not None and is_chain(cuts):
            return tuple(larger // smaller for smaller, larger in pairwise(sorted(cuts)))[::-1]
    return None


def _cuts(lists: Sequence[Groups], devices: int, *, ordered: bool) -> set[int] | None:
    """The strides at which an axis ends, `None` where a list is no product of axes."""
    cuts = {1, devices}
    known: dict[tuple[int, ...], tuple[Run, ...] | None] = {}
    for groups in lists:
        for group in groups:
            ids = group if ordered else sorted(group)
            pattern = tuple(device - ids[0] for device in ids)
            if pattern not in known:
                known[pattern] = runs_of(pattern)
            runs = known[pattern]
            if runs is None or ids[-1] >= devices or not _starts_axes(ids[0], runs):
                return None
            cuts.update(end for run in runs for end in (run.stride, run.end))
    return cuts


def _starts_axes(position: int, runs: Iterable[Run]) -> bool:
    """Whether a list that starts at `position` starts each of its axes there."""
    return all(position // run.stride % run.size == 0 for run in runs)


def axis_of(groups: Groups, mesh: Mesh) -> tuple[int, ...] | None:
    """The numbers of the axes along which the devices of each group lie, none for groups of one. `None` where the mesh is not
    known, where a group is no product of whole axes, or where groups lie along different ones.
    """
    if mesh.shape is None:
        return None
    found = {_axes_of_group(group, mesh) for group in groups}
    return found.pop() if len(found) == 1 else None


def _axes_of_group(group: Sequence[int], mesh: Mesh) -> tuple[int, ...] | None:
    positions = sorted(map(mesh.position, group))
    runs = runs_of(positions) if positions[0] >= 0 else None
    if runs is None or not _starts_axes(positions[0], runs):
        return None
    axes: list[int] = []
    for run in runs:
        inside = [i for i, axis in enumerate(mesh.axes) if run.stride <= axis.stride and axis.end <= run.end]
        if math.prod(mesh.axes[i].size for i in inside) != run.size:
            return None
        axes += inside
    return tuple(sorted(axes))


def axis_of_pairs(pairs: Iterable[tuple[int, int]], mesh: Mesh) -> tuple[int, ...] | None:
    """The numbers of the axes along which senders and receivers differ; `None` where the mesh is not known."""
    if mesh.shape is None:
        return None
    axes: set[int] = set()
    for source, target in pairs:
        start, end = mesh.position(source), mesh.position(target)
        if start < 0 or end < 0:
            return None
        axes |= {i for i, axis in enumerate(mesh.axes) if start // axis.stride % axis.size != end // axis.stride % axis.size}
    return tuple(sorted(axes))


def axis_labels(collectives: Iterable[Collective], counts: DeviceCounts, mesh: Mesh) -> list[str | None]:
    """What each collective communicates along: names of axes, joined by commas; empty where every device is alone, `None` where
    it cannot be told.
    """
    known: dict[tuple[str, str, GroupMode, bool], str | None] = {}
    labels = []
    for collective in collectives:
        key = (collective.replica_groups, collective.source_target_pairs, collective.mode, has_groups(collective))
        if key not in known:
            axes = _axes_of_collective(collective, counts, mesh)
            known[key] = None if axes is None else ",".join(mesh.names[i] for i in axes)
        labels.append(known[key])
    return labels


def _axes_of_collective(collective: Collective, counts: DeviceCounts, mesh: Mesh) -> tuple[int, ...] | None:
    try:
        if has_groups(collective):
            return axis_of(device_groups(collective.replica_groups, collective.mode, counts), mesh)
        if not collective.source_target_pairs:
            return None
        pairs = source_target_pairs(collective.source_target_pairs)
    except DeviceListError:
        return None
    step = (counts.partitions or 1) if collective.mode is GroupMode.CROSS_REPLICA else 1
    return axis_of_pairs(((source * step, target * step) for source, target in pairs), mesh)

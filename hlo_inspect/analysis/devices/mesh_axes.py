"""The axes of a mesh by name, and the axes along which a collective communicates.

Names are the user's, those of Shardy's meshes in the header, or those of meshes in shardings and groups. XLA's printer makes up
`axis_<n>` if it knows no name.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import count
from typing import NamedTuple

from hlo_inspect.analysis.collectives.logical_collectives import Collective
from hlo_inspect.analysis.devices.mesh import (
    Mesh,
    Run,
    device_groups,
    device_lists,
    device_pairs,
    find_mesh,
    has_groups,
    ids_named,
    is_chain,
    module_shardings,
    runs_of,
    sharding_fault,
    starts_axes,
    tiles_of,
)
from hlo_inspect.analysis.devices.participants import NOT_PRINTED, DeviceCounts
from hlo_inspect.errors import UsageError
from hlo_inspect.graph.slices import DCN
from hlo_inspect.hlo.instruction import Instruction
from hlo_inspect.hlo.module import Module
from hlo_inspect.hlo.values.device_groups import (
    MAX_DEVICES,
    AxisReference,
    DeviceGroups,
    DeviceListError,
    DevicePairs,
    Groups,
    NamedMesh,
    shardy_meshes,
)
from hlo_inspect.hlo.values.sharding import Sharding, parse_shardy_shardings
from hlo_inspect.lazy_pattern import lazy_pattern

_MADE_UP = lazy_pattern(r"_?axis_\d+", re.ASCII)
_NAME = lazy_pattern(r"[A-Za-z_][\w.\-]*", re.ASCII)
_GIVEN_AXIS = lazy_pattern(rf"\s*({_NAME.pattern})\s*=\s*([1-9]\d{{0,6}})\s*", re.ASCII)


LEAST_NAMED, MOST_NAMED = 1 << 17, 1 << 21
"""The number of device ids that are read for a mesh in any module, and the limit for a large module.

In between the limit is half of the text's bytes: 16,384 devices in a hundred lists are fewer.
"""


def mesh_of(module: Module, collectives: Sequence[Collective], counts: DeviceCounts, given: NamedMesh | None = None) -> Mesh:
    """Find the mesh of a module; `given` is the mesh of the user (`parse_mesh`), to take names from."""
    devices = counts.devices
    shardings = module_shardings(module) if module.device_marks.shardings else []
    reason = _no_mesh_reason(module, collectives, counts, shardings)
    if devices is None or reason:
        return Mesh(None, reason=reason)
    too_many = _too_many_ids(module, collectives, counts, shardings)
    if too_many:
        return Mesh(None, reason=too_many, given_up=True)
    mesh = find_mesh(device_lists(collectives, counts, shardings), devices)
    if mesh.shape is None:
        return mesh
    named = with_names(mesh, [given]) if given is not None else None
    note = "" if named or given is None else f"{given} does not fit the {mesh.shape_text} devices of the program"
    attributes = module.header.attributes.get("frontend_attributes")
    header = shardy_meshes(attributes).values() if attributes else ()
    stated = [*header, *printed_meshes(collectives, shardings)]
    named = named or (with_names(mesh, stated) if stated else None)
    mesh = named or replace(mesh, names=_plain_names(mesh.axes, counts))
    is_sure = not module.problems.is_truncated or any(_runs(_named_axes(named, mesh) or ()) == mesh.axes for named in stated)
    partial_reason = "" if is_sure else "the module is truncated, and its missing part may divide the devices further"
    return replace(mesh, note=note, partial_reason=partial_reason)


def _plain_names(axes: Sequence[Run], counts: DeviceCounts) -> tuple[str, ...]:
    """Return `d0`, `d1`, …; an axis of all slices gets the name of the network between them."""
    between = [counts.slices > 1 and axis == (counts.slices, counts.devices_per_slice) for axis in axes]
    numbers = count()
    return tuple(DCN if is_between else f"d{next(numbers)}" for is_between in between)


def _no_mesh_reason(
    module: Module, collectives: Sequence[Collective], counts: DeviceCounts, shardings: Sequence[Sharding]
) -> str:
    """Return the reason to search for no mesh; empty if there is none."""
    devices = counts.devices
    if devices is None:
        return "the number of devices of the program is unknown"
    if not 1 < devices <= MAX_DEVICES:
        return "the program is for one device" if devices == 1 else f"{devices} devices are too many"
    stray = next((c for c in collectives if c.participants.contradicts), None)
    if stray is not None:
        return f"{stray.start.name} (line {stray.start.line}): {stray.participants.fault}"
    unprinted = next((c for c in collectives if c.participants.fault == NOT_PRINTED), None)
    if unprinted is not None:
        return f"the text does not print the devices of {unprinted.start.name} (line {unprinted.start.line}) runs"
    faults = (sharding_fault(sharding, counts, stated=module.header.states_devices) for sharding in shardings)
    return next(filter(None, faults), "")


def most_named(module: Module) -> int:
    """Return the largest number of device ids that are read, written out."""
    return min(max(LEAST_NAMED, module.bytes // 2), MOST_NAMED)


def _too_many_ids(
    module: Module, collectives: Sequence[Collective], counts: DeviceCounts, shardings: Sequence[Sharding]
) -> str:
    """Return a reason if groups and shardings have too many ids for the size of the text; else an empty string."""
    distinct = {(c.groups, c.mode): c for c in collectives if has_groups(c)}
    named = sum(ids_named(collective, counts) for collective in distinct.values())
    named = named * counts.slices + sum(max(tiles_of(sharding), counts.devices or 0) for sharding in shardings)
    if named <= LEAST_NAMED or named <= most_named(module):
        return ""
    return f"its groups and shardings name devices more than {most_named(module):,} times"


# -- names ------------------------------------------------------------------------------------------------------------------


def parse_mesh(text: str) -> NamedMesh:
    """Parse the user's mesh, written as `data=4,model=2`. Raise UsageError for any other text."""
    axes = [_GIVEN_AXIS.fullmatch(part) for part in text.split(",")]
    names = [axis[1] for axis in axes if axis]
    if len(names) != len(axes) or len(set(names)) != len(names):
        raise UsageError(f"{text!r} is not a mesh; write it like data=4,model=2, major axis first")
    return NamedMesh(tuple((axis[1], int(axis[2])) for axis in axes if axis))


def require_fit(given: NamedMesh, devices: int | None, module: str) -> None:
    """Raise UsageError if the user's mesh has another number of devices than the program."""
    if devices is not None and given.size != devices:
        axes = ",".join(f"{name}={size}" for name, size in given.axes)
        raise UsageError(f"the mesh {axes} has {given.size:,} devices, and the module {module} has {devices:,}")


def printed_meshes(collectives: Iterable[Collective], shardings: Iterable[Sharding]) -> list[NamedMesh]:
    """Return the distinct meshes in groups and shardings."""
    of_groups = (c.groups.mesh for c in collectives if isinstance(c.groups, DeviceGroups))
    meshes = (*of_groups, *(sharding.mesh for sharding in shardings))
    return list(dict.fromkeys(mesh for mesh in meshes if mesh is not None))


def is_made_up(name: str) -> bool:
    """Return True if a printer made up the name of an axis."""
    return not name or _MADE_UP.fullmatch(name) is not None


class _LaidAxis(NamedTuple):
    name: str
    run: Run


def with_names(mesh: Mesh, meshes: Iterable[NamedMesh]) -> Mesh | None:
    """Return the mesh with names for its axes; None if none of `meshes` fits.

    The names come from the first of `meshes` with these axes, else from the first that can be laid over them. An axis that
    covers several named axes is called `data,model`. A named axis stays whole: if an axis of the mesh would be a part of one,
    the axes are those of the named mesh.
    """
    fitting = []
    for candidate in meshes:
        named = _named_axes(candidate, mesh)
        if named is None:
            continue
        if _runs(named) == mesh.axes:
            return replace(mesh, names=tuple(axis.name for axis in named))
        if is_chain(_ends((*mesh.axes, *_runs(named)))):
            fitting.append(named)
    if not fitting:
        return None
    first, ends = fitting[0], _ends(mesh.axes)
    if any(axis.run.stride < end < axis.run.end for axis in first for end in ends):
        return Mesh(tuple(axis.run.size for axis in first), mesh.order, tuple(axis.name for axis in first))
    return replace(mesh, names=tuple(",".join(_lay_over(run, first)) for run in mesh.axes))


def _named_axes(named: NamedMesh, mesh: Mesh) -> list[_LaidAxis] | None:
    """Return the axes of a printed mesh with more than one device, major to minor.

    Return None if it has other devices than `mesh`, made-up names, or an axis that is no run of device positions.
    """
    axes = [(name, size) for name, size in named.axes if size != 1]
    if math.prod(size for _, size in axes) != math.prod(mesh.shape or ()) or any(is_made_up(name) for name, _ in axes):
        return None
    named_axes = []
    for name, _ in axes:
        try:
            positions = sorted(map(mesh.position, named.groups([AxisReference(name)])[0]))
        except DeviceListError:
            return None
        runs = runs_of(positions) if positions[0] >= 0 else None
        if runs is None or len(runs) != 1:
            return None
        named_axes.append(_LaidAxis(name, runs[0]))
    return sorted(named_axes, key=lambda axis: -axis.run.stride)


def _runs(named: Iterable[_LaidAxis]) -> tuple[Run, ...]:
    return tuple(axis.run for axis in named)


def _ends(runs: Iterable[Run]) -> set[int]:
    return {end for run in runs for end in (run.stride, run.end)}


def _lay_over(run: Run, named: Iterable[_LaidAxis]) -> list[str]:
    """Name the axes that a run covers. A part of an axis is `data:(2)4`, as XLA writes it: 4 devices, after a factor of 2."""
    parts = []
    for name, axis in named:
        start, end = max(run.stride, axis.stride), min(run.end, axis.end)
        if start < end:
            whole = start == axis.stride and end == axis.end
            parts.append(name if whole else f"{name}:({axis.end // end}){end // start}")
    return parts


# -- axes of a collective ---------------------------------------------------------------------------------------------------


def axis_of(groups: Groups, mesh: Mesh, *, ordered: bool = False) -> tuple[str, ...] | None:
    """Return the axes, and parts of axes, along which the devices of each group lie; empty for groups of one device.

    They are in the order of the mesh; if `ordered`, in the order in which each group lists its devices, major to minor.
    Return None if the mesh is unknown, if a group is no product of them, or if groups lie along different axes.
    """
    if mesh.shape is None:
        return None
    places = ([mesh.position(device) for device in group] for group in groups)
    axes = {_axes_of_group(positions if ordered else sorted(positions), mesh) for positions in places}
    return axes.pop() if len(axes) == 1 else None


def _axes_of_group(positions: Sequence[int], mesh: Mesh) -> tuple[str, ...] | None:
    devices = math.prod(mesh.shape or ())
    if len(positions) == devices and list(positions) == list(range(devices)):
        return mesh.names
    runs = runs_of(positions) if min(positions) >= 0 else None
    if runs is None or not starts_axes(positions[0], runs) or not is_chain(_ends((*runs, *mesh.axes))):
        return None
    named = list(map(_LaidAxis, mesh.names, mesh.axes))
    return tuple(part for run in reversed(runs) for part in _lay_over(run, named))


def axis_of_pairs(pairs: Iterable[tuple[int, int]], mesh: Mesh) -> tuple[str, ...] | None:
    """Return the axes along which senders and receivers differ; None if the mesh is unknown."""
    if mesh.shape is None:
        return None
    axes: set[int] = set()
    for source, target in pairs:
        start, end = mesh.position(source), mesh.position(target)
        if start < 0 or end < 0:
            return None
        axes |= {i for i, axis in enumerate(mesh.axes) if start // axis.stride % axis.size != end // axis.stride % axis.size}
    return tuple(mesh.names[axis] for axis in sorted(axes))


def axis_labels(collectives: Iterable[Collective], counts: DeviceCounts, mesh: Mesh) -> list[str | None]:
    """Return the mesh axes of each collective as `d0,d1`, and parts of axes as `data:(2)4`.

    Empty for groups of one device, None if unknown, `dcn` between slices.
    """
    label_by_key: dict[tuple[object, ...], str | None] = {}
    labels: list[str | None] = []
    for collective in collectives:
        if collective.transfer is not None:
            labels.append(DCN)
            continue
        key = (collective.groups, collective.pairs, collective.mode, has_groups(collective))
        if key not in label_by_key:
            axes = _axes_of_collective(collective, counts, mesh)
            label_by_key[key] = None if axes is None else ",".join(axes)
        labels.append(label_by_key[key])
    return labels


def _axes_of_collective(collective: Collective, counts: DeviceCounts, mesh: Mesh) -> tuple[str, ...] | None:
    if mesh.shape is None:
        return None
    if has_groups(collective):
        try:
            return axis_of(device_groups(collective.groups, collective.mode, counts), mesh)
        except DeviceListError:
            return None
    pairs = collective.pairs
    return axis_of_pairs(device_pairs(pairs, collective.mode, counts), mesh) if isinstance(pairs, DevicePairs) else None


# -- partition specs ----------------------------------------------------------------------------------------------------------


Spec = tuple[tuple[str, ...], ...]
"""The axes that divide each dimension, major to minor."""


class PartitionSpecs:
    """The shardings of a module in the names of its axes. The callback `mesh` is called if the text does not name them."""

    def __init__(self, module: Module, mesh: Callable[[], Mesh]) -> None:
        self._header = module.header.attributes.get("frontend_attributes", "")
        self._mesh = mesh
        self._specs: dict[tuple[str, str], Spec | None] = {}
        self._left = most_named(module)

    @cached_property
    def _meshes(self) -> dict[str, NamedMesh]:
        return shardy_meshes(self._header)

    def get(self, sharding: Sharding | None, instruction: Instruction | None = None) -> Spec | None:
        """Return the spec of an array with this sharding; None if axes do not express it, or not all devices hold a part.

        `instruction` is an instruction that defines the whole array.
        """
        attributes = instruction.attr("frontend_attributes") if instruction is not None else None
        shardy = attributes.get("xla.sdy.sharding", "") if attributes else ""
        key = (sharding.text if sharding is not None else "", shardy)
        if key not in self._specs:
            named = parse_shardy_shardings(shardy, self._meshes)
            spec = self._spec(named[0]) if len(named) == 1 else None
            self._specs[key] = self._spec(sharding) if spec is None else spec
        return self._specs[key]

    def text(self, sharding: Sharding | None, instruction: Instruction | None = None) -> str:
        """Return the spec as text, else the sharding's own text; empty without a sharding."""
        spec = self.get(sharding, instruction)
        if spec is not None:
            return spec_text(spec)
        return sharding.text if sharding is not None else ""

    def _spec(self, sharding: Sharding | None) -> Spec | None:
        if sharding is None or any(kind != "replicated" for kind in (*sharding.subgroups, *dict(sharding.other_axes))):
            return None
        if sharding.kind not in {"named", "tiled"}:
            return () if sharding.kind == "replicated" else None
        named = spec_of_own_mesh(sharding, dict(sharding.mesh.axes)) if sharding.mesh is not None else None
        return self._along_axes(sharding) if named is None else named

    def _along_axes(self, sharding: Sharding) -> Spec | None:
        """Return the spec along the axes of the module's mesh.

        Devices are not written out if the mesh is unknown or has fewer devices.
        """
        mesh = self._mesh()
        if sharding.devices > 1 and (mesh.shape is None or sharding.devices > math.prod(mesh.shape)):
            return None
        self._left -= sharding.devices  # the same limit of ids as for the mesh
        if self._left < 0:
            return None
        try:
            lines = list(_lines(sharding))
        except DeviceListError:
            return None
        dimensions = [axis_of(line, mesh, ordered=True) or axis_of(line, mesh) if line is not None else () for line in lines]
        known_axes = [axes for axes in dimensions if axes is not None]
        return tuple(known_axes) if len(known_axes) == len(dimensions) else None


def spec_text(spec: Spec) -> str:
    """Format a spec as `("fsdp", None)`; `replicated` if no dimension is divided."""
    if not any(spec):
        return "replicated"
    dimensions = [_dimension_text(axes) for axes in spec]
    return f"({', '.join(dimensions)}{',' if len(dimensions) == 1 else ''})"


def _dimension_text(axes: tuple[str, ...]) -> str:
    names = [f'"{axis}"' for axis in axes]
    return (names[0] if len(names) == 1 else f"({', '.join(names)})") if names else "None"


def spec_of_own_mesh(sharding: Sharding, sizes: Mapping[str, int]) -> Spec | None:
    """Return the spec in the names of the sharding's own mesh; None if the program did not name its axes."""
    if any(is_made_up(name) for name in sizes) or any(
        axis.name not in sizes for axes in sharding.dimension_axes for axis in axes
    ):
        return None
    return tuple(tuple(_name(axis) for axis in axes if sizes[axis.name] != 1) for axes in sharding.dimension_axes)


def _name(axis: AxisReference) -> str:
    return axis.name if axis.size is None else f"{axis.name}:({axis.before}){axis.size}"


def _lines(sharding: Sharding) -> Iterator[Groups | None]:
    """Yield the lines of devices along which each dimension of the array is divided, None for an undivided one."""
    if sharding.mesh is not None:
        yield from (sharding.mesh.groups(axes) if axes else None for axes in sharding.dimension_axes)
        return
    lines = sharding.device_lines()
    for size in sharding.tile_sizes[: len(sharding.tile_sizes) - len(sharding.subgroups)]:
        yield next(lines) if size != 1 else None

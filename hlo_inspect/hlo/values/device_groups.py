"""Lists of devices as values: meshes, replica groups in their three spellings, source-target pairs.

A list is parsed once and keeps its text. `DeviceListError` says why a text does not parse.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

from hlo_inspect.lazy_pattern import lazy_pattern

Groups = tuple[tuple[int, ...], ...]
"""Lists of device ids."""

MAX_DEVICES = 1 << 20
"""Bound on devices, more than any system has; a larger list is rejected before it is expanded."""

MAX_KEY_IDS = 1 << 12

NUMBER = r"\d{1,10}"
NUMBERS = rf"\s*{NUMBER}(?:\s*,\s*{NUMBER})*\s*"
IOTA_TEXT = rf"\[({NUMBERS})\]\s*(?:T\s*\(({NUMBERS})\))?"
"""Pattern of an iota: its shape and its permutation."""

NAMED_MESH = lazy_pattern(r"(maximal_)?mesh\s*\[([^\]]*)\](?:\s*,\s*device_ids\s*=\s*\(((?:[^()]|\([^()]*\))*)\))?", re.ASCII)
"""Pattern of a mesh with named axes; `named_mesh` parses the match."""

_LIST = lazy_pattern(r"\{([\d,\s]*)\}", re.ASCII)
_NESTED_LIST = lazy_pattern(r"\{\s*(?:\{[\d,\s]*\}\s*,?\s*)*\}", re.ASCII)
_IOTA_GROUPS = lazy_pattern(rf"\[({NUMBERS})\]\s*<=\s*{IOTA_TEXT}", re.ASCII)
_IOTA = lazy_pattern(rf"\s*{IOTA_TEXT}\s*", re.ASCII)
_AXIS = lazy_pattern(rf"(?:'([^']*)'|\"([^\"]*)\")\s*=\s*({NUMBER})", re.ASCII)
_SHARDY_MESH = lazy_pattern(
    r'(?:\b(\w++)\s*+=\s*+)?+#?sdy\.mesh(?:\s*+@"?([^\s"]++)"?\s*+=\s*+)?+<\[([^\]]*)\]'
    r"(?:\s*,\s*device_ids\s*=\s*\[([\d,\s]*)\])?\s*>",
    re.ASCII,
)
_AXIS_REFERENCE = lazy_pattern(rf"(?:'([^']*)'|\"([^\"]*)\")\s*(?::\s*\(\s*({NUMBER})\s*\)\s*({NUMBER}))?", re.ASCII)


class DeviceListError(ValueError):
    """Text that is not a device list, or that contradicts itself."""


# -- lists of devices -------------------------------------------------------------------------------------------------------


class Iota(NamedTuple):
    """`[4,2]T(1,0)`: the ids 0…n-1 in this shape, transposed by the permutation if there is one, in row-major order."""

    shape: tuple[int, ...]
    permutation: tuple[int, ...] = ()

    def require(self, count: int) -> None:
        """Raise DeviceListError unless these are `count` ids."""
        if count > MAX_DEVICES:
            raise DeviceListError(f"{count} devices exceed the limit of {MAX_DEVICES}")
        if math.prod(self.shape) != count:
            raise DeviceListError(f"{count} devices do not fit the shape {list(self.shape)}")
        if self.permutation and sorted(self.permutation) != list(range(len(self.shape))):
            raise DeviceListError(f"{list(self.permutation)} is not a permutation of {len(self.shape)} dimensions")

    def ids(self, count: int) -> list[int]:
        """Return the ids. Raise DeviceListError unless there are `count`."""
        self.require(count)
        if not self.permutation:
            return list(range(count))
        strides = [math.prod(self.shape[i + 1 :]) for i in range(len(self.shape))]
        ids = [0]
        for axis in self.permutation:
            ids = [base + step * strides[axis] for base in ids for step in range(self.shape[axis])]
        return ids


def integers(text: str | None) -> tuple[int, ...]:
    """Return the numbers of a comma-separated list. Raise DeviceListError if an item is not a number of at most ten digits."""
    parts = [part.strip() for part in (text or "").split(",") if part.strip()]
    if not all(part.isascii() and part.isdigit() and len(part) <= 10 for part in parts):
        raise DeviceListError(f"{(text or '')[:40]!r} is not a list of device ids")
    return tuple(map(int, parts))


# -- meshes -----------------------------------------------------------------------------------------------------------------


class AxisReference(NamedTuple):
    """An axis, or its part `'a':(before)size`; `before` is the product of the sizes before the part."""

    name: str
    before: int | None = None
    size: int | None = None


def axis_references(text: str) -> tuple[AxisReference, ...]:
    """Return the mesh axes, or parts of axes, in a text such as `'x', 'y':(2)4`."""
    return tuple(
        AxisReference(match[1] or match[2] or "", *((int(match[3]), int(match[4])) if match[3] else ()))
        for match in _AXIS_REFERENCE.finditer(text)
    )


class _Steps(NamedTuple):
    """Devices of a mesh in `size` steps of `stride` positions."""

    size: int
    stride: int


class NamedMesh(NamedTuple):
    """`mesh['a'=2,'b'=4], device_ids=([4,2]T(1,0))`.

    `axes`: names and sizes, major to minor. `device_ids`: the devices in row-major order; None for 0…n-1. `device`: the only
    device of `maximal_mesh[device_id=3]`.
    """

    axes: tuple[tuple[str, int], ...]
    device_ids: Iota | tuple[int, ...] | None = None
    device: int | None = None

    def __str__(self) -> str:
        """Return the axes as XLA prints them, without the order of the devices."""
        return "mesh[" + ",".join(f"'{name}'={size}" for name, size in self.axes) + "]"

    @property
    def size(self) -> int:
        """The number of devices over all axes; 1 without axes."""
        return math.prod(size for _, size in self.axes)

    def group_size(self, references: Iterable[AxisReference]) -> int:
        """Return the size of each of `groups` without expanding them. Raise DeviceListError if the axes form no groups."""
        if self.device is not None:
            return 1
        total = self.size
        if total > MAX_DEVICES or total == 0:
            raise DeviceListError(f"the mesh has {total} devices, not 1 to {MAX_DEVICES}")
        steps = self._steps()
        axis_parts = [_part_of_axis(steps, reference) for reference in references]
        parts = sorted([part for part in axis_parts if part.size > 1], key=lambda part: part.stride)
        if any(above.stride % (below.stride * below.size) for below, above in pairwise(parts)):
            raise DeviceListError("the mesh axes of the groups overlap")
        if isinstance(self.device_ids, Iota):
            self.device_ids.require(total)
        return math.prod(part.size for part in parts)

    def groups(self, references: Iterable[AxisReference]) -> Groups:
        """Group the devices that differ only along the given axes, which are listed major to minor."""
        if self.device is not None:
            return ((self.device,),)
        references = tuple(references)
        self.group_size(references)
        steps = self._steps()
        offsets = [0]
        for axis in [_part_of_axis(steps, reference) for reference in references]:
            offsets = [base + step * axis.stride for base in offsets for step in range(axis.size)]
        ids = self._order()
        starts: list[int] = []
        seen: set[int] = set()
        for position in range(self.size):
            if position not in seen:
                starts.append(position)
                seen.update([position + offset for offset in offsets])
        return tuple(tuple([ids[start + offset] for offset in offsets]) for start in starts)

    def _steps(self) -> dict[str, _Steps]:
        """Return the axes by name, and by number, which XLA writes for an axis without a name."""
        steps: dict[str, _Steps] = {}
        stride = self.size
        for number, (name, size) in enumerate(self.axes):
            stride //= size
            steps[name] = steps.setdefault(str(number), _Steps(size, stride))
        return steps

    def _order(self) -> Sequence[int]:
        total = self.size
        if self.device_ids is None:
            return range(total)
        if isinstance(self.device_ids, Iota):
            return self.device_ids.ids(total)
        if len(self.device_ids) != total:
            raise DeviceListError(f"the mesh has {total} devices but lists {len(self.device_ids)} ids")
        if len(set(self.device_ids)) != total:
            raise DeviceListError("the mesh lists a device twice")
        return self.device_ids


def _part_of_axis(steps: dict[str, _Steps], reference: AxisReference) -> _Steps:
    axis = steps.get(reference.name)
    if axis is None:
        raise DeviceListError(f"the mesh has no axis {reference.name!r}")
    before, size = reference.before, reference.size
    if before is None or size is None:
        return axis
    if before == 0 or size == 0 or axis.size % (before * size):
        raise DeviceListError(f"({before}){size} is not a part of an axis of size {axis.size}")
    return _Steps(size, axis.stride * (axis.size // (before * size)))


def named_mesh(match: re.Match[str]) -> NamedMesh:
    """Parse a match of `NAMED_MESH`."""
    maximal, axes, device_ids = match.groups()
    if maximal:
        devices = integers(axes.partition("=")[2])
        if len(devices) != 1:
            raise DeviceListError(f"{axes!r} is not a single device")
        return NamedMesh((), device=devices[0])
    named = tuple((axis[1] or axis[2] or "", int(axis[3])) for axis in _AXIS.finditer(axes))
    if device_ids is None:
        return NamedMesh(named)
    tiled = _IOTA.fullmatch(device_ids)
    return NamedMesh(named, Iota(*map(integers, tiled.groups())) if tiled is not None else integers(device_ids))


def shardy_meshes(text: str) -> dict[str, NamedMesh]:
    """Return the meshes of `xla.sdy.meshes` in the header's `frontend_attributes`, or of StableHLO, by name."""
    meshes: dict[str, NamedMesh] = {}
    for name, symbol, axes, ids in _SHARDY_MESH.findall(text.replace("\\", "")):
        listed = tuple(int(part) for part in ids.split(",") if part.strip().isdigit() and len(part.strip()) < 10)
        named = tuple((axis[1] or axis[2] or "", int(axis[3])) for axis in _AXIS.finditer(axes))
        meshes[name or symbol or str(len(meshes))] = NamedMesh(named, listed or None)
    return meshes


# -- groups and pairs -------------------------------------------------------------------------------------------------------


class MeshGroups(NamedTuple):
    """Groups of devices that differ only along these axes."""

    mesh: NamedMesh
    references: tuple[AxisReference, ...]


@dataclass(frozen=True, eq=False)
class DeviceGroups:
    """The groups of `replica_groups`, in order; none for `{}`, which means one group of all devices.

    `mesh`: the mesh that the text names. `listed`: the groups as the text has them. An iota list or mesh axes are short, but
    can hold a million devices, each once. `groups` expands them on first use.
    `sizes`: the sizes of groups. `count`: the number of ids in all groups. `largest_id`: -1 without ids.
    """

    text: str
    listed: Groups | Iota | MeshGroups
    sizes: frozenset[int]
    count: int
    largest_id: int
    mesh: NamedMesh | None = None

    @property
    def is_compact(self) -> bool:
        """True if the text is shorter than the groups."""
        return isinstance(self.listed, Iota | MeshGroups)

    @property
    def key(self) -> Groups | str:
        """Key that is equal for equal groups, except for long compact groups in different spellings."""
        return self.text if self.is_compact and self.count > MAX_KEY_IDS else self.groups

    @cached_property
    def groups(self) -> Groups:
        if isinstance(self.listed, MeshGroups):
            return self.listed.mesh.groups(self.listed.references)
        if not isinstance(self.listed, Iota):
            return self.listed
        ids, (size,) = self.listed.ids(self.count), self.sizes
        return tuple(tuple(ids[i : i + size]) for i in range(0, len(ids), size))


def parse_groups(text: str) -> DeviceGroups:
    """Parse `{{0,1},{2,3}}`, `[2,4]<=[4,2]T(1,0)` or `mesh['a'=2,'b'=4] {'a'}`. Raise DeviceListError for other text."""
    plain = text.strip()
    iota = _IOTA_GROUPS.fullmatch(plain)
    if iota is not None:
        sizes, *shape = map(integers, iota.groups())
        if len(sizes) != 2:
            raise DeviceListError(f"expected [groups,size], found {len(sizes)} dimensions")
        ids, count = Iota(*shape), math.prod(sizes)
        ids.require(count)
        return DeviceGroups(text, ids, frozenset(sizes[1:]), count, count - 1) if count else _listed(text, ())
    printed = NAMED_MESH.match(plain)
    rest = plain[printed.end() :].strip() if printed is not None else ""
    if printed is not None and (not rest or (rest[0] == "{" and rest[-1] == "}")):
        return _along_mesh(text, named_mesh(printed), axis_references(rest))
    if _NESTED_LIST.fullmatch(plain) is None:
        raise DeviceListError(f"not replica groups: {text.strip()[:60]!r}")
    return _listed(text, tuple(integers(ids) for ids in _LIST.findall(plain[1:-1]) if ids.strip()))


def _along_mesh(text: str, mesh: NamedMesh, references: tuple[AxisReference, ...]) -> DeviceGroups:
    size = mesh.group_size(references)
    if mesh.device is not None or (isinstance(mesh.device_ids, tuple) and not isinstance(mesh.device_ids, Iota)):
        return _listed(text, mesh.groups(references), mesh)
    return DeviceGroups(text, MeshGroups(mesh, references), frozenset([size]), mesh.size, mesh.size - 1, mesh)


def _listed(text: str, groups: Groups, mesh: NamedMesh | None = None) -> DeviceGroups:
    sizes, largest = list(map(len, groups)), [max(ids, default=-1) for ids in groups]
    return DeviceGroups(text, groups, frozenset(sizes), sum(sizes), max(largest, default=-1), mesh)


class DevicePairs(NamedTuple):
    """The pairs of `source_target_pairs`: source, target."""

    text: str
    pairs: tuple[tuple[int, int], ...]


def parse_pairs(text: str) -> DevicePairs:
    """Parse `{{0,1},{1,0}}`, without comments. Raise DeviceListError for any other text."""
    plain = text.strip()
    if _NESTED_LIST.fullmatch(plain) is None:
        raise DeviceListError(f"not source-target pairs: {text.strip()[:60]!r}")
    pairs = []
    for ids in _LIST.findall(plain[1:-1]):
        pair = integers(ids)
        if len(pair) != 2:
            raise DeviceListError(f"{ids!r} is not a pair of devices")
        pairs.append((pair[0], pair[1]))
    return DevicePairs(text, tuple(pairs))

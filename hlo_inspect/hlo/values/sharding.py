"""Shardings as values: how an array is divided over devices, in the spellings of XLA and Shardy.

A sharding keeps the text from which it is parsed. `DeviceListError` says why a text is not a sharding.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import Literal, NamedTuple

from hlo_inspect.hlo import tokens
from hlo_inspect.hlo.values.device_groups import (
    IOTA_TEXT,
    MAX_DEVICES,
    NAMED_MESH,
    NUMBER,
    NUMBERS,
    AxisReference,
    DeviceListError,
    Groups,
    Iota,
    NamedMesh,
    axis_references,
    integers,
    named_mesh,
    shardy_meshes,
)
from hlo_inspect.lazy_pattern import lazy_pattern

ShardingKind = Literal["replicated", "maximal", "manual", "unreduced", "unknown", "tiled", "named", "tuple"]

_TILES = lazy_pattern(rf"devices=\[({NUMBERS})\]\s*(?:<=\s*{IOTA_TEXT}|({NUMBERS}))", re.ASCII)
_SHARDY_SHARDING = lazy_pattern(
    r'<\s*(?:@"?([^\s",<>]++)"?|mesh(<\[[^\]]*+\][^<>]*+>))\s*,\s*\[((?:\{[^{}]*+\}|[\s,p\d])*+)\]([^<>]*+)>', re.ASCII
)
_SUBGROUPS = lazy_pattern(r"last_tile_dims=\{([^{}]*)\}")
_METADATA = lazy_pattern(r"\bmetadata=")
_WORD = lazy_pattern(r"(?<![\w.\-])(replicated|maximal|manual|unreduced|unknown)(?![\w.\-])", re.ASCII)
_DEVICE = lazy_pattern(rf"\bdevice=({NUMBER})", re.ASCII)
_QUOTED = lazy_pattern(r'"(?:[^"\\]++|\\.)*+"', re.DOTALL)
_AXES_OF_KIND = lazy_pattern(r"(?:(\w+)\s*=\s*(?:\w+\s*)?)?\{([^{}]*)\}", re.ASCII)
_LIST_OF_AXES = lazy_pattern(r"\{([^{}]*+)\}")


class Sharding(NamedTuple):
    """Division of an array over devices, or for a `tuple` the shardings of its `elements`.

    `tiled`: the devices form a grid of `tile_sizes`, in the order of `device_ids`. The first dimensions of the grid divide the
    dimensions of the array. `subgroups` are the kinds of its last dimensions (`replicated`, `manual`), major to minor.
    `named`: `dimension_axes` are the axes of `mesh` that divide each dimension of the array. `other_axes` are pairs of a kind,
    such as `replicated`, and its axes.
    `maximal`: the whole array is on `device`.
    """

    text: str
    kind: ShardingKind
    elements: tuple[Sharding, ...] = ()
    tile_sizes: tuple[int, ...] = ()
    device_ids: Iota | tuple[int, ...] = ()
    subgroups: tuple[str, ...] = ()
    mesh: NamedMesh | None = None
    dimension_axes: tuple[tuple[AxisReference, ...], ...] = ()
    other_axes: tuple[tuple[str, tuple[AxisReference, ...]], ...] = ()
    device: int | None = None

    @property
    def devices(self) -> int:
        """The largest device id plus one; 0 if no device is named."""
        if self.kind == "tuple":
            return max((element.devices for element in self.elements), default=0)
        if self.kind == "maximal":
            return 0 if self.device is None else self.device + 1
        if self.mesh is not None:
            return self.mesh.size if self.mesh.axes else 0
        if isinstance(self.device_ids, Iota):
            return math.prod(self.device_ids.shape)
        return max(self.device_ids, default=-1) + 1

    @property
    def parts(self) -> int:
        """The number of different parts of the array; 1 if it is not divided. Raise DeviceListError if its axes overlap."""
        if self.mesh is not None:
            return self.mesh.group_size(axis for axes in self.dimension_axes for axis in axes)
        return math.prod(self.tile_sizes[: len(self.tile_sizes) - len(self.subgroups)])

    @property
    def divisions(self) -> tuple[int, ...]:
        """The number of parts of each dimension, of the first ones at least. Raise DeviceListError if axes are no axes."""
        if self.mesh is not None:
            return tuple(map(self.mesh.group_size, self.dimension_axes))
        return self.tile_sizes[: len(self.tile_sizes) - len(self.subgroups)]

    @property
    def tile_count_fault(self) -> str | None:
        """The fault of a grid with more or fewer tiles than listed devices; None if they match."""
        if self.kind != "tiled":
            return None
        tiles = math.prod(self.tile_sizes)
        listed = math.prod(self.device_ids.shape) if isinstance(self.device_ids, Iota) else len(self.device_ids)
        return f"has tiles for {tiles} devices but lists {listed}" if tiles != listed else None

    def device_lines(self) -> Iterator[Groups]:
        """Yield the lines of devices along each divided dimension and each named set of axes.

        The order of devices in a line of subgroups has no meaning; such lines are sorted.
        """
        if self.mesh is not None:
            for axes in (*self.dimension_axes, *(axes for _, axes in self.other_axes)):
                if axes:
                    yield self.mesh.groups(axes)
        elif self.kind == "tiled":
            yield from self._tile_lines()

    def _tile_lines(self) -> Iterator[Groups]:
        sizes = self.tile_sizes
        count = math.prod(sizes)
        ids = self.device_ids.ids(count) if isinstance(self.device_ids, Iota) else list(self.device_ids)
        if not ids or count != len(ids):
            raise DeviceListError(f"{len(ids)} devices do not fit the tiles {list(sizes)}")
        stride = len(ids)
        for dimension, size in enumerate(sizes):
            stride //= size
            if size == 1:
                continue
            starts = (start + i for start in range(0, len(ids), size * stride) for i in range(stride))
            lines = (ids[start : start + size * stride : stride] for start in starts)
            is_subgroup = dimension >= len(sizes) - len(self.subgroups)
            yield tuple(tuple(sorted(line) if is_subgroup else line) for line in lines)

    def copies(self, partitions: int) -> Groups | None:
        """Group the partitions with the same part of the array. Return None if the sharding does not tell for this number."""
        if not 0 < partitions <= MAX_DEVICES or (self.kind != "replicated" and self.devices != partitions):
            return None
        try:
            groups = self._copies(partitions)
        except DeviceListError:
            return None
        is_whole = groups is not None and sorted([i for group in groups for i in group]) == list(range(partitions))
        return groups if is_whole else None

    def _copies(self, partitions: int) -> Groups | None:
        if self.kind == "replicated":
            return (tuple(range(partitions)),)
        if self.kind == "named" and self.mesh is not None and self.mesh.device is None:
            return self._copies_in_mesh(self.mesh)
        if self.kind != "tiled" or self.subgroups not in ((), ("replicated",)):
            return None
        lines = tuple(self._tile_lines())
        if not lines:
            return None
        if self.subgroups and self.tile_sizes[-1] != 1:
            return lines[-1]
        return tuple((device,) for line in lines[0] for device in line)

    def _copies_in_mesh(self, mesh: NamedMesh) -> Groups | None:
        """Group the devices that differ only along axes that divide no dimension: they hold the same part."""
        dividing = [axis for axes in self.dimension_axes for axis in axes]
        if any(kind != "replicated" for kind, _ in self.other_axes) or any(axis.size is not None for axis in dividing):
            return None
        names = {axis.name for axis in dividing}
        numbered = [(name, str(number)) for number, (name, _) in enumerate(mesh.axes)]
        return mesh.groups(AxisReference(name) for name, number in numbered if names.isdisjoint({name, number}))


def split_sharding(text: str) -> tuple[str, ...] | None:
    """Return the texts of the shardings of a tuple's elements; None for a single sharding."""
    text = tokens.without_comments(text).strip()
    inside = text[1:-1].strip()
    if text == "{}" or not inside.startswith("{"):
        return None
    return tuple(inside[start:end].strip() for start, end in tokens.split_items(inside))


def parse_sharding(text: str) -> Sharding:
    """Parse `{replicated}`, `{devices=[2,2]<=[4] last_tile_dim_replicate}` or `{mesh['a'=2], [{'a'}, {}]}`.

    Also parse a tuple of them. Raise DeviceListError for any other text.
    """
    parts = split_sharding(text)
    if parts is not None:
        parsed = {part: parse_sharding(part) for part in set(parts)}  # thousands of weights have a few shardings
        return Sharding(text, "tuple", tuple(map(parsed.__getitem__, parts)))
    plain = tokens.without_comments(text).strip()
    if len(plain) < 2 or plain[0] != "{" or plain[-1] != "}":
        raise DeviceListError(f"not a sharding: {text.strip()[:60]!r}")
    inside = _METADATA.split(plain[1:-1], maxsplit=1)[0].strip()
    if not inside:
        return Sharding(text, "tuple")
    printed = NAMED_MESH.match(inside)
    if printed is not None:
        return _named_sharding(text, named_mesh(printed), inside[printed.end() :])
    tiles = _TILES.search(inside)
    word = _WORD.search(inside)
    if tiles is not None:
        ids = Iota(integers(tiles[2]), integers(tiles[3])) if tiles[2] else integers(tiles[4])
        listed = _SUBGROUPS.search(inside)
        kinds = tuple(kind.strip() for kind in listed[1].split(",")) if listed else ()
        if not kinds and "last_tile_dim_replicate" in inside:
            kinds = ("replicated",)
        return Sharding(text, "tiled", tile_sizes=integers(tiles[1]), device_ids=ids, subgroups=kinds)
    if word is None:
        raise DeviceListError(f"not a sharding: {text.strip()[:60]!r}")
    device = _DEVICE.search(inside)
    kind: ShardingKind = word[1]  # type: ignore[assignment]  # one of the words of the pattern
    return Sharding(text, kind, device=int(device[1]) if device else None)


def _named_sharding(text: str, mesh: NamedMesh, rest: str) -> Sharding:
    """Parse a sharding over mesh axes; `rest` is the text after the mesh."""
    if mesh.device is not None:
        return Sharding(text, "maximal", mesh=mesh, device=mesh.device)
    dimensions, others = [], []
    for listed in _AXES_OF_KIND.finditer(rest):
        if listed[1]:
            others.append((listed[1], axis_references(listed[2])))
        else:
            dimensions.append(axis_references(listed[2]))
    word = _WORD.match(rest.lstrip(", \t\n"))
    if word is not None and not dimensions and word[1] == "replicated" and not others:
        return Sharding(text, "replicated", mesh=mesh)
    if word is not None and not dimensions and not others:
        kind: ShardingKind = "manual" if word[1] == "manual" else "unreduced"
        return Sharding(text, kind, mesh=mesh)
    return Sharding(text, "named", mesh=mesh, dimension_axes=tuple(dimensions), other_axes=tuple(others))


def parse_shardy_shardings(text: str, meshes: Mapping[str, NamedMesh]) -> tuple[Sharding, ...]:
    """Parse `xla.sdy.sharding`: a sharding, or one per value, as `#sdy.sharding<@mesh, [{"data"}, {}]>`.

    The mesh can stand in place of its name: `<mesh<["data"=4]>, [{"data"}]>`. Priorities, and the mark `?` of a dimension that
    further axes may divide, are left out.
    """
    shardings = []
    for match in _SHARDY_SHARDING.finditer(text.replace("\\", "")):
        dimensions = tuple(axis_references(axes) for axes in _LIST_OF_AXES.findall(match[3]))
        others = tuple((kind, axis_references(axes)) for kind, axes in _AXES_OF_KIND.findall(match[4]) if kind)
        inline = shardy_meshes(f"sdy.mesh{match[2]}").get("0") if match[2] else None
        mesh = inline or meshes.get(match[1], NamedMesh(()))
        shardings.append(Sharding(match[0], "named", mesh=mesh, dimension_axes=dimensions, other_axes=others))
    return tuple(shardings)


def spelled_by_xla(sharding: Sharding) -> Sharding:
    """Return a sharding of Shardy with the text that XLA prints for it: `{mesh['data'=4], [{'data'}, {}]}`."""
    mesh = sharding.mesh
    if sharding.kind != "named" or mesh is None:
        return sharding
    ids = mesh.device_ids
    order = f", device_ids=({','.join(map(str, ids))})" if ids is not None and not isinstance(ids, Iota) else ""
    dimensions = ", ".join(map(_axes_text, sharding.dimension_axes))
    parts = [f"{mesh}{order}", f"[{dimensions}]" if sharding.dimension_axes else "replicated"]
    parts += [f"{kind}={_axes_text(axes)}" for kind, axes in sharding.other_axes]
    return sharding._replace(text="{" + ", ".join(parts) + "}")


def _axes_text(axes: tuple[AxisReference, ...]) -> str:
    names = (f"'{axis.name}'" + (f":({axis.before}){axis.size}" if axis.size is not None else "") for axis in axes)
    return "{" + ", ".join(names) + "}"


# -- signs of devices in the lines of a module ------------------------------------------------------------------------------

_TILING = lazy_pattern(r"devices=\[[\d,]++\](?:<=\[[\d,]++\]|[\d,]++)", re.ASCII)
_NAMED_MESH = lazy_pattern(r"sharding=\{mesh\[[^\]{\n]*+\]")
_SHARDING = lazy_pattern(r', sharding=(\{(?:[^{}"\n]++|"(?:[^"\\\n]++|\\.)*+"|\{(?:[^{}\n]++|\{[^{}\n]*+\})*+\})*+\})')
_TARGET = 'custom_call_target="'
_CROSS_MESH = "__builtin$CrossMeshAllReduce"
"""Alpa's sum over the devices of several meshes, the only sign of several meshes in a pipeline stage."""
_TELLING = lazy_pattern(rf'custom_call_target="(Sharding|SPMD\w+|xla\.sdy\.\w+|{re.escape(_CROSS_MESH)})"', re.ASCII)


class DeviceMarks:
    """Signs of partitioning in the lines of a module, collected while the module is read.

    `partitioning_targets`: the custom-call targets that occur only before partitioning.
    `shardings`: the distinct shardings in the entry; a tuple counts as its elements.
    `tiling`: the first sharding over devices. `crosses_meshes`: True if a custom call sums over devices of several meshes. Both
    are searched only if the header states no number of devices.
    """

    def __init__(self, *, states_devices: bool = False, is_scheduled: bool = False) -> None:
        """Start without signs. `states_devices` and `is_scheduled` come from the header."""
        self._states_devices = states_devices
        self._is_scheduled = is_scheduled
        self.partitioning_targets: set[str] = set()
        self.tiling = ""
        self.crosses_meshes = False
        self.shardings: dict[str, None] = {}

    def note(self, text: str, start: int, end: int, *, of_entry: bool = False) -> None:
        """Collect the signs in `text[start:end]`, which are whole lines."""
        counts_devices = self._states_devices
        if self._is_scheduled:
            crosses_meshes = not counts_devices and text.find(f'{_TARGET}{_CROSS_MESH}"', start, end) >= 0
        else:
            has_target = text.rfind(_TARGET, start, end) >= 0  # much faster than the pattern, and than `find`
            targets = set(_TELLING.findall(text, start, end)) if has_target else set()
            crosses_meshes = not counts_devices and _CROSS_MESH in targets
            self.partitioning_targets |= targets - {_CROSS_MESH}
        self.crosses_meshes |= crosses_meshes
        asks_devices = not counts_devices and not self.tiling
        last = text.rfind("sharding={", start, end) if asks_devices or of_entry else -1  # faster than `find`
        if last < 0:
            return
        if asks_devices:
            tiling = _TILING.search(text, start, end) or _NAMED_MESH.search(text, start, end)
            self.tiling = "{" + tiling[0].removeprefix("sharding={") + "}" if tiling else ""
        printed = _SHARDING.findall(text, start, text.find("\n", last, end) + 1 or end) if of_entry else ()
        for sharding in dict.fromkeys(printed):
            self.shardings |= dict.fromkeys(split_sharding(sharding) or (sharding,))

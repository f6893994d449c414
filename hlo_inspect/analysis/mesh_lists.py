"""The device lists that a mesh has to explain: groups of collectives and tiles of shardings, as flattened device ids.

A flattened id is `replica × partitions + partition`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from hlo_inspect.analysis.collectives import Collective
from hlo_inspect.analysis.groups import DeviceCounts, GroupMode
from hlo_inspect.hlo.sharding import (
    MAX_DEVICES,
    DeviceListError,
    Groups,
    iota,
    replica_groups,
    sharding_devices,
)

_INTEGERS = r"\s*\d{1,10}(?:\s*,\s*\d{1,10})*\s*"
_TILES = re.compile(
    rf"devices=\[({_INTEGERS})\]\s*(?:<=\s*\[({_INTEGERS})\]\s*(?:T\s*\(({_INTEGERS})\))?|({_INTEGERS}))", re.ASCII
)
_SUBGROUPS = re.compile(r"last_tile_dims=\{([^{}]*)\}")
PRINTED_MESH = re.compile(r"\bmesh\s*\[[^\]]*\](?:\s*,\s*device_ids\s*=\s*\((?:[^()]|\([^()]*\))*\))?")
_AXES = re.compile(r"\{([^{}]*['\"][^{}]*)\}")
_METADATA = re.compile(r"\bmetadata=")


class Run(NamedTuple):
    """An axis inside of a device list: `size` steps of `stride` ids."""

    size: int
    stride: int

    @property
    def end(self) -> int:
        """The stride of the next more major axis, if the two are neighbours."""
        return self.size * self.stride


def runs_of(ids: Sequence[int]) -> tuple[Run, ...] | None:
    """The axes, minor to major, whose product lists `ids` in this order; the longest runs that do. `None` if none do."""
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
    """Whether the text says between which devices, as groups."""
    return not (collective.is_point_to_point or collective.kind == "collective-permute" or collective.participants.fault)


@lru_cache(maxsize=1 << 8)
def device_groups(text: str, mode: GroupMode, counts: DeviceCounts) -> Groups:
    """The groups that `replica_groups=text` means: those of the first replica where every replica has the same, those of the
    first partition where every partition has. `DeviceListError` where the text is no groups or names too many devices.
    """
    replicas, partitions = counts.replicas or 1, counts.partitions or 1
    if replicas * partitions > MAX_DEVICES:
        raise DeviceListError(f"{replicas * partitions} devices")
    groups = replica_groups(text) if text else ()
    if mode is GroupMode.FLATTENED_ID:
        return groups or (tuple(range(replicas * partitions)),)
    if mode is GroupMode.CROSS_PARTITION:
        return groups or (tuple(range(partitions)),)
    groups = groups or (tuple(range(replicas)),)
    together = range(partitions if mode is GroupMode.CROSS_REPLICA_AND_PARTITION else 1)
    if sum(map(len, groups)) * len(together) > MAX_DEVICES:
        raise DeviceListError("the groups name too many devices")
    return tuple(tuple(replica * partitions + partition for replica in group for partition in together) for group in groups)


@lru_cache(maxsize=1 << 8)
def tile_groups(sharding: str) -> tuple[Groups, ...]:
    """For each tiled dimension of one array's sharding the devices along it; for subgroups that hold the same data, those."""
    described = _METADATA.split(sharding, maxsplit=1)[0]
    try:
        mesh = PRINTED_MESH.search(described)
        if mesh is not None:
            references = _AXES.findall(described, mesh.end())
            return tuple(replica_groups(f"{mesh[0]} {{{axes}}}") for axes in references)
        tiles = _TILES.search(described)
        return tuple(_along_dimensions(described, *tiles.groups())) if tiles else ()
    except DeviceListError:
        return ()


def _along_dimensions(
    described: str, dims: str, reshape: str | None, order: str | None, listed: str | None
) -> Iterator[Groups]:
    sizes = _integers(dims)
    if reshape is not None:
        shape = _integers(reshape)
        ids = iota(sizes, shape, _integers(order) if order else tuple(range(len(shape))))
    else:
        ids = list(_integers(listed or ""))
    if not ids or math.prod(sizes) != len(ids):
        raise DeviceListError(f"{len(ids)} devices in {list(sizes)}")
    subgroups = _SUBGROUPS.search(described)
    alike = subgroups[1].count(",") + 1 if subgroups else int("last_tile_dim_replicate" in described)
    stride = len(ids)
    for dimension, size in enumerate(sizes):
        stride //= size
        if size == 1:
            continue
        starts = (start + i for start in range(0, len(ids), size * stride) for i in range(stride))
        lines = (ids[start : start + size * stride : stride] for start in starts)
        unordered = dimension >= len(sizes) - alike
        yield tuple(tuple(sorted(line) if unordered else line) for line in lines)


def _integers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(","))


def sharding_fault(sharding: str, counts: DeviceCounts, *, stated: bool) -> str | None:
    """What is wrong with the number of devices of one array's sharding. It is for all partitions, where the header `stated` how
    many those are.
    """
    described = _METADATA.split(sharding, maxsplit=1)[0]
    tiles, mesh = _TILES.search(described), PRINTED_MESH.search(described)
    try:
        if mesh is not None:
            named = sharding_devices(mesh[0])
        elif tiles is not None:
            named = math.prod(_integers(tiles[1]))
            listed = math.prod(_integers(tiles[2])) if tiles[2] else len(_integers(tiles[4]))
            if listed != named:
                return f"the sharding {sharding[:80]} has tiles for {named} devices and lists {listed}"
        else:
            return None
    except DeviceListError:
        return None
    if stated and named > 1 and counts.partitions is not None and named != counts.partitions:
        return f"the sharding {sharding[:80]} is for {named} devices, the program has {counts.partitions} partitions"
    return None


def device_lists(collectives: Sequence[Collective], counts: DeviceCounts, shardings: Sequence[str]) -> tuple[Groups, ...]:
    """Every distinct list of groups, in the order of the text, and every list of tiles."""
    found: dict[Groups, None] = {}
    for text, mode in dict.fromkeys((c.replica_groups, c.mode) for c in collectives if has_groups(c)):
        try:
            found[device_groups(text, mode, counts)] = None
        except DeviceListError:
            continue  # the collective's participants tell of it
    for sharding in shardings:
        found |= dict.fromkeys(tile_groups(sharding))
    return tuple(found)

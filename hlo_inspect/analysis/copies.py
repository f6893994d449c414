"""Which devices hold the same part of an array, by its sharding.

Partitions are numbered as in the sharding. `{replicated}` puts the whole array on all of them; of tiles with
`last_tile_dim_replicate` the last dimension counts copies; of a mesh with axes those copy that no dimension names.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from hlo_inspect.analysis.mesh_lists import PRINTED_MESH, tile_groups
from hlo_inspect.hlo.sharding import MAX_DEVICES, DeviceListError, Groups, replica_groups

_LAST = re.compile(r"devices=\[(?:\s*\d{1,10}\s*,)*\s*(\d{1,10})\s*\]", re.ASCII)
_NAMES = re.compile(r"""['"]([^'"]*)['"]""")
_UNCLEAR = re.compile(r"manual|maximal|device_id=|unreduced|last_tile_dims=|unknown|:\s*\(")
_METADATA = re.compile(r"\bmetadata=")


def copies_of(sharding: str, partitions: int) -> Groups | None:
    """The devices by what they hold: each group has the same part. `None` where the text does not tell."""
    described = _METADATA.split(sharding, maxsplit=1)[0]
    mesh = PRINTED_MESH.search(described)
    rest = described[mesh.end() :] if mesh is not None else described
    if not described or not 0 < partitions <= MAX_DEVICES or _UNCLEAR.search(rest):
        return None
    if "devices=" not in rest and "[" not in rest:
        return (tuple(range(partitions)),) if "replicated" in rest else None
    groups = _of_mesh(mesh[0], rest) if mesh is not None else _of_tiles(rest)
    whole = groups is not None and sorted(device for group in groups for device in group) == list(range(partitions))
    return groups if whole else None


def _of_tiles(described: str) -> Groups | None:
    last = _LAST.search(described)
    lines = tile_groups(described)
    if last is None or not lines:
        return None
    if "last_tile_dim_replicate" in described and last[1] != "1":
        return lines[-1]
    return tuple((device,) for line in lines[0] for device in line)


def _of_mesh(mesh: str, rest: str) -> Groups | None:
    axes = _NAMES.findall(mesh)
    named = set(_NAMES.findall(rest))
    free = ", ".join(f'"{axis}"' for axis in axes if axis not in named)
    try:
        if free:
            return replica_groups(f"{mesh} {{{free}}}")
        whole = ", ".join(f'"{axis}"' for axis in axes)
        return tuple((device,) for group in replica_groups(f"{mesh} {{{whole}}}") for device in group)
    except DeviceListError:
        return None


def parts_among(copies: Groups, others: Groups) -> int:
    """Into how many parts another array is divided among devices that hold the same part of one: the fewest of any group."""
    part = {device: number for number, group in enumerate(others) for device in group}
    return min((_parts(group, part) for group in copies), default=1)


def _parts(group: Sequence[int], part: dict[int, int]) -> int:
    return len({part[device] for device in group if device in part})

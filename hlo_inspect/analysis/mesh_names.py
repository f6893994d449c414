"""Names of mesh axes: the user's, those of Shardy's meshes in the header, those of meshes in shardings and groups.

`axis_<n>` is what the printer makes up where it knows no name.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from hlo_inspect.analysis.mesh_lists import PRINTED_MESH, Run, runs_of
from hlo_inspect.errors import UsageError
from hlo_inspect.hlo.sharding import DeviceListError, replica_groups

_MADE_UP = re.compile(r"_?axis_\d+", re.ASCII)
_NAME = re.compile(r"[A-Za-z_][\w.\-]*", re.ASCII)
_GIVEN_AXIS = re.compile(rf"\s*({_NAME.pattern})\s*=\s*([1-9]\d{{0,6}})\s*", re.ASCII)
_SHARDY_MESH = re.compile(r"sdy\.mesh<\[([^\]]*)\](?:\s*,\s*device_ids\s*=\s*\[([\d,\s]*)\])?\s*>", re.ASCII)
_AXIS = re.compile(r"""["']([^"']*)["']\s*=\s*(\d{1,10})""", re.ASCII)


def given_mesh(text: str) -> str:
    """The mesh that a user spells `data=4,model=2`, as XLA prints it; `UsageError` for anything else."""
    axes = [_GIVEN_AXIS.fullmatch(part) for part in text.split(",")]
    names = [axis[1] for axis in axes if axis]
    if len(names) != len(axes) or len(set(names)) != len(names):
        raise UsageError(f"{text!r} is no mesh: write it like data=4,model=2, major axis first")
    return _printed((axis[1], axis[2]) for axis in axes if axis)


def shardy_meshes(frontend_attributes: str) -> list[str]:
    """The meshes of the header's `xla.sdy.meshes`, as XLA prints meshes elsewhere."""
    found = []
    for axes, ids in _SHARDY_MESH.findall(frontend_attributes.replace("\\", "")):
        mesh = _printed(_AXIS.findall(axes))
        found.append(f"{mesh}, device_ids=({ids})" if ids.strip() else mesh)
    return found


def printed_meshes(texts: Iterable[str]) -> list[str]:
    """The meshes in groups and shardings."""
    return list(dict.fromkeys(mesh for text in texts for mesh in PRINTED_MESH.findall(text)))


def _printed(axes: Iterable[tuple[str, str]]) -> str:
    listed = ",".join(f"'{name}'={size}" for name, size in axes)
    return f"mesh[{listed}]"


class _Named(NamedTuple):
    name: str
    run: Run


def axis_names(shape: Sequence[int], order: Sequence[int] | None, meshes: Iterable[str]) -> tuple[str, ...] | None:
    """A name for each axis of a mesh from the first of `meshes` that has these axes, else from the first that can be laid over
    them; `None` where none can. `order` is the mesh's device order where it is not 0…n-1.

    An axis that is several named ones is called `data,model`; one that is a part of one `data:(2)4`, as XLA writes it: 4
    devices, behind a factor of 2.
    """
    axes = _strided(shape)
    fitting = []
    for mesh in meshes:
        named = _named_axes(mesh, math.prod(shape), order)
        if named is None:
            continue
        if [axis.run for axis in named] == axes:
            return tuple(axis.name for axis in named)
        if is_chain({end for run in (*axes, *(axis.run for axis in named)) for end in (run.stride, run.end)}):
            fitting.append(named)
    return tuple(_laid_over(run, fitting[0]) for run in axes) if fitting else None


def is_chain(strides: Iterable[int]) -> bool:
    """Whether each stride divides the next larger one, as those of one mesh do."""
    return all(larger % smaller == 0 for smaller, larger in pairwise(sorted(strides)))


def _strided(shape: Sequence[int]) -> list[Run]:
    return [Run(size, math.prod(shape[number + 1 :])) for number, size in enumerate(shape)]


def _named_axes(mesh: str, devices: int, order: Sequence[int] | None) -> list[_Named] | None:
    """The axes of a printed mesh with more than one device, major to minor. `None` where it has other devices, made-up names,
    or axes that are no runs of device positions.
    """
    axes = [(name, int(size)) for name, size in _AXIS.findall(mesh) if int(size) != 1]
    if math.prod(size for _, size in axes) != devices or any(_MADE_UP.fullmatch(name) or not name for name, _ in axes):
        return None
    position = {device: at for at, device in enumerate(order)} if order else None
    found = []
    for name, _ in axes:
        try:
            line = replica_groups(f"{mesh} {{'{name}'}}")[0]
        except DeviceListError:
            return None
        runs = runs_of(sorted(position.get(device, -1) for device in line) if position else sorted(line))
        if runs is None or len(runs) != 1:
            return None
        found.append(_Named(name, runs[0]))
    return sorted(found, key=lambda axis: -axis.run.stride)


def _laid_over(run: Run, named: list[_Named]) -> str:
    parts = []
    for name, axis in named:
        start, end = max(run.stride, axis.stride), min(run.end, axis.end)
        if start < end:
            whole = start == axis.stride and end == axis.end
            parts.append(name if whole else f"{name}:({axis.end // end}){end // start}")
    return ",".join(parts)

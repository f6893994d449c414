"""Meshes to compile a program for, and the reasons why a program cannot be compiled for one.

XLA refuses less than it should. An axis that does not divide an argument silently divides it less. Device groups inside a
`shard_map` keep the numbers of the old mesh. So a program that cannot be rewritten as a whole is refused here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from math import prod
from typing import Any

from hlo_inspect.errors import UsageError, did_you_mean
from hlo_inspect.hlo.values.device_groups import NamedMesh, shardy_meshes
from hlo_inspect.hlo.values.sharding import Sharding, parse_shardy_shardings

MOST_DEVICES = 512
ALL = "all"

Mesh = Mapping[str, int]
"""Sizes of the axes of a mesh, major axis first."""


class RefusedMeshError(Exception):
    """The program cannot be compiled for a mesh; the text says why."""


class Description:
    """A program as MLIR reads it: its name, meshes, arguments and results.

    Arguments and results have `dimensions`, and if the text tells them a `name` and the text of an `sdy.sharding`. `carried`
    are the dimensions of the floating-point arrays that loops hand to their next iterations.
    """

    def __init__(self, content: str) -> None:
        self._content: Mapping[str, Any] = json.loads(content)
        self.name = str(self._content["name"])
        self.partitions = int(self._content["partitions"])
        self.arguments: list[dict[str, Any]] = self._content["arguments"]
        self.carried = [tuple(dimensions) for dimensions in self._content["carried"]]
        self.results: list[dict[str, Any]] = self._content["results"]

    @cached_property
    def mesh(self) -> Mesh:
        """The axes of the program's mesh. Raise RefusedMeshError if it has none, several, or one that lists its devices."""
        meshes = self._meshes
        if not meshes:
            raise RefusedMeshError("no sdy.mesh in the text: its shardings are fixed (GSPMD); lower the program with Shardy")
        if len({mesh.axes for mesh in meshes.values()}) > 1:
            raise RefusedMeshError("more than one mesh in the text")
        mesh = next(iter(meshes.values()))
        if mesh.device_ids is not None:
            raise RefusedMeshError("the mesh lists its devices in an order of its own")
        return dict(mesh.axes)

    @property
    def mesh_text(self) -> str | None:
        """The mesh as the user writes it; None if the program has no single one."""
        try:
            return mesh_text(self.mesh)
        except RefusedMeshError:
            return None

    @cached_property
    def _meshes(self) -> Mapping[str, NamedMesh]:
        return shardy_meshes("\n".join(self._content["meshes"]))

    def refusal(self, sizes: Mesh) -> str:
        """Return the reason why the program cannot be compiled for a mesh with these sizes of axes; empty if it can."""
        try:
            own = self.mesh
        except RefusedMeshError as error:
            return str(error)
        unknown = [name for name in sizes if name not in own]
        if unknown:
            closest = did_you_mean(unknown[0], own)
            return f"no axis {', '.join(unknown)}{closest}; the mesh has {', '.join(own)}"
        whole = {**own, **sizes}
        devices = prod(whole.values())
        if devices > MOST_DEVICES:
            return f"{devices} devices; at most {MOST_DEVICES}"
        if self._content["is_manual"]:
            return "shard_map (sdy.manual_computation): shapes, device groups and pairs inside are written for one mesh"
        return next(self._undivided(whole), "")

    def _undivided(self, sizes: Mesh) -> Iterator[str]:
        """Yield a sentence for each dimension of an argument or result that its axes do not divide."""
        for kind in ("argument", "result"):
            for number, array in enumerate(self._content[f"{kind}s"]):
                sharding = self.sharding(array)
                for dimension, axes in enumerate(sharding.dimension_axes if sharding is not None else ()):
                    place = f"dimension {dimension} of {kind} {number}"
                    parts, size = prod(sizes.get(axis.name, 1) for axis in axes), array["dimensions"][dimension]
                    if any(axis.size is not None for axis in axes):
                        yield f"{place} is divided by a part of an axis of the old mesh"
                    elif size % parts:
                        names = ", ".join(axis.name for axis in axes)
                        yield f"{place} has {size:,} elements, not divisible by {parts} ({names})"

    def sharding(self, array: Mapping[str, Any]) -> Sharding | None:
        """Return the sharding of an argument or result; None if the text has none."""
        text = array.get("sdy.sharding")
        shardings = parse_shardy_shardings(text, self._meshes) if text is not None else ()
        return shardings[0] if shardings else None


def wanted_meshes(texts: Sequence[str], own: Mesh) -> list[Mesh]:
    """Return the meshes that the user names: `data=8,model=1`, `all` or `all:64`. Each stands once.

    `all` are the factorings of the number of devices over the axes of the program's `own` mesh, or of another number. Raise
    UsageError for any other text.
    """
    meshes: list[Mesh] = []
    for text in texts:
        name, colon, count = text.partition(":")
        if name != ALL:
            meshes.append(_mesh(text))
        elif not colon or (count.isascii() and count.isdigit() and int(count[:9]) > 0 and len(count) < 9):
            devices = int(count) if colon else prod(own.values())
            if devices > MOST_DEVICES:
                raise UsageError(f"{text!r}: a program is compiled for at most {MOST_DEVICES} devices")
            meshes += [dict(zip(own, sizes, strict=True)) for sizes in _factorings(devices, len(own))]
        else:
            raise UsageError(f"{text!r} names no meshes; write all, or all:64 for 64 devices")
    return [dict(axes) for axes in dict.fromkeys(tuple({**own, **mesh}.items()) for mesh in meshes)]


def _mesh(text: str) -> Mesh:
    axes: dict[str, int] = {}
    for part in text.split(","):
        name, _, size = part.partition("=")
        if not name or name in axes or not (size.isascii() and size.isdigit() and len(size) < 10 and int(size)):
            raise UsageError(f"{text!r} is no mesh; write it like data=4,model=2, or all")
        axes[name] = int(size)
    return axes


def _factorings(number: int, factors: int) -> Iterator[tuple[int, ...]]:
    """Yield all ways to write a number as a product of this number of factors, in ascending order."""
    if factors <= 1:
        if factors or number == 1:
            yield (number,) * factors
        return
    for first in range(1, number + 1):
        if number % first == 0:
            yield from ((first, *rest) for rest in _factorings(number // first, factors - 1))


def mesh_text(mesh: Mesh) -> str:
    """Return a mesh as the user writes it."""
    return ",".join(f"{name}={size}" for name, size in mesh.items())

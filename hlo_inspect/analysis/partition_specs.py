"""How an array is divided, by the names of mesh axes: `("fsdp", None)`, as JAX's `PartitionSpec` is written.

The names are those of `xla.sdy.sharding`, which JAX gives a parameter before partitioning, else those of the axes of the
module's mesh along which the parts lie. Axes of one device are left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property

from hlo_inspect.analysis.mesh import Mesh
from hlo_inspect.analysis.mesh_axes import axis_of, is_made_up, most_named
from hlo_inspect.hlo.instruction import Instruction
from hlo_inspect.hlo.module import Module
from hlo_inspect.hlo.values.device_groups import AxisReference, DeviceListError, Groups, NamedMesh, shardy_meshes
from hlo_inspect.hlo.values.sharding import Sharding, parse_shardy_shardings

Spec = tuple[tuple[str, ...], ...]
"""For each dimension the axes that divide it, major to minor."""


class PartitionSpecs:
    """The shardings of a module in the names of its axes. `mesh` is asked for where the text does not name them."""

    def __init__(self, module: Module, mesh: Callable[[], Mesh]) -> None:
        self._header = module.header.attributes.get("frontend_attributes", "")
        self._mesh = mesh
        self._known: dict[tuple[str, str], Spec | None] = {}
        self._left = most_named(module)

    @cached_property
    def _meshes(self) -> dict[str, NamedMesh]:
        return shardy_meshes(self._header)

    def of(self, sharding: Sharding | None, instruction: Instruction | None = None) -> Spec | None:
        """The spec of an array with this sharding, of which `instruction` is the whole definition; `None` where axes do not say
        it, or not all devices hold a part.
        """
        attributes = instruction.attr("frontend_attributes") if instruction is not None else None
        shardy = attributes.get("xla.sdy.sharding", "") if attributes else ""
        key = (sharding.text if sharding is not None else "", shardy)
        if key not in self._known:
            named = parse_shardy_shardings(shardy, self._meshes)
            spec = self._spec(named[0]) if len(named) == 1 else None
            self._known[key] = self._spec(sharding) if spec is None else spec
        return self._known[key]

    def text(self, sharding: Sharding | None, instruction: Instruction | None = None) -> str:
        """The spec as it is written, else the sharding's own text; empty where there is none."""
        spec = self.of(sharding, instruction)
        if spec is not None:
            return spec_text(spec)
        return sharding.text if sharding is not None else ""

    def _spec(self, sharding: Sharding | None) -> Spec | None:
        if sharding is None or any(kind != "replicated" for kind in (*sharding.subgroups, *dict(sharding.other_axes))):
            return None
        if sharding.kind not in {"named", "tiled"}:
            return () if sharding.kind == "replicated" else None
        named = _named(sharding, dict(sharding.mesh.axes)) if sharding.mesh is not None else None
        return self._along_axes(sharding) if named is None else named

    def _along_axes(self, sharding: Sharding) -> Spec | None:
        """The axes of the module's mesh. Devices are not written out for a mesh that is not known, or of another size."""
        mesh = self._mesh()
        if sharding.devices > 1 and (mesh.shape is None or sharding.devices > math.prod(mesh.shape)):
            return None
        self._left -= sharding.devices  # ids that are written out, as few as for the mesh
        if self._left < 0:
            return None
        try:
            lines = list(_lines(sharding))
        except DeviceListError:
            return None
        found = [axis_of(groups, mesh) if groups is not None else () for groups in lines]
        known = [axes for axes in found if axes is not None]
        return tuple(tuple(mesh.names[axis] for axis in axes) for axes in known) if len(known) == len(found) else None


def spec_text(spec: Spec) -> str:
    """`("fsdp", None)`; `replicated` where no dimension is divided."""
    if not any(spec):
        return "replicated"
    dimensions = [_dimension_text(axes) for axes in spec]
    return f"({', '.join(dimensions)}{',' if len(dimensions) == 1 else ''})"


def _dimension_text(axes: tuple[str, ...]) -> str:
    names = [f'"{axis}"' for axis in axes]
    return (names[0] if len(names) == 1 else f"({', '.join(names)})") if names else "None"


def _named(sharding: Sharding, sizes: Mapping[str, int]) -> Spec | None:
    """The spec in the names of the sharding's own mesh, `None` where the program did not name its axes."""
    if any(is_made_up(name) for name in sizes) or any(
        axis.name not in sizes for axes in sharding.dimension_axes for axis in axes
    ):
        return None
    return tuple(tuple(_name(axis) for axis in axes if sizes[axis.name] != 1) for axes in sharding.dimension_axes)


def _name(axis: AxisReference) -> str:
    return axis.name if axis.size is None else f"{axis.name}:({axis.before}){axis.size}"


def _lines(sharding: Sharding) -> Iterator[Groups | None]:
    """For each dimension of the array the lines of devices along which it is divided, `None` where it is not."""
    if sharding.mesh is not None:
        yield from (sharding.mesh.groups(axes) if axes else None for axes in sharding.dimension_axes)
        return
    lines = sharding.device_lines()
    for size in sharding.tile_sizes[: len(sharding.tile_sizes) - len(sharding.subgroups)]:
        yield next(lines) if size != 1 else None

"""The device mesh: its axes, and where each device is in it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.mesh import Mesh
from hlo_inspect.report.model import Column, Table

MAX_DEVICES = 1024
"""At most this many devices of a mesh have a row."""
_MAX_COLUMNS = 32


class _Axis(NamedTuple):
    name: str
    size: int
    stride: int


class _Device(NamedTuple):
    """A device with its place in a drawing of the mesh, and in words."""

    number: int
    row: int
    column: int
    coordinates: str


def mesh_tables(context: Context) -> Iterator[Table]:
    """The axes, major to minor, and the devices in their order; nothing where no mesh is known."""
    mesh = context.mesh
    if mesh.shape is None:
        return
    axes = [_Axis(name, *axis) for name, axis in zip(mesh.names, mesh.axes, strict=True)]
    columns = (
        Column("axis", get=lambda axis: axis.name),
        Column("size", "count", get=lambda axis: axis.size),
        Column("stride", "count", get=lambda axis: axis.stride),
    )
    yield Table.of("mesh_axes", "Axes of the device mesh, major to minor", columns, axes)
    devices = math.prod(mesh.shape)
    first = f"The first {MAX_DEVICES:,} of " if devices > MAX_DEVICES else ""
    placed = (
        Column("device", "number", get=lambda one: one.number),
        Column("row", "number", get=lambda one: one.row),
        Column("column", "number", get=lambda one: one.column),
        Column("coordinates", get=lambda one: one.coordinates),
    )
    title = f"{first}{devices:,} devices of the mesh"
    yield Table.of("mesh_devices", title, placed, _devices(mesh, axes, min(devices, MAX_DEVICES)), on_page=False)


def _devices(mesh: Mesh, axes: list[_Axis], count: int) -> Iterator[_Device]:
    """The most minor axis goes from left to right, in several rows where it is long."""
    width = min(axes[-1].size, _MAX_COLUMNS)
    rows_of_line = math.ceil(axes[-1].size / width)
    for position in range(count):
        line, at = divmod(position, axes[-1].size)
        coordinates = ", ".join(f"{axis.name}={position // axis.stride % axis.size}" for axis in axes)
        number = position if mesh.order is None else mesh.order[position]
        yield _Device(number, line * rows_of_line + at // width, at % width, coordinates)

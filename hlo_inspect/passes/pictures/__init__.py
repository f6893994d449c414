"""The tables that only the pictures of a page are drawn from."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Literal

from hlo_inspect.analysis.collectives import KERNEL_WANTS
from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.cost.figures import Figure
from hlo_inspect.analysis.mesh import Mesh
from hlo_inspect.analysis.phases import phases
from hlo_inspect.hlo.wants import Wants
from hlo_inspect.passes.base import Pass
from hlo_inspect.passes.collectives.tables import by_axis_and_kind, sizes
from hlo_inspect.passes.pictures.memory import memory_picture_tables
from hlo_inspect.passes.pictures.roofline import roofline_tables
from hlo_inspect.passes.pictures.trees import Path, TreeAmount, TreeMeasure, tree_table
from hlo_inspect.passes.time.tables import TimePart, step_table, time_parts
from hlo_inspect.passes.time_events import timeline_table
from hlo_inspect.report.model import Column, Row, Section, Table


class Pictures(Pass):
    """The tables that only the pictures of a page are drawn from: trees, places on a roofline, a timeline with few marks.

    No command of its own. A table is absent where it would have nothing: without a schedule, a profile, a mesh, an entry.
    """

    name = "pictures"
    asks_phases = True
    uses_profile = True
    wants = KERNEL_WANTS | phases.WANTS | Wants(entry=True)
    specs = ()

    def run(self, context: Context) -> Section:
        return Section({}, _tables(context))


def _tables(context: Context) -> Iterator[Table]:
    yield from _cost_trees(context)
    yield from roofline_tables(context)
    yield from timeline_table(context)
    if context.collectives:
        yield by_axis_and_kind(context)
        yield sizes(context)
    yield from _mesh_tables(context)
    yield from memory_picture_tables(context)


# -- a step as trees ---------------------------------------------------------------------------------------------------

_COST = (TreeMeasure("flops", "flops", bounded=True), TreeMeasure("bytes_accessed", "bytes", bounded=True))
_TIME = (TreeMeasure("bound_s", "seconds", bounded=True), TreeMeasure("estimate_s", "seconds", bounded=True))
_FIGURES: tuple[Figure, ...] = ("flops", "bytes")


def _cost_trees(context: Context) -> Iterator[Table]:
    """FLOPs and bytes of one step, and with a profile its time, at least and by the model. Without a schedule it is
    that of the kernels, one after the other, which have a table too.
    """
    if context.module.entry is None:
        return
    timelines = context.on_machine.timelines
    parts = time_parts(context) if timelines is not None else []
    if timelines is not None and not timelines.is_scheduled:
        parts = [part for part in parts if part.collective is None]
        title = "Kernels one after the other, at least and by the model"
        yield replace(step_table(parts), name="kernel_seconds", title=title, on_page=False)
    measures = (*_COST, *(_TIME if parts else ()))
    scopes = _leaves(context, parts, "scope", _scopes)
    yield tree_table("scope_tree", "One step by scope within scope", "scope", measures, scopes, join_chains=True)
    lines = _leaves(context, parts, "source", _file_and_line)
    yield tree_table("source_tree", "One step by line within file", "source", measures, lines, separator="")


def _leaves(
    context: Context, parts: Sequence[TimePart], label: Literal["scope", "source"], path: Callable[[str], Path]
) -> Iterator[tuple[Path, Sequence[TreeAmount]]]:
    for text, tally in context.cost.by(label).by_label():
        cost = [TreeAmount(amount.least, amount.is_exact) for amount in map(tally.bounds, _FIGURES)]
        yield path(text), cost
    for part in parts:
        times = (TreeAmount(time.least, time.exact is not None) for time in (part.bound, part.estimate))
        yield path(getattr(part, label)), (TreeAmount(0), TreeAmount(0), *times)


def _scopes(label: str) -> Path:
    return tuple(label.split("/"))


def _file_and_line(label: str) -> Path:
    file, colon, line = label.rpartition(":")
    return (file, f":{line}") if colon else (label,)


# -- the mesh ----------------------------------------------------------------------------------------------------------

MAX_DEVICES = 1024
"""At most this many devices of a mesh have a row."""
_MAX_COLUMNS = 32

_AXES = (Column("axis"), Column("size", "count"), Column("stride", "count"))
_DEVICES = (Column("device", "number"), Column("row", "number"), Column("column", "number"), Column("coordinates"))


def _mesh_tables(context: Context) -> Iterator[Table]:
    """The axes, major to minor, and the devices in their order; nothing where no mesh is known."""
    mesh = context.mesh
    if mesh.shape is None:
        return
    axes = tuple((name, *axis) for name, axis in zip(mesh.names, mesh.axes, strict=True))
    yield Table("mesh_axes", "Axes of the device mesh, major to minor", _AXES, axes)
    devices = math.prod(mesh.shape)
    first = f"The first {MAX_DEVICES:,} of " if devices > MAX_DEVICES else ""
    rows = tuple(_devices(mesh, min(devices, MAX_DEVICES)))
    yield Table("mesh_devices", f"{first}{devices:,} devices of the mesh", _DEVICES, rows, on_page=False)


def _devices(mesh: Mesh, count: int) -> Iterator[Row]:
    """The most minor axis goes from left to right, in several rows where it is long."""
    length = mesh.axes[-1][0]
    width = min(length, _MAX_COLUMNS)
    rows_of_line = math.ceil(length / width)
    for position in range(count):
        line, at = divmod(position, length)
        places = [f"{name}={position // stride % size}" for name, (size, stride) in zip(mesh.names, mesh.axes, strict=True)]
        number = position if mesh.order is None else mesh.order[position]
        yield number, line * rows_of_line + at // width, at % width, ", ".join(places)

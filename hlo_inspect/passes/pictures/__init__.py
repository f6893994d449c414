"""The tables that only the pictures of a page are drawn from."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from operator import attrgetter
from typing import Literal

from hlo_inspect.analysis.collectives import KERNEL_WANTS
from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.cost.figures import CostFigure
from hlo_inspect.analysis.memory.device_memory import DeviceMemory
from hlo_inspect.analysis.memory.live_arrays import LARGEST, CurvePoint, LargestLive, LiveArray, largest_live, live_curve
from hlo_inspect.analysis.mesh import Mesh
from hlo_inspect.analysis.phases import phases
from hlo_inspect.analysis.provenance import NOT_PRINTED
from hlo_inspect.figure import Quantity
from hlo_inspect.hlo.wants import Wants
from hlo_inspect.passes.base import Pass
from hlo_inspect.passes.collectives.tables import by_axis_and_kind, sizes
from hlo_inspect.passes.instruction_rows import group_rows, joined_name, phase_column
from hlo_inspect.passes.pictures.roofline import roofline_tables
from hlo_inspect.passes.pictures.trees import Path, TreeMeasure, tree_table
from hlo_inspect.passes.time.tables import TimePart, step_table, time_parts
from hlo_inspect.passes.time_events import timeline_table
from hlo_inspect.report.model import Section
from hlo_inspect.report.table import Column, Row, Table, Value


class Pictures(Pass):
    """Make the tables behind the pictures of a page: trees, points of a roofline, a timeline with few marks.

    No command of its own. A table is absent if it would be empty, for example without a schedule, profile, mesh or entry.
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
_FIGURES: tuple[CostFigure, ...] = ("flops", "bytes")


def _cost_trees(context: Context) -> Iterator[Table]:
    """Yield FLOPs and bytes of one step, and with a profile the bound and estimate of its time.

    Without a schedule the time is that of the kernels, one after the other, which have a table too.
    """
    if context.module.entry is None:
        return
    timelines = context.on_machine.timelines
    parts = time_parts(context) if timelines is not None else []
    if timelines is not None and not timelines.is_scheduled:
        parts = [part for part in parts if part.collective is None]
        title = "Kernels in schedule order: bound and estimate"
        yield replace(step_table(parts, timelines.estimate.timeline.reason), name="kernel_seconds", title=title, on_page=False)
    measures = (*_COST, *(_TIME if parts else ()))
    scopes = _leaves(context, parts, "scope", lambda label: tuple(label.split("/")))
    yield tree_table("scope_tree", "Time of one step by nested scope", "scope", measures, scopes, join_chains=True)
    lines = _leaves(context, parts, "source", _file_and_line)
    yield tree_table("source_tree", "Time of one step by file and line", "source", measures, lines, separator="")


def _leaves(
    context: Context, parts: Sequence[TimePart], label: Literal["scope", "source"], path: Callable[[str], Path]
) -> Iterator[tuple[Path, Sequence[Quantity]]]:
    for text, tally in context.cost.tally(label).by_label():
        yield path(text), [*map(tally.bounds, _FIGURES), *(0 for _ in _TIME if parts)]
    for part in parts:
        yield path(getattr(part, label)), (0, 0, part.bound, part.estimate)


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
    """Yield the axes, major to minor, and the devices in their order; nothing without a mesh."""
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
    """Yield the devices. The most minor axis goes from left to right, in several rows if it is long."""
    length = mesh.axes[-1][0]
    width = min(length, _MAX_COLUMNS)
    rows_of_line = math.ceil(length / width)
    for position in range(count):
        line, column = divmod(position, length)
        places = [f"{name}={position // stride % size}" for name, (size, stride) in zip(mesh.names, mesh.axes, strict=True)]
        number = position if mesh.order is None else mesh.order[position]
        yield number, line * rows_of_line + column // width, column % width, ", ".join(places)


def memory_picture_tables(context: Context) -> Iterator[Table]:
    """Yield the tables of device memory; nothing if it is unknown."""
    device = context.memory.device
    if device is None:
        return
    yield _parts(context)
    yield from _fit(context)
    yield _curve(context, device)
    yield tree_table(
        "live_tree",
        "Live at the peak, by role and scope",
        "path",
        (TreeMeasure("arrays", "count"), TreeMeasure("bytes", "bytes")),
        _live_leaves(context),
        whole="the peak",
    )


def _parts(context: Context) -> Table:
    """Return the memory that the program needs, in parts that add up to it."""
    figures = context.memory.figures
    outputs, shared = figures["output_bytes"], figures["alias_bytes"]
    parts = {
        "arguments": figures["argument_bytes"],
        "outputs beside arguments": None if outputs is None or shared is None else outputs - shared,
        "constants": figures["constant_bytes"],
        "temporaries": figures["temp_bytes"],
    }
    columns = (
        Column("part", get=lambda item: item[0]),
        Column("bytes", "bytes", summed=True, get=lambda item: item[1]),
    )
    return Table.of("memory_parts", "Device memory that the program needs", columns, parts.items(), on_page=False)


def _fit(context: Context) -> Iterator[Table]:
    """Yield the memory of the accelerator and the memory that the program needs, if a profile states the first."""
    profile, needed = context.on_machine.profile, context.memory.figures["needed_bytes"]
    if profile is None or profile.memory_capacity is None or profile.usable_memory is None or needed is None:
        return
    capacity, usable = int(profile.memory_capacity), int(profile.usable_memory)
    columns = (
        Column("profile", get=lambda item: item),
        Column("capacity_bytes", "bytes", get=lambda _: capacity),
        Column("needed_bytes", "bytes", get=lambda _: needed),
        Column("usable_bytes", "bytes", get=lambda _: usable),
        Column("left_bytes", "bytes", signed=True, get=lambda _: usable - needed),
        Column("fits", "bool", get=lambda _: needed <= usable),
    )
    yield Table.of("memory_fit", "Does it fit", columns, [profile.name], on_page=False)


def _curve(context: Context, device: DeviceMemory) -> Table:
    """Return the live bytes over the schedule in parts of equal length, with the largest temporaries at the peak of each."""
    points = live_curve(device, context.phase_of)
    live = largest_live(device, points)
    columns = [
        Column("first", "number", get=lambda item: item[0].first),
        Column("last", "number", get=lambda item: item[0].last),
        Column("bytes", "bytes", get=lambda item: item[0].bytes),
        phase_column(lambda item: item[0].phase),
        Column("loop", get=lambda item: item[0].loop),
        Column("highest_at", "number", get=lambda item: item[0].highest),
        Column("highest_name", get=lambda item: device.schedule.name(item[0].highest)),
        Column("static_bytes", "bytes", get=lambda _: device.static_bytes),
        Column("temporaries", "count", get=lambda item: item[1].arrays),
    ]
    for rank in range(LARGEST):
        columns += [
            Column(f"name_{rank + 1}", optional=True, get=partial(_name, device, rank)),
            Column(f"bytes_{rank + 1}", "bytes", optional=True, get=partial(_size, rank)),
        ]
    title = f"Live bytes over the schedule of {device.schedule.end:,} instructions, with the largest temporaries"
    return Table.of("live_curve", title, columns, zip(points, live, strict=True), on_page=False)


_Item = tuple[CurvePoint, LargestLive]


def _name(device: DeviceMemory, rank: int, item: _Item) -> Value:
    live = item[1]
    return device.place(device.values.times[live.largest[rank][0]]).name if rank < len(live.largest) else None


def _size(rank: int, item: _Item) -> Value:
    live = item[1]
    return live.largest[rank][1] if rank < len(live.largest) else None


def _live_leaves(context: Context) -> Iterator[tuple[Path, tuple[int, int]]]:
    """Yield the arrays, grouped by role, scope, shape and opcode."""

    def label_of(array: LiveArray) -> object:
        return array.role, array.scope, array.opcode, str(array.shape), array.bytes

    for group in group_rows(context.live_arrays, label_of):
        first = group[0]
        is_named = not first.is_copy and first.kind != "parameter" and first.scope != NOT_PRINTED
        scope = tuple(first.scope.split("/")) if is_named else ()
        name = f"{joined_name(list(map(attrgetter('name'), group)))} {'' if first.shape is None else first.shape}".strip()
        yield (first.role, *scope, name), (len(group), sum(array.bytes for array in group))

"""The tables that only the pictures of a page are drawn from."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from operator import attrgetter, itemgetter
from typing import Literal, NamedTuple

from hlo_inspect.analysis.collectives.logical_collectives import KERNEL_WANTS
from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.cost.figures import CostFigure
from hlo_inspect.analysis.devices.mesh import Mesh
from hlo_inspect.analysis.memory.device_memory import DeviceMemory
from hlo_inspect.analysis.memory.live_arrays import LARGEST, CurvePoint, LargestLive, LiveArray, largest_live, live_curve
from hlo_inspect.analysis.phases import phases
from hlo_inspect.analysis.provenance import NOT_PRINTED
from hlo_inspect.figure import Quantity
from hlo_inspect.hlo.wants import Wants
from hlo_inspect.passes.base import Pass
from hlo_inspect.passes.collectives.collectives_by_label import by_axis_and_kind, sizes
from hlo_inspect.passes.instruction_rows import group_rows, joined_name, phase_column
from hlo_inspect.passes.pictures.roofline_tables import ROOFLINE_TABLES, roofline_tables
from hlo_inspect.passes.pictures.trees import Path, TreeMeasure, tree_spec, tree_table
from hlo_inspect.passes.time.time_tables import STEP, TimePart, step_table, time_parts
from hlo_inspect.passes.time_events import TIMELINE, timeline_table
from hlo_inspect.report.model import Section
from hlo_inspect.report.table import Column, Row, Table, TablePlace, Value
from hlo_inspect.report.table_spec import TableSpec


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
_SCOPE_TREE = tree_spec("scope_tree", "Time of one step by nested scope", "scope", (*_COST, *_TIME))
_SOURCE_TREE = tree_spec("source_tree", "Time of one step by file and line", "source", (*_COST, *_TIME))

_KERNEL_SECONDS = replace(
    STEP, name="kernel_seconds", title="Kernels in schedule order: bound and estimate", place=None, on_page=False
)


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
        yield step_table(parts, timelines.estimate.timeline.reason, _KERNEL_SECONDS)
    measures = len(_COST) + (len(_TIME) if parts else 0)
    scopes = _leaves(context, parts, "scope", lambda label: tuple(label.split("/")))
    yield tree_table(_SCOPE_TREE, measures, scopes, join_chains=True)
    lines = _leaves(context, parts, "source", _file_and_line)
    yield tree_table(_SOURCE_TREE, measures, lines, separator="")


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

_MESH_AXES = TableSpec(
    "mesh_axes", "Axes of the device mesh, major to minor", TablePlace("collectives", "Mesh of devices", "axes")
).with_columns(
    Column("axis", get=itemgetter(0)),
    Column("size", "count", get=itemgetter(1)),
    Column("stride", "count", get=itemgetter(2)),
)
_MESH_DEVICES = TableSpec(
    "mesh_devices", "Devices of the mesh", TablePlace("collectives", "Mesh of devices", "devices", 1), on_page=False
).with_columns(
    Column("device", "number", get=itemgetter(0)),
    Column("row", "number", get=itemgetter(1)),
    Column("column", "number", get=itemgetter(2)),
    Column("coordinates", get=itemgetter(3)),
)


def _mesh_tables(context: Context) -> Iterator[Table]:
    """Yield the axes, major to minor, and the devices in their order; nothing without a mesh."""
    mesh = context.mesh
    if mesh.shape is None:
        return
    yield _MESH_AXES.of((name, *axis) for name, axis in zip(mesh.names, mesh.axes, strict=True))
    devices = math.prod(mesh.shape)
    first = f"The first {MAX_DEVICES:,} of " if devices > MAX_DEVICES else ""
    yield _MESH_DEVICES.of(_devices(mesh, min(devices, MAX_DEVICES)), title=f"{first}{devices:,} devices of the mesh")


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


# -- memory ------------------------------------------------------------------------------------------------------------

_LIVE_TREE = tree_spec(
    "live_tree", "Live at the peak, by role and scope", "path", (TreeMeasure("arrays", "count"), TreeMeasure("bytes", "bytes"))
)


def memory_picture_tables(context: Context) -> Iterator[Table]:
    """Yield the tables of device memory; nothing if it is unknown."""
    device = context.memory.device
    if device is None:
        return
    yield _MEMORY_PARTS.of(_parts(context).items())
    yield from _fit(context)
    yield _curve(context, device)
    yield tree_table(_LIVE_TREE, 2, _live_leaves(context), whole="the peak")


_MEMORY_PARTS = TableSpec(
    "memory_parts", "Device memory that the program needs", TablePlace("memory", "Device memory", "parts"), on_page=False
).with_columns(Column("part", get=itemgetter(0)), Column("bytes", "bytes", summed=True, get=itemgetter(1)))


def _parts(context: Context) -> dict[str, Value]:
    """Return the memory that the program needs, in parts that add up to it."""
    figures = context.memory.figures
    outputs, shared = figures["output_bytes"], figures["alias_bytes"]
    return {
        "arguments": figures["argument_bytes"],
        "outputs beside arguments": None if outputs is None or shared is None else outputs - shared,
        "constants": figures["constant_bytes"],
        "temporaries": figures["temp_bytes"],
    }


_MEMORY_FIT = TableSpec(
    "memory_fit", "Does it fit", TablePlace("memory", "Device memory", "fit", 1), on_page=False
).with_columns(
    Column("profile", get=attrgetter("profile.name")),
    Column("capacity_bytes", "bytes", get=lambda fit: int(max(fit.profile.memory_capacity, fit.capacity))),
    Column("needed_bytes", "bytes", get=attrgetter("needed")),
    Column("usable_bytes", "bytes", get=attrgetter("capacity")),
    Column("left_bytes", "bytes", signed=True, get=attrgetter("left")),
    Column("fits", "bool", get=lambda fit: fit.left >= 0),
)


def _fit(context: Context) -> Iterator[Table]:
    """Yield the table, if a profile states the memory of the accelerator."""
    fit = context.on_machine.memory_fit
    if fit is not None and fit.left is not None and fit.profile.memory_capacity is not None:
        yield _MEMORY_FIT.of([fit])


class _CurvePart(NamedTuple):
    """A part of the schedule, and the largest temporaries at its peak."""

    device: DeviceMemory
    point: CurvePoint
    live: LargestLive


def _columns_of_rank(rank: int) -> Iterator[Column]:
    """Yield name and size of one of the largest temporaries; None if there are fewer."""

    def name(part: _CurvePart) -> Value:
        device, largest = part.device, part.live.largest
        return device.place(device.values.times[largest[rank][0]]).name if rank < len(largest) else None

    def size(part: _CurvePart) -> Value:
        return part.live.largest[rank][1] if rank < len(part.live.largest) else None

    yield Column(f"name_{rank + 1}", optional=True, get=name)
    yield Column(f"bytes_{rank + 1}", "bytes", optional=True, get=size)


_LIVE_CURVE = TableSpec(
    "live_curve",
    "Live bytes over the schedule",
    TablePlace("memory", "Live bytes over the schedule", "with arrays"),
    on_page=False,
).with_columns(
    Column("first", "number", get=attrgetter("point.first")),
    Column("last", "number", get=attrgetter("point.last")),
    Column("bytes", "bytes", get=attrgetter("point.bytes")),
    phase_column(attrgetter("point.phase")),
    Column("loop", get=attrgetter("point.loop")),
    Column("highest_at", "number", get=attrgetter("point.highest")),
    Column("highest_name", get=lambda part: part.device.schedule.name(part.point.highest)),
    Column("static_bytes", "bytes", get=attrgetter("device.static_bytes")),
    Column("temporaries", "count", get=attrgetter("live.arrays")),
    *(column for rank in range(LARGEST) for column in _columns_of_rank(rank)),
)


def _curve(context: Context, device: DeviceMemory) -> Table:
    """Return the live bytes over the schedule in parts of equal length, with the largest temporaries at the peak of each."""
    points = live_curve(device, context.phase_of)
    parts = (_CurvePart(device, point, live) for point, live in zip(points, largest_live(device, points), strict=True))
    length = f"{device.schedule.end:,} instructions"
    return _LIVE_CURVE.of(parts, title=f"{_LIVE_CURVE.title} of {length}, with the largest temporaries")


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


class Pictures(Pass):
    """Make the tables behind the pictures of a page: trees, points of a roofline, a timeline with few marks.

    No command of its own. A table is absent if it would be empty, for example without a schedule, profile, mesh or entry.
    """

    name = "pictures"
    asks_phases = True
    uses_profile = True
    wants = KERNEL_WANTS | phases.WANTS | Wants(entry=True)
    tables = (
        _KERNEL_SECONDS,
        _SCOPE_TREE,
        _SOURCE_TREE,
        *ROOFLINE_TABLES,
        TIMELINE,
        _MESH_AXES,
        _MESH_DEVICES,
        _MEMORY_PARTS,
        _MEMORY_FIT,
        _LIVE_CURVE,
        _LIVE_TREE,
    )

    def run(self, context: Context) -> Section:
        return Section({}, _tables(context))

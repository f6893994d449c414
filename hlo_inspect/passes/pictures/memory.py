"""The pictures of device memory: what is needed, whether it fits, the live bytes over the schedule, a tree of the peak."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from operator import attrgetter

from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.memory.device_memory import DeviceMemory
from hlo_inspect.analysis.memory.live_arrays import LARGEST, CurvePoint, LargestLive, LiveArray, largest_live, live_curve
from hlo_inspect.analysis.provenance import NOT_PRINTED
from hlo_inspect.passes.grouping import group_rows, joined_name
from hlo_inspect.passes.origins import phase_column
from hlo_inspect.passes.pictures.trees import Path, TreeAmount, TreeMeasure, tree_table
from hlo_inspect.report.model import Column, Table, Value


def memory_picture_tables(context: Context) -> Iterator[Table]:
    """Nothing where the memory of the program is not known."""
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
        _leaves(context),
        whole="the peak",
    )


def _parts(context: Context) -> Table:
    """What the program needs, in parts that add up to it."""
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
    """The memory of the accelerator beside what the program needs, where a profile states it."""
    profile, needed = context.on_machine.profile, context.memory.figures["needed_bytes"]
    if profile is None or profile.memory_capacity is None or needed is None:
        return
    capacity = int(profile.memory_capacity)
    columns = (
        Column("profile", get=lambda item: item),
        Column("capacity_bytes", "bytes", get=lambda _: capacity),
        Column("needed_bytes", "bytes", get=lambda _: needed),
        Column("left_bytes", "bytes", signed=True, get=lambda _: capacity - needed),
        Column("fits", "bool", get=lambda _: needed <= capacity),
    )
    yield Table.of("memory_fit", "Does it fit", columns, [profile.name], on_page=False)


def _curve(context: Context, device: DeviceMemory) -> Table:
    """The live bytes over the schedule in parts of equal length, with the temporaries that are largest where they are most."""
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


def _leaves(context: Context) -> Iterator[tuple[Path, tuple[TreeAmount, TreeAmount]]]:
    """Arrays of a role, scope, shape and opcode together."""

    def alike(one: LiveArray) -> object:
        return one.role, one.labels.scope, one.opcode, str(one.shape), one.bytes

    for group in group_rows(context.live_arrays, alike):
        first = group[0]
        scope = () if first.kind == "parameter" or first.labels.scope == NOT_PRINTED else tuple(first.labels.scope.split("/"))
        name = f"{joined_name(list(map(attrgetter('name'), group)))} {'' if first.shape is None else first.shape}".strip()
        yield (first.role, *scope, name), (TreeAmount(len(group)), TreeAmount(sum(one.bytes for one in group)))

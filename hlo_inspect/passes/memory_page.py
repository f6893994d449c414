"""The page of `memory` for a scheduled program: its figures, what is live at the peak, and the live bytes over the schedule."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import attrgetter
from typing import NamedTuple

from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.cost.labels import NO_SCOPE, NOT_PRINTED, printed
from hlo_inspect.analysis.memory.device_memory import DeviceMemory
from hlo_inspect.analysis.memory.live_arrays import LiveArray
from hlo_inspect.analysis.memory.live_curve import live_curve, loop_around
from hlo_inspect.analysis.memory.program_memory import ProgramMemory
from hlo_inspect.analysis.op_names import UNKNOWN
from hlo_inspect.hlo.shapes import total
from hlo_inspect.passes.grouping import group_rows, joined_name
from hlo_inspect.passes.parameter_tables import index_text
from hlo_inspect.report.model import Amount, Column, HeadlineRow, Parts, Table, sentence

PARAMETERS = "(parameters)"
"""What parameters are together in totals by what the program says of an instruction."""

SPACE_NAMES = {0: "HBM", 1: "VMEM", 3: "CMEM", 5: "host"}
"""Memory spaces of TPU; 0 and 5 are those of every platform."""


# -- first lines --------------------------------------------------------------------------------------------------------------


def memory_headline(context: Context) -> Iterator[HeadlineRow]:
    """Whether it fits, what it is made of and where the peak is; without a schedule arguments and outputs alone."""
    memory, device = context.memory, context.memory.device
    if device is None:
        yield HeadlineRow("", tuple(_without_schedule(memory)))
        return
    yield HeadlineRow("", tuple(_needed(context, device)))
    yield HeadlineRow("made of", tuple(_parts(context.memory)))
    if device.heap_bytes:
        yield HeadlineRow("temporaries", tuple(_temporaries(device)))
    yield HeadlineRow("peak", tuple(_peak(context, device)))
    if device.platform.is_tpu:
        yield HeadlineRow("by memory", tuple(_memories(context, device)))
    if device.host_bytes:
        yield HeadlineRow("host", (Amount(device.host_bytes, "bytes"), " in the memory of the host"))
    if context.gathered_parameters:
        yield HeadlineRow("gathered", tuple(_gathered(context)))
    if context.stated_figures:
        yield HeadlineRow("stated", (f"arguments, outputs, temporaries and the like by {context.sidecars.found[0]}",))
    yield HeadlineRow("platform", (f"{device.platform.name}, by {device.platform.mark}",))


def _amount(size: int | None) -> Amount:
    return Amount(size, "bytes")


def _without_schedule(memory: ProgramMemory) -> Parts:
    sizes = (_amount(memory.figures[name]) for name in ("argument_bytes", "output_bytes", "alias_bytes"))
    text = "arguments {}, outputs {}, of them {} aliased with arguments; the rest is not known: {}"
    yield from sentence(text, *sizes, memory.reason)


def _needed(context: Context, device: DeviceMemory) -> Parts:
    devices, needed = context.device_counts.devices, context.memory.figures["needed_bytes"] or 0
    yield from sentence("needs {}", _amount(needed))
    if devices is not None and devices > 1:
        yield from sentence(" on each of {}", Amount(devices, "count", "device"))
    profile = context.on_machine.profile
    capacity = profile.memory_capacity if profile is not None else None
    if profile is None or capacity is None:
        return
    left = capacity - needed
    text = ": fits in the {} of {}, {} left" if left >= 0 else ": does not fit in the {} of {}, {} too much"
    yield from sentence(text, Amount(capacity, "bytes"), profile.name, Amount(abs(left), "bytes"))
    if device.platform.is_tpu:
        yield ", without the program itself, whose size the text does not state"


def _parts(memory: ProgramMemory) -> Parts:
    """The sum that is needed."""
    words = (
        ("arguments {}", "argument_bytes"),
        (" + outputs {}", "output_bytes"),
        (" - aliased outputs {}", "alias_bytes"),
        (" + constants {}", "constant_bytes"),
        (" + temporaries {}", "temp_bytes"),
    )
    for word, figure in words:
        if memory.figures[figure] != 0 or figure in {"argument_bytes", "output_bytes"}:
            yield from sentence(word, _amount(memory.figures[figure]))


def _temporaries(device: DeviceMemory) -> Parts:
    yield from sentence("at most {} live at a time", _amount(device.live_peak_bytes))
    if 0 in device.heaps and device.heaps[0].fragmentation:
        yield from sentence(", {} lost to gaps between them", _amount(device.heaps[0].fragmentation))
    tables = device.temp_bytes - device.heap_bytes
    if tables > 0:
        yield from sentence(", {} in tables of tuples", _amount(tables))


def _peak(context: Context, device: DeviceMemory) -> Parts:
    yield _amount(device.peak_bytes)
    time, heap = device.peak_time, device.peak_heap
    if time is None or heap is None:
        yield ", all of it static"
        return
    place = device.place(time)
    where = f" in {_space_name(heap.space)}" if heap.space else ""
    at = f"{place.name} (line {place.line})"
    yield from sentence(", of it {} of temporaries{}, at {}", _amount(heap.trace.peak), where, at)
    loop = loop_around(device, device.schedule.run_at[time])
    if loop:
        runs = context.call_graph.runs(place.computation)
        iterations = Amount(runs.exact, "count", "iteration", at_least=runs.least)
        yield from sentence(" in each of the {} of {}", iterations, loop)
    labels = context.labels_of(device.schedule.view(time), place.row)
    said = (labels.phase if labels.phase != UNKNOWN else "", printed(labels.source))
    yield from (f", {one}" for one in said if one)
    if device.padding_bytes:
        yield from sentence("; {} of it are padding", _amount(device.padding_bytes))


def _memories(context: Context, device: DeviceMemory) -> Parts:
    """What is live at most in HBM and in the memories on the chip, each by itself; their heaps do not peak together."""
    spaces = device.space_peak_bytes()
    profile = context.on_machine.profile
    capacity = profile.value("on_chip.vmem") if profile is not None else None
    shown = [space for space in (0, 1, 3) if spaces.get(space)]
    for number, space in enumerate(shown):
        yield from sentence("; {} {} at most" if number else "{} {} at most", _space_name(space), _amount(spaces[space]))
        if space == 1 and capacity is not None:
            yield from sentence(" of {}", Amount(capacity, "bytes"))


def _gathered(context: Context) -> Parts:
    """The copies of parameters that are gathered from other devices, and whether they are kept for the backward pass."""
    found = context.gathered_parameters
    kept = [one for one in found if one.is_kept]
    arrays, size = Amount(len(found), "count", "gathered array"), _amount(sum(one.bytes for one in found))
    yield from sentence("{} of parameters, {}; ", arrays, size)
    if not kept:
        yield "none is"
    elif len(kept) == len(found):
        yield "all"
    else:
        yield from sentence("{} of {}", Amount(len(kept), "count"), _amount(sum(one.bytes for one in kept)))
    yield " read by both the forward and the backward pass"


def _space_name(space: int) -> str:
    return SPACE_NAMES.get(space, f"memory space {space}")


# -- what is live at the peak -------------------------------------------------------------------------------------------------


def live_tables(context: Context, device: DeviceMemory) -> Iterator[Table]:
    """Every array at the peak, equal ones together; the curve; totals by role, source and scope."""
    live = context.live_arrays
    title = "Live at the peak"
    yield Table.of("live_at_peak", title, _fitted(_COLUMNS, live), live, page_as="live_at_peak_groups")
    groups = group_rows(live, _alike)
    groups.sort(key=_bytes, reverse=True)
    yield Table.of("live_at_peak_groups", title, _fitted(_GROUPS, live), groups, page_rows=24)
    yield _live_bytes(context, device)
    yield _totals("live_by_role", "Live at the peak by role", "role", live, attrgetter("role"))
    yield _totals("live_by_source", "Live at the peak by source line", "source", live, _source)
    if any(one.labels.scope not in {NOT_PRINTED, NO_SCOPE} for one in live):
        yield _totals("live_by_scope", "Live at the peak by scope", "scope", live, _scope)


def _fitted(columns: Iterable[Column], live: Sequence[LiveArray]) -> tuple[Column, ...]:
    """The columns, with those of padding and memory space where there is padding, or more than one space."""
    details = {
        "padding_bytes": 2 if any(one.padding for one in live) else 9,
        "memory_space": 3 if len({one.space for one in live}) > 1 else 9,
    }
    return tuple(one._replace(detail=details.get(one.name, one.detail)) for one in columns)


_COLUMNS = (
    Column("name", get=attrgetter("name")),
    Column("shape_index", detail=9, get=lambda one: index_text(one.element)),
    Column("shape", get=lambda one: "" if one.shape is None else str(one.shape)),
    Column("bytes", "bytes", summed=True, get=attrgetter("bytes")),
    Column("padding_bytes", "bytes", summed=True, detail=3, get=attrgetter("padding")),
    Column("role", get=attrgetter("role")),
    Column("live_from", "number", detail=2, optional=True, get=attrgetter("live_from")),
    Column("live_to", "number", detail=2, optional=True, get=attrgetter("live_to")),
    Column("memory_space", "number", detail=5, get=attrgetter("space")),
    Column("of_parameter", "number", detail=9, optional=True, get=lambda one: one.relation and one.relation.parameter),
    Column("phase", detail=2, get=attrgetter("labels.phase")),
    Column("op_name", detail=6, get=attrgetter("labels.op_name")),
    Column("source", detail=1, get=lambda one: printed(one.labels.source)),
    Column("line", "number", detail=4, optional=True, get=attrgetter("line")),
)

Group = Sequence[LiveArray]


def _alike(one: LiveArray) -> object:
    """What arrays of one row have in common."""
    if one.kind == "parameter":
        return (str(one.shape), one.bytes, one.role, one.space)
    return (one.opcode, str(one.shape), one.bytes, one.role, one.space, one.labels.phase, one.labels.source)


def _bytes(group: Group) -> int:
    return sum(one.bytes for one in group)


def _lives(group: Group) -> str:
    """From the first to the last time at which one of them is live."""
    starts = [one.live_from for one in group if one.live_from is not None]
    ends = [one.live_to for one in group if one.live_to is not None]
    return f"{min(starts)}-{max(ends)}" if starts and ends else ""


_GROUPS = (
    Column("name", width=24, get=lambda group: joined_name([one.name for one in group])),
    Column("shape", width=20, get=lambda group: "" if group[0].shape is None else str(group[0].shape)),
    Column("arrays", "count", summed=True, detail=1, get=len),
    Column("bytes", "bytes", summed=True, get=_bytes),
    Column("padding_bytes", "bytes", summed=True, detail=3, get=lambda group: sum(one.padding for one in group)),
    Column("role", get=lambda group: group[0].role),
    Column("live", detail=1, width=11, get=_lives),
    Column("memory_space", "number", detail=8, get=lambda group: group[0].space),
    Column("phase", detail=3, get=lambda group: group[0].labels.phase),
    Column("source", detail=1, get=lambda group: printed(group[0].labels.source)),
)


def _source(one: LiveArray) -> str:
    return PARAMETERS if one.kind == "parameter" else one.labels.source


def _scope(one: LiveArray) -> str:
    return PARAMETERS if one.kind == "parameter" else one.labels.scope


class _Total(NamedTuple):
    label: str
    arrays: int
    size: int
    share: float | None


def _totals(name: str, title: str, label: str, live: Sequence[LiveArray], key: Callable[[LiveArray], str]) -> Table:
    whole = total(one.bytes for one in live) or 0
    groups = [(key(group[0]), group) for group in group_rows(live, key)]
    totals = [_Total(text, len(group), _bytes(group), _bytes(group) / whole if whole else None) for text, group in groups]
    columns = (
        Column(label, width=28, get=attrgetter("label")),
        Column("arrays", "count", summed=True, get=attrgetter("arrays")),
        Column("bytes", "bytes", summed=True, get=attrgetter("size")),
        Column("share", "share", optional=True, get=attrgetter("share")),
    )
    return Table.of(name, title, columns, sorted(totals, key=lambda one: -one.size), page_rows=10)


# -- over the schedule --------------------------------------------------------------------------------------------------------


def _live_bytes(context: Context, device: DeviceMemory) -> Table:
    """The live bytes over the schedule, in parts of equal length."""
    points = live_curve(device, context.phase_of)
    columns = (
        Column("first", "number", get=attrgetter("first")),
        Column("last", "number", get=attrgetter("last")),
        Column("bytes", "bytes", get=attrgetter("bytes")),
        Column("phase", get=attrgetter("phase")),
        Column("loop", get=attrgetter("loop")),
    )
    space = device.peak_heap.space if device.peak_heap is not None else 0
    where = f", temporaries of {_space_name(space)}" if space else ""
    title = f"Live bytes over the schedule of {device.schedule.end:,} instructions{where}"
    return Table.of("live_bytes", title, columns, points, page_rows=0, is_curve=True)

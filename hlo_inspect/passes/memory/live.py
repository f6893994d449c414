"""What is live at the peak and over the schedule: the tables of `memory`, and those of its pictures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import attrgetter
from typing import NamedTuple

from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.memory.device_memory import DeviceMemory
from hlo_inspect.analysis.memory.live_arrays import LiveArray, live_curve
from hlo_inspect.analysis.provenance import NO_SCOPE, NOT_PRINTED, printed
from hlo_inspect.hlo.values.shapes import total
from hlo_inspect.passes.instruction_rows import group_rows, joined_name, phase_column
from hlo_inspect.passes.params import index_text
from hlo_inspect.report.model import Column, Table

PARAMETERS = "(parameters)"
"""What parameters are together in totals by what the program says of an instruction."""

SPACE_NAMES = {0: "HBM", 1: "VMEM", 3: "CMEM", 5: "host"}
"""Memory spaces of TPU; 0 and 5 are those of every platform."""


def space_name(space: int) -> str:
    """The name of a memory space."""
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
    if not context.request.quick:
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
    Column("role", get=lambda array: array.role or None),
    Column("live_from", "number", detail=2, optional=True, get=attrgetter("live_from")),
    Column("live_to", "number", detail=2, optional=True, get=attrgetter("live_to")),
    Column("memory_space", "number", detail=5, get=attrgetter("space")),
    Column("of_parameter", "number", detail=9, optional=True, get=lambda one: one.relation and one.relation.parameter),
    phase_column(attrgetter("labels.phase"), detail=2),
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
    Column("role", get=lambda group: group[0].role or None),
    Column("live", detail=1, width=11, get=_lives),
    Column("memory_space", "number", detail=8, get=lambda group: group[0].space),
    phase_column(lambda group: group[0].labels.phase, detail=3),
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
        phase_column(attrgetter("phase")),
        Column("loop", get=attrgetter("loop")),
    )
    space = device.peak_heap.space if device.peak_heap is not None else 0
    where = f", temporaries of {space_name(space)}" if space else ""
    title = f"Live bytes over the schedule of {device.schedule.end:,} instructions{where}"
    return Table.of("live_bytes", title, columns, points, page_rows=0, is_curve=True)

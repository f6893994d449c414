"""The tables of `memory`: live arrays at the peak and over the schedule, the largest arrays, host copies."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import NamedTuple

from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.memory.device_memory import DeviceMemory
from hlo_inspect.analysis.memory.largest_arrays import LargeArray
from hlo_inspect.analysis.memory.live_arrays import LiveArray, live_curve
from hlo_inspect.analysis.provenance import NO_SCOPE, NOT_PRINTED, printed
from hlo_inspect.figure import Quantity, least, multiply
from hlo_inspect.figure import total as sum_figures
from hlo_inspect.hlo.values.op_names import NOT_SOUGHT
from hlo_inspect.hlo.values.shapes import space_name, total
from hlo_inspect.passes.base import bounded
from hlo_inspect.passes.instruction_rows import group_rows, joined_name, phase_column
from hlo_inspect.passes.memory_words import array_groups, total_moved
from hlo_inspect.passes.params import index_text, joined_path, memory_space, number_ranges
from hlo_inspect.report.table import Column, Table, TablePlace
from hlo_inspect.report.table_spec import TableSpec

# -- what is live at the peak -------------------------------------------------------------------------------------------------


def live_tables(context: Context, device: DeviceMemory) -> Iterator[Table]:
    """Yield every array at the peak, and merged rows of them; the curve; totals by role, source and scope."""
    live = context.live_arrays
    flags = {  # padding and memory space are on the page if there is padding, or more than one space
        "padding_bytes": {"detail": 2 if any(array.padding for array in live) else 9},
        "memory_space": {"detail": 3 if len({array.space for array in live}) > 1 else 9},
    }
    yield LIVE.of(live, columns=LIVE.with_flags(flags))
    groups = group_rows(live, _array_key)
    groups.sort(key=_bytes, reverse=True)
    yield _LIVE_GROUPS.of(groups, columns=_LIVE_GROUPS.with_flags(flags))
    yield _live_bytes(context, device)
    if not context.request.quick:
        yield _LIVE_BY_ROLE.of(_totals(live, attrgetter("role")))
    yield _LIVE_BY_SOURCE.of(_totals(live, attrgetter("source")))
    if any(array.labels.scope not in {NOT_PRINTED, NO_SCOPE} for array in live):
        yield _LIVE_BY_SCOPE.of(_totals(live, attrgetter("scope")))


_ROLES = "weight, moment, input, …; temporary, constant or tuple table"
LIVE = TableSpec(
    "live_at_peak",
    "Live at the peak",
    TablePlace("memory", "Live at the peak", "single", 1),
    in_store=True,
    assertable=True,
    page_as="live_at_peak_groups",
).with_columns(
    Column("name", meaning="instruction that defines the array"),
    Column("shape_index", detail=9, get=lambda array: index_text(array.element)),
    Column("shape", get=lambda array: "" if array.shape is None else str(array.shape)),
    Column("bytes", "bytes", summed=True),
    Column("padding_bytes", "bytes", summed=True, detail=3, get=attrgetter("padding")),
    Column("role", meaning=_ROLES, get=lambda array: array.role or None),
    Column("live_from", "number", detail=2, optional=True),
    Column("live_to", "number", detail=2, optional=True),
    Column("memory_space", "number", detail=5, get=attrgetter("space")),
    Column("of_parameter", "number", detail=9, optional=True, get=attrgetter("parameter")),
    Column("path", detail=3, optional=True, get=lambda array: array.path or None),
    phase_column(attrgetter("labels.phase"), detail=2),
    Column("op_name", detail=6, get=attrgetter("labels.op_name")),
    Column("source", detail=1, get=lambda array: printed(array.labels.source)),
    Column("line", "number", detail=4, optional=True),
)

Group = Sequence[LiveArray]


def _array_key(array: LiveArray) -> object:
    """Return the properties that the arrays of one row share."""
    if array.kind == "parameter":
        return (str(array.shape), array.bytes, array.role, array.space)
    return (array.opcode, str(array.shape), array.bytes, array.role, array.space, array.labels.phase, array.source)


def _bytes(group: Group) -> int:
    return sum(array.bytes for array in group)


def _lives(group: Group) -> str:
    """Return the first and the last time at which an array of the group is live."""
    starts = [array.live_from for array in group if array.live_from is not None]
    ends = [array.live_to for array in group if array.live_to is not None]
    return f"{min(starts)}-{max(ends)}" if starts and ends else ""


def _line_or_path(group: Group) -> str:
    """Return the source line of the arrays, or the path of the parameters that they are or are copies of."""
    array = group[0]
    if array.kind == "parameter" or array.is_copy:
        return joined_path([array.path for array in group])
    return printed(array.labels.source)


_LIVE_GROUPS = TableSpec(
    "live_at_peak_groups", "Live at the peak", TablePlace("memory", "Live at the peak", "merged"), page_rows=24
).with_columns(
    Column("name", width=24, get=lambda group: joined_name([array.name for array in group])),
    Column("shape", width=20, get=lambda group: "" if group[0].shape is None else str(group[0].shape)),
    Column("arrays", "count", summed=True, detail=1, get=len),
    Column("bytes", "bytes", summed=True, get=_bytes),
    Column("padding_bytes", "bytes", summed=True, detail=3, get=lambda group: sum(array.padding for array in group)),
    Column("role", meaning=_ROLES, get=lambda group: group[0].role or None),
    Column("live", detail=2, width=11, meaning="first and last position of the schedule at which it is live", get=_lives),
    Column("memory_space", "number", detail=8, get=lambda group: group[0].space),
    phase_column(lambda group: group[0].labels.phase, detail=3),
    Column("source", detail=1, get=_line_or_path),
)


class _Total(NamedTuple):
    label: str
    arrays: int
    size: int
    share: float | None


def _totals(live: Sequence[LiveArray], key: Callable[[LiveArray], str]) -> list[_Total]:
    """Return the arrays in sums by a label, the largest first."""
    whole = total(array.bytes for array in live) or 0
    groups = [(key(group[0]), group) for group in group_rows(live, key)]
    totals = [_Total(text, len(group), _bytes(group), _bytes(group) / whole if whole else None) for text, group in groups]
    return sorted(totals, key=lambda row: -row.size)


_OF_TOTAL = (
    Column("arrays", "count", summed=True),
    Column("bytes", "bytes", summed=True, get=attrgetter("size")),
    Column("share", "share", page_name="share_of_peak", optional=True, meaning="share of the peak"),
)
_LIVE_BY_ROLE, _LIVE_BY_SOURCE, _LIVE_BY_SCOPE = (
    TableSpec(f"live_by_{label}", title, TablePlace("memory", "Live at the peak", choice, rank), page_rows=10).with_columns(
        Column(label, width=28, meaning=meaning, get=attrgetter("label")), *_OF_TOTAL
    )
    for rank, label, title, choice, meaning in (
        (2, "role", "Live at the peak by role", "by role", _ROLES),
        (4, "source", "Live at the peak by source line", "by source line", ""),
        (3, "scope", "Live at the peak by scope", "by scope", ""),
    )
)


# -- over the schedule --------------------------------------------------------------------------------------------------------


_LIVE_BYTES = TableSpec(
    "live_bytes",
    "Live bytes over the schedule",
    TablePlace("memory", "Live bytes over the schedule", "bytes", 1),
    page_rows=0,
    is_curve=True,
).with_columns(
    Column("first", "number"),
    Column("last", "number"),
    Column("bytes", "bytes"),
    phase_column(attrgetter("phase")),
    Column("loop"),
)


def _live_bytes(context: Context, device: DeviceMemory) -> Table:
    """Return the live bytes over the schedule, in parts of equal length."""
    space = device.peak_heap.space if device.peak_heap is not None else 0
    where = f": static arrays and temporaries of {space_name(space)}" if space else ""
    title = f"{_LIVE_BYTES.title} of {device.schedule.end:,} instructions{where}"
    return _LIVE_BYTES.of(live_curve(device, context.phase_of), title=title)


# -- the largest arrays -------------------------------------------------------------------------------------------------------


ArrayGroup = Sequence[LargeArray]


def largest_arrays(context: Context) -> Table:
    """Return the arrays in merged rows, the largest first. The title says if XLA may fuse them away."""
    groups = array_groups(context.largest_arrays.found)
    has_padding = any(group[0].shape.padded_bytes != group[0].shape.bytes for group in groups)
    flags = {"bytes": {"detail": 3}, "padded_bytes": {"detail": 0}} if has_padding else {}
    title = "" if _is_optimized(context) else f"{_LARGEST.title} before fusion; XLA may fuse some of them away"
    table = _LARGEST.of(groups, columns=_LARGEST.with_flags(flags), title=title)
    return replace(table, page_rows=8) if context.module.header.is_scheduled else table


def _is_optimized(context: Context) -> bool:
    return context.module.header.is_scheduled or context.module.opcode_counts["fusion"] > 0


def _phases(group: ArrayGroup) -> str:
    """Return the phases of a group; empty if --quick leaves one open."""
    phases = dict.fromkeys(array.labels.phase for array in group)
    return "" if NOT_SOUGHT in phases else ", ".join(phases)


def _parameters(group: ArrayGroup) -> str | None:
    numbers = [array.relation.parameter for array in group if array.relation is not None]
    return number_ranges(sorted(numbers)) or None


def _path(group: ArrayGroup) -> str | None:
    paths = [array.path for array in group if array.path]
    return joined_path(paths) if paths else None


_LARGEST = TableSpec(
    "largest_arrays",
    "Largest arrays",
    TablePlace("memory", "Live at the peak", "largest arrays, live or not", 5),
    in_store=True,
    assertable=True,
).with_columns(
    Column("name", width=24, get=lambda group: joined_name([array.name for array in group])),
    Column("opcode", detail=4, get=lambda group: group[0].opcode),
    Column("shape", width=24, get=lambda group: str(group[0].shape)),
    Column("bytes", "bytes", meaning="bytes of one array", get=lambda group: group[0].shape.bytes),
    Column("padded_bytes", "bytes", detail=9, get=lambda group: group[0].shape.padded_bytes),
    Column("count", "count", meaning="instructions that define an array of this shape and origin", get=len),
    Column(
        "total_bytes",
        "bytes",
        detail=3,
        meaning="bytes of all these arrays",
        get=lambda group: (group[0].shape.padded_bytes or 0) * len(group),
    ),
    Column("of_parameter", detail=1, optional=True, width=12, get=_parameters),
    Column("relation", detail=1, optional=True, get=lambda group: str(group[0].relation) if group[0].relation else None),
    Column("path", detail=4, optional=True, get=_path),
    Column("memory_space", "number", detail=9, get=lambda group: memory_space(group[0].shape)),
    phase_column(_phases, detail=5),
    Column("op_name", detail=6, get=lambda group: group[0].labels.op_name),
    Column("source", detail=1, get=lambda group: printed(group[0].labels.source)),
    Column("line", "number", detail=7, get=lambda group: group[0].line),
)


# -- copies of parameters ---------------------------------------------------------------------------------------------------


class _ParameterCopies(NamedTuple):
    """Copies of parameters of one kind, their runs in a step, and the bytes that these write."""

    arrays: ArrayGroup
    runs: Quantity
    written: Quantity


def parameter_copies(context: Context) -> Iterator[Table]:
    """Yield one row per kind of copy of a parameter: the bytes of all arrays, and those that a step writes.

    A text before fusion has no table: XLA fuses many of its copies away.
    """
    copies = context.largest_arrays.parameter_copies() if _is_optimized(context) else []
    if copies:
        groups = group_rows(copies, lambda array: (_copying(array), memory_space(array.shape)))
        rows = [_counted_copies(context, group) for group in groups]
        yield _PARAMETER_COPIES.of(sorted(rows, key=lambda row: -least(row.written)))


def _counted_copies(context: Context, arrays: ArrayGroup) -> _ParameterCopies:
    runs = [context.call_graph.runs(array.view.computation.name) for array in arrays]
    written = [multiply(array.shape.padded_bytes or 0, times) for array, times in zip(arrays, runs, strict=True)]
    return _ParameterCopies(arrays, sum_figures(runs), sum_figures(written))


def _copying(array: LargeArray) -> str:
    return array.relation.copying if array.relation is not None else ""


_PARAMETER_COPIES = TableSpec(
    "parameter_copies", "Copies of parameters in one step", TablePlace("memory", ""), assertable=True
).with_columns(
    Column("relation", width=24, get=lambda row: _copying(row.arrays[0])),
    Column("memory_space", "number", detail=1, get=lambda row: memory_space(row.arrays[0].shape)),
    Column("arrays", "count", summed=True, get=lambda row: len(row.arrays)),
    Column(
        "padded_bytes",
        "bytes",
        summed=True,
        page_name="size",
        get=lambda row: total(array.shape.padded_bytes for array in row.arrays),
    ),
    bounded("runs", "count", detail=1),
    bounded(
        "written_bytes", "bytes", attrgetter("written"), page_name="written", meaning="bytes that the copies write in one step"
    ),
)


# -- host -------------------------------------------------------------------------------------------------------------------


def host_copies(context: Context) -> Iterator[Table]:
    """Yield the table of copies between host and device in a step, if there are any."""
    groups = group_rows(
        context.host_transfers, lambda transfer: (transfer.direction, str(transfer.shape), transfer.view.opcodes[transfer.row])
    )
    groups.sort(key=lambda group: least(total_moved(group)), reverse=True)
    if groups:
        yield _HOST_COPIES.of(groups)


_HOST_COPIES = TableSpec(
    "host_copies", "Host transfers of one step by target", TablePlace("memory", "Host transfers", "copies")
).with_columns(
    Column("direction", get=lambda group: group[0].direction),
    Column("name", width=20, get=lambda group: joined_name([transfer.view.names[transfer.row] for transfer in group])),
    Column("shape", get=lambda group: str(group[0].shape)),
    Column("sites", "count", summed=True, get=len),
    bounded("runs", "count", lambda group: sum_figures(transfer.runs for transfer in group)),
    bounded("bytes", "bytes", total_moved),
    Column("line", "number", detail=3, get=lambda group: group[0].view.lines[group[0].row]),
)


TABLES = (
    *(LIVE, _LIVE_GROUPS, _LIVE_BYTES, _LIVE_BY_ROLE, _LIVE_BY_SOURCE, _LIVE_BY_SCOPE),
    *(_LARGEST, _PARAMETER_COPIES, _HOST_COPIES),
)

"""The tables of `memory`: live arrays at the peak and over the schedule, the largest arrays, host copies, XLA's reports."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import attrgetter
from typing import NamedTuple

from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.memory.device_memory import DeviceMemory
from hlo_inspect.analysis.memory.host_transfers import HostTransfer
from hlo_inspect.analysis.memory.largest_arrays import LargeArray
from hlo_inspect.analysis.memory.live_arrays import LiveArray, live_curve
from hlo_inspect.analysis.memory.out_of_memory import OutOfMemory, ReportedAllocation, read_reports
from hlo_inspect.analysis.provenance import NO_SCOPE, NOT_PRINTED, printed
from hlo_inspect.figure import Quantity, least, multiply
from hlo_inspect.figure import total as sum_figures
from hlo_inspect.hlo.values.op_names import NOT_SOUGHT
from hlo_inspect.hlo.values.shapes import total
from hlo_inspect.passes.base import bounded
from hlo_inspect.passes.instruction_rows import group_rows, joined_name, phase_column
from hlo_inspect.passes.params import index_text, joined_path, number_ranges
from hlo_inspect.report.model import Amount, HeadlineRow, Parts, sentence
from hlo_inspect.report.table import Column, Table

SPACE_NAMES = {0: "HBM", 1: "VMEM", 3: "CMEM", 5: "host"}
"""Memory spaces of TPU; 0 and 5 are those of every platform."""


def space_name(space: int) -> str:
    """Return the name of a memory space."""
    return SPACE_NAMES.get(space, f"memory space {space}")


# -- what is live at the peak -------------------------------------------------------------------------------------------------


def live_tables(context: Context, device: DeviceMemory) -> Iterator[Table]:
    """Yield every array at the peak, and merged rows of them; the curve; totals by role, source and scope."""
    live = context.live_arrays
    title = "Live at the peak"
    yield Table.of("live_at_peak", title, _fitted(_COLUMNS, live), live, page_as="live_at_peak_groups")
    groups = group_rows(live, _array_key)
    groups.sort(key=_bytes, reverse=True)
    yield Table.of("live_at_peak_groups", title, _fitted(_GROUPS, live), groups, page_rows=24)
    yield _live_bytes(context, device)
    if not context.request.quick:
        yield _totals("live_by_role", "Live at the peak by role", "role", live, attrgetter("role"))
    yield _totals("live_by_source", "Live at the peak by source line", "source", live, attrgetter("source"))
    if any(array.labels.scope not in {NOT_PRINTED, NO_SCOPE} for array in live):
        yield _totals("live_by_scope", "Live at the peak by scope", "scope", live, attrgetter("scope"))


def _fitted(columns: Iterable[Column], live: Sequence[LiveArray]) -> tuple[Column, ...]:
    """Return the columns. Those of padding and memory space are on the page if there is padding, or more than one space."""
    details = {
        "padding_bytes": 2 if any(array.padding for array in live) else 9,
        "memory_space": 3 if len({array.space for array in live}) > 1 else 9,
    }
    return tuple(column._replace(detail=details.get(column.name, column.detail)) for column in columns)


_COLUMNS = (
    Column("name", get=attrgetter("name")),
    Column("shape_index", detail=9, get=lambda array: index_text(array.element)),
    Column("shape", get=lambda array: "" if array.shape is None else str(array.shape)),
    Column("bytes", "bytes", summed=True, get=attrgetter("bytes")),
    Column("padding_bytes", "bytes", summed=True, detail=3, get=attrgetter("padding")),
    Column("role", get=lambda array: array.role or None),
    Column("live_from", "number", detail=2, optional=True, get=attrgetter("live_from")),
    Column("live_to", "number", detail=2, optional=True, get=attrgetter("live_to")),
    Column("memory_space", "number", detail=5, get=attrgetter("space")),
    Column("of_parameter", "number", detail=9, optional=True, get=attrgetter("parameter")),
    Column("path", detail=3, optional=True, get=lambda array: array.path or None),
    phase_column(attrgetter("labels.phase"), detail=2),
    Column("op_name", detail=6, get=attrgetter("labels.op_name")),
    Column("source", detail=1, get=lambda array: printed(array.labels.source)),
    Column("line", "number", detail=4, optional=True, get=attrgetter("line")),
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


_GROUPS = (
    Column("name", width=24, get=lambda group: joined_name([array.name for array in group])),
    Column("shape", width=20, get=lambda group: "" if group[0].shape is None else str(group[0].shape)),
    Column("arrays", "count", summed=True, detail=1, get=len),
    Column("bytes", "bytes", summed=True, get=_bytes),
    Column("padding_bytes", "bytes", summed=True, detail=3, get=lambda group: sum(array.padding for array in group)),
    Column("role", get=lambda group: group[0].role or None),
    Column("live", detail=2, width=11, get=_lives),
    Column("memory_space", "number", detail=8, get=lambda group: group[0].space),
    phase_column(lambda group: group[0].labels.phase, detail=3),
    Column("source", detail=1, get=_line_or_path),
)


class _Total(NamedTuple):
    label: str
    arrays: int
    size: int
    share: float | None


def _totals(name: str, title: str, label: str, live: Sequence[LiveArray], key: Callable[[LiveArray], str]) -> Table:
    whole = total(array.bytes for array in live) or 0
    groups = [(key(group[0]), group) for group in group_rows(live, key)]
    totals = [_Total(text, len(group), _bytes(group), _bytes(group) / whole if whole else None) for text, group in groups]
    columns = (
        Column(label, width=28, get=attrgetter("label")),
        Column("arrays", "count", summed=True, get=attrgetter("arrays")),
        Column("bytes", "bytes", summed=True, get=attrgetter("size")),
        Column("share", "share", optional=True, get=attrgetter("share")),
    )
    return Table.of(name, title, columns, sorted(totals, key=lambda row: -row.size), page_rows=10)


# -- over the schedule --------------------------------------------------------------------------------------------------------


def _live_bytes(context: Context, device: DeviceMemory) -> Table:
    """Return the live bytes over the schedule, in parts of equal length."""
    points = live_curve(device, context.phase_of)
    columns = (
        Column("first", "number", get=attrgetter("first")),
        Column("last", "number", get=attrgetter("last")),
        Column("bytes", "bytes", get=attrgetter("bytes")),
        phase_column(attrgetter("phase")),
        Column("loop", get=attrgetter("loop")),
    )
    space = device.peak_heap.space if device.peak_heap is not None else 0
    where = f": static arrays and temporaries of {space_name(space)}" if space else ""
    title = f"Live bytes over the schedule of {device.schedule.end:,} instructions{where}"
    return Table.of("live_bytes", title, columns, points, page_rows=0, is_curve=True)


ArrayGroup = Sequence[LargeArray]


def largest_arrays(context: Context) -> Table:
    """Return the arrays in merged rows, the largest first."""
    groups = array_groups(context.largest_arrays.found)
    has_padding = any(group[0].shape.padded_bytes != group[0].shape.bytes for group in groups)
    columns = (
        Column("name", width=24, get=lambda group: joined_name([array.name for array in group])),
        Column("opcode", detail=4, get=lambda group: group[0].opcode),
        Column("shape", width=24, get=lambda group: str(group[0].shape)),
        Column("bytes", "bytes", detail=3 if has_padding else 0, get=lambda group: group[0].shape.bytes),
        Column("padded_bytes", "bytes", detail=0 if has_padding else 9, get=lambda group: group[0].shape.padded_bytes),
        Column("count", "count", get=len),
        Column("total_bytes", "bytes", detail=3, get=lambda group: (group[0].shape.padded_bytes or 0) * len(group)),
        Column("of_parameter", detail=1, optional=True, width=12, get=_parameters),
        Column("relation", detail=1, optional=True, get=lambda group: str(group[0].relation) if group[0].relation else None),
        Column("path", detail=4, optional=True, get=_path),
        Column("memory_space", "number", detail=9, get=lambda group: _space(group[0])),
        phase_column(_phases, detail=5),
        Column("op_name", detail=6, get=lambda group: group[0].labels.op_name),
        Column("source", detail=1, get=lambda group: printed(group[0].labels.source)),
        Column("line", "number", detail=7, get=lambda group: group[0].line),
    )
    rows = 8 if context.module.header.is_scheduled else 20
    return Table.of("largest_arrays", _title(context), columns, groups, page_rows=rows)


def array_groups(arrays: Sequence[LargeArray]) -> list[list[LargeArray]]:
    """Group the arrays of one row, the largest first."""
    groups = group_rows(arrays, _large_array_key)
    return sorted(groups, key=lambda group: (group[0].shape.padded_bytes or 0, len(group)), reverse=True)


def _title(context: Context) -> str:
    """Return the title: it says if XLA may fuse the arrays away."""
    return "Largest arrays" if _is_optimized(context) else "Largest arrays before fusion; XLA may fuse some of them away"


def _is_optimized(context: Context) -> bool:
    return context.module.header.is_scheduled or context.module.opcode_counts["fusion"] > 0


def _large_array_key(array: LargeArray) -> object:
    """Return the properties that the arrays of one row share."""
    steps = array.relation.steps if array.relation is not None else None
    return (array.opcode, str(array.shape), array.shape.padded_bytes, _space(array), steps, array.labels.source)


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


def _space(array: LargeArray) -> int:
    layout = array.shape.layout
    return layout.memory_space if layout is not None else 0


# -- host -------------------------------------------------------------------------------------------------------------------


def parameter_copies(context: Context) -> Iterator[Table]:
    """Yield one row per kind of copy of a parameter: the bytes of all arrays, and those that a step writes.

    A text before fusion has no table: XLA fuses many of its copies away.
    """
    copies = context.largest_arrays.parameter_copies() if _is_optimized(context) else []
    if not copies:
        return
    runs_of = context.call_graph.runs

    def written(group: ArrayGroup) -> Quantity:
        sizes = [multiply(array.shape.padded_bytes or 0, runs_of(array.view.computation.name)) for array in group]
        return sum_figures(sizes)

    columns = (
        Column("relation", width=24, get=lambda group: _copying(group[0])),
        Column("memory_space", "number", detail=1, get=lambda group: _space(group[0])),
        Column("arrays", "count", summed=True, get=len),
        Column("padded_bytes", "bytes", summed=True, page_name="size", get=lambda group: total(map(_padded_bytes, group))),
        bounded("runs", "count", lambda group: sum_figures([runs_of(array.view.computation.name) for array in group]), 1),
        bounded("written_bytes", "bytes", written, page_name="written"),
    )
    groups = group_rows(copies, lambda array: (_copying(array), _space(array)))
    groups.sort(key=lambda group: -least(written(group)))
    yield Table.of("parameter_copies", "Copies of parameters in one step", columns, groups)


def _copying(array: LargeArray) -> str:
    return array.relation.copying if array.relation is not None else ""


def _padded_bytes(array: LargeArray) -> int | None:
    return array.shape.padded_bytes


def host_copies(context: Context) -> Iterator[Table]:
    """Yield the table of copies between host and device in a step, if there are any."""
    groups = group_rows(
        context.host_transfers, lambda transfer: (transfer.direction, str(transfer.shape), transfer.view.opcodes[transfer.row])
    )
    groups.sort(key=lambda group: least(total_moved(group)), reverse=True)
    if not groups:
        return
    columns = (
        Column("direction", get=lambda group: group[0].direction),
        Column("name", width=20, get=lambda group: joined_name([transfer.view.names[transfer.row] for transfer in group])),
        Column("shape", get=lambda group: str(group[0].shape)),
        Column("sites", "count", summed=True, get=len),
        bounded("runs", "count", lambda group: sum_figures(transfer.runs for transfer in group)),
        bounded("bytes", "bytes", total_moved),
        Column("line", "number", detail=3, get=lambda group: group[0].view.lines[group[0].row]),
    )
    yield Table.of("host_copies", "Host transfers of one step by target", columns, groups)


def total_moved(transfers: Sequence[HostTransfer]) -> Quantity:
    """Return the bytes of all runs in a step."""
    return sum_figures(transfer.moved for transfer in transfers)


class _AllocationRow(NamedTuple):
    """An allocation of a report, and the array of the dump that has its name and is live at the peak."""

    report: OutOfMemory
    allocation: ReportedAllocation
    live: LiveArray | None


def reports_of(context: Context) -> list[OutOfMemory]:
    """Return the reports in the text around a module."""
    return read_reports(context.module.memory_lines)


def out_of_memory_rows(reports: Iterable[OutOfMemory]) -> Iterator[HeadlineRow]:
    """Yield one line for each report."""
    for report in reports:
        yield HeadlineRow("", tuple(_report_words(report)), severity="error")


def _report_words(report: OutOfMemory) -> Parts:
    yield f"line {report.line}: {'ran out of' if report.says_failure else 'report of'} {report.space}"
    if report.used is not None and report.capacity is not None:
        sizes = report.used, report.capacity, max(0, report.used - report.capacity)
        yield from sentence(": {} of {}, {} too much", *(Amount(size, "bytes") for size in sizes))
    if report.wanted is not None:
        yield from sentence(" allocating {}", Amount(report.wanted, "bytes"))
    if report.free is not None:
        yield from sentence(" with {} free", Amount(report.free, "bytes"))
    if report.wanted_for:
        yield f" on the stack of {report.wanted_for}"


def out_of_memory_tables(reports: Sequence[OutOfMemory], live: Iterable[LiveArray] = (), name: str = "") -> Iterator[Table]:
    """Yield the largest allocations of the reports under `name`, and the parts of the memory as the report states them."""
    by_name = {array.name: array for array in live}
    rows = [
        _AllocationRow(report, allocation, by_name.get(allocation.name)) for report in reports for allocation in report.largest
    ]
    if rows:
        yield Table.of(name or "out_of_memory", "Largest allocations in XLA's report", _REPORTED, rows, page_rows=24)
    parts = [(part, size) for report in reports for part, size in report.parts.items()]
    if parts:
        columns = (Column("part", width=28), Column("bytes", "bytes"))
        yield Table("out_of_memory_parts", "Memory use by kind, from XLA's report", columns, tuple(parts), page_rows=0)


def _live_array(get: Callable[[LiveArray], int | None]) -> Callable[[_AllocationRow], int | None]:
    return lambda row: get(row.live) if row.live is not None else None


_REPORTED = (
    Column("name", get=attrgetter("allocation.name")),
    Column(
        "shape", get=lambda row: str(row.allocation.shape) if row.allocation.shape is not None else row.allocation.shape_text
    ),
    Column("bytes", "bytes", get=attrgetter("allocation.size")),
    Column("padding_bytes", "bytes", detail=1, get=attrgetter("allocation.padding")),
    Column("role", get=attrgetter("allocation.kind")),
    Column("live_from", "number", detail=3, optional=True, get=_live_array(attrgetter("live_from"))),
    Column("live_to", "number", detail=3, optional=True, get=_live_array(attrgetter("live_to"))),
    Column("op_name", detail=2, get=attrgetter("allocation.op_name")),
    Column("source", detail=1, get=attrgetter("allocation.source")),
    Column("line", "number", detail=4, optional=True, get=_live_array(attrgetter("line"))),
)

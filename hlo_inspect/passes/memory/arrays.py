"""What any text says of memory: its largest arrays, copies between host and device, and the out-of-memory reports of XLA."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import attrgetter
from typing import NamedTuple

from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.memory.host_transfers import HostTransfer
from hlo_inspect.analysis.memory.largest_arrays import LargeArray
from hlo_inspect.analysis.memory.live_arrays import LiveArray
from hlo_inspect.analysis.memory.out_of_memory import OutOfMemory, ReportedAllocation, read_reports
from hlo_inspect.analysis.provenance import printed
from hlo_inspect.graph.calls import Bounds
from hlo_inspect.hlo.values.op_names import NOT_SOUGHT
from hlo_inspect.passes.base import bounded
from hlo_inspect.passes.instruction_rows import group_rows, joined_name, phase_column
from hlo_inspect.passes.params import number_ranges
from hlo_inspect.report.model import Amount, Column, HeadlineRow, Parts, Table, sentence

Group = Sequence[LargeArray]


def largest_arrays(context: Context) -> Table:
    """Arrays that are alike in one row, the largest first."""
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
        Column("memory_space", "number", detail=9, get=lambda group: _space(group[0])),
        phase_column(_phases, detail=5),
        Column("op_name", detail=6, get=lambda group: group[0].labels.op_name),
        Column("source", detail=1, get=lambda group: printed(group[0].labels.source)),
        Column("line", "number", detail=7, get=lambda group: group[0].line),
    )
    rows = 8 if context.module.header.is_scheduled else 20
    return Table.of("largest_arrays", _title(context), columns, groups, page_rows=rows)


def array_groups(arrays: Sequence[LargeArray]) -> list[list[LargeArray]]:
    """Arrays that are alike together, the largest first."""
    groups = group_rows(arrays, _alike)
    return sorted(groups, key=lambda group: (group[0].shape.padded_bytes or 0, len(group)), reverse=True)


def _title(context: Context) -> str:
    """Whether arrays are in memory as they are, or XLA may fuse them away."""
    is_optimized = context.module.header.is_scheduled or context.module.opcode_counts["fusion"] > 0
    return "Largest arrays" if is_optimized else "Largest arrays as written; XLA fuses some of them away"


def _alike(array: LargeArray) -> object:
    """What the arrays of one row have in common."""
    steps = array.relation.steps if array.relation is not None else None
    return (array.opcode, str(array.shape), array.shape.padded_bytes, _space(array), steps, array.labels.source)


def _phases(group: Group) -> str:
    """The phases of a group; empty if --quick leaves one open."""
    phases = dict.fromkeys(array.labels.phase for array in group)
    return "" if NOT_SOUGHT in phases else ", ".join(phases)


def _parameters(group: Group) -> str | None:
    numbers = [array.relation.parameter for array in group if array.relation is not None]
    return number_ranges(sorted(numbers)) or None


def _space(array: LargeArray) -> int:
    layout = array.shape.layout
    return layout.memory_space if layout is not None else 0


# -- host -------------------------------------------------------------------------------------------------------------------


def host_copies(context: Context) -> Iterator[Table]:
    """What is copied between host and device in a step; no table where nothing is."""
    groups = group_rows(context.host_transfers, lambda one: (one.direction, str(one.shape), one.view.opcodes[one.row]))
    groups.sort(key=lambda group: total_moved(group).least, reverse=True)
    if not groups:
        return
    columns = (
        Column("direction", get=lambda group: group[0].direction),
        Column("name", width=20, get=lambda group: joined_name([one.view.names[one.row] for one in group])),
        Column("shape", get=lambda group: str(group[0].shape)),
        Column("sites", "count", summed=True, get=len),
        bounded("runs", "count", lambda group: Bounds.sum(one.runs for one in group)),
        bounded("bytes", "bytes", total_moved),
        Column("line", "number", detail=3, get=lambda group: group[0].view.lines[group[0].row]),
    )
    yield Table.of("host_copies", "Copied between host and device in one step", columns, groups)


def total_moved(transfers: Sequence[HostTransfer]) -> Bounds:
    """Bytes of all runs in a step."""
    return Bounds.sum(one.moved for one in transfers)


class _AllocationRow(NamedTuple):
    """An allocation of a report, and the array of the dump that has its name and is live at the peak."""

    report: OutOfMemory
    one: ReportedAllocation
    live: LiveArray | None


def reports_of(context: Context) -> list[OutOfMemory]:
    """The reports in the text around a module."""
    return read_reports(context.module.memory_lines)


def out_of_memory_rows(reports: Iterable[OutOfMemory]) -> Iterator[HeadlineRow]:
    """One line for each report."""
    for report in reports:
        yield HeadlineRow("", tuple(_report_words(report)), severity="error")


def _report_words(report: OutOfMemory) -> Parts:
    yield f"line {report.line}: {'ran out of' if report.says_failure else 'what XLA reports of'} {report.space}"
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
    """The largest allocations of the reports under `name`, and what takes the memory by the words of the report."""
    by_name = {one.name: one for one in live}
    rows = [_AllocationRow(report, one, by_name.get(one.name)) for report in reports for one in report.largest]
    if rows:
        yield Table.of(name or "out_of_memory", "Largest allocations that XLA reports", _COLUMNS, rows, page_rows=24)
    parts = [(part, size) for report in reports for part, size in report.parts.items()]
    if parts:
        columns = (Column("part", width=28), Column("bytes", "bytes"))
        yield Table("out_of_memory_parts", "What takes the memory, as XLA reports it", columns, tuple(parts), page_rows=0)


def _of_live(get: Callable[[LiveArray], int | None]) -> Callable[[_AllocationRow], int | None]:
    return lambda row: get(row.live) if row.live is not None else None


_COLUMNS = (
    Column("name", get=attrgetter("one.name")),
    Column("shape", get=lambda row: str(row.one.shape) if row.one.shape is not None else row.one.shape_text),
    Column("bytes", "bytes", get=attrgetter("one.size")),
    Column("padding_bytes", "bytes", detail=1, get=attrgetter("one.padding")),
    Column("role", get=attrgetter("one.kind")),
    Column("live_from", "number", detail=3, optional=True, get=_of_live(attrgetter("live_from"))),
    Column("live_to", "number", detail=3, optional=True, get=_of_live(attrgetter("live_to"))),
    Column("op_name", detail=2, get=attrgetter("one.op_name")),
    Column("source", detail=1, get=attrgetter("one.source")),
    Column("line", "number", detail=4, optional=True, get=_of_live(attrgetter("line"))),
)

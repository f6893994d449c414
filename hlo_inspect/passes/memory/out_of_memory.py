"""What XLA said when memory did not suffice, as the first lines and tables of `memory`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import attrgetter
from typing import NamedTuple

from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.memory.live_arrays import LiveArray
from hlo_inspect.analysis.memory.out_of_memory import OutOfMemory, ReportedAllocation, read_reports
from hlo_inspect.report.model import Amount, Column, HeadlineRow, Parts, Table, sentence


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
        yield HeadlineRow("", tuple(_parts(report)), severity="error")


def _parts(report: OutOfMemory) -> Parts:
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

"""XLA's own reports of memory that did not suffice: their first lines and tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from operator import attrgetter, itemgetter
from typing import NamedTuple

from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.memory.live_arrays import LiveArray
from hlo_inspect.analysis.memory.out_of_memory import OutOfMemory, ReportedAllocation, read_reports
from hlo_inspect.passes.memory.memory_tables import LIVE
from hlo_inspect.report.model import Amount, HeadlineRow, Parts, sentence
from hlo_inspect.report.table import Column, Table, TablePlace
from hlo_inspect.report.table_spec import TableSpec


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
    if report.before is not None:
        yield from sentence(
            f"line {report.line}: needs {{}} after rematerialization, {{}} before; the limit is {{}}, {{}} too much",
            *(Amount(size, "bytes") for size in (report.used, report.before, report.capacity, report.exceeded)),
        )
        return
    yield f"line {report.line}: {'ran out of' if report.says_failure else 'report of'} {report.space}"
    if report.used is not None and report.capacity is not None:
        sizes = report.used, report.capacity, report.exceeded
        yield from sentence(": {} of {}, {} too much", *(Amount(size, "bytes") for size in sizes))
    if report.wanted is not None:
        yield from sentence(" allocating {}", Amount(report.wanted, "bytes"))
    if report.free is not None:
        yield from sentence(" with {} free", Amount(report.free, "bytes"))
    if report.wanted_for:
        yield f" on the stack of {report.wanted_for}"


def out_of_memory_tables(
    reports: Sequence[OutOfMemory], live: Iterable[LiveArray] = (), table: TableSpec | None = None
) -> Iterator[Table]:
    """Yield the largest allocations of the reports as `table`, and the parts of the memory as the report states them."""
    by_name = {array.name: array for array in live}
    rows = [
        _AllocationRow(report, allocation, by_name.get(allocation.name)) for report in reports for allocation in report.largest
    ]
    if rows:
        yield (table or _OUT_OF_MEMORY).of(rows)
    parts = [part for report in reports for part in report.parts.items()]
    if parts:
        yield _OUT_OF_MEMORY_PARTS.of(parts)


def _live_array(get: Callable[[LiveArray], int | None]) -> Callable[[_AllocationRow], int | None]:
    return lambda row: get(row.live) if row.live is not None else None


_OUT_OF_MEMORY = TableSpec("out_of_memory", "Largest allocations in XLA's report", page_rows=24).with_columns(
    Column("name", get=attrgetter("allocation.name")),
    Column("shape", get=lambda row: row.allocation.shape_text if row.allocation.shape is None else str(row.allocation.shape)),
    Column("bytes", "bytes", get=attrgetter("allocation.size")),
    Column("padding_bytes", "bytes", detail=1, get=attrgetter("allocation.padding")),
    Column("role", get=attrgetter("allocation.kind")),
    Column("live_from", "number", detail=3, optional=True, get=_live_array(attrgetter("live_from"))),
    Column("live_to", "number", detail=3, optional=True, get=_live_array(attrgetter("live_to"))),
    Column("op_name", detail=2, get=attrgetter("allocation.op_name")),
    Column("source", detail=1, get=attrgetter("allocation.source")),
    Column("line", "number", detail=4, optional=True, get=_live_array(attrgetter("line"))),
)
REPORTED_AT_PEAK = replace(_OUT_OF_MEMORY, name=LIVE.name, place=LIVE.place)
"""The allocations of a report without its module, in the place of the arrays at the peak."""

_OUT_OF_MEMORY_PARTS = TableSpec(
    "out_of_memory_parts",
    "Memory use by kind, from XLA's report",
    TablePlace("memory", "Device memory", "by XLA", 2),
    page_rows=0,
).with_columns(Column("part", width=28, get=itemgetter(0)), Column("bytes", "bytes", get=itemgetter(1)))

TABLES = (_OUT_OF_MEMORY, _OUT_OF_MEMORY_PARTS)

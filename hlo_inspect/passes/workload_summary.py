"""The summary of a workload file."""

from __future__ import annotations

from collections.abc import Iterator

from hlo_inspect.passes import workload_tables
from hlo_inspect.passes.base import WorkloadPass
from hlo_inspect.report.model import Section, Table
from hlo_inspect.workloads.totals import WorkloadTotals


class WorkloadSummary(WorkloadPass):
    """The totals of a workload file, by pass, collective, group and layer."""

    name = "summary"
    specs = ()
    includes = ("workload", "collectives")

    def run(self, totals: WorkloadTotals) -> Section:
        return Section({}, (table for table in _tables(totals) if table.rows), headline=workload_tables.headline(totals))


def _tables(totals: WorkloadTotals) -> Iterator[Table]:
    yield workload_tables.by_pass(totals)
    yield workload_tables.by_collective(totals)
    yield from workload_tables.unknown_words(totals)
    yield workload_tables.by_group(totals)
    yield workload_tables.by_layer(totals, workload_tables.equal_row_list(totals))

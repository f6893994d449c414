"""The report of `collect`: what was read, and how fast."""

from __future__ import annotations

from hlo_inspect.fleet.collection import Counts
from hlo_inspect.report.model import Input, Report
from hlo_inspect.report.table import Column, Table

COMMAND = "collect"
_COLUMNS = (
    Column("read", "count", get=lambda row: row[0].read),
    Column("equal", "count", get=lambda row: row[0].equal),
    Column("skipped", "count", get=lambda row: row[0].skipped),
    Column("failed", "count", get=lambda row: row[0].failed),
    Column("lost", "count", get=lambda row: row[0].lost),
    Column("modules", "count", get=lambda row: row[0].modules),
    Column("bytes", "bytes", get=lambda row: row[0].bytes),
    Column("seconds", "seconds", get=lambda row: row[1]),
    Column("modules_per_s", "number", get=lambda row: round(row[0].modules / row[1], 1), page_name="modules a second"),
)


def collection_report(store: str, counts: Counts, seconds: float) -> Report:
    """Return the closing table of a collection."""
    table = Table.of("collection", f"Inputs of the store {store}", _COLUMNS, [(counts, max(seconds, 1e-9))], page_rows=0)
    return Report(COMMAND, Input(store, first_line=1, lines=0, bytes=counts.bytes), facts={}, tables=(table,))

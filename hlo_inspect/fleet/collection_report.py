"""The report of `collect`: what was read, and how fast."""

from __future__ import annotations

from operator import attrgetter
from typing import NamedTuple

from hlo_inspect.fleet.collection import Counts
from hlo_inspect.report.model import Input, Report
from hlo_inspect.report.table import Column
from hlo_inspect.report.table_spec import TableSpec

COMMAND = "collect"


class _Collected(NamedTuple):
    """The counts of a collection, and its seconds."""

    counts: Counts
    seconds: float


_COLLECTION = TableSpec(
    "collection",
    "Inputs of the store",
    (
        Column("read", "count", get=attrgetter("counts.read")),
        Column("equal", "count", get=attrgetter("counts.equal")),
        Column("skipped", "count", get=attrgetter("counts.skipped")),
        Column("failed", "count", get=attrgetter("counts.failed")),
        Column("lost", "count", get=attrgetter("counts.lost")),
        Column("modules", "count", get=attrgetter("counts.modules")),
        Column("bytes", "bytes", get=attrgetter("counts.bytes")),
        Column("seconds", "seconds", get=attrgetter("seconds")),
        Column(
            "modules_per_s", "number", get=lambda row: round(row.counts.modules / row.seconds, 1), page_name="modules a second"
        ),
    ),
    page_rows=0,
)
TABLES = (_COLLECTION,)


def collection_report(store: str, counts: Counts, seconds: float) -> Report:
    """Return the closing table of a collection."""
    table = _COLLECTION.of([_Collected(counts, max(seconds, 1e-9))], title=f"{_COLLECTION.title} {store}")
    return Report(COMMAND, Input(store, first_line=1, lines=0, bytes=counts.bytes), facts={}, tables=(table,))

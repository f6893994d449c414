"""The collectives of a step by kind, mesh axis, level of links and size: their time, and the bandwidth that they reach."""

from __future__ import annotations

from collections.abc import Iterator

from hlo_inspect.analysis.context import Context
from hlo_inspect.records import dataclass
from hlo_inspect.report.model import Column, Table

_SIZES = tuple((1 << power, f"to {text}") for power, text in ((15, "32 KiB"), (20, "1 MiB"), (25, "32 MiB"), (30, "1 GiB")))
_LARGEST = "above 1 GiB"
"""Classes of what one device sends in a run, about where NCCL changes its protocol."""


@dataclass(slots=True)
class _LinkClass:
    """Collectives of a kind over an axis and a level, of a class of size: sums over all their runs."""

    kind: str
    axis: str | None
    level: str | None
    size: str
    sites: int = 0
    runs: int = 0
    sent: int = 0
    bound: float = 0.0
    estimate: float = 0.0
    no_bound: bool = False
    no_estimate: bool = False

    @property
    def bus_bandwidth(self) -> float | None:
        """Wire bytes by the time of the model."""
        return self.sent / self.estimate if self.sent and self.estimate and not self.no_estimate else None


def link_table(context: Context) -> Table:
    """Those of one step, the slowest first. A loop whose trip count is not known runs at least as often as it has to."""
    columns = (
        Column("kind", get=lambda row: row.kind),
        Column("axis", detail=1, get=lambda row: row.axis),
        Column("level", detail=1, width=8, get=lambda row: row.level),
        Column("sent_a_run", detail=2, width=10, get=lambda row: row.size),
        Column("sites", "count", summed=True, detail=4, get=lambda row: row.sites),
        Column("runs", "count", summed=True, get=lambda row: row.runs),
        Column("wire_bytes", "bytes", summed=True, detail=3, get=lambda row: row.sent),
        (bound := Column("bound_s", "seconds", summed=True, get=lambda row: None if row.no_bound else row.bound)),
        bound.lower_bound(lambda row: row.bound),
        (estimate := Column("estimate_s", "seconds", summed=True, get=lambda row: None if row.no_estimate else row.estimate)),
        estimate.lower_bound(lambda row: row.estimate),
        Column("bus_bandwidth", "bytes_per_s", optional=True, get=lambda row: row.bus_bandwidth),
    )
    rows = sorted(_alike(context), key=lambda row: (-row.estimate, -row.bound, row.kind, row.axis or "", row.size))
    return Table.of("collective_links", "Collectives of one step on their links, each alone", columns, rows, page_rows=12)


def _alike(context: Context) -> Iterator[_LinkClass]:
    found: dict[tuple[str, str | None, str | None, str], _LinkClass] = {}
    for collective, axis, time in zip(context.collectives, context.axes, context.collective_times, strict=True):
        if collective.kind == "recv":  # what the other end sends
            continue
        key = (collective.kind, axis, time.level, _size_class(collective.wire_bytes))
        alike = found.setdefault(key, _LinkClass(*key))
        runs = context.call_graph.runs(collective.start.computation.name).at_least
        alike.sites += 1
        alike.runs += runs
        alike.sent += runs * (collective.wire_bytes or 0)
        alike.bound += runs * (time.bound_s or 0.0)
        alike.estimate += runs * (time.estimate_s or 0.0)
        alike.no_bound |= time.bound_s is None
        alike.no_estimate |= time.estimate_s is None
    yield from found.values()


def _size_class(sent: int | None) -> str:
    if sent is None:
        return ""
    return next((text for most, text in _SIZES if sent <= most), _LARGEST)

"""The collectives of a step by kind, mesh axis, level of links and size: their time, and the bandwidth that they reach."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from hlo_inspect.analysis.collectives import Collective
from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.cost.roofline import Seconds
from hlo_inspect.analysis.time.collective_times import CollectiveTime
from hlo_inspect.analysis.time.step_times import NO_SECONDS, seconds_of_runs, sum_of
from hlo_inspect.graph.calls import NOTHING, Bounds
from hlo_inspect.passes.base import bounded
from hlo_inspect.passes.collective_times import bus_bandwidth, runs_of
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
    members: list[Collective] = field(default_factory=list)
    times: list[CollectiveTime] = field(default_factory=list)
    runs: Bounds = NOTHING
    sent: Bounds = NOTHING
    bound: Seconds = NO_SECONDS
    estimate: Seconds = NO_SECONDS

    def add(self, collective: Collective, time: CollectiveTime, runs: Bounds) -> None:
        """Counts one more of them."""
        size = collective.wire_bytes
        sent = Bounds(0, None, collective.why_unknown) if size is None else Bounds.exactly(size)
        self.members.append(collective)
        self.times.append(time)
        self.runs = self.runs.plus(runs)
        self.sent = self.sent.plus(sent.times(runs))
        self.bound = sum_of(self.bound, seconds_of_runs(time.bound_s, runs, time.reason))
        self.estimate = sum_of(self.estimate, seconds_of_runs(time.estimate_s, runs, time.reason))


def link_table(context: Context) -> Table:
    """Those of one step, the slowest first."""
    columns = (
        Column("kind", get=lambda row: row.kind),
        Column("axis", detail=1, get=lambda row: row.axis),
        Column("level", detail=1, width=8, get=lambda row: row.level),
        Column("sent_a_run", detail=2, width=10, get=lambda row: row.size),
        Column("sites", "count", summed=True, detail=4, get=lambda row: len(row.members)),
        *bounded("runs", "count", lambda row: row.runs),
        *bounded("wire_bytes", "bytes", lambda row: row.sent, 3),
        *bounded("bound_s", "seconds", lambda row: row.bound),
        *bounded("estimate_s", "seconds", lambda row: row.estimate),
        Column("bus_bandwidth", "bytes_per_s", optional=True, get=lambda row: bus_bandwidth(context, row.members, row.times)),
    )
    rows = sorted(_alike(context), key=lambda row: (-row.estimate.least, -row.bound.least, row.kind, row.axis or "", row.size))
    return Table.of("collective_links", "Collectives of one step on their links, each alone", columns, rows, page_rows=12)


def _alike(context: Context) -> Iterator[_LinkClass]:
    found: dict[tuple[str, str | None, str | None, str], _LinkClass] = {}
    for collective, axis, time in zip(context.collectives, context.axes, context.on_machine.collective_times, strict=True):
        if collective.kind == "recv":  # what the other end sends
            continue
        key = (collective.kind, axis, time.level, _size_class(collective.wire_bytes))
        alike = found.setdefault(key, _LinkClass(*key))
        alike.add(collective, time, runs_of(context, collective))
    yield from found.values()


def _size_class(sent: int | None) -> str:
    if sent is None:
        return ""
    return next((text for most, text in _SIZES if sent <= most), _LARGEST)

"""Times of collectives: columns that a profile adds to their tables, and a table by class of link."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from hlo_inspect.analysis.collectives.logical_collectives import Collective
from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.time.collective_times import CollectiveTime
from hlo_inspect.analysis.time.step_times import seconds_times_runs, sum_of
from hlo_inspect.analysis.time.timelines import TimedStep, Timelines
from hlo_inspect.figure import Quantity, add, exact, known_part, least, multiply, reason
from hlo_inspect.passes.base import bounded
from hlo_inspect.report.table import Column, Table, TablePlace
from hlo_inspect.report.table_spec import TableSpec


class CollectiveRowTimes:
    """Seconds of all runs in a step of the collectives of one row, as bounds and estimates.

    Windows and exposed times need a schedule; without one they are None.
    """

    def __init__(self, step: TimedCollectives, members: Sequence[Collective]) -> None:
        self._step = step
        self._members = members

    def seconds(self, time: Literal["bound", "estimate"], part: Literal["busy", "window", "exposed"]) -> Quantity | None:
        """Return the sum of a part of the time of all runs."""
        if part != "busy" and not self._step.is_scheduled:
            return None
        sites = [self._step.sites(collective)[0 if time == "bound" else 1] for collective in self._members]
        return sum_of(*[getattr(site, part) for site in sites])

    @property
    def bus_bandwidth(self) -> float | None:
        return bus_bandwidth(self._step.context, self._members, self._times)

    @property
    def level(self) -> str | None:
        """The level of links that takes longest; all levels if they differ between collectives."""
        return ", ".join(dict.fromkeys(time.level for time in self._times if time.level is not None)) or None

    @property
    def _times(self) -> list[CollectiveTime]:
        return [self._step.time(collective) for collective in self._members]


class TimedCollectives:
    """The times of all collectives of a module on the timelines of its step."""

    def __init__(self, context: Context, timelines: Timelines) -> None:
        self.context = context
        self.is_scheduled = timelines.is_scheduled
        collectives = zip(context.collectives, context.on_machine.collective_times, strict=True)
        self._timed = {
            id(collective): (time, timed_sites(context, timelines, collective, time)) for collective, time in collectives
        }

    def time(self, collective: Collective) -> CollectiveTime:
        """Return the times of one run."""
        return self._timed[id(collective)][0]

    def sites(self, collective: Collective) -> tuple[TimedSite, TimedSite]:
        """Return the figures of all runs at bounds and at estimates."""
        return self._timed[id(collective)][1]


class TimedSite(NamedTuple):
    """The runs of a collective in a step, and the seconds of all runs: on the links, from start to done, and exposed."""

    runs: Quantity
    busy: Quantity
    window: Quantity
    exposed: Quantity


def runs_of(context: Context, collective: Collective) -> Quantity:
    """Return the runs of the computation in which a collective starts. If several starts wrap it, it runs more often."""
    return context.call_graph.runs(collective.start.computation.name)


def timed_sites(
    context: Context, timelines: Timelines, collective: Collective, time: CollectiveTime
) -> tuple[TimedSite, TimedSite]:
    """Return the figures at the bounds and at the estimates."""
    of_runs = (timelines.bound, time.bound_s), (timelines.estimate, time.estimate_s)
    at_least, likely = (_timed_site(context, collective, step, "" if run is not None else time.reason) for step, run in of_runs)
    return at_least, likely


def _timed_site(context: Context, collective: Collective, step: TimedStep, reason_unknown: str) -> TimedSite:
    """Return the figures of all runs. `reason_unknown` says why the time of one run is unknown, if it is."""
    runs, site = runs_of(context, collective), step.site_of(collective)
    missing = reason_unknown or reason(runs)
    exposed, window = step.exposed_of(collective), step.window_of(collective)
    return TimedSite(
        runs,
        known_part(site.busy, missing),
        known_part(site.window, reason(runs) or reason(window)),
        known_part(least(exposed), missing) if missing else exposed,
    )


def bus_bandwidth(context: Context, collectives: Iterable[Collective], times: Sequence[CollectiveTime]) -> float | None:
    """Return the bytes per second that one device sends in the estimate, as nccl-tests defines the bus bandwidth.

    For several collectives it is that of all bytes and all time. It is None if it differs between them and the runs of one
    are unknown.
    """
    rates = {time.bus_bandwidth for time in times}
    if len(rates) == 1:
        return rates.pop()
    sent = seconds = 0.0
    for collective, time in zip(collectives, times, strict=True):
        runs = exact(runs_of(context, collective))
        if runs is None or collective.wire_bytes is None or time.estimate_s is None:
            return None
        sent += collective.wire_bytes * runs
        seconds += time.estimate_s * runs
    return sent / seconds if sent and seconds else None


_SIZES = tuple((1 << power, f"to {text}") for power, text in ((15, "32 KiB"), (20, "1 MiB"), (25, "32 MiB"), (30, "1 GiB")))
_LARGEST = "above 1 GiB"
"""Classes of the bytes that one device sends in a run, about those at which NCCL changes its protocol."""


@dataclass(slots=True)
class _LinkClass:
    """Collectives of a kind over an axis and a level, of a class of size: sums over all their runs."""

    context: Context
    kind: str
    axis: str | None
    level: str | None
    size: str
    members: list[Collective] = field(default_factory=list)
    times: list[CollectiveTime] = field(default_factory=list)
    runs: Quantity = 0
    sent: Quantity = 0
    bound: Quantity = 0.0
    estimate: Quantity = 0.0

    @property
    def bus_bandwidth(self) -> float | None:
        return bus_bandwidth(self.context, self.members, self.times)

    def add(self, collective: Collective, time: CollectiveTime, runs: Quantity) -> None:
        """Add a collective to the sums."""
        self.members.append(collective)
        self.times.append(time)
        self.runs = add(self.runs, runs)
        self.sent = add(self.sent, multiply(collective.sent, runs))
        self.bound = sum_of(self.bound, seconds_times_runs(time.bound_s, runs, time.reason))
        self.estimate = sum_of(self.estimate, seconds_times_runs(time.estimate_s, runs, time.reason))


def link_table(context: Context) -> Table:
    """Return the links of one step, the slowest first."""
    rows = sorted(
        _link_classes(context), key=lambda row: (-least(row.estimate), -least(row.bound), row.kind, row.axis or "", row.size)
    )
    return LINKS.of(rows)


LINKS = TableSpec(
    "collective_links",
    "Collectives of one step by link and size; times ignore overlap",
    TablePlace("collectives", "Collectives", "by link", 9),
    page_rows=12,
).with_columns(
    Column("kind"),
    Column("axis", detail=1),
    Column("level", detail=1, width=8),
    Column(
        "sent_a_run",
        page_name="size_of_a_run",
        detail=2,
        width=10,
        meaning="range of bytes sent in one run",
        get=lambda row: row.size,
    ),
    Column("sites", "count", summed=True, detail=4, get=lambda row: len(row.members)),
    bounded("runs", "count"),
    bounded("wire_bytes", "bytes", lambda row: row.sent, 3, page_name="sent", meaning="bytes sent in one step"),
    bounded("bound_s", "seconds", lambda row: row.bound),
    bounded("estimate_s", "seconds", lambda row: row.estimate),
    Column("bus_bandwidth", "bytes_per_s", optional=True),
)


def _link_classes(context: Context) -> Iterator[_LinkClass]:
    classes: dict[tuple[str, str | None, str | None, str], _LinkClass] = {}
    for collective, axis, time in zip(context.collectives, context.axes, context.on_machine.collective_times, strict=True):
        if collective.kind == "recv":  # counts as the bytes that the sending slice sends
            continue
        key = (collective.kind, axis, time.level, _size_class(collective.wire_bytes))
        link_class = classes.setdefault(key, _LinkClass(context, *key))
        link_class.add(collective, time, runs_of(context, collective))
    yield from classes.values()


def _size_class(sent: int | None) -> str:
    if sent is None:
        return ""
    return next((text for most, text in _SIZES if sent <= most), _LARGEST)

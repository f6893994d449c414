"""All runs of a collective in a timeline, with what is not known of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from hlo_inspect.analysis.calls import Bounds
from hlo_inspect.analysis.collectives import Collective
from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.cost.roofline import Seconds
from hlo_inspect.analysis.time.collective_times import CollectiveTime
from hlo_inspect.analysis.time.timelines import TimedStep, Timelines


class TimedSite(NamedTuple):
    """How often a collective runs in a step, and how long all runs take together: on the links, from start to done, and
    exposed.
    """

    runs: Bounds
    busy: Seconds
    window: Seconds
    exposed: Seconds


def runs_of(context: Context, collective: Collective) -> Bounds:
    """How often the computation runs in which a collective starts. One that several starts wrap runs more often."""
    return context.call_graph.runs(collective.start.computation.name)


def bound_site(context: Context, timelines: Timelines, collective: Collective, time: CollectiveTime) -> TimedSite:
    """At durations that nothing can be below."""
    return _timed_site(context, timelines.bound, collective, time.bound_s, time.reason)


def estimate_site(context: Context, timelines: Timelines, collective: Collective, time: CollectiveTime) -> TimedSite:
    """At durations of the model."""
    return _timed_site(context, timelines.estimate, collective, time.estimate_s, time.reason)


def _timed_site(context: Context, step: TimedStep, collective: Collective, of_run: float | None, why_unknown: str) -> TimedSite:
    """`of_run` is how long one run takes, `None` where that is not known."""
    runs, site = runs_of(context, collective), step.site_of(collective)
    missing = (why_unknown if of_run is None else "") or runs.reason
    return TimedSite(runs, Seconds(site.busy, missing), Seconds(site.window, runs.reason), Seconds(site.exposed, missing))


def bus_bandwidth(context: Context, members: Sequence[tuple[Collective, CollectiveTime]]) -> float | None:
    """Bytes per second that one device sends by the model, as nccl-tests defines it. Of several collectives it is that of all
    bytes and all time, `None` where it differs between them and how often one of them runs is not known.
    """
    rates = {time.bus_bandwidth for _, time in members}
    if len(rates) == 1:
        return rates.pop()
    sent = seconds = 0.0
    for collective, time in members:
        runs = runs_of(context, collective).exact
        if runs is None or collective.wire_bytes is None or time.estimate_s is None:
            return None
        sent += collective.wire_bytes * runs
        seconds += time.estimate_s * runs
    return sent / seconds if sent and seconds else None

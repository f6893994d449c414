"""Columns of the tables of collectives that a hardware profile adds: how long they take, and what of it nothing hides."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from typing import Any

from hlo_inspect.analysis.collectives import Collective
from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.cost.roofline import Seconds
from hlo_inspect.analysis.time.step_times import NO_SECONDS, sum_of
from hlo_inspect.passes.base import bounded
from hlo_inspect.passes.timed_sites import TimedSite, bound_site, bus_bandwidth, estimate_site
from hlo_inspect.report.model import Column


def time_columns(context: Context, members: Callable[[Any], Sequence[Collective]]) -> tuple[Column, ...]:
    """The columns of rows that stand for these collectives, where there is a profile: seconds of all runs of a step, at least
    and by the model; windows and what is exposed at least times; the level of links, and the bus bandwidth of the estimate.
    """
    if context.on_machine.timelines is None:
        return ()
    return tuple(_columns(_Times(context), members))


class _Times:
    """The times of collectives, each looked up by its place in the module's list."""

    def __init__(self, context: Context) -> None:
        timelines, times = context.on_machine.timelines, context.on_machine.collective_times
        assert timelines is not None  # noqa: S101 - the caller asked
        self.timelines = timelines
        self._times = {id(one): time for one, time in zip(context.collectives, times, strict=True)}
        self._context = context

    def bound(self, one: Collective) -> Seconds:
        """Of all runs."""
        return self._bound_site(one).busy

    def estimate(self, one: Collective) -> Seconds:
        return estimate_site(self._context, self.timelines, one, self._times[id(one)]).busy

    def window(self, one: Collective) -> Seconds | None:
        """Known for a schedule only, as the next one is."""
        return self._bound_site(one).window if self.timelines.is_scheduled else None

    def exposed(self, one: Collective) -> Seconds | None:
        return self._bound_site(one).exposed if self.timelines.is_scheduled else None

    def _bound_site(self, one: Collective) -> TimedSite:
        return bound_site(self._context, self.timelines, one, self._times[id(one)])

    def bus_bandwidth(self, members: Sequence[Collective]) -> float | None:
        """Of several all bytes by all time."""
        return bus_bandwidth(self._context, [(one, self._times[id(one)]) for one in members])

    def level(self, members: Sequence[Collective]) -> str | None:
        """The level of links that takes longest; of several with different levels all of them."""
        levels = dict.fromkeys(level for one in members if (level := self._times[id(one)].level) is not None)
        return ", ".join(levels) or None


def _columns(times: _Times, members: Callable[[Any], Sequence[Collective]]) -> Iterator[Column]:
    def of_all(time: Callable[[Collective], Seconds | None]) -> Callable[[Any], Seconds | None]:
        return lambda row: _sum([time(one) for one in members(row)])

    yield from bounded("bound_s", "seconds", of_all(times.bound), 3)
    yield from bounded("estimate_s", "seconds", of_all(times.estimate), 1)
    yield from bounded("window_s", "seconds", of_all(times.window), 6, optional=True)
    yield from bounded("exposed_s", "seconds", of_all(times.exposed), 2, optional=True)
    yield Column("bus_bandwidth", "bytes_per_s", detail=3, optional=True, get=lambda row: times.bus_bandwidth(members(row)))
    yield Column("level", detail=5, optional=True, width=8, get=lambda row: times.level(members(row)))


def _sum(times: Sequence[Seconds | None]) -> Seconds | None:
    """Several times together; `None` where there is none."""
    known = [time for time in times if time is not None]
    return reduce(sum_of, known, NO_SECONDS) if known or not times else None

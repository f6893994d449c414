"""Columns of the tables of collectives that a hardware profile adds: how long they take, and what of it nothing hides."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from hlo_inspect.analysis.collectives import Collective
from hlo_inspect.analysis.context import Context
from hlo_inspect.report.model import Column, Value


def time_columns(context: Context, members: Callable[[Any], Sequence[Collective]]) -> tuple[Column, ...]:
    """The columns of rows that stand for these collectives, where a profile is named: seconds of all runs of a step, at least
    and by the model; windows and what is exposed at least times; the level of links, and the bus bandwidth of the estimate.
    """
    if not context.profile_is_named or context.timelines is None:
        return ()
    return tuple(_columns(_Times(context), members))


class _Times:
    """The times of collectives, each looked up by its place in the module's list."""

    def __init__(self, context: Context) -> None:
        timelines = context.timelines
        assert timelines is not None  # noqa: S101 - the caller asked
        self.timelines = timelines
        self._times = {id(one): time for one, time in zip(context.collectives, context.collective_times, strict=True)}

    def bound(self, one: Collective) -> tuple[float | None, float]:
        """Seconds of all runs, and as many as are known."""
        busy = self.timelines.bound.site_of(one).busy
        return (None if self._times[id(one)].bound_s is None else busy), busy

    def estimate(self, one: Collective) -> tuple[float | None, float]:
        busy = self.timelines.estimate.site_of(one).busy
        return (None if self._times[id(one)].estimate_s is None else busy), busy

    def window(self, one: Collective) -> tuple[float | None, float]:
        window = self.timelines.bound.site_of(one).window
        return (window, window) if self.timelines.is_scheduled else (None, 0.0)

    def exposed(self, one: Collective) -> tuple[float | None, float]:
        exposed = self.timelines.bound.site_of(one).exposed
        return (exposed, exposed) if self.timelines.is_scheduled else (None, 0.0)

    def bus_bandwidth(self, members: Sequence[Collective]) -> float | None:
        """Bytes per second that one device sends, as nccl-tests defines it; of several all bytes by all time."""
        if len(members) == 1:
            return self._times[id(members[0])].bus_bandwidth
        sites = [(one.wire_bytes, self.timelines.estimate.site_of(one)) for one in members]
        if not sites or any(size is None for size, _ in sites) or any(self.estimate(one)[0] is None for one in members):
            return None
        busy = sum(site.busy for _, site in sites)
        return sum((size or 0) * site.runs for size, site in sites) / busy if busy else None

    def level(self, members: Sequence[Collective]) -> str | None:
        """The level of links that takes longest; of several with different levels all of them."""
        levels = dict.fromkeys(level for one in members if (level := self._times[id(one)].level) is not None)
        return ", ".join(levels) or None


_Amount = Callable[[Collective], tuple[float | None, float]]


def _columns(times: _Times, members: Callable[[Any], Sequence[Collective]]) -> Iterator[Column]:
    yield from _seconds("bound_s", times.bound, members, 3)
    yield from _seconds("estimate_s", times.estimate, members, 1)
    yield from _seconds("window_s", times.window, members, 6, optional=True)
    yield from _seconds("exposed_s", times.exposed, members, 2, optional=True)
    yield Column("bus_bandwidth", "bytes_per_s", detail=3, optional=True, get=lambda row: times.bus_bandwidth(members(row)))
    yield Column("level", detail=5, optional=True, width=8, get=lambda row: times.level(members(row)))


def _seconds(
    name: str, amount: _Amount, members: Callable[[Any], Sequence[Collective]], detail: int, *, optional: bool = False
) -> Iterator[Column]:
    def exact(row: object) -> Value:
        found = [amount(one)[0] for one in members(row)]
        known = [one for one in found if one is not None]
        return sum(known) if len(known) == len(found) else None

    def least(row: object) -> Value:
        return sum(amount(one)[1] for one in members(row))

    column = Column(name, "seconds", summed=True, detail=detail, optional=optional, get=exact)
    yield column
    if not optional:
        yield column.lower_bound(least)

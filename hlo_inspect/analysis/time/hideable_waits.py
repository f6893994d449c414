"""Waits of a step for collectives that independent compute of the same computation could hide."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from hlo_inspect.analysis.collectives.logical_collectives import Collective
from hlo_inspect.analysis.time.program_steps import WaitStep
from hlo_inspect.analysis.time.timelines import TimedStep, independent_computes
from hlo_inspect.graph.calls import place
from hlo_inspect.graph.view import Views

LEAST_SHARE, LEAST = 0.01, 1e-5
"""Share of a step, and seconds, of the shortest wait that counts."""


class HideableWait(NamedTuple):
    """A wait of `exposed` seconds a step at `waiter`; compute, `longest` above all, could hide `hidden` seconds of it."""

    collective: Collective
    waiter: str
    exposed: float
    hidden: float
    longest: str


def find_waits(step: TimedStep, views: Views, collectives: Sequence[Collective]) -> Iterator[HideableWait]:
    """Yield the waits, without those too short to count. Compute between start and done hides its part already."""
    least = max(LEAST_SHARE * step.timeline.step, LEAST)
    waiting = [collective for collective in collectives if step.site_of(collective).exposed >= least]
    for collective, compute in zip(waiting, independent_computes(step, views, waiting), strict=True):
        times = step.site_of(collective)
        hidden = min(times.exposed, compute.seconds - times.window) if compute is not None else 0.0
        if compute is not None and hidden >= least:
            yield HideableWait(collective, _waiter(step, collective), times.exposed, hidden, compute.longest)


def _waiter(step: TimedStep, collective: Collective) -> str:
    """Return the name of the instruction at which the compute stream waits."""
    start = place(collective.start)
    steps = step.work.program.steps.get(start[0], ())
    return next((wait.done[2] for wait in steps if isinstance(wait, WaitStep) and wait.place == start), start[2])

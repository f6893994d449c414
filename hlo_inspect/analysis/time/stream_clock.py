"""Clock of a timeline: the compute stream and the other streams during one run of a computation, in ticks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from hlo_inspect.figure import MAX_FIGURE
from hlo_inspect.graph.view import InstructionPlace

TICKS = 10**24
"""Ticks of a second."""

MOST_TICKS = MAX_FIGURE * TICKS
"""No text makes Python count with integers that grow with it."""


@lru_cache(maxsize=4096)  # most kernels take as long as others
def ticks_of(seconds: float) -> int:
    """Return seconds in ticks."""
    return min(round(seconds * TICKS), MAX_FIGURE)


@dataclass(slots=True)
class StreamClock:
    """The time of the compute stream from the start of a computation on, in ticks, and when each other stream is free.

    `compute` is the part that kernels took.
    """

    free: dict[str, int]
    now: int = 0
    compute: int = 0

    def work(self, ticks: int) -> None:
        self.now += ticks
        self.compute += ticks

    def issue(self, streams: Sequence[str], ticks: int) -> tuple[int, int]:
        """Return begin and end of work of this duration on all these streams."""
        begin = max([self.now, *(self.free.get(stream, 0) for stream in streams)])
        self.free |= dict.fromkeys(streams, begin + ticks)
        return begin, begin + ticks

    def wait(self, end: int) -> int:
        """Let the compute stream wait until `end`, and return how long it waits."""
        exposed = max(0, end - self.now)
        self.now += exposed
        return exposed

    def lags(self, streams: Sequence[str]) -> tuple[int, ...]:
        """Return the remaining busy time of each stream."""
        return tuple([max(0, self.free.get(stream, 0) - self.now) for stream in streams])

    def pass_over(self, outcome: TimedRun, streams: Sequence[str]) -> None:
        """Move on to the end of a run of a computation with this outcome."""
        self.now = min(self.now + outcome.passed, MOST_TICKS)
        self.compute = min(self.compute + outcome.compute, MOST_TICKS)
        for stream, lag in zip(streams, outcome.lags, strict=True):
            self.free[stream] = self.now + lag


@dataclass(slots=True, eq=False)
class TimedRun:
    """A run of a computation, entered in a state of its streams, in ticks.

    `passed` is its duration, `compute` the time of kernels of the compute stream in it. `lags`: the remaining busy time of each
    stream. `sites`: window and exposed time of the work that it issues itself. `inner`: the outcomes that it runs, with counts.
    `number` is its index among all followed runs.
    """

    computation: str
    passed: int = 0
    compute: int = 0
    lags: tuple[int, ...] = ()
    sites: dict[InstructionPlace, tuple[int, int]] = field(default_factory=dict)
    inner: list[tuple[TimedRun, int]] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    number: int = -1

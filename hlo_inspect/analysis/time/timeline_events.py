"""Events of each stream: the timeline by instruction, with loops unrolled up to a limit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

from hlo_inspect.analysis.time.program_steps import CallStep, ComputeStep, IssueStep, LoopStep, Step, WaitStep
from hlo_inspect.analysis.time.stream_clock import TICKS, StreamClock
from hlo_inspect.analysis.time.timeline import Timeline
from hlo_inspect.graph.view import InstructionPlace

COMPUTE = "compute"
"""The name of the compute stream."""

MAX_EVENTS = 100_000
MAX_UNROLLED = 16
"""Iterations of one run of a loop that are shown one by one."""

EventKind = Literal["kernel", "issued", "wait", "iteration", "iterations"]


class StreamEvent(NamedTuple):
    """An event of a stream from `begin` to `end`, in seconds.

    `place` is the place of the instruction, of the awaited work, or of the loop of iterations. `iterations` is their number in
    one event.
    """

    stream: str
    kind: EventKind
    place: InstructionPlace
    begin: float
    end: float
    iterations: int = 1


class _Iterations(NamedTuple):
    """Iterations of a loop have ended. The first of them began at this time."""

    loop: InstructionPlace
    begin: int
    trips: int


def timeline_events(timeline: Timeline, limit: int = MAX_EVENTS, unrolled: int = MAX_UNROLLED) -> Iterator[StreamEvent]:
    """Yield the events of one step.

    A loop with more than `unrolled` iterations shows the first ones, and the others as one event. After `limit` events each
    loop is one event.
    """
    return _EventWalk(timeline, limit, unrolled).walk()


class _EventFrame(NamedTuple):
    """A run of a computation or loop to continue, and the ends of its issued work."""

    steps: Iterator[Step | _Iterations]
    issued: dict[InstructionPlace, int]


class _EventWalk:
    """The walk through the program, with one clock for all runs."""

    def __init__(self, timeline: Timeline, limit: int, unrolled: int) -> None:
        self._timeline = timeline
        self._left = limit
        self._unrolled = unrolled
        self._clock = StreamClock({})
        self._frames: list[_EventFrame] = []

    def walk(self) -> Iterator[StreamEvent]:
        self._enter(self._timeline.program.entry)
        while self._frames:
            step = next(self._frames[-1].steps, None)
            if step is None:
                self._frames.pop()
            elif isinstance(step, _Iterations):
                kind: EventKind = "iteration" if step.trips == 1 else "iterations"
                yield self._event(COMPUTE, kind, step.loop, step.begin, self._clock.now, step.trips)
            else:
                yield from self._take(step, self._frames[-1].issued)

    def _enter(self, computation: str) -> None:
        self._frames.append(_EventFrame(iter(self._timeline.program.steps.get(computation, ())), {}))

    def _event(
        self, stream: str, kind: EventKind, place: InstructionPlace, begin: int, end: int, trips: int = 1
    ) -> StreamEvent:
        self._left -= 1
        return StreamEvent(stream, kind, place, begin / TICKS, end / TICKS, trips)

    def _take(self, step: Step, issued: dict[InstructionPlace, int]) -> Iterator[StreamEvent]:
        timeline, clock = self._timeline, self._clock
        if isinstance(step, ComputeStep):
            begin = clock.now
            clock.work(timeline.ticks(step.place))
            yield self._event(COMPUTE, "kernel", step.place, begin, clock.now)
        elif isinstance(step, IssueStep):
            streams = timeline.streams(step.place)
            begin, issued[step.place] = clock.issue(streams, timeline.ticks(step.place))
            for stream in streams:
                yield self._event(stream, "issued", step.place, begin, issued[step.place])
            if step.waits:
                yield from self._wait(step.place, issued)
        elif isinstance(step, WaitStep):
            yield from self._wait(step.place, issued)
        elif isinstance(step, LoopStep):
            self._frames.append(_EventFrame(self._iterations(step), {}))
        elif isinstance(step, CallStep):
            self._enter(step.computation)
        else:
            branch = timeline.branch_taken(step, clock)
            if branch is not None:
                self._enter(branch.computation)

    def _wait(self, place: InstructionPlace, issued: dict[InstructionPlace, int]) -> Iterator[StreamEvent]:
        begin = self._clock.now
        if self._clock.wait(issued.pop(place, 0)):
            yield self._event(COMPUTE, "wait", place, begin, self._clock.now)

    def _iterations(self, loop: LoopStep) -> Iterator[Step | _Iterations]:
        """Yield the steps of a loop. The next item is taken only after the step before it has ended."""
        trips = 1 if loop.trips is None else loop.trips
        shown = 0
        while shown < min(trips, self._unrolled) and self._left > 0:
            begin = self._clock.now
            yield CallStep(loop.place, loop.condition)
            yield CallStep(loop.place, loop.body)
            yield _Iterations(loop.place, begin, 1)
            shown += 1
        if shown < trips:
            begin = self._clock.now
            self._timeline.pass_loop(loop, self._clock, trips - shown)
            yield _Iterations(loop.place, begin, trips - shown)
        yield CallStep(loop.place, loop.condition)

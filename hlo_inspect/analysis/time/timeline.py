"""Timeline of one step of a scheduled program: a compute stream, and streams of collectives and copies.

Issued work begins once its streams are free, in the order of issue. A wait holds the compute stream until that work ends. So
the step is the sum of the work and the waits of the compute stream. Durations are arguments: the model is the same for bounds
and for estimates.

Times are integers of 10^-24 s inside, so that sums are exact. A computation entered in the same state of its streams takes the
same time again. A loop is followed until an iteration begins in the same state as the iteration before; the rest counts as
equal.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from operator import attrgetter
from typing import Literal, NamedTuple

from hlo_inspect.analysis.cost.figures import TOO_LARGE
from hlo_inspect.analysis.time.program_steps import (
    BranchStep,
    ComputeStep,
    IssueStep,
    LoopStep,
    Step,
    TimedProgram,
    WaitStep,
    called_by,
)
from hlo_inspect.analysis.time.stream_clock import MOST_TICKS, TICKS, StreamClock, TimedRun, ticks_of
from hlo_inspect.figure import MAX_FIGURE
from hlo_inspect.graph.calls import recursion
from hlo_inspect.graph.view import InstructionPlace

MAX_ITERATIONS = 64
"""Limit of followed iterations of a loop; the others count as the last followed iteration."""

MAX_STEPS, MAX_TIMES = 100_000, 20
"""Limits of followed steps: in all, and for each step of the program.

Beyond them a computation counts as in the state in which it was followed before.
"""

BranchTaken = Literal["first", "last"]
"""The branch of a conditional that counts: the first to end, or the last."""


class InstructionTimes(NamedTuple):
    """Times of one instruction in one step, in seconds of all its runs.

    `busy`: its own time. `window`: the time of the compute stream's kernels between its start and its done. `exposed`: the
    time that the compute stream waits for it, queues of its streams included.
    """

    runs: int
    busy: float
    window: float
    exposed: float


_NOT_RUN = InstructionTimes(0, 0.0, 0.0, 0.0)


_Request = tuple[str, tuple[int, ...]]
_Walk = Generator[_Request, TimedRun, TimedRun]


class Timeline:
    """A step of a program.

    `seconds` and `streams` are those of one run at a place; work without streams waits for none. All times are in seconds.
    `reason` says why the step is not exact: an unknown trip count, or branches of a conditional that differ.
    """

    def __init__(
        self,
        program: TimedProgram,
        seconds: Callable[[InstructionPlace], float],
        streams: Callable[[InstructionPlace], Sequence[str]],
        branch: BranchTaken = "first",
    ) -> None:
        self.program = program
        self._seconds = seconds
        self.streams = streams
        self._branch = branch
        self._ticks: dict[InstructionPlace, int] = {}
        self._known: dict[_Request, TimedRun] = {}
        self._last: dict[str, TimedRun] = {}
        self._made: list[TimedRun] = []
        self._is_cut = False
        self._left = MAX_STEPS + MAX_TIMES * sum(map(len, program.steps.values()))
        self.used = self._streams_used()
        self.whole = self.outcome(*self._idle_request(program.entry))
        self._runs = self.runs_within(self.whole)
        self.computation_runs = _runs_by_computation(self._runs)
        self._sites = self._sum_sites()

    # -- results --------------------------------------------------------------------------------------------------------

    @property
    def step(self) -> float:
        """The whole run: `compute` plus the exposed time at all sites."""
        return self.whole.passed / TICKS

    @property
    def compute(self) -> float:
        """The kernels of the compute stream."""
        return self.whole.compute / TICKS

    @property
    def reason(self) -> str:
        if self._is_cut:
            return "computations start with more different loads of the streams than the timeline follows"
        return next((reason for outcome in self._made if self._runs[outcome] for reason in outcome.reasons), "")

    def site(self, place: InstructionPlace) -> InstructionTimes:
        """Return the times of the work issued at a place; all 0 without work, or if the place is never reached."""
        return self._sites.get(place, _NOT_RUN)

    def runs(self, place: InstructionPlace) -> int:
        """Return the runs of an instruction on the compute stream."""
        return self.computation_runs[place[0]]

    def computed_in(self, run: TimedRun) -> dict[InstructionPlace, int]:
        """Return the runs of each kernel of the compute stream in one run of a computation, callees included."""
        runs = _runs_by_computation(self.runs_within(run))
        steps = ((step, times) for name, times in runs.items() for step in self.program.steps.get(name, ()))
        return {step.place: times for step, times in steps if isinstance(step, ComputeStep)}

    def computing(self, step: Step) -> int:
        """Return the ticks of the compute stream's kernels in one run of a step, callees included."""
        if isinstance(step, ComputeStep):
            return self.ticks(step.place)
        if isinstance(step, BranchStep):
            branch = self.branch_taken(step, StreamClock({}))
            return 0 if branch is None else branch.compute
        ticks = [self.outcome(*self._idle_request(name)).compute for name in called_by(step)]
        if isinstance(step, LoopStep):
            condition, body = ticks
            return (condition + body) * (1 if step.trips is None else step.trips) + condition
        return sum(ticks)

    # -- following ------------------------------------------------------------------------------------------------------

    def ticks(self, place: InstructionPlace) -> int:
        """Return the ticks (1/`TICKS` s) of one run of the instruction."""
        cached = self._ticks.get(place)
        if cached is None:
            cached = self._ticks[place] = ticks_of(self._seconds(place))
        return cached

    def parallel_run(self, place: InstructionPlace) -> TimedRun | None:
        """Return one run of a computation issued at a place; None if there is none, or if it was not reached."""
        name = self.program.parallel.get(place)
        return None if name is None else self._known.get(self._idle_request(name))

    def _idle_request(self, name: str) -> _Request:
        """Make the request for a computation that is entered when all streams are free."""
        return name, (0,) * len(self.used.get(name, ()))

    def outcome(self, computation: str, lags: tuple[int, ...]) -> TimedRun:
        """Return one run of a computation that is entered with `lags` on its streams.

        Computations call each other deeper than Python's stack goes, so that there is no recursion.
        """
        wanted = computation, lags
        cached = self._earlier_answer(wanted)
        if cached is not None:
            return cached
        waiting: list[tuple[_Request, _Walk]] = [(wanted, self._walk(wanted))]
        running = {computation}
        answer: TimedRun | None = None
        while waiting:
            request, walk = waiting[-1]
            try:
                asked = next(walk) if answer is None else walk.send(answer)
            except StopIteration as stop:
                waiting.pop()
                running.discard(request[0])
                answer = self._known[request] = self._last[request[0]] = stop.value
                self._keep(stop.value)
                continue
            answer = self._earlier_answer(asked)
            if answer is None and asked[0] in running:
                answer = TimedRun(asked[0], lags=asked[1], reasons=[recursion(asked[0])])
                self._keep(answer)
            elif answer is None:
                running.add(asked[0])
                waiting.append((asked, self._walk(asked)))
        return self._known[wanted]

    def _keep(self, run: TimedRun) -> None:
        run.number = len(self._made)
        self._made.append(run)

    def _earlier_answer(self, request: _Request) -> TimedRun | None:
        cached = self._known.get(request)
        if cached is None and self._left < 0:
            cached = self._last.get(request[0])
            self._is_cut = self._is_cut or cached is not None
        return cached

    def _walk(self, request: _Request) -> _Walk:
        """Follow one run of a computation, and request the runs of its callees."""
        name, lags = request
        used = self.used.get(name, ())
        clock = StreamClock(dict(zip(used, lags, strict=True)))
        result = TimedRun(name)
        issued: dict[InstructionPlace, tuple[int, int]] = {}
        steps = self.program.steps.get(name, ())
        self._left -= len(steps) + 1
        for step in steps:
            if isinstance(step, ComputeStep):
                clock.work(self.ticks(step.place))
            elif isinstance(step, IssueStep):
                before = clock.compute
                computation = self.program.parallel.get(step.place)
                if computation is not None:
                    self._ticks[step.place] = (yield self._idle_request(computation)).passed
                _, end = clock.issue(self.streams(step.place), self.ticks(step.place))
                if step.waits:
                    result.sites[step.place] = 0, clock.wait(end)
                else:
                    result.sites[step.place] = 0, 0
                    issued[step.place] = end, before
            elif isinstance(step, WaitStep):
                if step.place in issued:
                    end, before = issued.pop(step.place)
                    result.sites[step.place] = clock.compute - before, clock.wait(end)
            elif isinstance(step, LoopStep):
                yield from self._loop(step, clock, result)
            elif isinstance(step, BranchStep):
                yield from self._conditional(step, clock, result)
            else:
                yield from self._run(step.computation, clock, result)
        if clock.now >= MOST_TICKS:
            result.reasons.append(TOO_LARGE)
        result.passed, result.compute, result.lags = clock.now, clock.compute, clock.lags(used)
        return result

    def _run(self, name: str, clock: StreamClock, result: TimedRun) -> Generator[_Request, TimedRun, TimedRun]:
        used = self.used.get(name, ())
        outcome = yield name, clock.lags(used)
        clock.pass_over(outcome, used)
        result.inner.append((outcome, 1))
        return outcome

    def _loop(self, step: LoopStep, clock: StreamClock, result: TimedRun) -> Generator[_Request, TimedRun, None]:
        if step.trips is None:
            result.reasons.append(f"the trip count of {step.place[2]} (line {step.place[1]}) is unknown")
        yield from self._iterations(step, clock, result, 1 if step.trips is None else step.trips)
        yield from self._run(step.condition, clock, result)

    def _iterations(
        self, step: LoopStep, clock: StreamClock, result: TimedRun, trips: int
    ) -> Generator[_Request, TimedRun, None]:
        """Follow `trips` runs of a loop's body, each after a run of its condition."""
        used = tuple(dict.fromkeys((*self.used.get(step.condition, ()), *self.used.get(step.body, ()))))
        lags: tuple[int, ...] | None = None
        for done in range(trips):
            before, lags = lags, clock.lags(used)
            if lags == before or done == MAX_ITERATIONS:
                if lags != before:
                    place = f"{step.place[2]} (line {step.place[1]})"
                    result.reasons.append(
                        f"the iterations of {place} still differ after {done:,}; the others count like the next one"
                    )
                yield from self._rest_of_loop(step, clock, result, trips - done)
                break
            yield from self._run(step.condition, clock, result)
            yield from self._run(step.body, clock, result)

    def _rest_of_loop(
        self, step: LoopStep, clock: StreamClock, result: TimedRun, times: int
    ) -> Generator[_Request, TimedRun, None]:
        """Follow iterations that all equal the next iteration. Each time a stream falls behind or catches up."""
        iteration = TimedRun(step.place[0])
        entry = StreamClock(dict(clock.free), clock.now)
        yield from self._run(step.condition, entry, iteration)
        yield from self._run(step.body, entry, iteration)
        result.inner += [(outcome, times) for outcome, _ in iteration.inner]
        passed = min((entry.now - clock.now) * times, MOST_TICKS)
        used = {*self.used.get(step.condition, ()), *self.used.get(step.body, ())}
        lags = {
            stream: (max(0, clock.free.get(stream, 0) - clock.now), max(0, entry.free.get(stream, 0) - entry.now))
            for stream in used
        }
        behind = {stream: max(0, after + (after - before) * (times - 1)) for stream, (before, after) in lags.items()}
        clock.now += passed
        clock.compute += min(entry.compute * times, MOST_TICKS)
        clock.free |= {stream: clock.now + lag for stream, lag in behind.items()}

    def _conditional(self, step: BranchStep, clock: StreamClock, result: TimedRun) -> Generator[_Request, TimedRun, None]:
        ends = []
        for name in step.branches:
            ends.append((yield name, clock.lags(self.used.get(name, ()))))
        branch = self._taken(ends)
        if branch is None:
            return
        clock.pass_over(branch, self.used.get(branch.computation, ()))
        result.inner.append((branch, 1))
        if len({(end.passed, end.compute) for end in ends}) > 1:
            result.reasons.append(f"{step.place[2]} (line {step.place[1]}) runs only one of its branches, which differ")

    def _taken(self, ends: Sequence[TimedRun]) -> TimedRun | None:
        pick = min if self._branch == "first" else max
        return pick(ends, key=lambda end: end.passed) if ends else None

    # -- following from outside -----------------------------------------------------------------------------------------

    def branch_taken(self, step: BranchStep, clock: StreamClock) -> TimedRun | None:
        """Return the branch that a conditional runs from that state on."""
        return self._taken([self.outcome(name, clock.lags(self.used.get(name, ()))) for name in step.branches])

    def pass_loop(self, step: LoopStep, clock: StreamClock, trips: int) -> None:
        """Advance the clock to the end of `trips` iterations."""
        walk = self._iterations(step, clock, TimedRun(step.place[0]), trips)
        answer: TimedRun | None = None
        while True:
            try:
                request = next(walk) if answer is None else walk.send(answer)
            except StopIteration:
                return
            answer = self.outcome(*request)

    # -- sums -----------------------------------------------------------------------------------------------------------

    def _streams_used(self) -> dict[str, tuple[str, ...]]:
        """Return the streams that a run of each computation uses, callees included."""
        steps = self.program.steps
        used: dict[str, dict[str, None]] = {name: {} for name in steps}
        callers: dict[str, list[str]] = {name: [] for name in steps}
        for name, steps_of in steps.items():
            for step in steps_of:
                if isinstance(step, ComputeStep):  # as most
                    continue
                if isinstance(step, IssueStep):
                    used[name] |= dict.fromkeys(self.streams(step.place))
                for callee in called_by(step):
                    if callee in callers:
                        callers[callee].append(name)
        changed = [name for name, streams in used.items() if streams]
        while changed:
            name = changed.pop()
            for caller in callers[name]:
                if not used[name].keys() <= used[caller].keys():
                    used[caller] |= used[name]
                    changed.append(caller)
        return {name: tuple(streams) for name, streams in used.items() if streams}

    def runs_within(self, whole: TimedRun) -> Counter[TimedRun]:
        """Return the number of runs of each outcome within one outcome."""
        reached, waiting = {whole}, [whole]
        while waiting:
            new = {inner for inner, _ in waiting.pop().inner} - reached
            reached |= new
            waiting += new
        runs: Counter[TimedRun] = Counter({whole: 1})
        for outcome in sorted(reached, key=attrgetter("number"), reverse=True):  # callees are made before their callers
            for inner, count in outcome.inner:
                runs[inner] = min(runs[inner] + runs[outcome] * count, MAX_FIGURE)
        return runs

    def _sum_sites(self) -> dict[InstructionPlace, InstructionTimes]:
        sums: dict[InstructionPlace, list[int]] = {}
        for outcome, times in self._runs.items():
            for place, (window, exposed) in outcome.sites.items():
                totals = sums.setdefault(place, [0, 0, 0])
                totals[0] = min(totals[0] + times, MAX_FIGURE)
                totals[1] = min(totals[1] + window * times, MOST_TICKS)
                totals[2] = min(totals[2] + exposed * times, MOST_TICKS)
        return {
            place: InstructionTimes(runs, self.ticks(place) * runs / TICKS, window / TICKS, exposed / TICKS)
            for place, (runs, window, exposed) in sums.items()
        }


def _runs_by_computation(runs: Mapping[TimedRun, int]) -> Counter[str]:
    total: Counter[str] = Counter()
    for run, times in runs.items():
        total[run.computation] = min(total[run.computation] + times, MAX_FIGURE)
    return total

"""Timelines of a module on an accelerator, by bounds and by estimates; compute that can hide collectives.

A timeline gives the time that each kernel and each collective adds to the step: kernels of the compute stream, and exposed
time. An asynchronous copy, or another computation off the compute stream, counts among the kernels by its exposed time. If the
text is no schedule, nothing is known to hide anything. Kernels then run one after the other, and collectives are in no step.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from itertools import repeat
from operator import attrgetter
from typing import NamedTuple

from hlo_inspect.analysis.collectives.logical_collectives import Collective
from hlo_inspect.analysis.cost.kernels import Kernel
from hlo_inspect.analysis.time.collective_times import CollectiveTime
from hlo_inspect.analysis.time.kernel_times import KernelTime, KernelTimes
from hlo_inspect.analysis.time.program_steps import IssuedWork, WaitStep
from hlo_inspect.analysis.time.stream_clock import TICKS
from hlo_inspect.analysis.time.timeline import BranchTaken, InstructionTimes, Timeline
from hlo_inspect.figure import Quantity, between, first_reason, known_part, least, reason, total
from hlo_inspect.graph.calls import place
from hlo_inspect.graph.orders import operands_first
from hlo_inspect.graph.view import InstructionPlace, View, Views

LONGEST = 1e6
"""The seconds of a kernel that may be as long as it likes: longer than all that runs beside it."""


class TimedStep:
    """A step of a program.

    `seconds` are the seconds of one run of each kernel and collective by place; `streams` are the streams of each collective.
    `gaps` are the reasons of kernels and collectives that may take longer. What runs beside a kernel is exposed for its known
    time or for less, and so is a copy beside a collective or another computation. A kernel that runs an unknown number of times
    may take longer too, or not run.
    """

    def __init__(
        self,
        work: IssuedWork,
        seconds: Mapping[InstructionPlace, float],
        streams: Callable[[Collective], Sequence[str]],
        gaps: Mapping[InstructionPlace, str],
    ) -> None:
        self.work = work
        self._seconds = seconds

        def streams_of(position: InstructionPlace) -> Sequence[str]:
            collective = work.collectives.get(position)
            return work.streams.get(position, ()) if collective is None else streams(collective)

        self.timeline = Timeline(work.program, seconds.__getitem__, streams_of)
        open_runs = self._open_runs() if work.issued and self.timeline.reason else {}
        gaps = {**gaps, **open_runs}
        kernels = [p for p in gaps if p in open_runs or p in self.computed] if gaps and work.issued else []
        others = [position for position in gaps if position in work.issued or position in self._parallel_runs]
        issued = others if work.streams else []
        self._why = f"it runs beside work of unknown length: {next(map(gaps.__getitem__, (*kernels, *issued)), '')}"
        longest: BranchTaken = "last" if open_runs else "first"
        self._longer = [
            Timeline(work.program, {**seconds, **dict.fromkeys(open_ended, LONGEST)}.__getitem__, streams_of, longest)
            for open_ended in (kernels, issued)
            if open_ended
        ]
        if open_runs:
            self._longer.append(Timeline(work.program, seconds.__getitem__, streams_of, "last"))
        self._shrinks = bool(issued)

    def _open_runs(self) -> dict[InstructionPlace, str]:
        """Return why the runs of a kernel of the compute stream are unknown: it is in a loop or in a branch."""
        own = (item for item in self.work.kernels.items() if item[0] not in self.work.issued)
        return {place: reason(kernel.runs) for place, kernel in own if reason(kernel.runs) and not self.collective_at(place)}

    def collective_at(self, position: InstructionPlace) -> Collective | None:
        """Return the collective that an instruction is, starts or wraps."""
        return self.work.collectives.get(position) or self.work.inner.get(position)

    # -- totals ---------------------------------------------------------------------------------------------------------

    @cached_property
    def kernels_s(self) -> float:
        """The least time that kernels add to the step."""
        if self._shrinks:
            return self.timeline.compute + sum(least(self._range(position)) for position in self._copies)
        return self.timeline.compute + sum(self._exposed[position] for position in self._copies)

    @property
    def copies_gap(self) -> str:
        """The reason why copies may add more than `kernels_s` says: they run beside issued work of unknown length."""
        return first_reason(map(self._range, self._copies)) if self._shrinks else ""

    @cached_property
    def _copies(self) -> Sequence[InstructionPlace]:
        """The issued work other than collectives."""
        return [position for position in self._exposed if self.collective_at(position) is None]

    @cached_property
    def exposed_s(self) -> float:
        """The time that collectives then add to the step."""
        return sum(seconds for position, seconds in self._exposed.items() if self.collective_at(position) is not None)

    @property
    def exposed_collective_s(self) -> Quantity:
        """The time that collectives add to the step."""
        if not self.has_ranges:
            return self.exposed_s
        return total(self._range(position) for position in self._exposed if self.collective_at(position) is not None)

    @property
    def has_ranges(self) -> bool:
        """True if exposed times depend on the unknown lengths of kernels."""
        return bool(self._longer)

    # -- each -----------------------------------------------------------------------------------------------------------

    def kernel_seconds(self, kernel: Kernel) -> Quantity:
        """Return the time that all runs of a kernel add to the step; for a collective the time of its runs, hidden or not."""
        position = kernel.place
        collective = self.collective_at(position)
        if collective is not None:
            return self.site_of(collective).busy
        runs = self.computed.get(position)
        return self._range(position) if runs is None else runs * self.timeline.ticks(position) / TICKS

    def exposed_seconds(self, kernel: Kernel) -> Quantity | None:
        """Return the exposed time of all runs of a kernel that runs beside the compute stream; None for one of that stream."""
        position = kernel.place
        collective = self.collective_at(position)
        if collective is not None:
            return self.exposed_of(collective)
        return None if position in self.computed else self._range(position)

    def exposed_of(self, collective: Collective) -> Quantity:
        """Return the exposed time of all runs of a collective."""
        position = place(collective.start)
        if position not in self.work.issued:
            return self._range(place(collective.inner))
        return self._between([timeline.site(position).exposed for timeline in (self.timeline, *self._longer)])

    def window_of(self, collective: Collective) -> Quantity:
        """Return the time of kernels between start and done, in all runs of a collective."""
        position = place(collective.start)
        window = self.timeline.site(position).window
        is_open = any(timeline.site(position).window > window for timeline in self._longer)
        return known_part(window, self._why if is_open else "")

    def site_of(self, collective: Collective) -> InstructionTimes:
        """Return the times of all runs of a collective, beside kernels as short as possible."""
        position = place(collective.start)
        if position in self.work.issued:
            return self.timeline.site(position)
        inner = place(collective.inner)
        runs = self._parallel_runs.get(inner, self.timeline.runs(position))
        return InstructionTimes(runs, runs * self._seconds[position], 0.0, self._exposed.get(inner, 0.0))

    @cached_property
    def computed(self) -> Mapping[InstructionPlace, int]:
        """The runs of each kernel of the compute stream."""
        return self.timeline.computed_in(self.timeline.whole)

    @cached_property
    def _exposed(self) -> Mapping[InstructionPlace, float]:
        """The exposed time by instruction, beside kernels as short as possible."""
        return self._exposed_in(self.timeline)

    @cached_property
    def _exposed_beside(self) -> list[Mapping[InstructionPlace, float]]:
        """The exposed time by instruction, beside work as short as possible and as long as it may be."""
        return [self._exposed, *map(self._exposed_in, self._longer)]

    def _range(self, position: InstructionPlace) -> Quantity:
        """Return the exposed time of an instruction."""
        return self._between([exposed.get(position, 0.0) for exposed in self._exposed_beside])

    def _between(self, ends: Sequence[float]) -> Quantity:
        most = max(ends)
        return between(min(ends), most if most < LONGEST / 2 else None, self._why)

    def _exposed_in(self, timeline: Timeline) -> Mapping[InstructionPlace, float]:
        """Return the exposed time by instruction.

        The exposed time of a computation off the compute stream is split by the times inside.
        """
        seconds_at: defaultdict[InstructionPlace, float] = defaultdict(float)
        for position in self.work.issued:
            exposed = timeline.site(position).exposed
            for inner, share in self._shares(position).items():
                seconds_at[inner] += exposed * share
        return seconds_at

    def _shares(self, position: InstructionPlace) -> Mapping[InstructionPlace, float]:
        """Return the instructions that are issued at a place, each with its share of the time."""
        run = self.timeline.parallel_run(position)
        if run is None:
            return {position: 1.0}
        ticks = {inner: runs * self.timeline.ticks(inner) for inner, runs in self.timeline.computed_in(run).items()}
        whole = sum(ticks.values())
        return {inner: ticks_inside / whole for inner, ticks_inside in ticks.items()} if whole else {position: 1.0}

    @cached_property
    def _parallel_runs(self) -> Mapping[InstructionPlace, int]:
        """The runs of instructions in computations off the compute stream."""
        counts: Counter[InstructionPlace] = Counter()
        for position in self.work.program.parallel:
            run, issued = self.timeline.parallel_run(position), self.timeline.site(position).runs
            for inner, runs in self.timeline.computed_in(run).items() if run is not None else ():
                counts[inner] += runs * issued
        return counts


class Timelines(NamedTuple):
    """`bound` has the shortest possible durations: it is a lower bound for this schedule.

    `estimate` has the durations of the model. `is_scheduled`: True if the text is a schedule.
    """

    bound: TimedStep
    estimate: TimedStep
    is_scheduled: bool


def find_timelines(
    work: IssuedWork, kernels: KernelTimes, collectives: Mapping[InstructionPlace, CollectiveTime], *, is_scheduled: bool
) -> Timelines:
    """Return the timelines of a program with the times of its kernels, and of its collectives by place."""

    def streams(collective: Collective) -> Sequence[str]:
        return collectives[place(collective.start)].streams

    times = kernels.for_each(work.kernels.values())

    def seconds(
        of_kernel: Callable[[KernelTime], float], of_collective: Callable[[CollectiveTime], float]
    ) -> dict[InstructionPlace, float]:
        durations = dict(zip(work.kernels, map(of_kernel, times), strict=True))
        for position, collective in (*work.inner.items(), *work.collectives.items()):
            durations[position] = of_collective(collectives[place(collective.start)])
        return durations

    def estimate_s(time: CollectiveTime) -> float:
        return time.estimate_s if time.estimate_s is not None else time.bound_s or 0.0

    def gaps(
        of_kernel: Callable[[KernelTime], str], of_collective: Callable[[CollectiveTime], float | None]
    ) -> dict[InstructionPlace, str]:
        by_place = {position: of_kernel(time) for position, time in zip(work.kernels, times, strict=True)}
        for position, collective in work.collectives.items():
            time = collectives[place(collective.start)]
            by_place[position] = time.reason if of_collective(time) is None else ""
        return {position: why for position, why in by_place.items() if why}

    bound = seconds(attrgetter("bound_s"), lambda time: time.bound_s or 0.0)
    estimate = seconds(attrgetter("estimate_s"), estimate_s)
    return Timelines(
        TimedStep(work, bound, streams, gaps(attrgetter("bound_gap"), attrgetter("bound_s"))),
        TimedStep(work, estimate, streams, gaps(attrgetter("estimate_gap"), attrgetter("estimate_s"))),
        is_scheduled,
    )


class IndependentCompute(NamedTuple):
    """Seconds of the compute stream in all runs of a collective's computation, and the instruction with most of them."""

    seconds: float
    longest: str


def independent_computes(step: TimedStep, views: Views, collectives: Sequence[Collective]) -> list[IndependentCompute | None]:
    """Return the compute that could hide each collective, in its own computation.

    Loops and calls in it count with all their compute. None if the computation of a collective is not in the order of a
    schedule.
    """
    starts = [place(collective.start) for collective in collectives]
    together: defaultdict[str, list[InstructionPlace]] = defaultdict(list)
    for start in starts:
        if start in step.work.issued:
            together[start[0]].append(start)
    computes: dict[InstructionPlace, IndependentCompute] = {}
    for name, own in together.items():
        computes |= _in_computation(step, views.for_computation(name), own)
    return [computes.get(start) for start in starts]


def _in_computation(
    step: TimedStep, view: View, starts: Sequence[InstructionPlace]
) -> dict[InstructionPlace, IndependentCompute]:
    """Return the compute that could hide each collective that starts at these places of one computation."""
    timeline, steps = step.timeline, step.work.program.steps[starts[0][0]]
    rows = {position: row for row, position in enumerate(zip(repeat(starts[0][0]), view.lines, view.names))}
    dones = {
        schedule_step.place: schedule_step.done for schedule_step in reversed(steps) if isinstance(schedule_step, WaitStep)
    }
    tied = _tied_collectives(view, [(rows[start], rows[dones.get(start, start)]) for start in starts])
    whole: Counter[int] = Counter()  # by the collectives to which the steps are tied, as bits
    longest: dict[int, tuple[int, str]] = {}
    for schedule_step in steps:
        ticks = timeline.computing(schedule_step)
        if ticks:
            bits = tied[rows[schedule_step.place]]
            whole[bits] += ticks
            longest[bits] = max(longest.get(bits, (0, "")), (ticks, schedule_step.place[2]))
    computes = {}
    for number, start in enumerate(starts):
        free = [bits for bits in whole if not bits >> number & 1]
        seconds = sum([whole[bits] for bits in free]) * timeline.site(start).runs / TICKS
        computes[start] = IndependentCompute(seconds, max([longest[bits] for bits in free], default=(0, ""))[1])
    return computes


def _tied_collectives(view: View, collectives: Sequence[tuple[int, int]]) -> list[int]:
    """Return, as bits for each row, the collectives that depend on it at the start or that it depends on at the end.

    A row is tied to a collective if it makes an operand of its start or uses the result of its end. `collectives` are the rows
    of start and end.
    """
    order = _operands_first(view)
    before, behind = [0] * len(view.rows), [0] * len(view.rows)
    for number, (start, done) in enumerate(collectives):
        before[start] |= 1 << number
        behind[done] |= 1 << number
    for row in order:
        for operand in view.operand_rows(row):
            if operand is not None:
                behind[row] |= behind[operand]
    for row in reversed(order):
        if before[row]:
            for operand in view.operand_rows(row):
                if operand is not None:
                    before[operand] |= before[row]
    return [mask | other for mask, other in zip(before, behind, strict=True)]


def _operands_first(view: View) -> Sequence[int]:
    """Return the rows, operands before users.

    This is the order of the text, unless the text is no schedule despite its header.
    """
    rows = range(len(view.rows))
    if all(operand is None or operand < row for row in rows for operand in view.operand_rows(row)):
        return rows
    return list(operands_first(rows, lambda row: [defined for defined in view.operand_rows(row) if defined is not None]))

"""The timelines of a module on an accelerator, one at bound durations and one at those of the model, and what each kernel and
each collective adds to the step.

The step is what kernels take on the compute stream and what of the collectives nothing hides. An asynchronous copy, or another
computation that runs beside the compute stream, counts among the kernels with what of it nothing hides. Where the text is no
schedule, nothing is known to hide anything: kernels run one after the other, and collectives are in no step.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from operator import attrgetter
from typing import NamedTuple

from hlo_inspect.analysis.collectives import Collective
from hlo_inspect.analysis.cost.kernels import Kernel
from hlo_inspect.analysis.time.collective_times import CollectiveTime
from hlo_inspect.analysis.time.kernel_times import KernelTime, KernelTimes
from hlo_inspect.analysis.time.program_steps import IssuedWork
from hlo_inspect.analysis.time.timeline import TICKS, BranchTaken, InstructionTimes, Timeline
from hlo_inspect.graph.calls import InstructionPlace, place


class TimedStep:
    """One run of a program. `seconds` are those of one run of each kernel and collective by place, as far as they are known;
    `streams` those of a collective.
    """

    def __init__(
        self,
        work: IssuedWork,
        seconds: Mapping[InstructionPlace, float],
        streams: Callable[[Collective], Sequence[str]],
        branch: BranchTaken,
    ) -> None:
        self.work = work
        self._seconds = seconds

        def streams_of(at: InstructionPlace) -> Sequence[str]:
            collective = work.collectives.get(at)
            return work.streams.get(at, ()) if collective is None else streams(collective)

        self.timeline = Timeline(work.program, seconds.__getitem__, streams_of, branch)

    def collective_at(self, at: InstructionPlace) -> Collective | None:
        """The collective that an instruction is, starts or wraps."""
        return self.work.collectives.get(at) or self.work.inner.get(at)

    # -- totals ---------------------------------------------------------------------------------------------------------

    @cached_property
    def kernels_s(self) -> float:
        """What kernels add to the step."""
        beside = sum(seconds for at, seconds in self._exposed.items() if self.collective_at(at) is None)
        return self.timeline.compute + beside

    @cached_property
    def exposed_collective_s(self) -> float:
        """What collectives add to the step."""
        return sum(seconds for at, seconds in self._exposed.items() if self.collective_at(at) is not None)

    # -- each -----------------------------------------------------------------------------------------------------------

    def kernel_seconds(self, kernel: Kernel) -> float:
        """What all runs of a kernel add to the step; of a collective how long all its runs take, hidden or not."""
        at = kernel.place
        collective = self.collective_at(at)
        if collective is not None:
            return self.site_of(collective).busy
        runs = self.computed.get(at)
        return self._exposed.get(at, 0.0) if runs is None else runs * self.timeline.ticks(at) / TICKS

    def site_of(self, collective: Collective) -> InstructionTimes:
        """All runs of a collective."""
        at = place(collective.start)
        if at in self.work.issued:
            return self.timeline.site(at)
        inner = place(collective.inner)
        runs = self._computed_beside.get(inner, self.timeline.runs(at))
        return InstructionTimes(runs, runs * self._seconds[at], 0.0, self._exposed.get(inner, 0.0))

    @cached_property
    def computed(self) -> Mapping[InstructionPlace, int]:
        """How often each kernel of the compute stream runs."""
        return self.timeline.computed_in(self.timeline.whole)

    @cached_property
    def _exposed(self) -> Mapping[InstructionPlace, float]:
        """What is exposed of each instruction; of a computation beside the compute stream of what it holds, by its time."""
        found: defaultdict[InstructionPlace, float] = defaultdict(float)
        for at in self.work.issued:
            exposed = self.timeline.site(at).exposed
            for inner, share in self._shares(at).items():
                found[inner] += exposed * share
        return found

    def _shares(self, at: InstructionPlace) -> Mapping[InstructionPlace, float]:
        """The instructions that are issued at a place, each with its share of the time."""
        run = self.timeline.beside(at)
        if run is None:
            return {at: 1.0}
        ticks = {inner: runs * self.timeline.ticks(inner) for inner, runs in self.timeline.computed_in(run).items()}
        whole = sum(ticks.values())
        return {inner: one / whole for inner, one in ticks.items()} if whole else {at: 1.0}

    @cached_property
    def _computed_beside(self) -> Mapping[InstructionPlace, int]:
        """How often instructions run in computations beside the compute stream."""
        found: Counter[InstructionPlace] = Counter()
        for at in self.work.program.beside:
            run, issued = self.timeline.beside(at), self.timeline.site(at).runs
            for inner, runs in self.timeline.computed_in(run).items() if run is not None else ():
                found[inner] += runs * issued
        return found


class Timelines(NamedTuple):
    """`bound`: at durations that nothing can be below, a lower bound for this schedule; `estimate`: at those of the model.

    `is_scheduled`: whether the text is a schedule.
    """

    bound: TimedStep
    estimate: TimedStep
    is_scheduled: bool


def find_timelines(
    work: IssuedWork, kernels: KernelTimes, collectives: Mapping[InstructionPlace, CollectiveTime], *, is_scheduled: bool
) -> Timelines:
    """The timelines of a program with the times of its kernels and those of its collectives by place."""

    def streams(collective: Collective) -> Sequence[str]:
        return collectives[place(collective.start)].streams

    times = list(map(kernels.of, work.kernels.values()))

    def seconds(
        of_kernel: Callable[[KernelTime], float], of_collective: Callable[[CollectiveTime], float]
    ) -> dict[InstructionPlace, float]:
        found = dict(zip(work.kernels, map(of_kernel, times), strict=True))
        for at, one in (*work.inner.items(), *work.collectives.items()):
            found[at] = of_collective(collectives[place(one.start)])
        return found

    def estimate_s(time: CollectiveTime) -> float:
        return time.estimate_s if time.estimate_s is not None else time.bound_s or 0.0

    bound = seconds(attrgetter("bound_s"), lambda time: time.bound_s or 0.0)
    estimate = seconds(attrgetter("estimate_s"), estimate_s)
    return Timelines(TimedStep(work, bound, streams, "first"), TimedStep(work, estimate, streams, "last"), is_scheduled)

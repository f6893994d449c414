"""Times of one step: FLOPs alone, bytes alone, kernels one after the other; times of each kernel in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import NamedTuple

from hlo_inspect.analysis.cost.figures import Tally, countable
from hlo_inspect.analysis.cost.kernels import Kernel
from hlo_inspect.analysis.cost.module_cost import ModuleCost
from hlo_inspect.analysis.cost.roofline import compute_time, memory_time
from hlo_inspect.analysis.time.collective_times import CollectiveTime
from hlo_inspect.analysis.time.kernel_times import KernelTime, KernelTimes
from hlo_inspect.analysis.time.timelines import TimedStep, Timelines
from hlo_inspect.figure import (
    Figure,
    Quantity,
    at_least,
    between,
    first_reason,
    greatest,
    known_part,
    least,
    multiply,
    reason,
    total,
    unknown,
)
from hlo_inspect.graph.view import InstructionPlace


def flops_time(tally: Tally, times: KernelTimes) -> Quantity:
    """Return the time of the FLOPs of one device, each at the peak of the unit that does it."""
    compute = compute_time(tally, times.profile)
    return known_part(least(compute) / times.devices, reason(compute))


def bytes_time(tally: Tally, times: KernelTimes) -> Quantity:
    """Return the time of the bytes of the device's memory at its bandwidth."""
    return known_part(0.0, times.bytes_gap) if times.bytes_gap else memory_time(tally, times.profile)


def estimate_gaps(kernels: Sequence[Kernel], times: KernelTimes) -> str:
    """Return the gaps of the kernels' estimates, with the number of kernels; empty if they are complete."""
    return _sum_gaps(kernels, times, lambda time: time.estimate_gap)


NO_SCHEDULE = "the module is not scheduled, so overlap with compute is unknown"


def _exposed(step: TimedStep, missing: Sequence[str], count: int) -> Quantity:
    """Return the time that collectives add to a step.

    `missing` holds a reason for each of the `count` collectives whose time is unknown.
    """
    if not count:
        return 0
    gap = f"the time of {len(missing):,} of {count:,} collectives is unknown: {missing[0]}" if missing else ""
    return _with_gap(step.exposed_collective_s, step.timeline.reason or gap)


def seconds_times_runs(seconds: float | None, runs: Quantity, reason_unknown: str) -> Quantity:
    """Return the time of all runs of `seconds` each; unknown if `seconds` is None."""
    if seconds is None:
        return known_part(0.0, reason_unknown) if greatest(runs) != 0 else 0.0
    return known_part(seconds * least(runs), reason(runs))


def sum_of(*times: Quantity) -> Quantity:
    """Add up several times; without any the sum is 0."""
    limits = [limit for limit in map(greatest, times) if limit is not None]
    whole, why = sum([least(time) for time in times], 0.0), first_reason(times)
    return between(whole, sum(limits) if len(limits) == len(times) else None, why) if why else whole


_ALONE = ("compute", "memory", "collectives")


class StepTimes(NamedTuple):
    """The times of one step.

    `compute`, `memory` and `collectives` are the bounds of all FLOPs, bytes and collectives alone. `kernels` and `exposed` (the
    exposed part of collectives) add up to `step`, unless a kernel of unknown length leaves open how long something is exposed.
    The step is longer if a unit or a link that works for several streams is busy for longer. Each of the three has a bound and
    an estimate.
    """

    compute: Quantity
    memory: Quantity
    collectives: Quantity
    kernels: Quantity
    exposed: Quantity
    step: Quantity
    estimate_kernels: Quantity
    estimate_exposed: Quantity
    estimate_step: Quantity

    def with_busy(self, busy_s: float) -> StepTimes:
        """Return these times with a step of at least the busy seconds of a unit or a link. Its estimate is at least its bound.

        What runs on several units or links at once takes no longer than the step, though its times add up to more.
        """
        step = known_part(max(least(self.step), busy_s), reason(self.step))
        likely = known_part(max(least(self.estimate_step), least(step)), reason(self.estimate_step))
        alone = (_within(time, step) for time in (self.compute, self.memory, self.collectives))
        return self._replace(**dict(zip(_ALONE, alone, strict=True)), step=step, estimate_step=likely)

    def without_entry(self) -> StepTimes:
        """Return these times as lower bounds, for a text that does not hold the entry computation."""
        return StepTimes(
            *(known_part(least(seconds), reason(seconds) or "the module has no entry computation") for seconds in self)
        )


def _within(time: Quantity, step: Quantity) -> Quantity:
    """Return the time, which is never longer than the step; the step may be a lower bound."""
    if least(time) <= least(step):
        return time
    return between(least(step), greatest(time), reason(time) or reason(step)) if reason(step) else least(step)


def find_step_times(
    cost: ModuleCost,
    kernels: Sequence[Kernel],
    times: KernelTimes,
    collectives: Sequence[CollectiveTime],
    collectives_alone: Quantity,
    timelines: Timelines,
) -> StepTimes:
    """Return the times of one step. `kernels` are without collectives; `collectives_alone` is the time of all collectives."""
    compute = flops_time(cost.opcodes, times)
    memory = bytes_time(cost.opcodes, times)
    kernels_gap = _sum_gaps(kernels, times, lambda time: time.bound_gap)
    kernels_bound = known_part(timelines.bound.kernels_s, kernels_gap or timelines.bound.copies_gap)
    likely = known_part(timelines.estimate.kernels_s, estimate_gaps(kernels, times) or timelines.estimate.copies_gap)
    if timelines.is_scheduled:
        no_bound = [collective.reason for collective in collectives if collective.bound_s is None]
        no_estimate = [collective.reason for collective in collectives if collective.estimate_s is None]
        exposed = _exposed(timelines.bound, no_bound, len(collectives))
        likely_exposed = _exposed(timelines.estimate, no_estimate, len(collectives))
        step = known_part(least(kernels_bound) + timelines.bound.exposed_s, first_reason((kernels_bound, exposed)))
        likely_step = known_part(least(likely) + timelines.estimate.exposed_s, first_reason((likely, likely_exposed)))
    else:
        times_alone = (compute, memory, collectives_alone)
        exposed = likely_exposed = at_least(0.0, NO_SCHEDULE)
        step = known_part(max(map(least, times_alone)), first_reason((memory, collectives_alone, compute)))
        likely_step = at_least(max(least(likely), least(step)), NO_SCHEDULE)
    return StepTimes(compute, memory, collectives_alone, kernels_bound, exposed, step, likely, likely_exposed, likely_step)


NOT_STATED = unknown("the text does not state the compiler's own estimates in cycles")


def compiler_cycles(kernels: Sequence[Kernel], times: KernelTimes) -> Quantity:
    """Add up the compiler's own estimates that are stated in cycles."""
    stated = zip(kernels, times.for_each(kernels), strict=True)
    cycles = [multiply(time.compiler_cycles, kernel.runs) for kernel, time in stated if time.compiler_cycles is not None]
    return countable(total(cycles)) if cycles else NOT_STATED


def compiler_seconds(kernels: Sequence[Kernel], times: KernelTimes) -> Quantity:
    """Add up the compiler's own estimates that are a time, or cycles of a known clock."""
    stated = zip(kernels, times.for_each(kernels), strict=True)
    return sum_of(
        *[seconds_times_runs(time.compiler_s, kernel.runs, "") for kernel, time in stated if time.compiler_s is not None]
    )


_MOST_GAPS = 3
"""Number of reasons named for unknown times."""


def _sum_gaps(kernels: Sequence[Kernel], times: KernelTimes, gap_of: Callable[[KernelTime], str]) -> str:
    """Return the gaps of a sum over kernels, with the number of kernels of each kind; empty if it is complete."""
    if times.bytes_gap:
        return times.bytes_gap
    counts = Counter(map(attrgetter("twin"), kernels))
    firsts = {kernel.twin: kernel for kernel in reversed(kernels)}
    running = [firsts[twin] for twin in counts if greatest(firsts[twin].runs) != 0]
    gaps: Counter[str] = Counter()
    for kernel in running:
        gap = gap_of(times.for_kernel(kernel))
        if gap:
            gaps[gap] += counts[kernel.twin]
    return "; ".join([*_listed(gaps), *_unknown_runs(running)])


def _listed(gaps: Counter[str]) -> Iterator[str]:
    for gap, count in gaps.most_common(_MOST_GAPS):
        yield f"{gap} ({count:,} {'kernel' if count == 1 else 'kernels'})"
    if len(gaps) > _MOST_GAPS:
        yield f"and {gaps.total() - sum(count for _, count in gaps.most_common(_MOST_GAPS)):,} more kernels"


def _unknown_runs(kernels: Iterable[Kernel]) -> Iterator[str]:
    """Yield the reason why the runs of a kernel are unknown, for the first such kernel."""
    reasons = (kernel.runs.reason for kernel in kernels if isinstance(kernel.runs, Figure))
    yield from filter(None, [next(reasons, "")])


class RowTimes(NamedTuple):
    """Seconds of all runs of a kernel or several: bound, estimate, and the compiler's own estimate if all have one.

    `bound_by` is `compute`, `memory` or `collective`. A kernel that runs beside others is `exposed` while the step
    waits for it; the field is None for a kernel of the compute stream. `in_step` is the part of the estimate that is in the
    step: the exposed one, or all. Both are None without a schedule.
    """

    bound: Quantity
    estimate: Quantity
    compiler: Quantity | None
    bound_by: str | None = None
    exposed: Quantity | None = None
    in_step: Quantity | None = None

    @staticmethod
    def sum(rows: Sequence[RowTimes]) -> RowTimes:
        """Add up several times that are bound by the same resource."""
        compiler = [row.compiler for row in rows if row.compiler is not None]
        exposed = [row.exposed for row in rows if row.exposed is not None]
        in_step = [row.in_step for row in rows if row.in_step is not None]
        return RowTimes(
            sum_of(*[row.bound for row in rows]),
            sum_of(*[row.estimate for row in rows]),
            sum_of(*compiler) if len(compiler) == len(rows) else None,
            rows[0].bound_by,
            sum_of(*exposed) if exposed else None,
            sum_of(*in_step) if in_step else None,
        )


NO_TIME = RowTimes(0.0, 0.0, None)


def _with_gap(seconds: Quantity, gap: str) -> Quantity:
    """Return the time as a lower bound if there is a gap."""
    return known_part(least(seconds), gap) if gap else seconds


class TimesInStep:
    """The times of all runs of a kernel in the step.

    A kernel off the compute stream counts its exposed time. One of the `collectives`, by place, counts the time of its links,
    hidden or not. Kernels with one `twin` share a `RowTimes`.
    """

    def __init__(
        self, times: KernelTimes, timelines: Timelines, collectives: Mapping[InstructionPlace, CollectiveTime]
    ) -> None:
        self._times = times
        self._timelines = timelines
        self._collectives = collectives
        self._known: dict[int, RowTimes] = {}

    def for_kernel(self, kernel: Kernel) -> RowTimes:
        """Return the times of a kernel."""
        cached = self._known.get(kernel.twin)
        if cached is None:
            cached = self._known[kernel.twin] = self._find(kernel, self._collectives.get(kernel.place))
        return cached

    def _find(self, kernel: Kernel, collective: CollectiveTime | None) -> RowTimes:
        own, timelines = self._times.for_kernel(kernel), self._timelines
        bound_gap, estimate_gap, bound_by = own.bound_gap, own.estimate_gap, own.bound_by
        if collective is not None:
            bound_by = "collective" if collective.bound_s else None
            bound_gap = "" if collective.bound_s is not None else collective.reason
            estimate_gap = "" if collective.estimate_s is not None else collective.reason
        unknown_runs = next(_unknown_runs([kernel]), "")
        waited = timelines.estimate.exposed_seconds(kernel) if timelines.is_scheduled else None
        exposed = None if waited is None else _with_gap(waited, estimate_gap or unknown_runs)
        estimate = _with_gap(timelines.estimate.kernel_seconds(kernel), estimate_gap or unknown_runs)
        return RowTimes(
            _with_gap(timelines.bound.kernel_seconds(kernel), bound_gap or unknown_runs),
            estimate,
            None if own.compiler_s is None else known_part(own.compiler_s * least(kernel.runs), unknown_runs),
            bound_by,
            exposed,
            (estimate if exposed is None else exposed) if timelines.is_scheduled else None,
        )

"""The times of one run of the program: FLOPs alone, bytes alone, and its kernels one after the other."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import reduce
from typing import NamedTuple

from hlo_inspect.analysis.calls import Bounds
from hlo_inspect.analysis.cost.executed import countable
from hlo_inspect.analysis.cost.figures import MAX_COUNT, Tally
from hlo_inspect.analysis.cost.kernels import Kernel
from hlo_inspect.analysis.cost.roofline import Seconds, compute_time, memory_time
from hlo_inspect.analysis.time.collective_times import CollectiveTime
from hlo_inspect.analysis.time.kernel_times import KernelTime, KernelTimes


def flops_time(tally: Tally, times: KernelTimes) -> Seconds:
    """The time of the FLOPs of one device, each at the peak of the unit that does it."""
    found = compute_time(tally, times.profile)
    return found._replace(least=found.least / times.devices)


def bytes_time(tally: Tally, times: KernelTimes) -> Seconds:
    """The time of the bytes of the device's memory at its bandwidth."""
    return Seconds(0.0, times.bytes_gap) if times.bytes_gap else memory_time(tally, times.profile)


def least_runs(kernel: Kernel) -> int:
    """How often a kernel runs at least, whichever branch of a conditional is taken."""
    return min(*kernel.parts[0].least.least, MAX_COUNT)


def kernels_bound(kernels: Iterable[Kernel], times: KernelTimes) -> Seconds:
    """The time of all runs of kernels, one after the other, at least."""
    found = list(kernels)
    seconds = math.fsum(times.of(kernel).bound_s * least_runs(kernel) for kernel in found)
    return Seconds(seconds, _missing(found, times, lambda time: time.bound_gap))


def kernels_estimate(kernels: Iterable[Kernel], times: KernelTimes) -> Seconds:
    """The time of all runs of kernels by the model."""
    found = list(kernels)
    seconds = math.fsum(times.of(kernel).estimate_s * least_runs(kernel) for kernel in found)
    return Seconds(seconds, _missing(found, times, lambda time: time.estimate_gap))


NOT_STATED = Bounds(0, None, "the text has no estimates of the compiler in cycles")


def compiler_cycles(kernels: Iterable[Kernel], times: KernelTimes) -> Bounds:
    """The sum of the compiler's own estimates, as far as it states them in cycles."""
    stated = ((kernel, times.of(kernel).compiler_cycles) for kernel in kernels)
    cycles = [Bounds.exactly(one).times(kernel.runs.bounds) for kernel, one in stated if one is not None]
    return countable(reduce(Bounds.plus, cycles)) if cycles else NOT_STATED


_MOST_GAPS = 3
"""So many reasons why times are not known are named."""


def _missing(kernels: Iterable[Kernel], times: KernelTimes, gap_of: Callable[[KernelTime], str]) -> str:
    """What a sum over kernels lacks, with how many kernels of each kind it lacks; empty where it lacks nothing."""
    if times.bytes_gap:
        return times.bytes_gap
    running = [kernel for kernel in kernels if kernel.runs.at_most != 0]
    gaps = Counter(filter(None, (gap_of(times.of(kernel)) for kernel in running)))
    return "; ".join([*_listed(gaps), *_unknown_runs(running)])


def _listed(gaps: Counter[str]) -> Iterator[str]:
    for gap, count in gaps.most_common(_MOST_GAPS):
        yield f"{gap} ({count:,} {'kernel' if count == 1 else 'kernels'})"
    if len(gaps) > _MOST_GAPS:
        yield f"and {gaps.total() - sum(count for _, count in gaps.most_common(_MOST_GAPS)):,} more kernels"


def _unknown_runs(kernels: Iterable[Kernel]) -> Iterator[str]:
    """Why it is not known how often a kernel runs, of the first such kernel."""
    reasons = (kernel.runs.bounds.reason for kernel in kernels if not kernel.runs.bounds.is_exact)
    yield from filter(None, [next(reasons, "")])


class RowTimes(NamedTuple):
    """Seconds of all runs of a kernel, or of several: at least, by the model, and by the compiler's own word, where it says
    something of all of them. `bound_by` is `compute`, `memory` or `collective`.
    """

    bound_s: float
    estimate: Seconds
    compiler: Seconds | None
    bound_by: str | None = None

    def plus(self, more: RowTimes) -> RowTimes:
        both = None if self.compiler is None or more.compiler is None else _sum(self.compiler, more.compiler)
        return RowTimes(self.bound_s + more.bound_s, _sum(self.estimate, more.estimate), both, self.bound_by)


def _sum(one: Seconds, other: Seconds) -> Seconds:
    return Seconds(one.least + other.least, one.reason or other.reason)


NO_TIME = RowTimes(0.0, Seconds(0.0), None)


def row_times(kernel: Kernel, times: KernelTimes, collective: CollectiveTime | None) -> RowTimes:
    """The times of all runs of a kernel; those of a `collective` are those of its links."""
    own, runs = times.of(kernel), least_runs(kernel)
    bound_s, estimate_s, gap, bound_by = own.bound_s, own.estimate_s, own.estimate_gap, own.bound_by
    if collective is not None:
        bound_s, bound_by = collective.bound_s or 0.0, "collective" if collective.bound_s else None
        estimate_s, gap = collective.estimate_s or bound_s, "" if collective.estimate_s is not None else collective.reason
    unknown_runs = next(_unknown_runs([kernel]), "")
    compiler = None if own.compiler_s is None else Seconds(own.compiler_s * runs, unknown_runs)
    return RowTimes(bound_s * runs, Seconds(estimate_s * runs, gap or unknown_runs), compiler, bound_by)

"""The time of a kernel by the plain roofline: the longer of its work and its bytes, a lower bound."""

from __future__ import annotations

import math
from typing import NamedTuple

from hlo_inspect.analysis.cost.figures import Tally, TallyKey
from hlo_inspect.analysis.cost.kernels import Kernel, Kernels
from hlo_inspect.analysis.cost.roofline import Seconds, bound, compute_time, memory_time
from hlo_inspect.analysis.hardware import HardwareProfile


class KernelTime(NamedTuple):
    """Seconds of all runs of a kernel in one run of the program, at least. `bound_by` is `compute` or `memory`; `None` where
    the kernel has neither FLOPs nor bytes with a rate, or takes as long for both.
    """

    seconds: float
    bound_by: str | None


def kernel_time(kernel: Kernel, profile: HardwareProfile) -> KernelTime | None:
    """The time of a kernel; `None` for one without a rule."""
    if kernel.is_unknown:
        return None
    cost = kernel.parts[0].cost
    moved = Tally()
    for unit, size in kernel.moved:
        moved.add(TallyKey("", unit), (0, 0, 0, size))
    compute, memory = compute_time(cost.work, profile).least, memory_time(moved, profile).least
    runs = kernel.parts[0].least.least
    seconds = max(compute, memory) * min(runs)
    return KernelTime(seconds, bound(compute, memory))


def kernels_time(kernels: Kernels, profile: HardwareProfile) -> Seconds:
    """The time of all kernels of one run of the program, one after the other, as if collectives took that of their bytes."""
    seconds = math.fsum(time.seconds for time in (kernel_time(one, profile) for one in kernels.found) if time is not None)
    unknown = next((one for one in kernels.found if one.is_unknown or not one.runs.is_exact), None)
    return Seconds(seconds, "" if unknown is None else unknown.of_step("bytes").reason)

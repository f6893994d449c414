"""Work of each kernel as a simulator takes it: time, FLOPs and bytes of one run."""

from __future__ import annotations

from typing import NamedTuple

from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.cost.figures import FIGURES
from hlo_inspect.analysis.cost.kernels import Kernel
from hlo_inspect.analysis.time.kernel_times import KernelTimes, devices_of_work
from hlo_inspect.graph.view import InstructionPlace

PICOSECONDS = 10**12
"""Unit of times inside: sums are exact, and a microsecond is a whole number."""
MAX_PICOSECONDS = 2**63
_FLOPS, _BYTES = FIGURES.index("flops"), FIGURES.index("bytes")


class KernelWork(NamedTuple):
    """Work of a run of a kernel.

    `time` is in picoseconds, 0 without a profile. If the model has no estimate, `is_bound` is true and the time is the bound.
    If `is_unknown`, a figure is unknown and counts as 0.
    """

    name: str
    time: int
    flops: int
    size: int
    is_bound: bool
    is_unknown: bool
    kernel: Kernel


def named_times(context: Context) -> KernelTimes | None:
    """Return the times of kernels on the accelerator that the user names; None without one."""
    return context.on_machine.kernel_times if context.on_machine.profile_is_named else None


def find_kernel_work(context: Context) -> dict[InstructionPlace, KernelWork]:
    """Return the work of each kernel of a module. FLOPs and bytes of a global program are divided by its devices."""
    times = named_times(context)
    has_shardings = any(leaf.sharding is not None for leaf in context.interface.parameters)
    devices = devices_of_work(context.shapes_are, context.device_counts.devices, has_shardings)
    return {kernel.place: _work(kernel, times, devices) for kernel in context.kernels.launched}


def _work(kernel: Kernel, times: KernelTimes | None, devices: int) -> KernelWork:
    amounts, gaps = kernel.parts[0].cost.amounts, kernel.parts[0].cost.gaps
    time, is_bound = 0, False
    if times is not None:
        own = times.for_kernel(kernel)
        is_bound = bool(own.estimate_gap)
        seconds = own.bound_s if is_bound else own.estimate_s
        time = min(round(seconds * PICOSECONDS), MAX_PICOSECONDS)
    is_unknown = kernel.is_unknown or bool({"flops", "bytes"}.intersection(gaps))
    flops, size = (int(amounts[index]) // devices for index in (_FLOPS, _BYTES))
    return KernelWork(kernel.name, time, flops, size, is_bound, is_unknown, kernel)

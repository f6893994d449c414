"""The time of a kernel by the plain roofline: the longest of its work, its bytes and what it sends; a lower bound."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from hlo_inspect.analysis import calls
from hlo_inspect.analysis.collectives import OPCODES, RESIZING_OPCODES, TARGETS, Collective
from hlo_inspect.analysis.cost.figures import MAX_COUNT, Figure, Tally, TallyKey
from hlo_inspect.analysis.cost.kernels import Kernel, Kernels
from hlo_inspect.analysis.cost.roofline import Seconds, bound, compute_time, memory_time
from hlo_inspect.analysis.hardware import HardwareProfile
from hlo_inspect.hlo.wants import Wants

WANTS = calls.WANTS | Wants(OPCODES, TARGETS, graph=True, checked=True, operands=RESIZING_OPCODES)
"""What has to be kept of a module for its kernels, collectives among them."""


class KernelTime(NamedTuple):
    """Seconds of all runs of a kernel in one run of the program, at least. `bound_by` is `compute`, `memory` or `collective`;
    `None` where the kernel has neither FLOPs nor bytes with a rate, takes as long for both, or does work that is not known.
    """

    seconds: float
    bound_by: str | None


def kernel_time(kernel: Kernel, profile: HardwareProfile, collective: Collective | None) -> KernelTime:
    """The time of a kernel, of which `collective` is what it does with other devices."""
    cost = kernel.parts[0].cost
    moved = Tally()
    for unit, size in kernel.moved:
        moved.add(TallyKey("", unit), (0, 0, 0, size))
    compute, memory = compute_time(cost.work, profile).least, memory_time(moved, profile).least
    sent = 0.0 if collective is None else collective_seconds(collective, profile)
    seconds = max(compute, memory, sent) * min(*kernel.parts[0].least.least, MAX_COUNT)
    longest = "collective" if sent > max(compute, memory) else bound(compute, memory)
    return KernelTime(seconds, None if kernel.is_unknown else longest)


def collective_seconds(collective: Collective, profile: HardwareProfile) -> float:
    """The time to send what one device has to send over all its nearest links, which are the fastest; 0 where it is not known.

    A switch may reduce by itself, as NVLink's do from Hopper on: then an all-reduce sends its operand once.
    """
    link = next((link for link in profile.links.values() if link.send_bandwidth), None)
    size = collective.wire_bytes or 0
    if collective.kind == "all-reduce" and link is not None and link.topology == "switch":
        size = min(size, collective.operand_bytes or 0)
    return size / link.send_bandwidth if link is not None and link.send_bandwidth else 0.0


def kernels_time(kernels: Kernels, profile: HardwareProfile, collective_of: Callable[[Kernel], Collective | None]) -> Seconds:
    """The time of all kernels of one run of the program, one after the other, without collectives."""
    own = [kernel for kernel in kernels.found if collective_of(kernel) is None]
    seconds = math.fsum(kernel_time(kernel, profile, None).seconds for kernel in own)
    figures: tuple[Figure, ...] = ("flops", "bytes")
    reasons = (kernel.of_step(figure).reason for kernel in own for figure in figures)
    return Seconds(seconds, next(filter(None, reasons), ""))

"""What runs on the device, what costs most first."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from hlo_inspect.analysis.collectives import KERNEL_WANTS
from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.cost.figures import countable
from hlo_inspect.analysis.phases import phases
from hlo_inspect.analysis.time.kernel_times import KernelTimes
from hlo_inspect.analysis.time.step_times import estimate_gaps
from hlo_inspect.graph.calls import Bounds
from hlo_inspect.passes.base import Pass, with_lower_bound
from hlo_inspect.passes.kernel_tables import kernel_groups, kernels_table
from hlo_inspect.passes.origins import differences, phase_notes, stacks_of
from hlo_inspect.passes.time_facts import inferred_clock
from hlo_inspect.report.model import FactSpec, Section, Table, Value


class Top(Pass):
    """The kernels that run on the device: runs, FLOPs, bytes, FLOP per byte, phase, source; with --profile bound and estimate.

    A kernel is an instruction that the device runs by itself: a fusion, a dot, a custom call, a collective, a copy; a start
    and its done are one. Figures are those of all its runs in a step. FLOPs and bytes are those of XLA's cost
    model: of a fusion what it reads and writes, of what is sliced or updated in place that part. What moves most bytes comes
    first, with --profile what takes most time at least.

    With --profile there are two times. Nothing can be faster than the bound: the longer of the FLOPs at the device's peak and
    the bytes at its memory bandwidth, of a collective what it sends over its links; memory on the chip takes no time. The
    estimate is that of a model. The compiler's own estimate is shown too, where the text has one. Of asynchronous copies, which
    run beside the kernels, a scheduled text has the time that nothing hides: at bounds that may be more than by the model,
    whose kernels are longer. Equal kernels share a row; --sites gives each its own.
    """

    name = "top"
    uses_profile = True
    wants = KERNEL_WANTS | phases.WANTS
    specs = (
        FactSpec("kernels.count", "count", "instructions that run on the device as a kernel of their own"),
        FactSpec("kernels.executed_count", "count", "how often they run in a step"),
    )

    def run(self, context: Context) -> Section:
        kernels = context.kernels.found
        runs = countable(Bounds.sum(kernel.runs for kernel in kernels))
        facts: dict[str, Value] = {"kernels.count": len(kernels)}
        with_lower_bound(facts, "kernels.executed_count", runs.exact, runs.least or None)
        notes = [] if runs.is_exact else [f"kernels.executed_count: {runs.reason}"]
        times = context.on_machine.kernel_times
        if times is not None:
            notes += [f"kernels: {reason}" for reason in _about_times(context, times)]
        of_phases = phase_notes(context, (kernel.instruction for kernel in kernels))
        return Section(facts, _tables(context), chain(notes, of_phases))


def _about_times(context: Context, times: KernelTimes) -> Iterator[str]:
    """Which kernels have no estimate, and what the compiler's seconds rest on."""
    missing = estimate_gaps(context.own_kernels, times)
    if missing:
        yield f"estimates are lower bounds: {missing}"
    if any(times.of(kernel).compiler_cycles is not None for kernel in context.kernels.found):
        yield from filter(None, [inferred_clock(context)])


def _tables(context: Context) -> Iterator[Table]:
    yield kernels_table(context)
    yield kernel_groups(context)
    kernels = context.kernels.found
    yield from differences(context, [kernel.instruction for kernel in kernels], "kernels")
    yield from stacks_of((kernel.view.metadata(kernel.row) for kernel in kernels), context.module.frames)

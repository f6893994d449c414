"""HI216: a step waits for a collective while other kernels could run."""

from __future__ import annotations

from collections.abc import Iterator

from hlo_inspect.analysis.collectives.logical_collectives import Collective
from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.cost.independent_kernels import IndependentKernels
from hlo_inspect.analysis.time.program_steps import WaitStep
from hlo_inspect.analysis.time.timelines import TimedStep
from hlo_inspect.figure import least
from hlo_inspect.findings.rule import Rule
from hlo_inspect.graph.calls import place
from hlo_inspect.report.model import Finding
from hlo_inspect.report.units import format_value

_LEAST_SHARE, _LEAST = 0.01, 1e-5
"""Share of the estimate of a step, and seconds, that are worth a finding."""


class ExposedCollective(Rule):
    """A step waits for a collective that kernels can hide.

    What it finds
        Asynchronous collectives of a scheduled program for which the step waits, by the estimate on the hardware profile.
        Kernels that need no result of theirs, and whose results they do not need, stand elsewhere in the computation. The
        stake is the wait that these can hide, 10 µs and 1 % of the step or more.

    Why it matters
        The compute units are idle while the links work.

    How to fix it
        On GPU, set `--xla_gpu_enable_latency_hiding_scheduler=true`, and give the scheduler memory: with less it starts
        collectives late. Let gradients of a layer be reduced while the backward pass of the layer before runs.

    Example
        hlo-inspect lint DUMP --profile h100-sxm
    """

    code = "HI216"
    resource = "time"

    def check(self, context: Context) -> Iterator[Finding]:
        machine, step = context.on_machine, context.on_machine.known_step
        wanted = [collective for collective in context.collectives if collective.is_async]
        if not wanted or step is None or machine.timelines is None or machine.kernel_times is None:
            return
        least_wait, independent = (
            max(_LEAST_SHARE * least(step), _LEAST),
            IndependentKernels(context.views, context.own_kernels),
        )
        for collective in wanted:
            times = machine.timelines.estimate.site_of(collective)
            if times.exposed < least_wait or not times.runs:
                continue
            seconds = (machine.kernel_times.for_kernel(kernel).estimate_s for kernel in independent.beside(collective))
            hidden = min(times.exposed, times.runs * sum(seconds))
            if hidden >= least_wait:
                message = (
                    f"{_waiter(machine.timelines.estimate, collective)} waits {format_value(times.exposed, 'seconds')} a step "
                    f"for it; kernels beside it can hide {format_value(hidden, 'seconds')}"
                )
                yield self.finding_on(context, collective, message, hidden)


def _waiter(step: TimedStep, collective: Collective) -> str:
    """Return the name of the instruction at which the compute stream waits."""
    waits = step.work.program.steps.get(collective.start.computation.name, ())
    start = place(collective.start)
    return next((wait.done[2] for wait in waits if isinstance(wait, WaitStep) and wait.place == start), "the step")

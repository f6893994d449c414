"""HI216: a step waits for a collective while other kernels could run."""

from __future__ import annotations

from collections.abc import Iterator

from hlo_inspect.analysis.context import Context
from hlo_inspect.findings.rule import Rule
from hlo_inspect.report.model import Finding
from hlo_inspect.report.units import format_value


class ExposedCollective(Rule):
    """A step waits for a collective that kernels can hide.

    What it finds
        Asynchronous collectives of a scheduled program for which the step waits, by the estimate on the hardware profile.
        Kernels that need no result of theirs, and whose results they do not need, stand elsewhere in the computation. The
        stake is the wait that these can hide, 10 µs and 1 % of the step or more.

    Why it matters
        The compute units are idle while the links work.

    How to fix it
        Give the latency-hiding scheduler memory: with less it starts collectives late. On GPU, turn it on with
        `--xla_gpu_enable_latency_hiding_scheduler=true`. Let gradients of a layer be reduced while the backward pass of the
        layer before runs.

    Example
        hlo-inspect lint DUMP --profile h100-sxm
    """

    code = "HI216"
    resource = "time"

    def check(self, context: Context) -> Iterator[Finding]:
        timelines = context.on_machine.timelines
        wanted = [collective for collective in context.collectives if collective.is_async]
        if not wanted or timelines is None or not timelines.is_scheduled:
            return
        from hlo_inspect.analysis.time.hideable_waits import find_waits

        for wait in find_waits(timelines.estimate, context.views, wanted):
            exposed, hidden = (format_value(seconds, "seconds") for seconds in (wait.exposed, wait.hidden))
            name = wait.collective.start.name
            message = f"{wait.waiter} waits {exposed} a step for {name}; kernels such as {wait.longest} could hide {hidden}"
            yield self.finding_on(context, wait.collective, message, wait.hidden)

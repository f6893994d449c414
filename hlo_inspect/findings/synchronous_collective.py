"""HI217: a synchronous collective beside kernels that could run meanwhile."""

from __future__ import annotations

from collections.abc import Iterator

from hlo_inspect.analysis.context import Context
from hlo_inspect.findings.rule import Rule
from hlo_inspect.hlo.opcodes import ASYNCHRONOUS_ON_TPU
from hlo_inspect.report.model import Finding
from hlo_inspect.report.units import format_value


class SynchronousCollective(Rule):
    """A collective is synchronous beside independent kernels.

    What it finds
        Collectives of a scheduled GPU or TPU program without a start and a done, or with `is_sync` in their configuration.
        Independent kernels of the computation could run meanwhile. On TPU only all-gathers, all-to-alls and permutes have an
        asynchronous form. The stake is the wait that the kernels can hide, by the estimate on the hardware profile.

    Why it matters
        Nothing else runs while devices exchange data. As start and done the same transfer can be hidden.

    How to fix it
        Let XLA make it asynchronous: on TPU by `xla_tpu_enable_async_collective_fusion`, on GPU by the latency-hiding scheduler
        and a smaller `--xla_gpu_disable_async_collectives`.

    Example
        hlo-inspect lint DUMP --profile h100-sxm
    """

    code = "HI217"
    resource = "time"

    def check(self, context: Context) -> Iterator[Finding]:
        timelines = context.on_machine.timelines
        if timelines is None or not timelines.is_scheduled or context.memory.platform.name == "cpu":
            return
        forms = ASYNCHRONOUS_ON_TPU if context.memory.platform.is_tpu else None
        collectives = (each for each in context.collectives if not (each.is_async or each.is_point_to_point))
        wanted = [collective for collective in collectives if forms is None or collective.kind in forms]
        if not wanted:
            return
        from hlo_inspect.analysis.time.hideable_waits import find_waits

        for wait in find_waits(timelines.estimate, context.views, wanted):
            exposed, hidden = (format_value(seconds, "seconds") for seconds in (wait.exposed, wait.hidden))
            name = wait.collective.start.name
            message = f"{name} takes {exposed} a step synchronously; kernels such as {wait.longest} could hide {hidden}"
            yield self.finding_on(context, wait.collective, message, wait.hidden)

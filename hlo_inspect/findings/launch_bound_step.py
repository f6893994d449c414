"""HI511: a step that is mostly fixed costs of kernels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from hlo_inspect.analysis.context import Context
from hlo_inspect.figure import least
from hlo_inspect.findings.rule import Rule, entry_line
from hlo_inspect.report.model import Finding
from hlo_inspect.report.units import format_value

_MOST, _LEAST = 0.5, 1e-4
"""Share of the estimate of a step that fixed costs may take, and the least seconds worth a finding."""


class LaunchBoundStep(Rule):
    """Half of a step or more is fixed costs of kernels.

    What it finds
        A scheduled program whose kernels take longer to launch than to work, by the estimate on the hardware profile. The
        stake is the time of all launches, 0.1 ms or more. The finding names the outermost loop that launches the most kernels.

    Why it matters
        The device waits for launches. A faster device, or a smaller type, does not make the step faster.

    How to fix it
        Give each kernel more work: a larger batch, or `jax.vmap` in the place of a loop. Unroll a loop of small iterations
        (`unroll` of `jax.lax.scan`), so that XLA fuses across them. On GPU, command buffers launch many kernels at once.

    Example
        hlo-inspect lint DUMP --profile h100-sxm
    """

    code = "HI511"
    resource = "time"

    def check(self, context: Context) -> Iterator[Finding]:
        machine = context.on_machine
        times, timelines, step = machine.kernel_times, machine.timelines, machine.known_step
        if times is None or timelines is None or step is None or not times.profile.kernel_overhead:
            return
        launches: Counter[str] = Counter()
        fixed = 0.0
        for kernel in context.own_kernels:
            time, runs = times.for_kernel(kernel), timelines.estimate.timeline.runs(kernel.place)
            fixed += runs * min(times.profile.kernel_overhead, max(time.estimate_s - time.bound_s, 0.0))
            loops = list(context.call_graph.loops_around(kernel.place[0]))
            launches[loops[-1].instruction.name if loops else ""] += runs
        if fixed < max(_MOST * least(step), _LEAST):
            return
        loop, most = launches.most_common(1)[0]
        where = f", {most:,} of them in {loop}" if loop else ""
        message = f"{launches.total():,} launches of kernels{where} take {format_value(fixed, 'seconds')} a step"
        line = next((run.instruction.line for run in context.call_graph.loops if run.instruction.name == loop), None)
        yield self.finding(context, message, line or entry_line(context), loop or None, fixed)

"""HI217: a synchronous collective beside kernels that could run meanwhile."""

from __future__ import annotations

from collections.abc import Iterator

from hlo_inspect.analysis.collectives.collective_results import runs_of
from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.cost.independent_kernels import IndependentKernels
from hlo_inspect.figure import least
from hlo_inspect.findings.rule import WireRule, size
from hlo_inspect.report.model import Finding

_ON_TPU = frozenset({"all-gather", "all-to-all", "collective-permute"})
"""Kinds with an asynchronous form on TPU; all kinds have one on GPU."""
_FASTER = 8
"""Bandwidth of memory by that of links, about: 7 on H100, 9 on TPU v5e."""


class SynchronousCollective(WireRule):
    """A collective is synchronous beside independent kernels.

    What it finds
        Collectives of a scheduled GPU or TPU program without a start and a done, or with `is_sync` in their configuration.
        Independent kernels of the computation read and write eight times the bytes that they send, which takes about as long.
        On TPU only all-gathers, all-to-alls and permutes have an asynchronous form. The stake is the bytes that the
        collective sends in one step.

    Why it matters
        Nothing else runs while devices exchange data. As start and done the same transfer can be hidden.

    How to fix it
        On GPU, enable the latency-hiding scheduler and remove the collective from `--xla_gpu_disable_async_collectives`. On
        TPU, `xla_tpu_enable_async_collective_fusion` hides more of them.

    Example
        hlo-inspect lint DUMP --platform gpu
    """

    code = "HI217"

    def check(self, context: Context) -> Iterator[Finding]:
        platform = context.memory.platform
        if not context.module.header.is_scheduled or platform.name == "cpu":
            return
        threshold = max(self.least(context), 1)
        independent = IndependentKernels(context.views, context.own_kernels)
        for collective in context.collectives:
            runs = runs_of(context.call_graph, collective.start.computation.name)
            sent = (collective.wire_bytes or 0) * runs
            has_form = collective.kind in _ON_TPU if platform.is_tpu else not collective.is_point_to_point
            if sent < threshold or collective.is_async or not has_form:
                continue
            moved = sum(least(kernel.of_step("bytes")) for kernel in independent.beside(collective))
            if moved >= _FASTER * sent:
                message = f"sends {size(sent)} a step synchronously; independent kernels move {size(int(moved))} beside it"
                yield self.finding_on(context, collective, message, sent)

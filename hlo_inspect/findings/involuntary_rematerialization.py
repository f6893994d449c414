"""HI215: arrays that the partitioner replicates because it knows no other way."""

from __future__ import annotations

from collections.abc import Iterator

from hlo_inspect.analysis.collectives.collective_results import runs_of
from hlo_inspect.analysis.collectives.logical_collectives import Collective
from hlo_inspect.analysis.context import Context
from hlo_inspect.findings.rule import WireRule, size
from hlo_inspect.report.model import Finding


class InvoluntaryRematerialization(WireRule):
    """The partitioner replicates an array to reshard it.

    What it finds
        Operations that XLA's log beside the module names as an involuntary full rematerialization, with the collectives that
        they became. Those have the operation's op_name, or read its operand. The stake is the bytes that they send in one step.

    Why it matters
        Each device receives the whole array and keeps a part of it. It needs memory for all of it too.

    How to fix it
        Change the sharding in two steps that the partitioner knows: an all-to-all between two dimensions, then a slice. Put a
        `jax.lax.with_sharding_constraint` of the middle sharding between them. Often the mesh has axes in another order than
        the constraint.

    Example
        [SPMD] Involuntary full rematerialization. The compiler cannot go from sharding {devices=[2,1]<=[2]} to
          {devices=[1,2]<=[2]} efficiently for HLO operation %c = f32[512,1024]{1,0} copy(%t)
    """

    code = "HI215"

    def check(self, context: Context) -> Iterator[Finding]:
        calls, least = context.call_graph, self.least(context)
        counted: set[Collective] = set()
        for warning in context.compiler_warnings:
            sent = {
                collective: (collective.wire_bytes or 0) * runs_of(calls, collective.start.computation.name)
                for collective in warning.collectives or ()
                if collective not in counted
            }
            counted.update(sent)
            total = sum(sent.values())
            if sent and total >= max(least, 1):
                first = max(sent, key=lambda collective: sent[collective])
                name = warning.instruction.name if warning.instruction is not None else "an operation"
                message = f"the partitioner replicated {name} to change its sharding: {size(total)} sent a step"
                yield self.finding_on(context, first, message, total)

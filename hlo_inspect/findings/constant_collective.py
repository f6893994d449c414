"""HI210: collectives of constants."""

from __future__ import annotations

from collections.abc import Iterator

from hlo_inspect.analysis.collectives.loop_collectives import find_constant
from hlo_inspect.analysis.context import Context
from hlo_inspect.findings.rule import WireRule, size
from hlo_inspect.report.model import Finding


class ConstantCollective(WireRule):
    """A collective sends constants.

    What it finds
        Collectives of constants, such as a broadcast zero or a sharded table of positions. The stake is the bytes that a
        device sends for them in one step.

    Why it matters
        Each device knows the result without sending anything.

    How to fix it
        Make the array on each device: `jnp.zeros` inside of the `shard_map`, or with a replicated sharding. Often a mask
        or an initial state has a sharding that the next operation does not take.

    Example
        HloModule step, replica_count=2

        ENTRY main {
          z = f32[] constant(0)
          p = f32[512,1024]{1,0} broadcast(z), dimensions={}
          ROOT g = f32[1024,1024]{1,0} all-gather(p), replica_groups={{0,1}}, dimensions={0}
        }
    """

    code = "HI210"

    def check(self, context: Context) -> Iterator[Finding]:
        for constant in find_constant(context.views, context.call_graph, context.collectives, self.least(context)):
            message = f"sends constants: {size(constant.bytes)} a step; make the array on each device"
            yield self.finding_on(context, constant.collective, message, constant.bytes)

"""HI214: collectives in a loop that send the same values in each iteration."""

from __future__ import annotations

from collections.abc import Iterator

from hlo_inspect.analysis.collectives.loop_collectives import find_invariant
from hlo_inspect.analysis.context import Context
from hlo_inspect.findings.rule import WireRule, size
from hlo_inspect.report.model import Finding


class InvariantCollective(WireRule):
    """A collective sends the same values in each iteration.

    What it finds
        Collectives in the body of a loop with operands that the loop never changes. The stake is the bytes that all runs but
        one in each run of the loop send.

    Why it matters
        Each iteration waits for values that it already has. Compilers move such a collective out of the loop only if its result
        fits into memory by their estimate.

    How to fix it
        Run the collective before the loop and hand the result on: close over the gathered array instead of the sharded one. To
        save memory keep it, and ignore this rule.

    Example
        HloModule step, replica_count=2

        more {
          s = (s32[], f32[512,1024], f32[1024,1024]) parameter(0)
          n = s32[] get-tuple-element(s), index=0
          l = s32[] constant(3)
          ROOT c = pred[] compare(n, l), direction=LT
        }

        body {
          s = (s32[], f32[512,1024], f32[1024,1024]) parameter(0)
          n = s32[] get-tuple-element(s), index=0
          p = f32[512,1024]{1,0} get-tuple-element(s), index=1
          t = f32[1024,1024]{1,0} get-tuple-element(s), index=2
          o = s32[] constant(1)
          m = s32[] add(n, o)
          g = f32[1024,1024]{1,0} all-gather(p), replica_groups={{0,1}}, dimensions={0}
          u = f32[1024,1024]{1,0} multiply(t, g)
          ROOT o2 = (s32[], f32[512,1024], f32[1024,1024]) tuple(m, p, u)
        }

        ENTRY main {
          s = (s32[], f32[512,1024], f32[1024,1024]) parameter(0)
          ROOT w = (s32[], f32[512,1024], f32[1024,1024]) while(s), condition=more, body=body,
            backend_config={"known_trip_count":{"n":"3"}}
        }
    """

    code = "HI214"

    def check(self, context: Context) -> Iterator[Finding]:
        for invariant in find_invariant(context.views, context.call_graph, context.collectives, self.least(context)):
            message = f"the loop never changes what it sends: once before the loop it sends {size(invariant.bytes)} less a step"
            yield self.finding_on(context, invariant.collective, message, invariant.bytes)

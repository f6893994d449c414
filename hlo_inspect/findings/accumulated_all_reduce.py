"""HI211: all-reduces in a loop that only adds up their results."""

from __future__ import annotations

from collections.abc import Iterator

from hlo_inspect.analysis.collectives.loop_collectives import find_accumulated
from hlo_inspect.analysis.context import Context
from hlo_inspect.findings.rule import WireRule, size
from hlo_inspect.report.model import Finding


class AccumulatedAllReduce(WireRule):
    """A loop adds up the results of an all-reduce.

    What it finds
        All-reduces in the body of a loop with results that are only added to the state of the loop. A fixed factor or a
        conversion may stand between. An inner loop over layers may stack the results, if the outer loop adds up the stacks.
        The stake is the bytes that all runs send, less those of the sums that are needed behind the loop.

    Why it matters
        The sum over devices and the sum over iterations can be exchanged: one all-reduce behind the loop gives the same result.
        Gradient accumulation often sends all gradients in each microbatch.

    How to fix it
        Add up the local gradients in the loop and reduce them once behind it. With `shard_map`, move `psum` out of the scan.
        With `jit`, run the microbatches in a `shard_map` over the data axis.

    Example
        HloModule step, replica_count=2

        add {
          a = f32[] parameter(0)
          b = f32[] parameter(1)
          ROOT s = f32[] add(a, b)
        }

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
          i = s32[1]{0} reshape(n)
          f = f32[1024,1024]{1,0} custom-call(p, i), custom_call_target="gradient"
          r = f32[1024,1024]{1,0} all-reduce(f), replica_groups={{0,1}}, to_apply=add
          u = f32[1024,1024]{1,0} add(t, r)
          ROOT o2 = (s32[], f32[512,1024], f32[1024,1024]) tuple(m, p, u)
        }

        ENTRY main {
          s = (s32[], f32[512,1024], f32[1024,1024]) parameter(0)
          ROOT w = (s32[], f32[512,1024], f32[1024,1024]) while(s), condition=more, body=body,
            backend_config={"known_trip_count":{"n":"3"}}
        }
    """

    code = "HI211"

    def check(self, context: Context) -> Iterator[Finding]:
        for sums in find_accumulated(context.views, context.call_graph, context.collectives, self.least(context)):
            message = f"a loop adds up its results: once behind the loop it sends {size(sums.bytes)} less a step"
            yield self.finding_on(context, sums.collective, message, sums.bytes)

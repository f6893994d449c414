"""HI508: copies of the state of a loop in each iteration."""

from __future__ import annotations

from collections.abc import Iterator

from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.loop_copies import find_loop_copies
from hlo_inspect.findings.rule import WORTH_COPYING, Rule, size
from hlo_inspect.report.model import Finding


class CopiedLoopCarry(Rule):
    """A loop copies its state in each iteration.

    What it finds
        Copies of elements of a loop's state, in its body, or into its next state. They count if the old value of an element
        becomes another element. The stake is the bytes of all copies of the body, times its runs. HI509 has the copies for
        updates in place.

    Why it matters
        The buffer of an element cannot hold its next value. So each iteration writes all of it again.

    How to fix it
        Exchange no elements of the state, and return no old value of an element as another. Two iterations in
        one body need no exchange. A counter that chooses between two buffers needs none either.

    Example
        HloModule step, is_scheduled=true

        more {
          s = (s32[], f32[512,1024], f32[512,1024]) parameter(0)
          n = s32[] get-tuple-element(s), index=0
          l = s32[] constant(3)
          ROOT c = pred[] compare(n, l), direction=LT
        }

        body {
          s = (s32[], f32[512,1024], f32[512,1024]) parameter(0)
          n = s32[] get-tuple-element(s), index=0
          p = f32[512,1024]{1,0} get-tuple-element(s), index=1
          o = s32[] constant(1)
          m = s32[] add(n, o)
          c = f32[512,1024]{1,0} copy(p)
          q = f32[512,1024]{1,0} get-tuple-element(s), index=2
          u = f32[512,1024]{1,0} custom-call(c, q), custom_call_target="reads"
          ROOT o2 = (s32[], f32[512,1024], f32[512,1024]) tuple(m, u, c)
        }

        ENTRY main {
          s = (s32[], f32[512,1024], f32[512,1024]) parameter(0)
          ROOT w = (s32[], f32[512,1024], f32[512,1024]) while(s), condition=more, body=body,
            backend_config={"known_trip_count":{"n":"3"}}
        }
    """

    code = "HI508"
    resource = "traffic"
    threshold = WORTH_COPYING

    def check(self, context: Context) -> Iterator[Finding]:
        for copies in find_loop_copies(context.views, context.call_graph, self.least(context)):
            if copies.updates is False:
                loop = copies.loop.instruction.name
                message = f"{copies.counted} of the state of {loop} in each iteration: {size(copies.bytes)} a step"
                yield self.finding_at(context, copies.largest, message, copies.bytes)

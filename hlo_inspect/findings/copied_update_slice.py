"""HI509: copies of a buffer of which a slice is updated."""

from __future__ import annotations

from collections.abc import Iterator

from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.loop_copies import find_loop_copies
from hlo_inspect.findings.rule import WORTH_COPYING, Rule, size
from hlo_inspect.report.model import Finding


class CopiedUpdateSlice(Rule):
    """A loop copies a buffer to update a slice of it.

    What it finds
        Copies, in the body of a loop, of an array into which a dynamic-update-slice then writes. The stake is the bytes of all
        such copies of the body, times its runs.

    Why it matters
        An update in place writes the slice alone. A copy writes the whole buffer in each iteration.

    How to fix it
        Read nothing of the old buffer behind the update: read the slice before it. Do not return the old buffer, and do not
        write one buffer from two branches.

    Example
        HloModule step, is_scheduled=true

        more {
          s = (s32[], f32[512,1024]) parameter(0)
          n = s32[] get-tuple-element(s), index=0
          l = s32[] constant(3)
          ROOT c = pred[] compare(n, l), direction=LT
        }

        body {
          s = (s32[], f32[512,1024]) parameter(0)
          n = s32[] get-tuple-element(s), index=0
          p = f32[512,1024]{1,0} get-tuple-element(s), index=1
          o = s32[] constant(1)
          m = s32[] add(n, o)
          c = f32[512,1024]{1,0} copy(p)
          z = s32[] constant(0)
          v = f32[1,1024]{1,0} custom-call(p), custom_call_target="reads"
          u = f32[512,1024]{1,0} dynamic-update-slice(c, v, n, z)
          ROOT o2 = (s32[], f32[512,1024]) tuple(m, u)
        }

        ENTRY main {
          s = (s32[], f32[512,1024]) parameter(0)
          ROOT w = (s32[], f32[512,1024]) while(s), condition=more, body=body, backend_config={"known_trip_count":{"n":"3"}}
        }
    """

    code = "HI509"
    resource = "traffic"
    threshold = WORTH_COPYING

    def check(self, context: Context) -> Iterator[Finding]:
        for copies in find_loop_copies(context.views, context.call_graph, self.least(context)):
            if copies.updates is True:
                loop = copies.loop.instruction.name
                message = f"{copies.counted} of a buffer that {loop} updates in each iteration: {size(copies.bytes)} a step"
                yield self.finding_at(context, copies.largest, message, copies.bytes)

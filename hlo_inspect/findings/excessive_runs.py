"""HI507: computations that run more often than can be counted."""

from __future__ import annotations

from collections.abc import Iterator

from hlo_inspect.analysis.context import Context
from hlo_inspect.figure import MAX_FIGURE, least
from hlo_inspect.findings.rule import Rule
from hlo_inspect.report.model import Finding


class ExcessiveRuns(Rule):
    """A computation runs more than 10^30 times in one step.

    What it finds
        The first computation, callers before callees, with more than 10^30 runs. Its runs are the product of the trip counts
        of the loops around it.

    Why it matters
        No machine runs a program that often. Figures of a step above 10^30 are unknown; their lower bound is 10^30.

    How to fix it
        Look at the trip counts of the loops around it. One of them is wrong, or belongs to a loop that never ends.

    Example
        HloModule step

        body {
          p = (s32[]) parameter(0)
          i = s32[] get-tuple-element(p), index=0
          ROOT r = (s32[]) tuple(i)
        }

        outer {
          p = (s32[]) parameter(0)
          ROOT w = (s32[]) while(p), condition=c, body=body, backend_config={"known_trip_count":{"n":"900000000000000000"}}
        }

        c {
          p = (s32[]) parameter(0)
          ROOT c = pred[] constant(true)
        }

        ENTRY main {
          p = (s32[]) parameter(0)
          ROOT w = (s32[]) while(p), condition=c, body=outer, backend_config={"known_trip_count":{"n":"900000000000000000"}}
        }
    """

    code = "HI507"
    saves = False

    def check(self, context: Context) -> Iterator[Finding]:
        graph = context.call_graph
        for name in graph.order:
            if least(graph.runs(name)) >= MAX_FIGURE:
                message = f"computation {name} runs more than 10^30 times in one step"
                yield self.finding(context, message, graph.line_of(name), name)
                return

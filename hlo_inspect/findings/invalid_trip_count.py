"""HI501: trip counts that are printed and make no sense."""

from __future__ import annotations

from collections.abc import Iterator

from hlo_inspect.analysis.context import Context
from hlo_inspect.findings.rule import Rule
from hlo_inspect.report.model import Finding


class InvalidTripCount(Rule):
    """A loop's printed trip count is invalid.

    What it finds
        `while` instructions whose `known_trip_count` is not a whole number.

    Why it matters
        hlo-inspect then computes the trip count from the loop's counter. If that fails too, every figure of a step is
        unknown.

    How to fix it
        Look at the `backend_config` of the line. XLA prints `{"known_trip_count":{"n":"12"}}`; another form comes from
        another tool.

    Example
        HloModule step

        ENTRY main {
          x = f32[8]{0} parameter(0)
          ROOT y = f32[8]{0} while(x), condition=c, body=b, backend_config={"known_trip_count":{"n":"many"}}
        }
    """

    code = "HI501"
    saves = False

    def check(self, context: Context) -> Iterator[Finding]:
        for loop in context.call_graph.loops:
            if loop.fault is not None:
                carried = loop.instruction.shape.array_bytes if loop.instruction.shape is not None else None
                yield self.finding(context, loop.fault, loop.instruction.line, loop.instruction.name, carried or 0)

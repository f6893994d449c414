"""HI504: instructions at which data flow is lost."""

from __future__ import annotations

from collections.abc import Iterator

from hlo_inspect.analysis.context import Context
from hlo_inspect.report.model import Finding
from hlo_inspect.rules.base import Rule, entry_line

MAX_FAULTS = 20


class UnfollowedDataflow(Rule):
    """Instructions through which the data flow to the weights cannot be followed.

    What it finds
        Instructions whose operands or attributes contradict their shapes, such as an index of `get-tuple-element`
        that the tuple does not have. At most 20 are reported.

    Why it matters
        What such an instruction feeds is not followed. An optimizer update behind it is not found, or not
        recognised.

    How to fix it
        Look at the instruction. Such text comes from a dump that was cut or edited; XLA's own dumps have none.

    Example
        HloModule step

        ENTRY main {
          p = (f32[8], f32[8]) parameter(0)
          ROOT w = f32[8]{0} get-tuple-element(p), index=2
        }
    """

    code = "HI504"
    name = "unfollowed-dataflow"
    severity = "warning"
    passes = ("optimizer",)

    def check(self, context: Context) -> Iterator[Finding]:
        for computation, name, reason in list(context.optimizer.faults)[:MAX_FAULTS]:
            message = f"{computation}: {name} {reason}; what it feeds was not followed"
            yield self.finding(context, message, entry_line(context), name)

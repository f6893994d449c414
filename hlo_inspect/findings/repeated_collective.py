"""HI212: collectives that send the same values again."""

from __future__ import annotations

from collections.abc import Iterator

from hlo_inspect.analysis.collectives.related_collectives import find_repeated
from hlo_inspect.analysis.context import Context
from hlo_inspect.findings.rule import WireRule, size
from hlo_inspect.report.model import Finding


class RepeatedCollective(WireRule):
    """Collectives send the same values more than once.

    What it finds
        Collectives of one computation with the same kind, device groups and operands; moves of the operand are looked through.
        The stake is the bytes of a step that all but the first send. Recomputation is left out, and so are gathers of the
        backward pass that the forward pass has too: they trade time for memory.

    Why it matters
        The second collective takes the time of the first and returns the same array.

    How to fix it
        Keep the result of the first collective and use it twice. In a `shard_map`, gather or reduce an array once, outside of
        the functions that use it.

    Example
        HloModule step, replica_count=2

        ENTRY main {
          p = f32[512,1024]{1,0} parameter(0)
          a = f32[1024,1024]{1,0} all-gather(p), replica_groups={{0,1}}, dimensions={0}
          b = f32[1024,1024]{1,0} all-gather(p), replica_groups={{0,1}}, dimensions={0}
          ROOT c = f32[1024,1024]{1,0} add(a, b)
        }
    """

    code = "HI212"

    def check(self, context: Context) -> Iterator[Finding]:
        if not context.collectives:
            return
        phase_of = context.phases.for_instruction
        for repeated in find_repeated(
            context.views, context.call_graph, context.collectives, lambda c: phase_of(c.inner).phase, self.least(context)
        ):
            first, again = repeated.members[:2]
            times = f"{len(repeated.members) - 1} times more" if len(repeated.members) > 2 else "again"
            what = "an array" if first is again else f"what {first.start.name} sends"
            message = f"sends {what}, {times}: {size(repeated.wire_bytes)} a step; use its result"
            yield self.finding_on(context, again, message, repeated.wire_bytes)

"""HI208: all-gathers of whose result only slices are read."""

from __future__ import annotations

from collections.abc import Iterator

from hlo_inspect.analysis.collectives.collective_results import find_sliced
from hlo_inspect.analysis.context import Context
from hlo_inspect.findings.rule import WireRule, size
from hlo_inspect.report.model import Finding


class SlicedAllGather(WireRule):
    """Only slices of the result of an all-gather are read.

    What it finds
        All-gathers with results that only slices read, and not all of it. Elementwise work may stand between. A slice counts
        if the program contains it: those of the partitioner are left out. The stake is the bytes of a step that no slice reads.

    Why it matters
        Each device receives the parts of all other devices, and reads few of them.

    How to fix it
        Slice before gathering, or send the slice alone: `jax.lax.ppermute` or `all_to_all` in a `shard_map`. With `jit`,
        index the sharded array along a dimension that is not sharded.

    Example
        HloModule step, replica_count=2

        ENTRY main {
          p = f32[512,1024]{1,0} parameter(0)
          g = f32[1024,1024]{1,0} all-gather(p), replica_groups={{0,1}}, dimensions={0}
          ROOT s = f32[4,1024]{1,0} slice(g), slice={[0:4], [0:1024]}, metadata={op_name="jit(f)/slice"}
        }
    """

    code = "HI208"

    def check(self, context: Context) -> Iterator[Finding]:
        collectives = [collective for collective in context.collectives if collective.kind == "all-gather"]
        for sliced in find_sliced(context.views, context.call_graph, collectives, self.least(context)):
            message = f"{size(sliced.unread)} of the result are never read: the program slices it; slice before gathering"
            yield self.finding_on(context, sliced.collective, message, sliced.unread)

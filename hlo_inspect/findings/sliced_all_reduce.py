"""HI207: all-reduces of whose result only slices are read."""

from __future__ import annotations

from collections.abc import Iterator

from hlo_inspect.analysis.collectives.collective_results import find_sliced
from hlo_inspect.analysis.context import Context
from hlo_inspect.findings.rule import WireRule, size
from hlo_inspect.report.model import Finding


class SlicedAllReduce(WireRule):
    """Only slices of the result of an all-reduce are read.

    What it finds
        All-reduces with results that only slices read, and not all of it. Elementwise work may stand between, such as the
        factor of a mean. A slice counts if the program contains it: those of the partitioner are left out. The stake is the
        bytes of a step that no slice reads.

    Why it matters
        An all-reduce sends the whole sum to all devices. A reduce-scatter sends each device the slice that it keeps, and
        half of the bytes.

    How to fix it
        Replace `psum` and the slice by `jax.lax.psum_scatter` in a `shard_map`. With `jit`, constrain the sum to a sharded
        layout instead of slicing it.

    Example
        HloModule step, replica_count=2

        add {
          a = f32[] parameter(0)
          b = f32[] parameter(1)
          ROOT s = f32[] add(a, b)
        }

        ENTRY main {
          p = f32[1024,1024]{1,0} parameter(0)
          i = s32[] parameter(1)
          z = s32[] constant(0)
          r = f32[1024,1024]{1,0} all-reduce(p), replica_groups={{0,1}}, to_apply=add
          ROOT s = f32[512,1024]{1,0} dynamic-slice(r, i, z), dynamic_slice_sizes={512,1024}, metadata={op_name="dynamic_slice"}
        }
    """

    code = "HI207"

    def check(self, context: Context) -> Iterator[Finding]:
        collectives = [collective for collective in context.collectives if collective.kind == "all-reduce"]
        for sliced in find_sliced(context.views, context.call_graph, collectives, self.least(context)):
            message = f"{size(sliced.unread)} of the sum are never read: devices keep slices; psum_scatter sends only those"
            yield self.finding_on(context, sliced.collective, message, sliced.unread)

"""HI213: many small collectives that one could replace."""

from __future__ import annotations

from collections.abc import Iterator

from hlo_inspect.analysis.collectives.related_collectives import MANY, find_small
from hlo_inspect.analysis.context import Context
from hlo_inspect.findings.rule import WireRule, size
from hlo_inspect.report.model import Finding


class SmallCollectives(WireRule):
    """Many small collectives run instead of one.

    What it finds
        Eight or more collectives of a computation, each with an operand of at most 256 KiB. Their kind, type
        and device groups are the same. None needs the result of another. Gathers of inputs count together if their readers do
        not wait for each other: each layer gathers its sharded weights when it needs them. All-reduces of a partitioned text
        from before XLA's collective passes are none: XLA's combiner joins them. The stake is the bytes that all of
        them send in one step.

    Why it matters
        A collective takes some microseconds, whatever its size. Many small ones wait for each other's start and use a small
        part of the links.

    How to fix it
        Join the arrays before the collective: ravel the small gradients into one array. Or stack equal parameters of the layers
        and scan over them. On GPU and TPU, raise the compiler's combine thresholds
        (`--xla_gpu_all_reduce_combine_threshold_bytes`).

    Example
        HloModule step, replica_count=2, is_scheduled=true

        add {
          a = f32[] parameter(0)
          b = f32[] parameter(1)
          ROOT s = f32[] add(a, b)
        }

        ENTRY main {
          p = f32[65536]{0} parameter(0)
          r0 = f32[65536]{0} all-reduce(p), replica_groups={{0,1}}, to_apply=add
          q = f32[65536]{0} negate(p)
          r1 = f32[65536]{0} all-reduce(q), replica_groups={{0,1}}, to_apply=add
          t = f32[65536]{0} sine(p)
          r2 = f32[65536]{0} all-reduce(t), replica_groups={{0,1}}, to_apply=add
          u = f32[65536]{0} cosine(p)
          r3 = f32[65536]{0} all-reduce(u), replica_groups={{0,1}}, to_apply=add
          v = f32[65536]{0} tanh(p)
          r4 = f32[65536]{0} all-reduce(v), replica_groups={{0,1}}, to_apply=add
          w = f32[65536]{0} abs(p)
          r5 = f32[65536]{0} all-reduce(w), replica_groups={{0,1}}, to_apply=add
          x = f32[65536]{0} sign(p)
          r6 = f32[65536]{0} all-reduce(x), replica_groups={{0,1}}, to_apply=add
          y = f32[65536]{0} floor(p)
          r7 = f32[65536]{0} all-reduce(y), replica_groups={{0,1}}, to_apply=add
          ROOT o = (f32[65536], f32[65536], f32[65536], f32[65536], f32[65536], f32[65536], f32[65536], f32[65536])
            tuple(r0, r1, r2, r3, r4, r5, r6, r7)
        }
    """

    code = "HI213"

    def check(self, context: Context) -> Iterator[Finding]:
        if len(context.collectives) < MANY:
            return
        joins = "all-reduce" if context.are_as_written else ""
        kept = [collective for collective in context.collectives if collective.kind != joins]
        for many in find_small(context.views, context.call_graph, kept, self.least(context)):
            first = many.members[0]
            what = f"{len(many.members)} independent {first.kind}s of at most 256 KiB"
            message = f"{what} send {size(many.wire_bytes)} a step; join their operands"
            yield self.finding_on(context, first, message, many.wire_bytes)

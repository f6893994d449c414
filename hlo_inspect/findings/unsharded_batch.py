"""HI218: each device computes the whole batch."""

from __future__ import annotations

from collections.abc import Iterator

from hlo_inspect.analysis.collectives.collective_results import place_of, runs_of
from hlo_inspect.analysis.collectives.logical_collectives import Collective
from hlo_inspect.analysis.context import Context
from hlo_inspect.findings.rule import WireRule, size
from hlo_inspect.graph.readers import maker_behind
from hlo_inspect.hlo.opcodes import PRODUCTS
from hlo_inspect.hlo.values.op_names import FORWARD
from hlo_inspect.report.model import Finding

_MOST = 0.5
"""Share of the forward products that tensor parallelism sums: the second of each pair."""


class UnshardedBatch(WireRule):
    """Devices sum the activations of the whole batch.

    What it finds
        A training step in which more than half of the forward products are summed over one mesh axis. Tensor parallelism sums
        at most every second one. The weights are sharded along that axis, and the batch is not. Each device multiplies its
        part of a weight with the activations of all examples. The stake is the bytes that the sums send in one step.

    Why it matters
        Activations are larger than the weights, and each device keeps those of the whole batch for the backward pass.

    How to fix it
        Shard the batch along the axis: a `jax.lax.with_sharding_constraint` of the activations behind the embedding. XLA then
        gathers the weights, as FSDP intends.

    Example
        x = jax.lax.with_sharding_constraint(embedding[tokens], NamedSharding(mesh, PartitionSpec("data")))
    """

    code = "HI218"

    def check(self, context: Context) -> Iterator[Finding]:
        axes: dict[str | None, dict[tuple[str, int], Collective]] = {}
        for collective, phase, axis in zip(context.collectives, context.collective_phases, context.axes, strict=True):
            place = place_of(context.views, collective) if collective.reduction == "add" and phase == FORWARD else None
            for operand in place.operands if place is not None else ():
                made = maker_behind(context.views, operand, {"convert"})
                if made is not None and made.opcode in PRODUCTS:
                    axes.setdefault(axis, {})[made.key] = collective
        axis, summed = max(axes.items(), key=lambda item: len(item[1]), default=(None, {}))
        if len(summed) < 2 or context.program.kind != "training step":
            return
        products = sum(context.phase_of(view, row) == FORWARD for view, row in context.views.rows_with(PRODUCTS))
        sums = list(dict.fromkeys(summed.values()))
        sent = sum((each.wire_bytes or 0) * runs_of(context.call_graph, each.start.computation.name) for each in sums)
        if len(summed) > _MOST * products and sent >= self.least(context):
            count = f"{len(summed)} of {products} forward products"
            message = f"{count} are summed along {axis or 'an axis'}, {size(sent)} sent a step; shard the batch"
            yield self.finding_on(context, sums[0], message, sent)

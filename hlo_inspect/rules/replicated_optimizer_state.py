"""HI506: optimizer state that devices hold in copies."""

from __future__ import annotations

from collections.abc import Iterator

from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.optimizer.state_savings import replicated_state
from hlo_inspect.report.model import Finding
from hlo_inspect.rules.base import Rule, counted, entry_line

WORTH_DIVIDING = 1 << 10  # bytes


class ReplicatedOptimizerState(Rule):
    """Optimizer state that devices hold in equal copies.

    What it finds
        Moments, master weights and other state of the optimizer that several devices hold in equal copies, while
        another parameter, which the step only reads, is divided among these devices. The bytes at stake are what one
        device saves: of n parts it keeps the largest. Below 1 KiB nothing is reported.

    Why it matters
        Each device computes the same update and keeps the same state. Divided among n devices the state takes one part
        of n on each (ZeRO stage 1; Rajbhandari et al. 2020, arXiv:1910.02054), for one all-gather of the new weights.

    How to fix it
        Give the optimizer's state a sharding over the axis of the batch: in JAX `out_shardings` of the jitted `init`
        and `step`, with `NamedSharding(mesh, PartitionSpec("data"))` for the moments.

    Example
        HloModule step, num_partitions=8

        ENTRY main {
          moment = f32[64,64]{1,0} parameter(1), sharding={replicated}
          batch = f32[64,64]{1,0} parameter(4), sharding={devices=[8,1]<=[8]}
          ...
        }
    """

    code = "HI506"
    name = "replicated-optimizer-state"
    severity = "info"
    passes = ("optimizer",)

    def check(self, context: Context) -> Iterator[Finding]:
        per_device = context.shapes_are == "per_device"
        found = replicated_state(context.optimizer, context.interface, context.device_counts, per_device=per_device)
        for members, parts, among, saved in found:
            if saved >= WORTH_DIVIDING:
                message = (
                    f"the optimizer's state is the same on {parts} devices among which parameter {among} is divided: "
                    f"{counted(kind for _, kind in members)}; dividing it too would save {saved:,} bytes on each of them"
                )
                yield self.finding(context, message, entry_line(context), members[0][0].name, saved)

"""HI203: collectives over devices that the program does not have."""

from __future__ import annotations

from collections.abc import Iterator

from hlo_inspect.analysis.context import Context
from hlo_inspect.findings.rule import Rule
from hlo_inspect.report.model import Finding


class ContradictoryDevices(Rule):
    """Device groups name missing devices, or one twice.

    What it finds
        Device groups and source-target pairs with an id above the program's last device. Groups that share an id, and pairs
        in which a device sends or receives twice, are reported too.

    Why it matters
        XLA refuses such a program, or it hangs. The bytes that the collective moves are unknown.

    How to fix it
        Compare the ids with `num_partitions` and `replica_count` in the header. Such groups come from text of two dumps, or
        from a module compiled for another number of devices.

    Example
        HloModule step, num_partitions=4

        ENTRY main {
          x = f32[8]{0} parameter(0)
          ROOT all = f32[16]{0} all-gather(x), channel_id=1, use_global_device_ids=true, dimensions={0},
            replica_groups={{0,1},{2,4}}
        }
    """

    code = "HI203"
    saves = False
    severity = "error"

    def check(self, context: Context) -> Iterator[Finding]:
        for fault in context.collective_faults:
            if fault.kind in ("contradictory groups", "contradictory pairs"):
                size = ", so its group size is unknown" if fault.kind == "contradictory groups" else ""
                message = f"{fault.collective.start.name}: {fault.reason}{size}"
                yield self.finding_on(context, fault.collective, message, fault.collective.operand_bytes)

"""HI201: device groups that cannot be read."""

from __future__ import annotations

from collections.abc import Iterator

from hlo_inspect.analysis.context import Context
from hlo_inspect.findings.rule import Rule
from hlo_inspect.report.model import Finding


class UnreadableDeviceGroups(Rule):
    """The device groups of a collective cannot be read.

    What it finds
        `replica_groups` that are neither lists of device ids nor a valid iota list. `[2,4]<=[4]`, for example, takes 8
        devices out of 4.

    Why it matters
        The group size decides the bytes that one device sends. It is unknown here, so the sent bytes of the module are
        unknown too.

    How to fix it
        Look at the line: a truncated or edited dump has such text. If XLA prints it, please report it.

    Example
        HloModule step, num_partitions=4

        ENTRY main {
          x = f32[8]{0} parameter(0)
          ROOT all = f32[16]{0} all-gather(x), channel_id=1, use_global_device_ids=true, dimensions={0},
            replica_groups=[2,4]<=[4]
        }
    """

    code = "HI201"
    saves = False

    def check(self, context: Context) -> Iterator[Finding]:
        for fault in context.collective_faults:
            if fault.kind == "unreadable groups":
                message = f"{fault.collective.start.name}: {fault.reason}, so its group size is unknown"
                yield self.finding_on(context, fault.collective, message, fault.collective.operand_bytes)

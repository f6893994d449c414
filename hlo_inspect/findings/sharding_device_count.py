"""HI204: shardings over another number of devices."""

from __future__ import annotations

from collections.abc import Iterator

from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.mesh import sharding_faults
from hlo_inspect.findings.base import Rule, entry_line
from hlo_inspect.report.model import Finding


class ShardingDeviceCount(Rule):
    """Shardings over another number of devices.

    What it finds
        Shardings of the entry computation whose device list does not have as many devices as the program has
        partitions, or names a device twice.

    Why it matters
        XLA refuses such a program. The device mesh, and with it the axes of all collectives, cannot be known.

    How to fix it
        Compare the sharding with `num_partitions` in the header. A text whose header was edited, or that was
        put together from two dumps, has such shardings.

    Example
        HloModule step, num_partitions=4

        ENTRY main {
          ROOT x = f32[8]{0} parameter(0), sharding={devices=[2]<=[2]}
        }
    """

    code = "HI204"
    name = "sharding-device-count"
    severity = "error"

    def check(self, context: Context) -> Iterator[Finding]:
        for fault in sharding_faults(context.module, context.device_counts):
            yield self.finding(context, fault, entry_line(context))

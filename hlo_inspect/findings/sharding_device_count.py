"""HI204: shardings over another number of devices."""

from __future__ import annotations

from collections.abc import Iterator

from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.devices.mesh import sharding_faults
from hlo_inspect.findings.rule import Rule, entry_line
from hlo_inspect.report.model import Finding


class ShardingDeviceCount(Rule):
    """A sharding has a wrong number of devices.

    What it finds
        Shardings of the entry computation whose device list is longer or shorter than the number of partitions. Device lists
        that name a device twice are reported too.

    Why it matters
        XLA refuses such a program. The device mesh and the axes of all collectives are unknown.

    How to fix it
        Compare the sharding with `num_partitions` in the header. Such shardings come from an edited header, or from text of
        two dumps.

    Example
        HloModule step, num_partitions=4

        ENTRY main {
          ROOT x = f32[8]{0} parameter(0), sharding={devices=[2]<=[2]}
        }
    """

    code = "HI204"
    saves = False
    severity = "error"

    def check(self, context: Context) -> Iterator[Finding]:
        for fault in sharding_faults(context.module, context.device_counts):
            yield self.finding(context, fault, entry_line(context))

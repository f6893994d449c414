"""HI202: device groups that differ in size."""

from __future__ import annotations

from collections.abc import Iterator

from hlo_inspect.analysis.context import Context
from hlo_inspect.findings.rule import Rule
from hlo_inspect.report.model import Finding


class UnevenDeviceGroups(Rule):
    """Collectives whose device groups differ in size.

    What it finds
        `replica_groups` in which one group has more devices than another, such as `{{0,1,2},{3}}`.

    Why it matters
        Devices then send different amounts. All figures of the collective are those of its largest group. No regular device
        mesh fits the program.

    How to fix it
        Usually this is intended, for instance for the last stage of a pipeline. Otherwise check the sharding or the
        `axis_index_groups` that made the collective.

    Example
        HloModule step, num_partitions=4

        ENTRY main {
          x = f32[8]{0} parameter(0)
          ROOT all = f32[24]{0} all-gather(x), channel_id=1, use_global_device_ids=true, dimensions={0},
            replica_groups={{0,1,2},{3}}
        }
    """

    code = "HI202"
    saves = False
    severity = "info"

    def check(self, context: Context) -> Iterator[Finding]:
        for fault in context.collective_faults:
            if fault.kind == "uneven groups":
                start, size = fault.collective.start, fault.collective.participants.size
                message = f"{start.name}: its groups differ in size; figures use the largest, of {size} devices"
                yield self.finding_on(context, fault.collective, message, fault.collective.operand_bytes)

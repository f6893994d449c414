"""Whether printed shapes are those of one device or of the whole program.

XLA's SPMD partitioner turns a global program into one for a device. Before it, custom calls carry the shardings that the
front end asked for, and others lead into and out of regions that are written per device already (shard_map).
"""

from __future__ import annotations

import re
from typing import Literal

from hlo_inspect.analysis.groups import DeviceCounts
from hlo_inspect.hlo.module import Module

ShapesAre = Literal["per_device", "global", "mixed"]

_REGION = re.compile(r"SPMD(?:FullToShard|ShardToFull)Shape|xla\.sdy\.(?:GlobalToLocal|LocalToGlobal)Shape")


def shapes_are(module: Module, counts: DeviceCounts) -> ShapesAre:
    """`mixed` is a global program with regions that are written per device."""
    if module.header.is_scheduled:
        return "per_device"
    targets = module.partitioning_targets
    if any(_REGION.fullmatch(target) for target in targets):
        return "mixed"
    if targets:
        return "global"
    communicates = any("replica_groups" in i.attributes for i in module.instructions)
    is_split = (counts.partitions or 1) > 1
    return "global" if is_split and not communicates else "per_device"

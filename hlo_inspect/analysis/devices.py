"""How many devices a module is for: from its header, else from the ids that groups, pairs and shardings name."""

from __future__ import annotations

from collections.abc import Iterable

from hlo_inspect.analysis.groups import DeviceCounts, GroupMode, group_mode
from hlo_inspect.hlo.module import Module
from hlo_inspect.hlo.opcodes import base_opcode
from hlo_inspect.hlo.sharding import DeviceListError, replica_groups, sharding_devices, source_target_pairs


def device_counts(module: Module) -> DeviceCounts:
    """Replicas and partitions. Ids of replicas tell replicas, all others partitions; a header that prints counts wins."""
    header = module.header
    if header.states_devices:
        return DeviceCounts(header.replica_count, header.num_partitions)
    replicas, partitions = 0, 0
    for instruction in module.instructions:
        attributes = instruction.attributes
        if "sharding" in attributes:
            partitions = max(partitions, sharding_devices(attributes["sharding"]))
        if not ("replica_groups" in attributes or "source_target_pairs" in attributes):
            continue
        mode = group_mode(base_opcode(instruction.opcode), attributes)
        count = _largest_id(attributes) + 1
        if mode in {GroupMode.CROSS_REPLICA, GroupMode.CROSS_REPLICA_AND_PARTITION}:
            replicas = max(replicas, count)
        else:
            partitions = max(partitions, count)
    if not replicas and not partitions:
        return DeviceCounts(None, None)
    return DeviceCounts(replicas or 1, partitions or 1)


def _largest_id(attributes: dict[str, str]) -> int:
    try:
        groups: Iterable[Iterable[int]] = replica_groups(attributes.get("replica_groups", "{}"))
        pairs: Iterable[Iterable[int]] = source_target_pairs(attributes.get("source_target_pairs", "{}"))
    except DeviceListError:
        return -1
    return max((i for ids in (*groups, *pairs) for i in ids), default=-1)

"""How many devices a module is for: from its header, else from the ids that groups, pairs and shardings name."""

from __future__ import annotations

from collections.abc import Iterable

from hlo_inspect.analysis.collectives import OPCODES
from hlo_inspect.analysis.groups import DeviceCounts, GroupMode, group_mode
from hlo_inspect.hlo.module import Module
from hlo_inspect.hlo.opcodes import base_opcode
from hlo_inspect.hlo.sharding import DeviceListError, replica_groups, sharding_devices, source_target_pairs

_NAMING = ("channel_id", "all_reduce_id", "use_global_device_ids", "replica_groups", "source_target_pairs")
"""The attributes that name devices, or tell what the names are."""


def device_counts(module: Module) -> DeviceCounts:
    """Replicas and partitions. A header that prints counts wins; else ids of replicas tell replicas, ids of partitions and
    shardings partitions, and flattened ids what the replicas leave to partitions.
    """
    header = module.header
    if header.states_devices:
        return DeviceCounts(header.replica_count, header.num_partitions)
    replicas, partitions, flattened = 0, sharding_devices(module.tiling), 0
    for instruction in module.with_opcodes(OPCODES):
        attributes = {name: text for name in _NAMING if (text := instruction.attribute(name))}
        if not ("replica_groups" in attributes or "source_target_pairs" in attributes):
            continue
        mode = group_mode(base_opcode(instruction.opcode), attributes)
        count = _largest_id(attributes) + 1
        if mode in {GroupMode.CROSS_REPLICA, GroupMode.CROSS_REPLICA_AND_PARTITION}:
            replicas = max(replicas, count)
        elif mode is GroupMode.FLATTENED_ID:
            flattened = max(flattened, count)
        else:
            partitions = max(partitions, count)
    partitions = max(partitions, -(-flattened // max(replicas, 1)))
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

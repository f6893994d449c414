"""Custom calls that do no work: they say how a value is laid out, sharded or placed, or where something starts and ends.

Sources: `xla/service/spmd/shardy/constants.h`, `xla/service/memory_annotations.h`, `xla/hlo/ir/hlo_instructions.h`,
`xla/service/collective_ops_utils.h`, `xla/hlo/transforms/despecializer.cc`, `xla/service/memory_space_assignment/slice.h`;
`transfer_with_static_ring` of transformers-neuronx.
"""

from __future__ import annotations

_SHARDINGS = """
    Sharding SPMDFullToShardShape SPMDShardToFullShape xla.sdy.FuncResultSharding xla.sdy.GlobalToLocalShape
    xla.sdy.LocalToGlobalShape xla.sdy.PropagationBarrier xla.sdy.ShardingGroup ShardBarrierFrom ShardBarrierTo
    CustomSPMDPartitioning
"""
_PLACES = """
    LayoutConstraint annotate_device_placement MoveToHost MoveToDevice PinToDevice PinToDeviceSram Pin Unpin CreateBuffer
    AllocateBuffer ConcatBitcast ZeroCrop AwsNeuronTransferWithStaticRing
"""
_BORDERS = """
    AsyncCollectiveStart AsyncCollectiveDone PrepareAsyncCallStart PrepareAsyncCallDone NopReturnToken __nop SliceId
    __xla_internal_call_marker_before __xla_internal_call_marker_after pipeline_marker
"""
_PROMISES = """
    AssumeGatherIndicesInBound GatherScatterIndicesBitpacked GetRngSeed X64Combine X64SplitLow X64SplitHigh
"""
MARKERS = frozenset((_SHARDINGS + _PLACES + _BORDERS + _PROMISES).split())

TRANSFERS = frozenset({"MoveToHost", "MoveToDevice"})
"""Markers of copies between host and device memory: host offloading turns them into such copies."""

_UNCHANGED = """
    AwsNeuronTransferWithStaticRing LayoutConstraint MoveToDevice MoveToHost SPMDFullToShardShape SPMDShardToFullShape Sharding
    annotate_device_placement pipeline_marker xla.sdy.FuncResultSharding xla.sdy.GSPMDFullToShardShape
    xla.sdy.GSPMDShardToFullShape xla.sdy.GlobalToLocalShape xla.sdy.LocalToGlobalShape xla.sdy.Sharding
"""
UNCHANGED_TARGETS = frozenset(_UNCHANGED.split())
"""Custom calls that return their operands, element by element of the tuple."""

_INTERNAL = "_SPMDInternalOp_"
"""What the names of the partitioner's own intermediate calls begin with."""


def is_marker(target: str) -> bool:
    """Whether custom calls of a target compute and move nothing themselves."""
    return target in MARKERS or target.startswith(_INTERNAL)

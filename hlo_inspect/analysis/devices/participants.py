"""Devices of a program: their number, and the groups of a collective by XLA's four group modes.

Source of the modes: `GetCollectiveOpGroupMode` in xla/service/collective_ops_utils.cc. The ids in the text are replicas,
partitions or flattened ids. The mode follows from the channel and `use_global_device_ids`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import TYPE_CHECKING, Literal, NamedTuple

from hlo_inspect.graph.slices import slices_of_module
from hlo_inspect.hlo.collective_kinds import DEVICE_ATTRIBUTES, is_named_as_collective, may_start_unknown
from hlo_inspect.hlo.instruction import Instruction
from hlo_inspect.hlo.module import Module
from hlo_inspect.hlo.opcodes import STARTING_COLLECTIVES, TABLE
from hlo_inspect.hlo.values.attributes import MalformedValue
from hlo_inspect.hlo.values.device_groups import MAX_DEVICES, DeviceGroups, DeviceListError, Groups, shardy_meshes
from hlo_inspect.hlo.values.sharding import parse_sharding
from hlo_inspect.lazy_pattern import lazy_pattern

if TYPE_CHECKING:
    from hlo_inspect.graph.parameters import ParameterLeaf


class GroupMode(Enum):
    """The meaning of the ids of a group."""

    CROSS_REPLICA = "replicas"
    CROSS_PARTITION = "partitions"
    CROSS_REPLICA_AND_PARTITION = "replicas, each with all its partitions"
    FLATTENED_ID = "replica × partitions + partition"


def group_mode(instruction: Instruction) -> GroupMode:
    """Return the group mode of a collective."""
    if not (_has_channel(instruction, "channel_id") or _has_channel(instruction, "all_reduce_id")):
        return GroupMode.CROSS_REPLICA
    record = TABLE.get(instruction.opcode)
    if record is not None and record.collective and "global-ids" not in TABLE[record.collective].traits:
        return GroupMode.CROSS_PARTITION
    if instruction.attr("use_global_device_ids"):
        return GroupMode.FLATTENED_ID
    return GroupMode.CROSS_REPLICA_AND_PARTITION


def _has_channel(instruction: Instruction, name: Literal["channel_id", "all_reduce_id"]) -> bool:
    """Return True if there is a channel: 0 means none, `_` one whose number is not printed."""
    number = instruction.attr(name)
    return number != 0 if number is not None else instruction.has(name)


def starting_collectives(module: Module) -> frozenset[str]:
    """Return the opcodes of a module's collectives: all that are known, and the unknown opcodes that communicate."""
    if not module.heads.unknown_opcodes:
        return STARTING_COLLECTIVES
    unknown = (i for i in module.instructions if may_start_unknown(i.opcode))
    return STARTING_COLLECTIVES | {
        i.opcode for i in unknown if is_named_as_collective(i.opcode) or any(map(i.has, DEVICE_ATTRIBUTES))
    }


# -- counts -----------------------------------------------------------------------------------------------------------------


class DeviceCounts(NamedTuple):
    """Replicas and partitions of each of the program's `slices`; None if neither the header nor any id states them.

    Groups hold ids of one slice; shardings hold the devices of all slices.
    """

    replicas: int | None
    partitions: int | None
    slices: int = 1

    @property
    def devices_per_slice(self) -> int | None:
        """The number of devices of one slice."""
        return None if self.replicas is None or self.partitions is None else self.replicas * self.partitions

    @property
    def devices(self) -> int | None:
        return None if self.devices_per_slice is None else self.devices_per_slice * self.slices

    @property
    def sharded(self) -> int | None:
        """The number of devices of a sharding."""
        return None if self.partitions is None else self.partitions * self.slices


def device_counts(module: Module) -> DeviceCounts:
    """Return the number of replicas and partitions.

    Counts in the header win. Otherwise replicas follow from ids of replicas, partitions from ids of partitions and from
    shardings. Flattened ids give the partitions of each replica. The program is for one device if the header could print counts
    but has none, no instruction names a device, and the text is whole.
    """
    header = module.header
    if header.states_devices:
        slices = slices_of_module(module, header.num_partitions)
        return DeviceCounts(header.replica_count, header.num_partitions, slices)
    slices = slices_of_module(module, 1)
    replicas, partitions, flattened = 0, -(-_sharded_devices(module) // slices), 0
    communicates = module.device_marks.crosses_meshes
    for instruction in module.with_opcodes(starting_collectives(module)):
        communicates = True
        count = _named_devices(instruction) if instruction.opcode in TABLE else None
        if count is None:
            continue
        mode = group_mode(instruction)
        if mode in {GroupMode.CROSS_REPLICA, GroupMode.CROSS_REPLICA_AND_PARTITION}:
            replicas = max(replicas, count)
        elif mode is GroupMode.FLATTENED_ID:
            flattened = max(flattened, count)
        else:
            partitions = max(partitions, count)
    partitions = max(partitions, -(-flattened // max(replicas, 1)))
    if not replicas and not partitions:
        names_none = not communicates and not module.problems.is_truncated
        is_alone = names_none and header.prints_counts and not header.attributes.keys() & {"num_partitions", "replica_count"}
        return DeviceCounts(1, 1) if is_alone else DeviceCounts(None, None)
    return DeviceCounts(replicas or 1, partitions or 1, slices)


def _sharded_devices(module: Module) -> int:
    """Return the devices of the first sharding, or of the meshes that the header names; 0 if there are none."""
    try:
        tiled = parse_sharding(module.device_marks.tiling).devices if module.device_marks.tiling else 0
    except DeviceListError:
        tiled = 0
    meshes = shardy_meshes(module.header.attributes.get("frontend_attributes", "")).values()
    sizes = [mesh.size for mesh in meshes if mesh.axes]
    return tiled or max((size for size in sizes if size <= MAX_DEVICES), default=0)


def _named_devices(instruction: Instruction) -> int | None:
    """Return the largest id in the groups and pairs of a collective, plus one.

    Return None if it has neither groups nor pairs, 0 if they are empty or unreadable.
    """
    groups, pairs = instruction.value("replica_groups"), instruction.value("source_target_pairs")
    if groups is None and pairs is None:
        return None
    if isinstance(groups, MalformedValue) or isinstance(pairs, MalformedValue):
        return 0
    largest = [max(pair) for pair in pairs.pairs] if pairs is not None else []
    return max([-1 if groups is None else groups.largest_id, *largest]) + 1


# -- groups -----------------------------------------------------------------------------------------------------------------


class Participants(NamedTuple):
    """The groups in the text (None for one group of all devices), and the number of devices in the largest group.

    If `size` is None, it is unknown and `fault` says why. `contradicts`: the groups name a device that the program lacks, or
    one twice.
    """

    listed: DeviceGroups | None
    size: int | None
    uniform: bool = True
    fault: str | None = None
    contradicts: bool = False

    @property
    def key(self) -> Groups | str:
        """A key that equal groups share; empty for one group of all devices."""
        return self.listed.key if self.listed is not None else ()


NOT_PRINTED = "the text does not print them"
"""Reason of unknown groups if a text lacks groups that every current printer prints."""


def participants(groups: DeviceGroups | MalformedValue | None, mode: GroupMode, counts: DeviceCounts) -> Participants:
    """Return the groups and their size; all devices are one group if `replica_groups` lists none."""
    if isinstance(groups, MalformedValue):
        return Participants(None, None, fault=groups.reason)
    if groups is None or not groups.listed:
        size = _participant_count(mode, counts)
        fault = None if size else "the groups are all devices, and their number is unknown"
        return Participants(None, size, fault=fault)
    # compact groups name each of their ids once
    devices = (groups.largest_id,) if groups.is_compact else (device for group in groups.groups for device in group)
    fault = device_list_fault(devices, mode, counts)
    if fault is not None:
        return Participants(groups, None, fault=fault, contradicts=True)
    sizes = groups.sizes
    largest = max(sizes)
    if mode is GroupMode.CROSS_REPLICA_AND_PARTITION:
        if counts.partitions is None:
            return Participants(groups, None, len(sizes) == 1, "the number of partitions is unknown")
        largest *= counts.partitions
    return Participants(groups, largest, len(sizes) == 1)


def device_list_fault(devices: Iterable[int], mode: GroupMode, counts: DeviceCounts) -> str | None:
    """Describe the first device that the program lacks or the list repeats; return None if all are valid."""
    if mode is GroupMode.CROSS_PARTITION:
        count, kind = counts.partitions, "partition"
    elif mode is GroupMode.FLATTENED_ID:
        count, kind = counts.devices_per_slice, "device"
    else:
        count, kind = counts.replicas, "replica"
    seen: set[int] = set()
    for device in devices:
        if count is not None and device >= count:
            return f"it names {kind} {device} of a program with {count}"
        if device in seen:
            return f"it names {kind} {device} twice"
        seen.add(device)
    return None


def _participant_count(mode: GroupMode, counts: DeviceCounts) -> int | None:
    if mode is GroupMode.CROSS_REPLICA:
        return counts.replicas
    return counts.partitions if mode is GroupMode.CROSS_PARTITION else counts.devices_per_slice


def parts_among(copies: Groups, others: Groups) -> int:
    """Count the parts of another array on the devices of each group of `copies`; return the smallest count.

    Both arguments group devices by the part that they hold: `copies` for one array, `others` for the other.
    """
    part = {device: number for number, group in enumerate(others) for device in group}
    return min((len({part[device] for device in group if device in part}) for group in copies), default=1)


MAX_PARTITIONS = 1 << 14
"""Limit of partitions whose copies are counted: a sharding of more is not written out."""

Copies = Mapping[str, int | None]
"""The number of devices that hold the same part of an array, by the text of its sharding; None if the text does not tell."""


def count_copies(leaves: Iterable[ParameterLeaf], counts: DeviceCounts) -> Copies:
    """Count the copies of each sharding of these arrays; nothing if a sharding has one device.

    Replicas of a program hold arrays of their own. The text does not say if those are equal, so they do not count.
    """
    devices = counts.sharded or 1
    shardings = {leaf.sharding.text: leaf.sharding for leaf in leaves if leaf.sharding is not None}
    groups = {text: sharding.copies(devices) for text, sharding in shardings.items()} if 1 < devices <= MAX_PARTITIONS else {}
    return {text: max(map(len, parts), default=None) if parts is not None else None for text, parts in groups.items()}


# -- kind of the printed shapes ---------------------------------------------------------------------------------------------

ShapesAre = Literal["per_device", "global", "mixed"]

_REGION = lazy_pattern(r"SPMD(?:FullToShard|ShardToFull)Shape|xla\.sdy\.(?:GlobalToLocal|LocalToGlobal)Shape")
_PARTITIONED = "_spmd"
"""Suffix that XLA's partitioner adds to the name of the entry."""


def shapes_are(module: Module, counts: DeviceCounts) -> ShapesAre | None:
    """Return the kind of the printed shapes: `per_device`, `global`, or `mixed` (global with regions written per device).

    Return None if the header, which would tell, is missing, or if the text is truncated and the rest may hold such regions.
    XLA's SPMD partitioner turns a global program into one per device. Before partitioning, custom calls carry the shardings of
    the front end. Other custom calls lead into and out of regions that are written per device already (shard_map).
    """
    targets, header, is_cut_off = module.device_marks.partitioning_targets, module.header, module.problems.is_truncated
    is_stated = header.states_devices or (header.prints_counts and not header.fault)
    may_be_split = (counts.partitions or 1) > 1 or (is_cut_off and not is_stated)
    is_partitioned = module.entry is not None and module.entry.name.endswith(_PARTITIONED)
    if header.is_scheduled or not (targets or (may_be_split and not is_partitioned)):
        return "per_device"
    if any(_REGION.fullmatch(target) for target in targets):
        return "mixed"
    if is_cut_off:
        return None
    if targets:
        return "global"
    started = module.with_opcodes(starting_collectives(module))
    grouped = [c for c in started if c.has("replica_groups") or c.has("source_target_pairs")]
    is_sharded = bool(module.device_marks.shardings)
    if grouped and not (is_sharded and any(_leaves_devices_out(collective, counts) for collective in grouped)):
        return "per_device"
    return "global" if header.printed else None


def _leaves_devices_out(collective: Instruction, counts: DeviceCounts) -> bool:
    """Return True if some device of the program is in no group, as XLA's partitioner leaves none but beside groups of one."""
    groups = collective.attr("replica_groups")
    count = _participant_count(group_mode(collective), counts)
    return groups is not None and max(groups.sizes, default=1) > 1 and count is not None and groups.count < count

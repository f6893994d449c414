"""The devices of a program: how many there are, and which of them take part in a collective by XLA's four group modes.

Source of the modes: `GetCollectiveOpGroupMode` in xla/service/collective_ops_utils.cc. The ids in the text are replicas,
partitions or flattened ids, by whether there is a channel and whether `use_global_device_ids` is set.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum
from typing import Literal, NamedTuple

from hlo_inspect.graph.slices import slices_of_module
from hlo_inspect.hlo.instruction import Instruction
from hlo_inspect.hlo.module import Module
from hlo_inspect.hlo.opcodes import STARTING_COLLECTIVES, TABLE
from hlo_inspect.hlo.values.attributes import MalformedValue
from hlo_inspect.hlo.values.device_groups import MAX_DEVICES, DeviceGroups, DeviceListError, Groups, shardy_meshes
from hlo_inspect.hlo.values.sharding import parse_sharding
from hlo_inspect.lazy_pattern import lazy_pattern


class GroupMode(Enum):
    """What the ids of a group are."""

    CROSS_REPLICA = "replicas"
    CROSS_PARTITION = "partitions"
    CROSS_REPLICA_AND_PARTITION = "replicas, each with all its partitions"
    FLATTENED_ID = "replica × partitions + partition"


def group_mode(instruction: Instruction) -> GroupMode:
    """The mode of a collective."""
    if not (_has_channel(instruction, "channel_id") or _has_channel(instruction, "all_reduce_id")):
        return GroupMode.CROSS_REPLICA
    record = TABLE.get(instruction.opcode)
    if record is not None and record.collective and "global-ids" not in TABLE[record.collective].traits:
        return GroupMode.CROSS_PARTITION
    if instruction.attr("use_global_device_ids"):
        return GroupMode.FLATTENED_ID
    return GroupMode.CROSS_REPLICA_AND_PARTITION


def _has_channel(instruction: Instruction, name: Literal["channel_id", "all_reduce_id"]) -> bool:
    """Whether there is a channel: 0 means none, `_` one whose number is not printed."""
    number = instruction.attr(name)
    return number != 0 if number is not None else instruction.has(name)


# -- counts -----------------------------------------------------------------------------------------------------------------


class DeviceCounts(NamedTuple):
    """Replicas and partitions of the program, `None` where neither the header nor any id says, in each of its `slices`.

    The ids of groups are those of one slice, the devices of shardings those of all slices.
    """

    replicas: int | None
    partitions: int | None
    slices: int = 1

    @property
    def of_slice(self) -> int | None:
        """The devices of one slice."""
        return None if self.replicas is None or self.partitions is None else self.replicas * self.partitions

    @property
    def devices(self) -> int | None:
        return None if self.of_slice is None else self.of_slice * self.slices

    @property
    def sharded(self) -> int | None:
        """The devices that a sharding is over."""
        return None if self.partitions is None else self.partitions * self.slices


def device_counts(module: Module) -> DeviceCounts:
    """Replicas and partitions. Counts in the header win. Else the number of replicas follows from ids of replicas, that of
    partitions from ids of partitions and from shardings, and what is left of flattened ids. A program is for one device where
    the header is one of those that print counts, prints none, and nothing in the module, which is not cut off, names a device.
    """
    header = module.header
    if header.states_devices:
        slices = slices_of_module(module, header.num_partitions)
        return DeviceCounts(header.replica_count, header.num_partitions, slices)
    slices = slices_of_module(module, 1)
    replicas, partitions, flattened = 0, -(-_sharded_devices(module) // slices), 0
    communicates = module.device_marks.crosses_meshes
    for instruction in module.with_opcodes(STARTING_COLLECTIVES):
        communicates = True
        count = _named_devices(instruction)
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
        names_none = not communicates and not module.problems.hold_a_cut
        is_alone = names_none and header.prints_counts and not header.attributes.keys() & {"num_partitions", "replica_count"}
        return DeviceCounts(1, 1) if is_alone else DeviceCounts(None, None)
    return DeviceCounts(replicas or 1, partitions or 1, slices)


def _sharded_devices(module: Module) -> int:
    """The devices of the first sharding, or of the meshes that the header names; 0 where there are none."""
    try:
        tiled = parse_sharding(module.device_marks.tiling).devices if module.device_marks.tiling else 0
    except DeviceListError:
        tiled = 0
    meshes = shardy_meshes(module.header.attributes.get("frontend_attributes", "")).values()
    sizes = [mesh.size for mesh in meshes if mesh.axes]
    return tiled or max((size for size in sizes if size <= MAX_DEVICES), default=0)


def _named_devices(instruction: Instruction) -> int | None:
    """One more than the largest id in the groups and pairs of a collective; `None` where it has neither, 0 where they are
    empty or cannot be read.
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
    """The groups that the text lists, `None` for one group of all devices, and the number of devices in a group, the largest
    one where they differ.

    `size` is `None` where it cannot be known, with the reason in `fault`. `contradicts`: the groups name a device that the
    program does not have, or one twice.
    """

    listed: DeviceGroups | None
    size: int | None
    uniform: bool = True
    fault: str | None = None
    contradicts: bool = False

    @property
    def key(self) -> Groups | str:
        """Equal for equal groups; empty for one group of all devices."""
        return self.listed.key if self.listed is not None else ()


NOT_PRINTED = "the text does not print them"
"""Why the groups of a collective are not known that every printer of today would print."""


def participants(groups: DeviceGroups | MalformedValue | None, mode: GroupMode, counts: DeviceCounts) -> Participants:
    """How many devices a group of these `replica_groups` has; without any all devices are in one group."""
    if isinstance(groups, MalformedValue):
        return Participants(None, None, fault=groups.reason)
    if groups is None or not groups.listed:
        size = _everybody(mode, counts)
        fault = None if size else "the groups are all devices, and their number is not known"
        return Participants(None, size, fault=fault)
    # compact groups name each of their ids once
    devices = (groups.largest_id,) if groups.is_compact else (device for group in groups.groups for device in group)
    stray = stray_device(devices, mode, counts)
    if stray is not None:
        return Participants(groups, None, fault=stray, contradicts=True)
    sizes = groups.sizes
    largest = max(sizes)
    if mode is GroupMode.CROSS_REPLICA_AND_PARTITION:
        if counts.partitions is None:
            return Participants(groups, None, len(sizes) == 1, "the number of partitions is not known")
        largest *= counts.partitions
    return Participants(groups, largest, len(sizes) == 1)


def stray_device(devices: Iterable[int], mode: GroupMode, counts: DeviceCounts) -> str | None:
    """What is wrong with a list of devices: it names one that the program does not have, or one twice."""
    if mode is GroupMode.CROSS_PARTITION:
        count, kind = counts.partitions, "partition"
    elif mode is GroupMode.FLATTENED_ID:
        count, kind = counts.of_slice, "device"
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


def _everybody(mode: GroupMode, counts: DeviceCounts) -> int | None:
    if mode is GroupMode.CROSS_REPLICA:
        return counts.replicas
    if mode is GroupMode.CROSS_PARTITION:
        return counts.partitions
    return counts.of_slice


def parts_among(copies: Groups, others: Groups) -> int:
    """Into how many parts another array is divided among devices that hold the same part of one: the fewest of any group."""
    part = {device: number for number, group in enumerate(others) for device in group}
    return min((_parts(group, part) for group in copies), default=1)


def _parts(group: Sequence[int], part: dict[int, int]) -> int:
    return len({part[device] for device in group if device in part})


# -- whose shapes are printed -----------------------------------------------------------------------------------------------

ShapesAre = Literal["per_device", "global", "mixed"]

_REGION = lazy_pattern(r"SPMD(?:FullToShard|ShardToFull)Shape|xla\.sdy\.(?:GlobalToLocal|LocalToGlobal)Shape")
_PARTITIONED = "_spmd"
"""What XLA's partitioner adds to the name of the entry."""


def shapes_are(module: Module, counts: DeviceCounts) -> ShapesAre | None:
    """Whether the printed shapes are those of one device or of the whole program; `mixed` is a whole program with regions
    that are written for a device. `None` where the header, which would say so, is missing, and where what is missing of a text
    that is cut off may hold such regions.

    XLA's SPMD partitioner turns a global program into one for a device. Before it, custom calls carry the shardings that the
    front end asked for, and others lead into and out of regions that are written per device already (shard_map).
    """
    targets, header, is_cut_off = module.device_marks.partitioning_targets, module.header, module.problems.hold_a_cut
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
    if any(one.has("replica_groups") for one in module.with_opcodes(STARTING_COLLECTIVES)):
        return "per_device"
    return "global" if header.printed else None

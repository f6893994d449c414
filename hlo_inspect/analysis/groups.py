"""Which devices take part in a collective: XLA's four group modes.

Source: `GetCollectiveOpGroupMode` in xla/service/collective_ops_utils.cc. The ids in the text are replicas, partitions or
flattened ids, by whether there is a channel and whether `use_global_device_ids` is set.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

from hlo_inspect.hlo.sharding import DeviceListError, Groups, replica_groups

_WITHOUT_GLOBAL_IDS = frozenset(
    {"all-to-all", "collective-permute", "collective-broadcast", "ragged-all-to-all", "send", "recv"}
)


class GroupMode(Enum):
    """What the ids of a group are."""

    CROSS_REPLICA = "replicas"
    CROSS_PARTITION = "partitions"
    CROSS_REPLICA_AND_PARTITION = "replicas, each with all its partitions"
    FLATTENED_ID = "replica × partitions + partition"


def group_mode(kind: str, attributes: dict[str, str]) -> GroupMode:
    """The mode of a collective of base opcode `kind`."""
    has_channel = any(attributes.get(name, "0") != "0" for name in ("channel_id", "all_reduce_id"))
    if not has_channel:
        return GroupMode.CROSS_REPLICA
    if kind in _WITHOUT_GLOBAL_IDS:
        return GroupMode.CROSS_PARTITION
    if attributes.get("use_global_device_ids") == "true":
        return GroupMode.FLATTENED_ID
    return GroupMode.CROSS_REPLICA_AND_PARTITION


@dataclass(frozen=True, slots=True)
class DeviceCounts:
    """Replicas and partitions of the program, `None` where neither the header nor any id tells."""

    replicas: int | None
    partitions: int | None

    @property
    def devices(self) -> int | None:
        return None if self.replicas is None or self.partitions is None else self.replicas * self.partitions


@dataclass(frozen=True, slots=True)
class Participants:
    """The groups as the text has them (none for everybody), and the devices that one group has: the largest where they differ.

    `size` is `None` where it cannot be known, with the reason in `fault`. `contradicts`: the groups name a device that the
    program does not have, or one twice.
    """

    groups: Groups
    size: int | None
    uniform: bool = True
    fault: str | None = None
    contradicts: bool = False


@lru_cache(maxsize=1 << 8)
def participants(text: str | None, mode: GroupMode, counts: DeviceCounts) -> Participants:
    """How many devices a group of `replica_groups=text` has."""
    try:
        groups = replica_groups(text) if text is not None else ()
    except DeviceListError as error:
        return Participants((), None, fault=str(error))
    if not groups:
        size = _everybody(mode, counts)
        return Participants((), size, fault=None if size else "the groups are everybody, and nothing tells how many that is")
    stray = stray_device((device for group in groups for device in group), mode, counts)
    if stray is not None:
        return Participants(groups, None, fault=stray, contradicts=True)
    sizes = {len(group) for group in groups}
    largest = max(sizes)
    if mode is GroupMode.CROSS_REPLICA_AND_PARTITION:
        if counts.partitions is None:
            return Participants(groups, None, len(sizes) == 1, "nothing tells the number of partitions")
        largest *= counts.partitions
    return Participants(groups, largest, len(sizes) == 1)


def stray_device(devices: Iterable[int], mode: GroupMode, counts: DeviceCounts) -> str | None:
    """What is wrong with a list of devices: one that the program does not have, or one that stands twice."""
    if mode is GroupMode.CROSS_PARTITION:
        count, kind = counts.partitions, "partition"
    elif mode is GroupMode.FLATTENED_ID:
        count, kind = counts.devices, "device"
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
    return counts.devices

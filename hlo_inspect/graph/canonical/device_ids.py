"""The device ids in a program, and its text with other ids in their place.

Ids stand in `replica_groups`, `source_target_pairs` and `sharding`, and as positions in tables in which
a device looks up its own number.
"""

from __future__ import annotations

from collections.abc import Sequence

from hlo_inspect.hlo.values.device_groups import DeviceGroups, DeviceListError, DevicePairs, Iota, parse_groups, parse_pairs
from hlo_inspect.hlo.values.sharding import Sharding, parse_sharding

DEVICE_ATTRIBUTES = frozenset({"replica_groups", "source_target_pairs", "sharding"})

DeviceTuples = tuple[tuple[int, ...], ...]
"""The ids of an attribute. Two programs on permuted devices agree in the position of each device in these tuples."""


class NoDevices:
    """Leaves ids out."""

    def attribute(self, name: str, text: str) -> str:
        return ""

    def table(self, literal: str) -> str:
        return ""


class MappedDevices:
    """Replaces each id `i` by `ids[i]`, in a text that does not depend on the order of groups. `ids` is a permutation.

    With `tables`, constants with a number per device are permuted too.
    """

    def __init__(self, ids: Sequence[int], *, tables: bool) -> None:
        self._ids = ids
        self._tables = tables

    def attribute(self, name: str, text: str) -> str:
        """Return the mapped text; the text itself if it cannot be read or names a device that there is not."""
        try:
            if name == "sharding":
                return self._sharding(parse_sharding(text))
            value = parse_groups(text) if name == "replica_groups" else parse_pairs(text)
            return str(sorted(map(self._mapped, group_tuples(value))))
        except (DeviceListError, IndexError):
            return text

    def table(self, literal: str) -> str:
        numbers = literal.strip("{} ").split(",")
        if not self._tables or len(numbers) != len(self._ids):
            return literal
        mapped = dict(zip(self._ids, numbers, strict=True))
        return ",".join(mapped[device].strip() for device in range(len(numbers)))

    def _mapped(self, devices: Sequence[int]) -> tuple[int, ...]:
        return tuple([self._ids[device] for device in devices])

    def _sharding(self, sharding: Sharding) -> str:
        parts = [self._sharding(element) for element in sharding.elements]
        mapped = [self._mapped(devices) for devices in sharding_tuples(sharding)]
        rest = sharding.tile_sizes, sharding.subgroups, sharding.dimension_axes, sharding.other_axes
        axes = sharding.mesh.axes if sharding.mesh is not None else ()
        return f"{sharding.kind} {rest} {axes} {mapped} {parts}"


DeviceTexts = NoDevices | MappedDevices
"""Text in place of that of an attribute in `DEVICE_ATTRIBUTES`, or of a constant with a number per device."""


def group_tuples(value: DeviceGroups | DevicePairs) -> DeviceTuples:
    """Return the groups or pairs. Raise DeviceListError if the axes of a mesh form no groups."""
    return value.groups if isinstance(value, DeviceGroups) else value.pairs


def sharding_tuples(sharding: Sharding) -> DeviceTuples:
    """Return the devices of each array of a sharding, in the order of its tiles."""
    if sharding.elements:
        return tuple(devices for element in sharding.elements for devices in sharding_tuples(element))
    if sharding.device is not None:
        return ((sharding.device,),)
    ids, count = sharding.device_ids, sharding.devices
    if sharding.mesh is not None:
        count = sharding.mesh.size
        ids = tuple(range(count)) if sharding.mesh.device_ids is None else sharding.mesh.device_ids
    return (tuple(ids.ids(count)) if isinstance(ids, Iota) else ids,)

"""The permutation of devices by which two programs differ."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import islice

from hlo_inspect.analysis.context import Context
from hlo_inspect.graph.canonical.canonical_module import CanonicalModule
from hlo_inspect.graph.canonical.device_ids import (
    DEVICE_ATTRIBUTES,
    DeviceTuples,
    MappedDevices,
    NoDevices,
    group_tuples,
    sharding_tuples,
)
from hlo_inspect.graph.view import View
from hlo_inspect.hlo.values.device_groups import DeviceGroups, DeviceListError, DevicePairs
from hlo_inspect.hlo.values.sharding import Sharding

MAX_DEVICES = 512
MAX_STEPS = 1 << 16
"""Limit of the devices that a search maps, wrong ones included."""
_MOST_VERIFIED = 4
_OWN_NUMBER = frozenset({"partition-id", "replica-id"})

Permutation = tuple[int, ...]
"""The device of NEW for each device of OLD."""


def find_permutation(old: Context, new: Context) -> Permutation | None:
    """Return the permutation of devices by which the programs differ; None if they differ in more, or none is found.

    The search expects the devices of each group, pair and sharding in the same order in both programs, as those of a mesh are.
    The result is verified: with its ids in place of those of OLD the programs are equal.
    """
    if not old.collectives or _opcodes(old) != _opcodes(new):
        return None
    sides = [CanonicalModule(context.module, context.views, devices=NoDevices()) for context in (old, new)]
    if sides[0].program != sides[1].program:
        return None
    try:
        # in an order that equal programs share
        old_lists, new_lists = ([tuples for place in side.ordered_rows() for tuples in _of_row(*place)] for side in sides)
    except DeviceListError:
        return None
    if len(old_lists) != len(new_lists):  # groups of one program cannot be read
        return None
    pairs = dict.fromkeys(zip(old_lists, new_lists, strict=True))
    count = 1 + max((device for pair in pairs for tuples in pair for devices in tuples for device in devices), default=0)
    if not 1 < count <= MAX_DEVICES:
        return None
    candidates = _Search(list(pairs), count).permutations()
    return next((ids for ids in islice(candidates, _MOST_VERIFIED) if _is_equal(old, new, ids)), None)


def _opcodes(context: Context) -> Counter[str]:
    views = map(context.views.for_computation, context.views.computations)
    return Counter(opcode for view in views for opcode in view.opcodes)


def _is_equal(old: Context, new: Context, ids: Permutation) -> bool:
    """Return True if the programs are equal with these ids.

    In a program that asks for its own number, constants with a number per device may be tables of devices. They are permuted
    then, all of them, so that no difference is overlooked.
    """
    tables = not _OWN_NUMBER.isdisjoint(_opcodes(old))
    sides = ((old, ids), (new, tuple(range(len(ids)))))
    mapped = [
        CanonicalModule(context.module, context.views, devices=MappedDevices(numbers, tables=tables)).program
        for context, numbers in sides
    ]
    return mapped[0] == mapped[1]


def _of_row(view: View, row: int) -> Iterator[DeviceTuples]:
    """Yield the groups or pairs of a row, and the devices of each array's sharding."""
    tail = view.tails[row]
    for name in sorted(DEVICE_ATTRIBUTES):
        value = view.instruction_at(row).value(name) if f"{name}=" in tail else None
        if isinstance(value, Sharding):
            yield from ((devices,) for devices in sharding_tuples(value))
        elif isinstance(value, DeviceGroups | DevicePairs):
            yield group_tuples(value)


class _Search:
    """Maps devices of OLD to devices of NEW that stand in the same positions of the same attributes.

    A device decides the others of its tuples. If no attribute decides one, each is tried, its own number first.
    """

    def __init__(self, pairs: Sequence[tuple[DeviceTuples, DeviceTuples]], count: int) -> None:
        self._count = count
        self._old = _by_position([old for old, _ in pairs])
        self._new = _by_position([new for _, new in pairs])
        self._steps = 0

    def permutations(self) -> Iterator[Permutation]:
        """Yield permutations in which all positions agree, until the limit of steps."""
        yield from self._complete({})

    def _complete(self, ids: dict[int, int]) -> Iterator[Permutation]:
        undecided = next((device for device in range(self._count) if device not in ids), None)
        if undecided is None:
            yield tuple(ids[device] for device in range(self._count))
            return
        free = sorted(set(range(self._count)).difference(ids.values()), key=lambda device: device != undecided)
        for device in free:
            if self._steps > MAX_STEPS:
                return
            extended = self._with(ids, undecided, device)
            if extended is not None:
                yield from self._complete(extended)

    def _with(self, ids: dict[int, int], first: int, image: int) -> dict[int, int] | None:
        """Return the mapping with one more device and all that follow from it; None if they contradict each other."""
        ids, images, waiting = {**ids, first: image}, {*ids.values(), image}, [first]
        while waiting:
            device = waiting.pop()
            self._steps += 1
            old, new = self._old.get(device, {}), self._new.get(ids[device], {})
            if old.keys() != new.keys():
                return None
            for position, devices in old.items():
                if len(devices) != len(new[position]):
                    return None
                for follower, target in zip(devices, new[position], strict=True):
                    if follower not in ids and target not in images:
                        ids[follower] = target
                        images.add(target)
                        waiting.append(follower)
                    elif ids.get(follower) != target:
                        return None
        return ids


def _by_position(attributes: Sequence[DeviceTuples]) -> dict[int, dict[tuple[int, int], tuple[int, ...]]]:
    """Return the tuple of each device by attribute and position."""
    places: defaultdict[int, dict[tuple[int, int], tuple[int, ...]]] = defaultdict(dict)
    for attribute, tuples in enumerate(attributes):
        for devices in tuples:
            for position, device in enumerate(devices):
                places[device][attribute, position] = devices
    return places

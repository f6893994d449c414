"""Meetings: collectives as runs that block a device until all devices of its group are at them.

Each device runs the collectives of its program one after the other, asynchronous ones by their starts. A meeting ends when all
of its devices are at it. Programs whose meetings wait for each other in a cycle hang. A device matches a collective by its
content and by the devices of its group, never by the number of a channel.

Source of the model: XLA keys the cliques of GPUs by their devices, and requires the same order of thunks on all ranks
(xla/backends/gpu/collectives/gpu_clique_key.h, xla/backends/gpu/runtime/collective_clique_requests.h).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain
from typing import NamedTuple

MOST_STEPS = 200_000
"""Limit of collectives of one order, loops unrolled."""

_MOST_ARRIVALS = 4_000_000
"""Limit of arrivals of devices at meetings that are followed."""


@dataclass(frozen=True)
class Meeting:
    """A collective of a program.

    `content` is all that devices have to agree on: kind, shape, reduction, pairs. `groups` are the devices that wait for each
    other; None if unknown. `number` tells equal collectives of a program apart.
    """

    content: str
    groups: frozenset[frozenset[int]] | None
    number: int = 0

    @cached_property
    def key(self) -> tuple[str, frozenset[frozenset[int]] | None]:
        """All but the number."""
        return self.content, self.groups


class Repeated(NamedTuple):
    """The steps of a loop's body. `runs` is None if unknown."""

    runs: int | None
    steps: tuple[Step, ...]


class Alternatives(NamedTuple):
    """The steps of the branches of a conditional, one of which runs."""

    branches: tuple[tuple[Step, ...], ...]


Step = Meeting | Repeated | Alternatives
Steps = tuple[Step, ...]


class DeviceOrder(NamedTuple):
    """Devices that run the same steps."""

    devices: frozenset[int]
    steps: Steps


class Decision(NamedTuple):
    """The answer to the question if programs hang; None if unknown, with a `reason`."""

    hangs: bool | None
    reason: str = ""


class UndecidedError(Exception):
    """Reason why the order of collectives is unknown."""


def decide(orders: Sequence[DeviceOrder]) -> Decision:
    """Decide if programs hang that run at the same time. Each device of their groups must be in an order."""
    merged: dict[Steps, frozenset[int]] = {}
    for devices, steps in orders:
        merged[steps] = merged.get(steps, frozenset()) | devices
    return _decide([DeviceOrder(devices, steps) for steps, devices in merged.items()])


def _decide(orders: Sequence[DeviceOrder]) -> Decision:
    if len(orders) < 2:
        return Decision(hangs=False)
    orders = _without_common_ends(orders)
    inner = _inner_orders(orders)
    if inner is not None:
        return _any_of([decide(part) for part in inner])
    loops = _SharedLoops(orders)
    try:
        return Decision(_Streams([(order.devices, unrolled(order.steps, loops.times)) for order in orders]).hang())
    except UndecidedError as error:
        return Decision(None, str(error))


def _any_of(decisions: Sequence[Decision]) -> Decision:
    """Return the decision for parts one of which runs: they hang if one does."""
    unknown = next((decision for decision in decisions if decision.hangs is None), None)
    if any(decision.hangs for decision in decisions):
        return Decision(hangs=True)
    return unknown or Decision(hangs=False)


def _without_common_ends(orders: Sequence[DeviceOrder]) -> list[DeviceOrder]:
    """Remove the steps with which all orders begin, and those with which all end: they end in any case."""
    steps = [order.steps for order in orders]
    shortest = min(map(len, steps))
    start = _common(steps, range(shortest))
    end = _common(steps, range(-1, start - shortest - 1, -1))
    return [order._replace(steps=order.steps[start : len(order.steps) - end]) for order in orders]


def _common(steps: Sequence[Steps], positions: Iterable[int]) -> int:
    """Count the positions, from the first on, at which all have the same step."""
    first, *others = steps
    for count, position in enumerate(positions):
        if any(other[position] != first[position] for other in others):
            return count
    return len(list(positions))


def _inner_orders(orders: Sequence[DeviceOrder]) -> Iterator[list[DeviceOrder]] | None:
    """Return the orders within a loop or within each branch, if nothing else differs.

    A loop that runs equally often everywhere hangs if and only if one iteration does. An iteration that ends leaves all devices
    at the start of the next one. Devices that wait for each other in an iteration do so forever.
    """
    steps = [order.steps[0] for order in orders if len(order.steps) == 1]
    loops = [step for step in steps if isinstance(step, Repeated)]
    if len(loops) == len(orders) and len({loop.runs for loop in loops}) == 1:
        return iter([_with_steps(orders, [loop.steps for loop in loops])])
    conditionals = [step for step in steps if isinstance(step, Alternatives)]
    if len(conditionals) == len(orders) and len({len(conditional.branches) for conditional in conditionals}) == 1:
        branches = zip(*(conditional.branches for conditional in conditionals), strict=True)
        return (_with_steps(orders, steps_of_orders) for steps_of_orders in branches)
    return None


def _with_steps(orders: Sequence[DeviceOrder], steps: Sequence[Steps]) -> list[DeviceOrder]:
    return [DeviceOrder(order.devices, own) for order, own in zip(orders, steps, strict=True)]


# -- loops ------------------------------------------------------------------------------------------------------------------


class _SharedLoops:
    """The loops that all orders have, in whichever order their bodies and the steps around them run.

    Such a loop runs only as often as it has groups that meet. A group waits for one of a later iteration through a chain that
    visits each group of the body once, so more iterations decide nothing. That holds unless its meetings occur elsewhere too.
    """

    def __init__(self, orders: Sequence[DeviceOrder]) -> None:
        self._orders = orders
        self._times: dict[object, int] = {}

    def times(self, loop: Repeated) -> int:
        """Return how often to unroll a loop. Raise UndecidedError if its runs are unknown and it is no shared one."""
        key = _content(loop.steps)
        if key not in self._times:
            self._times[key] = _group_count(loop.steps) if self._is_shared(loop, key) else 0
        enough = self._times[key]
        if not enough or (loop.runs is not None and loop.runs < enough):
            return exact_runs(loop)
        return enough

    def _is_shared(self, loop: Repeated, key: object) -> bool:
        """Return True if all orders have the loop the same number of times, with equal runs, and its meetings nowhere else."""
        runs: set[int | None] = set()
        counts: set[int] = set()
        inside = set(in_text_order(loop.steps))
        for order in self._orders:
            own = [step for step in order.steps if isinstance(step, Repeated) and _content(step.steps) == key]
            others = [step for step in order.steps if not (isinstance(step, Repeated) and _content(step.steps) == key)]
            runs.update(step.runs for step in own)
            if _concerns(order.devices, loop.steps):
                counts.add(len(own))
            if not inside.isdisjoint(in_text_order(others)):
                return False
        return len(runs) == 1 and counts == {1}


def in_text_order(steps: Iterable[Step]) -> Iterator[Meeting]:
    """Yield the meetings in their order, those of a loop or of each branch once."""
    for step in steps:
        if isinstance(step, Meeting):
            yield step
        else:
            yield from in_text_order(step.steps if isinstance(step, Repeated) else chain.from_iterable(step.branches))


def _concerns(devices: frozenset[int], steps: Steps) -> bool:
    """Return True if one of the devices may take part in the meetings of a loop."""
    for step in steps:
        if not isinstance(step, Meeting):
            return True
        if step.groups is None or any(not devices.isdisjoint(group) for group in step.groups):
            return True
    return False


def _content(steps: Steps) -> frozenset[tuple[object, int]]:
    """Return a key that steps with equal meetings share, in whichever order."""
    return frozenset(Counter(step if isinstance(step, Meeting) else _nested(step) for step in steps).items())


def _nested(step: Repeated | Alternatives) -> object:
    return (step.runs, _content(step.steps)) if isinstance(step, Repeated) else tuple(map(_content, step.branches))


def _group_count(steps: Steps) -> int:
    """Count the groups that meet, those of nested loops once for each run."""
    return sum(
        _group_count(step.steps) * (step.runs or 1)
        if isinstance(step, Repeated)
        else len(step.groups or ())
        if isinstance(step, Meeting)
        else 1
        for step in steps
    )


def exact_runs(loop: Repeated) -> int:
    """Return the runs of a loop. Raise UndecidedError if they are unknown."""
    if loop.runs is None:
        raise UndecidedError("the runs of a loop with collectives are unknown")
    return loop.runs


def unrolled(steps: Steps, times: Callable[[Repeated], int] = exact_runs) -> list[Meeting]:
    """Return the meetings in the order in which they run; `times` returns the runs of an outer loop.

    Raise UndecidedError for a conditional, and for more than `MOST_STEPS` meetings.
    """
    meetings: list[Meeting] = []
    for step in steps:
        if isinstance(step, Alternatives):
            raise UndecidedError("a conditional decides which collectives run")
        if isinstance(step, Meeting):
            meetings.append(step)
            continue
        count, body = times(step), unrolled(step.steps)
        if len(meetings) + count * len(body) > MOST_STEPS:
            raise UndecidedError(f"a loop has more than {MOST_STEPS:,} collectives")
        meetings += body * count
    return meetings


# -- devices ----------------------------------------------------------------------------------------------------------------


_Members = Mapping[int, tuple[int, int]]
"""The group of each device that takes part, by number, and its size."""


class _Stream:
    """The meetings of one device, of which it is at number `position`; `visits` counts those that it has been at."""

    __slots__ = ("device", "meetings", "position", "visits")

    def __init__(self, device: int, meetings: Sequence[tuple[int, _Members]]) -> None:
        self.device = device
        self.meetings = meetings
        self.position = 0
        self.visits: dict[int, int] = {}


class _Streams:
    """All devices, each with its own order of meetings, which have numbers."""

    def __init__(self, orders: Sequence[tuple[frozenset[int], list[Meeting]]]) -> None:
        numbered: dict[Meeting, tuple[int, _Members]] = {}
        self._streams: list[_Stream] = []
        for devices, meetings in orders:
            own = [numbered.setdefault(meeting, (len(numbered), _members(meeting.groups))) for meeting in meetings]
            self._streams += [_Stream(device, own) for device in devices]
        self._waiting: defaultdict[tuple[int, int, int], list[_Stream]] = defaultdict(list)
        self._arrivals = 0

    def hang(self) -> bool:
        """Return True if a device waits forever. Raise UndecidedError after too many arrivals."""
        free = list(self._streams)
        while free:
            free += self._arrive(free.pop())
        return bool(self._waiting)

    def _arrive(self, stream: _Stream) -> Sequence[_Stream]:
        """Move a device to its next meeting; return the devices that this frees."""
        while stream.position < len(stream.meetings):
            number, members = stream.meetings[stream.position]
            stream.position += 1
            self._arrivals += 1
            if self._arrivals > _MOST_ARRIVALS:
                raise UndecidedError(f"the devices have more than {_MOST_ARRIVALS:,} meetings")
            member = members.get(stream.device)
            if member is None:
                continue
            group, size = member
            visit = stream.visits.get(number, 0)
            stream.visits[number] = visit + 1
            waiting = self._waiting[number, group, visit]
            waiting.append(stream)
            if len(waiting) == size:
                return self._waiting.pop((number, group, visit))
            return ()
        return ()


@lru_cache(maxsize=256)
def _members(groups: frozenset[frozenset[int]] | None) -> _Members:
    """Return the members of groups. Raise UndecidedError if they are unknown."""
    if groups is None:
        raise UndecidedError("the groups of a collective are unknown")
    return {device: (number, len(group)) for number, group in enumerate(groups) for device in group}

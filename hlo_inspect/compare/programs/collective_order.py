"""The collectives of a module in the order in which a device runs them, with the devices that meet in each."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import groupby
from typing import NamedTuple

from hlo_inspect.analysis.collectives.logical_collectives import Collective
from hlo_inspect.analysis.context import Context
from hlo_inspect.compare.pairing import pair_by
from hlo_inspect.compare.programs.meetings import (
    MOST_STEPS,
    Alternatives,
    Meeting,
    Repeated,
    Step,
    Steps,
    UndecidedError,
    in_text_order,
    unrolled,
)
from hlo_inspect.export.plan.communications import all_groups
from hlo_inspect.figure import exact
from hlo_inspect.graph.calls import Call, place
from hlo_inspect.graph.view import InstructionPlace
from hlo_inspect.hlo.values.attributes import MalformedValue
from hlo_inspect.hlo.values.device_groups import DeviceListError, Groups

_MOST_NESTED = 50
"""Limit of loops and conditionals around a collective."""

_MOST_DEVICES = 1 << 16
"""Limit of devices whose groups are compared one by one."""


class OrderedCollective(NamedTuple):
    """A collective in the order of the schedule. `text` is its content, `dataflow` a hash of how its operands are made."""

    collective: Collective
    meeting: Meeting
    text: str
    dataflow: int

    @property
    def name(self) -> str:
        return self.collective.start.name

    @property
    def line(self) -> int:
        return self.collective.start.line

    @property
    def source(self) -> str:
        """The line of Python as `path:line`; empty if unknown."""
        return self.collective.origin.source


class CollectiveOrder:
    """The collectives of a module in the order of its schedule.

    `devices` is their number, None if unknown. `fault` says why the order is unknown; it has no `steps` then.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self.devices = context.device_counts.devices_per_slice
        self._groups: dict[object, frozenset[frozenset[int]] | None] = {}
        self.fault = "" if context.module.header.is_scheduled else "the text is not scheduled"
        self.steps: Steps = ()
        try:
            self.steps = self._entry_steps()
        except UndecidedError as error:
            self.fault = str(error)

    @cached_property
    def collectives(self) -> list[OrderedCollective]:
        """Each collective once, in the order of the computations that hold them, callees before callers."""
        return list(self._by_place.values())

    @property
    def first(self) -> OrderedCollective | None:
        """The collective that runs first; None without collectives."""
        by_meeting = {ordered.meeting: ordered for ordered in self.collectives}
        return next((by_meeting[meeting] for meeting in in_text_order(self.steps)), next(iter(self.collectives), None))

    @cached_property
    def contents(self) -> Counter[tuple[str, object]]:
        """The number of collectives of the text with each content and groups."""
        return Counter(ordered.meeting.key for ordered in self.collectives)

    def numbered_like(self, other: CollectiveOrder) -> Steps:
        """Return the steps with the numbers that equal collectives have in another order.

        Equal collectives of two programs are the same if their operands are made in the same way. Others are paired in order.
        """
        return _renumbered(self.steps, _numbers(self.collectives, other.collectives))

    # -- the steps --------------------------------------------------------------------------------------------------------

    @cached_property
    def _by_place(self) -> dict[InstructionPlace, OrderedCollective]:
        """The collectives by the places of their starts."""
        collectives = [  # without a send or recv between host and device, for which no other device waits
            collective
            for collective in self._context.collectives
            if not (collective.is_point_to_point and collective.inner.attr("is_host_transfer") and collective.transfer is None)
        ]
        order = {name: number for number, name in enumerate(reversed(self._context.call_graph.order))}
        collectives.sort(key=lambda collective: (order.get(collective.start.computation.name, -1), collective.start.line))
        counts: Counter[object] = Counter()
        by_place = {}
        for collective in collectives:
            ordered = self._ordered(collective)
            number = counts[ordered.meeting.key]
            counts[ordered.meeting.key] += 1
            meeting = Meeting(*ordered.meeting.key, number)
            by_place[place(collective.start)] = ordered._replace(meeting=meeting)
        return by_place

    def _ordered(self, collective: Collective) -> OrderedCollective:
        shape = "" if collective.result_shape is None else f" {collective.result_shape}"
        reduction = f" {collective.reduction}" if collective.reduction else ""
        text = f"{collective.kind}{shape}{reduction}"
        pairs = collective.source_target_pairs
        meeting = Meeting(f"{text} {pairs}" if pairs else text, self._device_groups(collective))
        computation = self._context.canonical.computation(collective.start.computation.name)
        row = computation.view.row_at(collective.start.line, collective.start.name)
        return OrderedCollective(collective, meeting, text, computation.dataflow[row] if row is not None else 0)

    def _entry_steps(self) -> Steps:
        """Return the steps of the entry; callees first. Raise UndecidedError if they are too many or too deep."""
        graph = self._context.call_graph
        steps: dict[str, Steps] = {}
        depths: dict[str, int] = {}
        starts: defaultdict[str, list[InstructionPlace]] = defaultdict(list)
        for start in self._by_place:
            starts[start[0]].append(start)
        for name in reversed(graph.order):
            calls = [call for call in graph.calls[name] if place(call.instruction) not in self._by_place]
            made = [list(group) for _, group in groupby(calls, key=lambda call: place(call.instruction))]
            items: list[tuple[int, Steps]] = [(start[1], (self._by_place[start].meeting,)) for start in starts[name]]
            items += [(group[0].instruction.line, _steps_of_call(group, steps)) for group in made]
            items.sort(key=lambda item: item[0])
            if sum(len(called) for _, called in items) > MOST_STEPS:
                raise UndecidedError(f"{name} runs more than {MOST_STEPS:,} collectives")
            steps[name] = tuple(step for _, called in items for step in called)
            depths[name] = 1 + max((depths[call.callee] for call in calls if steps.get(call.callee)), default=0)
            if depths[name] > _MOST_NESTED:
                raise UndecidedError(f"collectives are nested more than {_MOST_NESTED} calls deep")
        return steps[graph.order[0]] if graph.order else ()

    # -- devices ----------------------------------------------------------------------------------------------------------

    def _device_groups(self, collective: Collective) -> frozenset[frozenset[int]] | None:
        """Return the devices that wait for each other; None if unknown. Those of a permute are joined by pairs."""
        if collective.pairs is not None:
            key: object = ("pairs", collective.source_target_pairs, collective.mode)
        else:
            key = (collective.kind in ("send", "recv"), collective.replica_groups, collective.mode)
        if key not in self._groups:
            self._groups[key] = self._read_groups(collective)
        return self._groups[key]

    def _read_groups(self, collective: Collective) -> frozenset[frozenset[int]] | None:
        counts, pairs = self._context.device_counts._replace(slices=1), collective.pairs
        if collective.is_point_to_point or (self.devices or 0) > _MOST_DEVICES or isinstance(pairs, MalformedValue):
            return None
        if pairs is not None:
            groups: Groups = tuple(joined(pairs.pairs))
            if not groups:
                return frozenset()
        elif collective.participants.fault is not None:
            return None
        else:
            groups = collective.participants.listed.groups if collective.participants.listed is not None else ()
        if self.devices is None:
            return None
        try:
            devices = frozenset(map(frozenset, all_groups(groups, collective.mode, counts)))
        except DeviceListError:
            return None
        return None if any(max(group) >= self.devices for group in devices) else devices


def _steps_of_call(calls: Sequence[Call], steps: Mapping[str, Steps]) -> Steps:
    """Return the steps that one instruction runs: those of a loop, of a conditional, or of its only callee."""
    instruction = calls[0].instruction
    called = [steps.get(call.callee, ()) for call in calls]
    if not any(called):
        return ()
    roles = {callee.name: callee.role for callee in instruction.called}
    if any(roles.get(call.callee) == "body" for call in calls):
        by_role = {roles.get(call.callee): (call, own) for call, own in zip(calls, called, strict=True)}
        body, condition = by_role["body"], by_role.get("condition")
        check = condition[1] if condition is not None else ()
        runs = exact(body[0].times)
        return (*check, Repeated(None if runs is None else int(runs), (*body[1], *check)))
    if instruction.opcode == "conditional" and len(calls) > 1:
        return (Alternatives(tuple(called)),)
    return tuple(
        step
        for call, own in zip(calls, called, strict=True)
        for step in (own if exact(call.times) == 1 else (Repeated(None, own),) if own else ())
    )


def joined(pairs: Iterable[tuple[int, int]]) -> Iterator[tuple[int, ...]]:
    """Yield the devices that pairs join directly or through others."""
    neighbours: defaultdict[int, list[int]] = defaultdict(list)
    for source, target in pairs:
        neighbours[source].append(target)
        neighbours[target].append(source)
    seen: set[int] = set()
    for device in neighbours:
        if device in seen:
            continue
        group, waiting = [], deque([device])
        seen.add(device)
        while waiting:
            group.append(waiting.popleft())
            following = [other for other in dict.fromkeys(neighbours[group[-1]]) if other not in seen]
            seen.update(following)
            waiting += following
        yield tuple(group)


# -- equal collectives of two programs ----------------------------------------------------------------------------------------


def _numbers(own: Sequence[OrderedCollective], others: Sequence[OrderedCollective]) -> dict[Meeting, int]:
    """Return the number that each meeting has among its equals in another program."""
    keys = (lambda ordered: (ordered.meeting.key, ordered.dataflow), lambda ordered: ordered.meeting.key)
    paired = pair_by(own, others, keys)
    numbers = {own[position].meeting: others[mate].meeting.number for position, mate in paired.pairs}
    counts = Counter(other.meeting.key for other in others)
    for position in paired.old:
        meeting = own[position].meeting
        numbers[meeting] = counts[meeting.key]
        counts[meeting.key] += 1
    return numbers


def _renumbered(steps: Steps, numbers: Mapping[Meeting, int]) -> Steps:
    return tuple(_renumbered_step(step, numbers) for step in steps)


def _renumbered_step(step: Step, numbers: Mapping[Meeting, int]) -> Step:
    if isinstance(step, Repeated):
        return Repeated(step.runs, _renumbered(step.steps, numbers))
    if isinstance(step, Alternatives):
        return Alternatives(tuple(_renumbered(branch, numbers) for branch in step.branches))
    return Meeting(step.content, step.groups, numbers.get(step, step.number))


def executed(steps: Steps) -> Counter[tuple[str, object]] | None:
    """Count the runs of each collective; None if loops or conditionals leave them unknown."""
    try:
        return Counter(meeting.key for meeting in unrolled(steps))
    except UndecidedError:
        return None

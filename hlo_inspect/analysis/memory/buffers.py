"""Buffers, the values that always share memory; uses and live ranges of values.

`find_buffers` follows `HloAliasAnalysis` (xla/hlo/analysis/hlo_alias_analysis.cc). It joins aliased outputs and parameters,
values carried by a loop, the roots of a conditional's branches, and in-place operands (`in_place`).

`ValueUses` follows `HloValue::ComputeUses` (xla/service/hlo_value.cc). `find_live_ranges` follows
`HloLiveRange::CalculateBufferStartEndMap` and `NormalizeAliasedBuffers` (xla/hlo/utils/hlo_live_range.cc).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

from hlo_inspect.analysis.memory.hlo_values import Values
from hlo_inspect.analysis.memory.in_place import InPlace
from hlo_inspect.analysis.memory.schedule import Schedule

_READS_TABLE = frozenset({"get-tuple-element", "copy"})
_READS_NOTHING = frozenset({"tuple", "domain"})


class LiveRanges(NamedTuple):
    """For each value the first and the last time at which it is live, and the last result that holds it (time and place)."""

    starts: list[int]
    ends: list[int]
    last_positions: list[tuple[int, int]]


def find_live_ranges(values: Values, aliased: Collection[tuple[int, int]]) -> LiveRanges:
    """Return the live range of each value by itself.

    `aliased` are the parts of entry parameters, by number and place, whose buffer an output uses.
    """
    schedule = values.schedule
    starts, ends, positions = _definitions(values)
    for time, result in enumerate(values.results):
        run = schedule.run_at[time]
        time_of_definition = run.end if run.root == time else time
        for place, value in enumerate((result,) if isinstance(result, int) else result):
            if ends[value] < time_of_definition:
                ends[value], positions[value] = time_of_definition, (time, place)
    whole, table = _reads(schedule)
    for time, result in enumerate(values.results):
        if isinstance(result, int):
            ends[result] = max(ends[result], whole[time], table[time])
            continue
        read = whole[time]
        if read >= 0:
            for value in result:
                ends[value] = max(ends[value], read)
        ends[result[0]] = max(ends[result[0]], table[time])
    for number, parameter in schedule.runs[0].parameters.items():
        for place, value in enumerate(values.result(parameter)):
            if (number, place) not in aliased:  # no output uses its buffer
                ends[value] = schedule.end
    return LiveRanges(starts, ends, positions)


def _definitions(values: Values) -> tuple[list[int], list[int], list[tuple[int, int]]]:
    """Return starts, ends and last positions of values as far as their definitions state them.

    A parameter is live from the start of its computation, a root to its end. Values of an asynchronous computation are live
    until its done.
    """
    schedule, starts, ends = values.schedule, list(values.times), list(values.times)
    for value, time in enumerate(values.times):
        run = schedule.run_at[time]
        if schedule.opcodes[time] == "parameter":
            starts[value] = run.start
        if run.root == time:
            ends[value] = run.end
        if run.asynchronous is not None:
            ends[value] = max(ends[value], schedule.done.get(run.asynchronous.caller, run.end))
    return starts, ends, list(zip(values.times, values.places, strict=True))


def _reads(schedule: Schedule) -> tuple[list[int], list[int]]:
    """Return two last reads for each time: of the whole result, and of its top level only."""
    whole, table = [-1] * (schedule.end + 1), [-1] * (schedule.end + 1)  # the last entry is for missing operands
    for time, opcode in enumerate(schedule.opcodes):
        if opcode in _READS_NOTHING or opcode == "call":  # the instructions of its computation count, not the call
            continue
        if opcode in _READS_TABLE:
            for operand in schedule.operands[time]:
                table[operand] = time
        elif opcode == "while":
            read_time = _body_begins(schedule, time)
            for operand in schedule.operands[time]:
                whole[operand] = max(whole[operand], read_time)
        else:
            for operand in schedule.operands[time]:
                whole[operand] = time
    return whole, table


def _body_begins(schedule: Schedule, time: int) -> int:
    """Return the time of the body's parameter, at which the operand of a loop ends."""
    for run in schedule.called.get(time, ()):
        if run.role == "body" and run.parameters:
            return next(iter(run.parameters.values()))
    return time


def clip_shared(ranges: LiveRanges, buffers: Sequence[Sequence[int]]) -> None:
    """End each value of a buffer by the start of the next one (`NormalizeAliasedBuffers`)."""
    starts, ends = ranges.starts, ranges.ends
    for buffer in buffers:
        if len(buffer) < 2:
            continue
        for earlier, following in pairwise(sorted(buffer, key=lambda value: (starts[value], ends[value], value))):
            ends[following] = max(ends[earlier], ends[following])
            ends[earlier] = min(ends[earlier], starts[following])


class ValueUses:
    """The uses of the values of a program, each computed on first use."""

    def __init__(self, values: Values) -> None:
        self._schedule = values.schedule
        self._values = values
        self._known: dict[int, list[int]] = {}

    @cached_property
    def users(self) -> list[list[int]]:
        """For each time the times of the users of its result, each once."""
        users: list[list[int]] = [[] for _ in range(self._schedule.end + 1)]
        for time, operands in enumerate(self._schedule.operands):
            for operand in operands:
                if not users[operand] or users[operand][-1] != time:
                    users[operand].append(time)
        return users

    @cached_property
    def positions(self) -> list[list[tuple[int, int]]]:
        """For each value the times of the results that hold it, and its place in each."""
        positions: list[list[tuple[int, int]]] = [[] for _ in self._values.times]
        for time, result in enumerate(self._values.results):
            if isinstance(result, int):
                positions[result].append((time, 0))
            else:
                for place, value in enumerate(result):
                    positions[value].append((time, place))
        return positions

    def get(self, value: int) -> list[int]:
        """Return the times at which a value is used.

        An instruction that forwards it is a use only if it is the root of its computation.
        """
        cached = self._known.get(value)
        if cached is None:
            cached = self._known[value] = self._find(value)
        return cached

    def _find(self, value: int) -> list[int]:
        schedule, positions = self._schedule, self.positions[value]
        standing = {time for time, _ in positions}
        uses: set[int] = set()
        for time, place in positions:
            for user in self.users[time]:
                opcode = schedule.opcodes[user]
                reads = opcode not in _READS_NOTHING and (place == 0 or opcode not in _READS_TABLE)
                if reads or (schedule.run_at[user].root == user and user in standing):
                    uses.add(user)
        return sorted(uses)


@dataclass(slots=True, eq=False)
class Buffers:
    """The buffers of a program. `members` are the values of each buffer in order, `of` is the buffer of each value."""

    members: list[list[int]]
    buffer_of_value: list[int]


def find_buffers(values: Values, in_place: InPlace, outputs: Iterable[tuple[int, int]]) -> Buffers:
    """Return the buffers of values. `outputs` are pairs of values: an output, and the parameter whose buffer it uses."""
    sets = _Sets(len(values.times))
    for value, other in outputs:
        sets.join(value, other)
    for first, *others in _control_flow(values):
        for other in others:
            sets.join(first, other)
    for value, other in _in_place(values, in_place):
        sets.join(value, other)
    return sets.buffers()


def _control_flow(values: Values) -> Iterator[tuple[int, ...]]:
    """Yield the values of a buffer by `ComputeWhileAliasedValues` and `ComputeConditionalAliasedValues`."""
    schedule = values.schedule
    for time, runs in schedule.called.items():
        if schedule.opcodes[time] == "while":
            sources = [time, *schedule.operands[time][:1]]
            sources += [source for run in runs for source in run.parameters.values()]
            sources += [run.root for run in runs if run.role == "body"]
        elif schedule.opcodes[time] == "conditional":
            sources = [time, *[run.root for run in runs]]
        else:
            continue
        yield from zip(*[values.result(source) for source in sources if source >= 0], strict=False)


def _in_place(values: Values, in_place: InPlace) -> Iterator[tuple[int, int]]:
    """Yield the pairs of values in one buffer by `ComputeInPlaceOperationAliasedValues`."""
    schedule, trees = values.schedule, values.trees
    for time, opcode in enumerate(schedule.opcodes):
        if opcode not in in_place.opcodes:
            continue
        operands = schedule.operands[time]
        for pair in in_place.pairs(schedule.view(time), schedule.rows[time], opcode):
            if pair.operand >= len(operands) or operands[pair.operand] < 0:
                continue
            operand = operands[pair.operand]
            given = trees.place(schedule.shapes[operand], pair.operand_index)
            result = trees.place(schedule.shapes[time], pair.result_index)
            if given is not None and result is not None:
                yield values.result(operand)[given], values.result(time)[result]


class _Sets:
    """Disjoint sets of values."""

    def __init__(self, count: int) -> None:
        self._parents = list(range(count))

    def _find(self, value: int) -> int:
        parents = self._parents
        while parents[value] != value:
            parents[value] = value = parents[parents[value]]
        return value

    def join(self, value: int, other: int) -> None:
        """Join two sets. The smaller number stands for both, so that the sets come in the order of their first values."""
        value, other = self._find(value), self._find(other)
        if value != other:
            self._parents[max(value, other)] = min(value, other)

    def buffers(self) -> Buffers:
        numbers: dict[int, int] = {}
        members: list[list[int]] = []
        buffer_of_value: list[int] = []
        for value in range(len(self._parents)):
            number = numbers.setdefault(self._find(value), len(members))
            if number == len(members):
                members.append([])
            members[number].append(value)
            buffer_of_value.append(number)
        return Buffers(members, buffer_of_value)

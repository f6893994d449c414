"""From when to when each value is live.

Follows `HloLiveRange::CalculateBufferStartEndMap` and `NormalizeAliasedBuffers` (xla/hlo/utils/hlo_live_range.cc).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from hlo_inspect.analysis.memory.schedule import Schedule
from hlo_inspect.analysis.memory.values import Values

_READS_TABLE = frozenset({"get-tuple-element", "copy"})
_READS_NOTHING = frozenset({"tuple", "domain", "call"})
"""`MayUseOperandValue`; a call counts by what its computation does."""


class LiveRanges:
    """By value the first and the last time at which it is live. `last_uses` are the times of its last use, -1 without one."""

    def __init__(self, starts: list[int], ends: list[int], last_uses: list[int]) -> None:
        self.starts = starts
        self.ends = ends
        self.last_uses = last_uses


def find_live_ranges(
    schedule: Schedule, values: Values, aliased: Collection[tuple[int, int]]
) -> LiveRanges:
    """The live ranges of values, each by itself. `aliased` are the parts of entry parameters, by
    number and place, that an output takes the place of."""
    whole, table = _reads(schedule)
    starts = [0] * len(values.times)
    ends = [-1] * len(values.times)
    last_uses = [-1] * len(values.times)
    for value, time in enumerate(values.times):
        is_parameter = schedule.opcodes[time] == "parameter"
        starts[value] = schedule.run_at[time].start if is_parameter else time
        asynchronous = schedule.run_at[time].asynchronous
        if asynchronous is not None:
            ends[value] = _done(schedule, asynchronous.caller)
    for time, result in enumerate(values.results):
        run = schedule.run_at[time]
        here = run.end if run.root == time else time
        read = whole[time]
        if isinstance(result, int):
            used = max(read, table[time])
            last_uses[result] = max(last_uses[result], used)
            ends[result] = max(ends[result], here, used)
            continue
        end = max(here, read)
        for value in result:
            if ends[value] < end:
                ends[value] = end
            if last_uses[value] < read:
                last_uses[value] = read
        top = result[0]
        ends[top] = max(ends[top], table[time])
        last_uses[top] = max(last_uses[top], table[time])
    _extend_parameters(schedule, values, aliased, ends)
    return LiveRanges(starts, ends, last_uses)


def _reads(schedule: Schedule) -> tuple[list[int], list[int]]:
    """By time the last time at which the whole result is read, and at which only its top level is."""
    whole, table = [-1] * (schedule.end + 1), [-1] * (schedule.end + 1)  # the last is that of a missing operand
    for time, opcode in enumerate(schedule.opcodes):
        if opcode in _READS_NOTHING:
            continue
        if opcode in _READS_TABLE:
            for operand in schedule.operands[time]:
                table[operand] = time
        elif opcode == "while":
            when = _body_begins(schedule, time)
            for operand in schedule.operands[time]:
                whole[operand] = max(whole[operand], when)
        else:
            for operand in schedule.operands[time]:
                whole[operand] = time
    return whole, table


def _body_begins(schedule: Schedule, time: int) -> int:
    """What a loop starts from ends when its body has it: at the time of the body's parameter."""
    for run in schedule.called.get(time, ()):
        if run.role == "body" and run.parameters:
            return next(iter(run.parameters.values()))
    return time


def _done(schedule: Schedule, start: int) -> int:
    """The time of the async-done of a start, or the end of the wrapped computation."""
    return schedule.done.get(start, start)


def _extend_parameters(
    schedule: Schedule,
    values: Values,
    aliased: Collection[tuple[int, int]],
    ends: list[int],
) -> None:
    """Entry parameters that no output takes the place of are live to the end."""
    entry = schedule.runs[0]
    for number, time in entry.parameters.items():
        for place, value in enumerate(values.of(time)):
            if (number, place) not in aliased:
                ends[value] = schedule.end


def clip_shared(ranges: LiveRanges, buffers: Sequence[Sequence[int]]) -> None:
    """Values of one buffer follow each other: each ends at most where the next one starts (`NormalizeAliasedBuffers`)."""
    starts, ends = ranges.starts, ranges.ends
    for buffer in buffers:
        if len(buffer) < 2:
            continue
        order = sorted(buffer, key=lambda value: (starts[value], ends[value], value))
        for one, following in zip(order, order[1:], strict=False):
            ends[following] = max(ends[one], ends[following])
            ends[one] = min(ends[one], starts[following])

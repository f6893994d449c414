"""What the fast memory of a TPU holds over time, which XLA assigns before all other memory.

Follows `MemorySpaceAssignment::VerifyAndExportHeapSimulatorTrace`
(xla/service/memory_space_assignment/memory_space_assignment.cc): each value is there from its definition to its last use, by
itself, also where others share its buffer; a value without uses is not. What a conditional uses last is gone while its branches
run, except those that use it. `ConcatBitcast` joins slices that lie side by side: its result is not counted, and the slices are
there as long as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hlo_inspect.analysis.memory.allocations import BufferFacts
from hlo_inspect.analysis.memory.heap import Change, Interval, Trace
from hlo_inspect.analysis.memory.schedule import Schedule


def simulate_preset(facts: BufferFacts, buffers: Sequence[int]) -> Trace:
    """The trace of the memory space that holds these buffers."""
    schedule, values, ranges = facts.schedule, facts.values, facts.ranges
    members = [value for buffer in buffers for value in facts.buffers.members[buffer]]
    joined = {value for value in members if _joins_slices(schedule, values.times[value])}
    by_time = {values.times[value]: value for value in joined}
    events: dict[tuple[int, bool, int], None] = {}
    spans: dict[int, tuple[int, int]] = {}
    for value in members:
        if value in joined:
            continue
        start, end, own = ranges.starts[value], ranges.ends[value], facts.uses.of(value)
        for whole in [by_time[use] for use in own if use in by_time]:
            end = max(end, ranges.ends[whole])
            own = sorted({*own, *facts.uses.of(whole)} - {values.times[whole]})
        for begin, stop in _spans(facts, own, start, end):
            events[begin, True, value] = None
            events[stop, False, value] = None
            first, last = spans.get(value, (begin, stop))
            spans[value] = min(begin, first), max(stop, last)
    return _trace(facts, sorted(events, key=lambda one: (one[0], not one[1], one[2])), spans)


def _joins_slices(schedule: Schedule, time: int) -> bool:
    if schedule.opcodes[time] != "custom-call":
        return False
    return 'custom_call_target="ConcatBitcast"' in schedule.view(time).tails[schedule.rows[time]]


def _spans(facts: BufferFacts, uses: Sequence[int], start: int, end: int) -> Iterator[tuple[int, int]]:
    last = max((use for use in uses if use > start), default=None)
    if last is not None and facts.schedule.opcodes[last] == "conditional":
        yield from _around_branches(facts, uses, last, start, end)
    elif uses:
        yield start, min(start if last is None else last, end)


def _around_branches(facts: BufferFacts, uses: Sequence[int], user: int, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The spans of a value whose last use is a conditional: before its branches, and in those that use it."""
    waiting = [(user, start, end)]
    while waiting:
        conditional, begin, limit = waiting.pop()
        earliest = limit
        for run in facts.schedule.called.get(conditional, ()):
            earliest = min(earliest, run.start)
            inside = [use for use in uses if facts.schedule.run_at[use] is run]
            if not inside:
                continue
            last = min(inside[-1], limit)
            if facts.schedule.opcodes[inside[-1]] == "conditional":
                waiting.append((inside[-1], run.start, last))
            else:
                yield run.start, last
        yield begin, earliest - 1


def _trace(facts: BufferFacts, events: Sequence[tuple[int, bool, int]], spans: dict[int, tuple[int, int]]) -> Trace:
    """What is live after each event, as `ComputePeakMemoryImpl` counts references."""
    trace = Trace()
    references: dict[int, int] = {}
    sizes, of = facts.sizes, facts.buffers.of
    now = 0
    for time, gets, value in events:
        references[value] = references.get(value, 0) + (1 if gets else -1)
        if references[value] != (1 if gets else 0):
            continue
        now += sizes[of[value]] if gets else -sizes[of[value]]
        trace.note(Change(time, value, value, gets, now))
    first: dict[int, int] = {}
    for value, (start, end) in sorted(spans.items(), key=lambda item: item[1]):
        base = first.setdefault(of[value], value)
        trace.intervals[value] = Interval(value, sizes[of[value]], 2 * start, base, 2 * end + 1)
    return trace

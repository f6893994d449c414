"""Heaps of temporaries: the live bytes over time, and the offset of each buffer.

`simulate` follows `HeapSimulator::RunComputation` (xla/service/heap_simulator/heap_simulator.cc). At each time values that
start are allocated, or take over an operand that ends there; then values that end are freed.

`simulate_preset` is the fast memory of a TPU, which XLA assigns before all other memory. It follows
`MemorySpaceAssignment::VerifyAndExportHeapSimulatorTrace` (xla/service/memory_space_assignment/memory_space_assignment.cc).
Each value is live from its own definition to its own last use, even if others share its buffer; a value without uses is not
live. If a conditional is the last user, the value is freed while branches run that do not use it. `ConcatBitcast` joins
adjacent slices: its result is not counted, and the slices are live as long as it is.

`pack` follows `GlobalDecreasingSizeBestFitHeap` (xla/service/heap_simulator/heap_simulator.cc). It places buffers in a fixed
order, each in the smallest gap that is free at all its times; of equal gaps it takes the lowest. It tries the orders by size
and by duration and keeps the lower heap (`ChooseBestHeapAlgorithm`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import NamedTuple

from hlo_inspect.analysis.memory.allocations import BufferFacts
from hlo_inspect.analysis.memory.placed_spans import placed_spans
from hlo_inspect.analysis.memory.schedule import Schedule


@dataclass(slots=True)
class Interval:
    """A value in the heap, from its first to its last tick of the trace.

    `base` is the interval whose memory it shares, or the interval itself.
    """

    value: int
    bytes: int
    start: int
    base: int
    end: int = -1


class Change(NamedTuple):
    """A change at a time: a value gets memory that was allocated for the value `base`, or the last holder frees it."""

    time: int
    base: int
    value: int
    gets: bool
    live: int

    def apply(self, holders: dict[int, int]) -> None:
        """Update the value that holds the memory allocated for each value."""
        if self.gets:
            holders[self.base] = self.value
        else:
            holders.pop(self.base, None)


@dataclass(slots=True)
class Trace:
    """A heap over time: `intervals` by value, and `changes` in the order of time.

    `peak` is the largest sum, reached at `time` after the stated number of changes. Each change names the value that gets or
    frees memory, and the bytes that are live then.
    """

    intervals: dict[int, Interval] = field(default_factory=dict)
    peak: int = 0
    time: int = 0
    changes: list[Change] = field(default_factory=list)
    changes_to_peak: int = 0

    def note(self, change: Change) -> None:
        """Append a change, and move the peak to it if more bytes are live than before."""
        self.changes.append(change)
        if change.live > self.peak:
            self.peak, self.time, self.changes_to_peak = change.live, change.time, len(self.changes)

    def live_at_peak(self) -> dict[int, int]:
        """Return the bytes of each value that has memory at the peak."""
        live: dict[int, int] = {}
        for change in self.changes[: self.changes_to_peak]:
            change.apply(live)
        return {value: self.intervals[base].bytes for base, value in live.items()}


def simulate(facts: BufferFacts, buffers: Sequence[int]) -> Trace:
    """Return the trace of the heap that holds these buffers."""
    return _Simulation(facts, buffers).run()


class _Simulation:
    def __init__(self, facts: BufferFacts, buffers: Sequence[int]) -> None:
        self._facts = facts
        self._buffers = buffers
        self._trace = Trace()
        self._users: dict[int, int] = defaultdict(int)  # number of intervals that share a value's interval
        self._clock = 0
        self._now = 0
        self._candidates_at = -1
        self._found_candidates: list[int] = []

    def run(self) -> Trace:
        members, buffer_of_value = self._facts.buffers.members, self._facts.buffers.buffer_of_value
        times, opcodes = self._facts.values.times, self._facts.values.schedule.opcodes
        writing = self._facts.overwriting.opcodes - {"copy"}
        defined, freed = self._times()
        first: dict[int, int] = {}
        for time in sorted(defined.keys() | freed.keys()):
            going = freed.get(time, {})
            for value in defined.get(time, ()):
                buffer = buffer_of_value[value]
                given = first.get(buffer)
                if given is None and len(members[buffer]) == 1:
                    if going and opcodes[times[value]] in writing:
                        given = self._reused_operand(value, going)
                    if given is not None:
                        del going[given]
                        self._free(given, time)
                elif given is None:
                    first[buffer] = value
                self._begin(value, given, time)
            for value in going:
                self._free(value, time)
        return self._trace

    def _times(self) -> tuple[dict[int, list[int]], dict[int, dict[int, None]]]:
        """Return for each time the values that are defined and the values that are freed."""
        starts, ends = self._facts.ranges.starts, self._facts.ranges.ends
        values = [value for buffer in self._buffers for value in self._facts.buffers.members[buffer]]
        defined: dict[int, list[int]] = defaultdict(list)
        freed: dict[int, dict[int, None]] = defaultdict(dict)
        for value in sorted(values, key=lambda value: (starts[value], ends[value], value)):
            defined[starts[value]].append(value)
            freed[ends[value]][value] = None
        return defined, freed

    def _reused_operand(self, value: int, going: dict[int, None]) -> int | None:
        """Return the operand whose memory the value takes over.

        The operand is freed at the same time, and neither shares its buffer with other values. Return None if there is no such
        operand.
        """
        values, is_possible = self._facts.values, self._facts.overwriting.is_possible
        time, place = values.times[value], values.places[value]
        for given in self._candidates(time, going):
            if given in going and is_possible(values.times[given], values.places[given], time, place):
                return given
        return None

    def _candidates(self, time: int, going: dict[int, None]) -> list[int]:
        """Return the operands of an instruction that are freed at its time, in the order of the operands."""
        if self._candidates_at != time:
            values, buffers = self._facts.values, self._facts.buffers
            members, buffer_of_value = buffers.members, buffers.buffer_of_value
            operands = values.schedule.operands[time]
            defining = set(operands)
            tops = dict.fromkeys([values.top(operand) for operand in operands if operand >= 0])
            self._found_candidates = [
                value
                for value in tops
                if value in going and len(members[buffer_of_value[value]]) == 1 and values.times[value] in defining
            ]
            self._candidates_at = time
        return self._found_candidates

    # -- events ---------------------------------------------------------------------------------------------------------

    def _begin(self, value: int, given: int | None, time: int) -> None:
        """Give memory to a value: the memory of `given` if that is not None."""
        size, base = self._facts.sizes[self._facts.buffers.buffer_of_value[value]], value
        if given is not None:
            shared = self._trace.intervals[given]
            size, base = max(size, shared.bytes), shared.base
        self._trace.intervals[value] = Interval(value, size, self._clock, base)
        self._clock += size > 0
        self._users[base] += 1
        if self._users[base] == 1:
            self._now += self._trace.intervals[base].bytes
            self._trace.note(Change(time, base, value, gets=True, live=self._now))

    def _free(self, value: int, time: int) -> None:
        interval = self._trace.intervals[value]
        interval.end = self._clock
        self._clock += interval.bytes > 0
        self._users[interval.base] -= 1
        if not self._users[interval.base]:
            self._now -= self._trace.intervals[interval.base].bytes
            self._trace.note(Change(time, interval.base, value, gets=False, live=self._now))


def simulate_preset(facts: BufferFacts, buffers: Sequence[int]) -> Trace:
    """Return the trace of the memory space that holds these buffers."""
    schedule, values, ranges = facts.values.schedule, facts.values, facts.ranges
    members = [value for buffer in buffers for value in facts.buffers.members[buffer]]
    joined = {value for value in members if _joins_slices(schedule, values.times[value])}
    by_time = {values.times[value]: value for value in joined}
    events: dict[tuple[int, bool, int], None] = {}
    spans: dict[int, tuple[int, int]] = {}
    for value in members:
        if value in joined:
            continue
        start, end, own = ranges.starts[value], ranges.ends[value], facts.uses.get(value)
        for whole in [by_time[use] for use in own if use in by_time]:
            end = max(end, ranges.ends[whole])
            own = sorted({*own, *facts.uses.get(whole)} - {values.times[whole]})
        for begin, stop in _spans(facts, own, start, end):
            events[begin, True, value] = None
            events[stop, False, value] = None
            first, last = spans.get(value, (begin, stop))
            spans[value] = min(begin, first), max(stop, last)
    return _trace(facts, sorted(events, key=lambda event: (event[0], not event[1], event[2])), spans)


def _joins_slices(schedule: Schedule, time: int) -> bool:
    if schedule.opcodes[time] != "custom-call":
        return False
    return 'custom_call_target="ConcatBitcast"' in schedule.view(time).tails[schedule.rows[time]]


def _spans(facts: BufferFacts, uses: Sequence[int], start: int, end: int) -> Iterator[tuple[int, int]]:
    last = max((use for use in uses if use > start), default=None)
    if last is not None and facts.values.schedule.opcodes[last] == "conditional":
        yield from _split_at_branches(facts, uses, last, start, end)
    elif uses:
        yield start, min(start if last is None else last, end)


def _split_at_branches(facts: BufferFacts, uses: Sequence[int], user: int, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the spans of a value whose last use is a conditional: before its branches, and in the branches that use it."""
    waiting = [(user, start, end)]
    while waiting:
        conditional, begin, limit = waiting.pop()
        earliest = limit
        for run in facts.values.schedule.called.get(conditional, ()):
            earliest = min(earliest, run.start)
            uses_in_branch = [use for use in uses if facts.values.schedule.run_at[use] is run]
            if not uses_in_branch:
                continue
            last = min(uses_in_branch[-1], limit)
            if facts.values.schedule.opcodes[uses_in_branch[-1]] == "conditional":
                waiting.append((uses_in_branch[-1], run.start, last))
            else:
                yield run.start, last
        yield begin, earliest - 1


def _trace(facts: BufferFacts, events: Sequence[tuple[int, bool, int]], spans: dict[int, tuple[int, int]]) -> Trace:
    """Return the trace of some events; references are counted as in `ComputePeakMemoryImpl`."""
    trace = Trace()
    references: dict[int, int] = {}
    sizes, buffer_of_value = facts.sizes, facts.buffers.buffer_of_value
    now = 0
    for time, gets, value in events:
        references[value] = references.get(value, 0) + (1 if gets else -1)
        if references[value] != (1 if gets else 0):
            continue
        now += sizes[buffer_of_value[value]] if gets else -sizes[buffer_of_value[value]]
        trace.note(Change(time, value, value, gets, now))
    first: dict[int, int] = {}
    for value, (start, end) in sorted(spans.items(), key=lambda item: item[1]):
        base = first.setdefault(buffer_of_value[value], value)
        trace.intervals[value] = Interval(value, sizes[buffer_of_value[value]], 2 * start, base, 2 * end + 1)
    return trace


class Packing(NamedTuple):
    """The height of a heap in bytes, and the offset of each value that does not share another's memory."""

    bytes: int
    offsets: Mapping[int, int]


class _Group(NamedTuple):
    """Values that share one offset: the first value, which has the size, and the spans of ticks in which they are live."""

    value: int
    bytes: int
    duration: int
    spans: Sequence[tuple[int, int]]


def pack(intervals: Mapping[int, Interval], alignment: int) -> Packing:
    """Return the lower of the two packings of these intervals, with offsets that are multiples of `alignment`."""
    groups = _groups(intervals)
    spatial = _pack(sorted(groups, key=lambda group: (-group.bytes, -group.duration, group.value)), alignment)
    load, tick = _highest_load(groups, alignment)
    if spatial.bytes <= load:
        return spatial
    by_duration = sorted(groups, key=lambda group: (group.spans[0][0] - group.spans[-1][1], -group.bytes, group.value))
    for part in (_dependent_groups(by_duration, tick), by_duration):
        temporal = _pack(part, alignment, enough=spatial.bytes)
        if temporal.bytes >= spatial.bytes:
            return spatial
    return temporal


def _highest_load(groups: Sequence[_Group], alignment: int) -> tuple[int, int]:
    """Return a lower bound in bytes for every packing of these groups, and the first tick that reaches it.

    The topmost live group has all others below it. The unused rest of its last alignment unit may exceed the heap.
    """
    changes = [0] * (max((group.spans[-1][1] for group in groups), default=0) + 2)
    unused = 0
    for group in groups:
        units = -(-group.bytes // alignment)
        unused = max(unused, units * alignment - group.bytes)
        for start, end in group.spans:
            changes[start] += units
            changes[end + 1] -= units
    loads = list(accumulate(changes))
    highest = max(loads)
    return highest * alignment - unused, loads.index(highest)


def _dependent_groups(order: Sequence[_Group], tick: int) -> list[_Group]:
    """Return the groups live at a tick and all groups that their offsets depend on, in the same order.

    A group depends on earlier groups that are live at the same time. If short groups come last, the result spans a part of the
    schedule.
    """
    relevant: list[_Group] = []
    first = last = tick
    for group in reversed(order):
        start, end = group.spans[0][0], group.spans[-1][1]
        if start <= last and end >= first:
            relevant.append(group)
            first, last = min(first, start), max(last, end)
    return relevant[::-1]


def _groups(intervals: Mapping[int, Interval]) -> list[_Group]:
    spans: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for interval in intervals.values():
        if interval.bytes:
            spans[interval.base].append((interval.start, interval.end))
    owners = [intervals[base] for base in spans]
    return [_Group(own.value, own.bytes, own.end - own.start, _merge_spans(spans[own.value])) for own in owners]


def _merge_spans(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Sort the spans and join spans that meet: no other buffer fits between them."""
    if len(spans) == 1:
        return spans
    spans.sort()
    merged = [spans[0]]
    for start, end in spans[1:]:
        if start <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    return merged


def _pack(order: Sequence[_Group], alignment: int, enough: int | None = None) -> Packing:
    """Pack the groups in this order; stop as soon as the packing is not lower than `enough`."""
    if not order:
        return Packing(0, {})
    placed = placed_spans([group.spans for group in order], sum(-(-group.bytes // alignment) for group in order))
    height = 0
    offsets: dict[int, int] = {}
    for group in order:
        offset = offsets[group.value] = placed.place(group.spans, -(-group.bytes // alignment)) * alignment
        height = max(height, offset + group.bytes)
        if enough is not None and height >= enough:
            break
    return Packing(height, offsets)

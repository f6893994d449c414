"""From the executions of one plane to the times of its programs.

The self time of an execution is its time without the union of its children's intervals. Children of a while, a call or a
conditional belong to the same run on the same device. Their instructions are in a computation that it calls.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hlo_inspect.profiler.device_events import ALL_ATTRIBUTED, DeviceEvents, ExecutionColumns, Sample
from hlo_inspect.profiler.measurements import (
    DeviceKey,
    ExecutedInstruction,
    MeasuredInstruction,
    ProgramMeasurements,
    SampleTimeline,
    SampleTimes,
    percentile,
)
from hlo_inspect.profiler.outline import NO_OUTLINE, ProgramOutline
from hlo_inspect.profiler.wanted_samples import WantedSamples

if TYPE_CHECKING:
    from hlo_inspect.profiler.event_fields import Numbers

_UNKNOWN = -1
"""Number of the computation of an instruction that the module lacks."""


@dataclass(slots=True)
class PlanePart:
    """The measurements of a program on the devices of one plane.

    `fullest` is the largest number of executions of entry instructions in a sample: samples with fewer are cut.
    """

    fullest: int
    measured: ProgramMeasurements


def reduce_plane(
    events: DeviceEvents, outlines: Mapping[str, ProgramOutline], place: tuple[int, int], wanted: WantedSamples
) -> Iterator[tuple[str, PlanePart]]:
    """Yield the program and its part for each program of a plane. `place` is the numbers of host and plane."""
    if events.runs_from == "order":
        _cut_by_order(events, outlines)
    leave_command_buffers(events, outlines)
    ranges = _Ranges(events.executions, len(events.samples))
    transfers = _Ranges(events.transfers, len(events.samples))
    by_program: dict[str, list[int]] = {}
    for number, sample in enumerate(events.samples):
        by_program.setdefault(sample.program, []).append(number)
    for program in events.unattributed:
        by_program.setdefault(program, [])
    for program, numbers in by_program.items():
        outline = outlines.get(program, NO_OUTLINE)
        reduction = _ProgramReduction(events, outline, ranges, transfers, place)
        part = reduction.reduce(numbers, wanted)
        part.measured.unattributed = events.unattributed.get(program, ALL_ATTRIBUTED)
        part.measured.faults = +events.faults  # without those that do not occur
        yield program, part


def leave_command_buffers(events: DeviceEvents, outlines: Mapping[str, ProgramOutline]) -> None:
    """Count kernels of a GPU that name a call or a loop as unattributed: these have no kernels, but command buffers have."""
    if events.platform != "gpu":
        return
    containers = {
        (sample, name)
        for sample, key in enumerate(events.samples)
        for name, text in enumerate(events.names)
        if text in outlines.get(key.program, NO_OUTLINE).held
    }
    if not containers:
        return
    kept, merged, column = ExecutionColumns(), type(events.merged)(), events.executions
    for index, row in enumerate(zip(column.names, column.samples, column.starts, column.durations, strict=True)):
        if (row[1], row[0]) in containers:
            events.leave_unattributed(events.samples[row[1]].program, events.names[row[0]], row[3])
        else:
            merged[len(kept)] = events.merged[index]
            kept.add(*row)
    events.executions, events.merged = kept, +merged


def _cut_by_order(events: DeviceEvents, outlines: Mapping[str, ProgramOutline]) -> None:
    """Cut runs by order of start: a run begins at an entry instruction that this run already had."""
    column = events.executions
    old_samples = events.restart_samples()
    current: dict[int, int] = {}
    seen: dict[int, set[int]] = {}
    runs: Counter[int] = Counter()
    for row in _Ranges(column, 0).in_order_of_start():
        old, name = column.samples[row], column.names[row]
        key = old_samples[old]
        outline = outlines.get(key.program, NO_OUTLINE)
        is_entry = outline.computations.get(events.names[name], _UNKNOWN) == outline.entry
        if old not in current or (is_entry and name in seen[old]):
            current[old] = events.sample_number(Sample(key.program, key.device, runs[old]))
            runs[old] += 1
            seen[old] = set()
        if is_entry:
            seen[old].add(name)
        column.samples[row] = current[old]


def _typical(numbers: Sequence[int], samples: Sequence[SampleTimes]) -> tuple[int, SampleTimes]:
    """Return the sample whose step is nearest to the median, with its number."""
    middle = percentile(sorted(sample.step for sample in samples), 0.5)
    return min(zip(numbers, samples, strict=True), key=lambda pair: abs(pair[1].step - middle))


class _Ranges:
    """The rows of a column by sample, each sample's in order of start."""

    def __init__(self, column: ExecutionColumns, samples: int) -> None:
        import numpy as np

        self.names = np.frombuffer(column.names, dtype=np.int32) if len(column) else np.zeros(0, np.int32)
        self.starts = np.frombuffer(column.starts, dtype=np.int64) if len(column) else np.zeros(0, np.int64)
        self.durations = np.frombuffer(column.durations, dtype=np.int64) if len(column) else np.zeros(0, np.int64)
        self._numbers = np.frombuffer(column.samples, dtype=np.int32) if len(column) else np.zeros(0, np.int32)
        self._order = np.lexsort((-self.durations, self.starts, self._numbers)).astype(np.int32)
        self._bounds = np.searchsorted(self._numbers[self._order], np.arange(samples + 1))

    def in_order_of_start(self) -> list[int]:
        """Return the rows of all samples in order of start."""
        import numpy as np

        rows: list[int] = np.lexsort((-self.durations, self.starts)).tolist()
        return rows

    def rows(self, sample: int) -> Any:  # noqa: ANN401 - an array of numpy, which is imported when it is used
        """Return the rows of a sample in order of start."""
        return self._order[self._bounds[sample] : self._bounds[sample + 1]]


class _ProgramReduction:
    """Reduction of the samples of one program."""

    def __init__(
        self, events: DeviceEvents, outline: ProgramOutline, ranges: _Ranges, transfers: _Ranges, place: tuple[int, int]
    ) -> None:
        import numpy as np

        self._np = np
        self._events, self._outline, self._ranges, self._transfers, self._place = events, outline, ranges, transfers, place
        self._self = ranges.durations.copy() if outline.held else ranges.durations
        names = events.names
        self._computations = np.array([outline.computations.get(name, _UNKNOWN) for name in names] or [0], np.int64)
        self._holders = {number: outline.held[name] for number, name in enumerate(names) if name in outline.held}
        self._is_holder = np.array([name in outline.held for name in names] or [False], bool)
        self._collectives = [number for number, name in enumerate(names) if name in outline.collectives]
        self._starts_of_done = {
            number: events.name_number(outline.starts[name])
            for number, name in enumerate(list(names))
            if name in outline.starts
        }

    def reduce(self, numbers: list[int], wanted: WantedSamples) -> PlanePart:
        events = self._events
        measured = ProgramMeasurements(events.platform, events.runs_from, 1)
        chosen = [(number, *self._limits(number)) for number in numbers if len(self._ranges.rows(number))]
        fullest = max((entries for _, _, entries in chosen), default=0)
        order: dict[int, int] = {}
        orders = {}
        for number, _, _ in sorted(chosen, key=lambda item: item[1]):
            device = events.samples[number].device
            orders[number] = order[device] = order.get(device, -1) + 1
        kept = []
        for number, _, entries in chosen:
            if orders[number] < wanted.skip:
                measured.skipped_samples += 1
            elif entries < fullest:
                measured.cut_samples += 1
            else:
                kept.append(number)
        for number in kept:
            self._take(number, orders[number], measured)
        if kept and wanted.timeline:
            measured.timelines = [self._timeline(*_typical(kept, measured.samples))]
        if kept:
            self._sum(self._np.concatenate([self._ranges.rows(number) for number in kept]), measured)
        return PlanePart(fullest, measured)

    def _timeline(self, number: int, sample: SampleTimes) -> SampleTimeline:
        """Return the executions of a sample."""
        executions = []
        for ranges, is_transfer in ((self._ranges, False), (self._transfers, True)):
            rows = ranges.rows(number)
            columns = (ranges.names[rows].tolist(), ranges.starts[rows].tolist(), ranges.durations[rows].tolist())
            executions += [
                ExecutedInstruction(self._events.names[name], start, duration, is_transfer)
                for name, start, duration in zip(*columns, strict=True)
            ]
        return SampleTimeline(sample, tuple(executions))

    def _sum(self, rows: Any, measured: ProgramMeasurements) -> None:  # noqa: ANN401 - as above
        """Sum the executions of all samples by instruction."""
        np = self._np
        rows = rows[np.argsort(self._ranges.names[rows], kind="stable")]
        names = self._ranges.names[rows]
        bounds = np.flatnonzero(names[1:] != names[:-1]) + 1
        distinct = names[np.concatenate(([0], bounds))]
        merged: Counter[int] = Counter()
        for row, more in self._events.merged.items():
            merged[self._events.executions.names[row]] += more
        for name, own in zip(distinct.tolist(), np.split(rows, bounds), strict=True):
            times = measured.instructions.setdefault(self._events.names[name], MeasuredInstruction())
            durations = self._ranges.durations[own]
            times.events += len(own) + merged[name]
            times.time += int(durations.sum())
            times.self_time += int(self._self[own].sum())
            times.executions.frombytes(durations.tobytes())

    def _limits(self, number: int) -> tuple[int, int]:
        """Return the start of a sample and its number of executions of entry instructions."""
        rows = self._ranges.rows(number)
        names = self._ranges.names[rows]
        entries = int((self._computations[names] == self._outline.entry).sum()) if self._outline.computations else 0
        return int(self._ranges.starts[rows[0]]), entries

    def _take(self, number: int, order: int, measured: ProgramMeasurements) -> None:
        """Add a sample to the measurements."""
        sample = self._events.samples[number]
        device = DeviceKey(*self._place, sample.device)
        rows = self._ranges.rows(number)
        names, starts = self._ranges.names[rows], self._ranges.starts[rows]
        ends = starts + self._ranges.durations[rows]
        if self._holders:
            self._self[rows] = self._self_times(names, starts, ends)
        leaves = ~self._is_holder[names]
        first = sample.span[0] if sample.span is not None else int(starts[0])
        step = sample.span[1] if sample.span is not None else int(ends.max()) - first
        busy = _covered(self._np, starts[leaves], ends[leaves])
        events = len(rows) + (sum(self._events.merged[row] for row in rows.tolist()) if self._events.merged else 0)
        measured.samples.append(SampleTimes(device, sample.run, order, events, first, step, busy))
        for name in self._collectives:
            own = names == name
            if own.any():
                measured.collectives.setdefault(self._events.names[name], {})[order, device] = starts[own], ends[own]
        if self._events.has_transfers:
            self._take_transfers(number, measured)
        elif self._starts_of_done:
            self._take_pairs(names, starts, ends, measured)

    def _take_transfers(self, number: int, measured: ProgramMeasurements) -> None:
        """Add the spans of the line of asynchronous operations."""
        rows = self._transfers.rows(number)
        for name, duration in zip(self._transfers.names[rows].tolist(), self._transfers.durations[rows].tolist(), strict=True):
            row = measured.instructions.setdefault(self._events.names[name], MeasuredInstruction())
            row.transfer = (row.transfer or 0) + duration

    def _take_pairs(self, names: Numbers, starts: Numbers, ends: Numbers, measured: ProgramMeasurements) -> None:
        """Add the spans from the begin of each start to the end of its done."""
        for done, start in self._starts_of_done.items():
            begins, finishes = starts[names == start], ends[names == done]
            if len(begins) and len(begins) == len(finishes):
                row = measured.instructions.setdefault(self._events.names[done], MeasuredInstruction())
                row.transfer = (row.transfer or 0) + int((finishes - begins).sum())

    def _self_times(self, names: Numbers, starts: Numbers, ends: Numbers) -> Numbers:
        """Return the self time of each execution of a sample."""
        np = self._np
        result: Numbers = ends - starts
        computations = self._computations[names]
        for holder in sorted(set(names[self._is_holder[names]].tolist())):
            inside = np.isin(computations, list(self._holders[holder]))
            if not inside.any():
                continue
            union_starts, union_ends = _union(np, starts[inside], ends[inside])
            before = np.concatenate(([0], np.cumsum(union_ends - union_starts)))
            own = np.flatnonzero(names == holder)
            result[own] -= _covered_until(np, union_starts, union_ends, before, ends[own]) - _covered_until(
                np, union_starts, union_ends, before, starts[own]
            )
        return result


def _union(np: Any, starts: Numbers, ends: Numbers) -> tuple[Numbers, Numbers]:  # noqa: ANN401 - the module numpy
    """Return starts and ends of the union of intervals that are sorted by start."""
    reach = np.maximum.accumulate(ends)
    begins = np.flatnonzero(np.concatenate(([True], starts[1:] > reach[:-1])))
    return starts[begins], reach[np.concatenate((begins[1:] - 1, [len(starts) - 1]))]


def _covered(np: Any, starts: Numbers, ends: Numbers) -> int:  # noqa: ANN401 - the module numpy
    """Return the length of the union of intervals that are sorted by start."""
    if not len(starts):
        return 0
    union_starts, union_ends = _union(np, starts, ends)
    return int((union_ends - union_starts).sum())


def _covered_until(np: Any, starts: Numbers, ends: Numbers, before: Numbers, times: Numbers) -> Numbers:  # noqa: ANN401
    """Return for each time the length of the union before it. `before` is the length before each interval."""
    index = np.searchsorted(starts, times, side="right")
    last = np.maximum(index - 1, 0)
    inside = np.minimum(times, ends[last]) - starts[last]
    covered: Numbers = np.where(index > 0, before[last] + inside, 0)
    return covered

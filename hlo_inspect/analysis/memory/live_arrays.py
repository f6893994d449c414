"""Arrays in device memory at the peak, with maker, purpose and lifetime; and the curve of live bytes.

Each part of the curve has its phase and loop.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from heapq import nlargest
from operator import itemgetter
from typing import NamedTuple

from hlo_inspect.analysis.memory.array_flow import ArrayPlace
from hlo_inspect.analysis.memory.array_sources import ArraySources
from hlo_inspect.analysis.memory.device_memory import DeviceMemory, LiveBuffer
from hlo_inspect.analysis.memory.heap import Change, Interval
from hlo_inspect.analysis.memory.parameter_relations import GRADIENT, NEW_VALUE, Relation
from hlo_inspect.analysis.memory.schedule import ComputationRun
from hlo_inspect.analysis.provenance import NOT_PRINTED, Labels
from hlo_inspect.graph.view import View
from hlo_inspect.hlo.values.header import ShapeIndex
from hlo_inspect.hlo.values.op_names import BACKWARD, FORWARD, LOSS, RECOMPUTE, UNKNOWN
from hlo_inspect.hlo.values.shapes import Shape, TupleShape

ACTIVATION, WEIGHT_COPY, TEMPORARY, OUTPUT, CONSTANT, TABLE = (
    "activation", "weight copy", "temporary", "output", "constant", "tuple table",
)  # fmt: skip
"""Roles of arrays other than parameters, besides `gradient`, `new value` and copies of other parameters."""

PARAMETERS, COPIES = "(parameters)", "(copies of parameters)"
"""Names of all parameters, and of all their copies without a line of the program, in totals by source line or scope."""

INPUT, INPUT_COPY, STATE_COPY = "input", "input copy", "state copy"

_WEIGHTS = frozenset({"weight", "master_weight", "frozen"})
_FIRST, _LATER = frozenset({FORWARD, LOSS}), frozenset({BACKWARD, RECOMPUTE})


NOT_SOUGHT = ""
"""The role of an array that only the optimizer can tell, if it is left out (`--quick`)."""


class LiveArray(NamedTuple):
    """An array that takes `bytes` at the peak.

    `time` is the time of the instruction that makes it, or of a later writer if the first has no source line. `live_from` and
    `live_to` are schedule positions, None for constants of applied computations. `kind` is the kind of the allocation.
    `labels` have source and scope of the instruction that makes the elements. `parameter` and `path` are number and path of
    the parameter that they come from. `is_copy`: no line of the program stands between that parameter and the array.
    """

    name: str
    opcode: str
    element: ShapeIndex
    shape: Shape | None
    bytes: int
    padding: int
    kind: str
    role: str
    space: int
    live_from: int | None
    live_to: int | None
    labels: Labels
    line: int | None
    buffer: int | None = None
    relation: Relation | None = None
    parameter: int | None = None
    path: str = ""
    is_copy: bool = False

    @property
    def source(self) -> str:
        """The source line; parameters and their copies have none, but a name together."""
        return self._parameter_label or self.labels.source

    @property
    def scope(self) -> str:
        """The named scope; parameters and their copies have none, but a name together."""
        return self._parameter_label or self.labels.scope

    @property
    def _parameter_label(self) -> str:
        return PARAMETERS if self.kind == "parameter" else COPIES if self.is_copy else ""


class LiveArrays:
    """The arrays that are live at the peak of a program. They add up to its peak.

    `parameter_roles`: roles of the optimizer's parameters, None if it is left out. `relation_of` returns the relation of an
    array to a parameter, `sources` are those of arrays, `labels_of` and `phase_of` return labels and phase of a row.
    """

    def __init__(
        self,
        device: DeviceMemory,
        parameter_roles: Mapping[tuple[int, ShapeIndex], str] | None,
        relation_of: Callable[[View, int, ShapeIndex], Relation | None],
        sources: ArraySources,
        labels_of: Callable[[View, int], Labels],
        phase_of: Callable[[View, int], str],
    ) -> None:
        self._device = device
        self._asks_optimizer = parameter_roles is not None
        self._roles = parameter_roles or {}
        self._relation_of = relation_of
        self._sources = sources
        self._labels_of = labels_of
        self._phase_of = phase_of

    def find(self) -> list[LiveArray]:
        """Return the arrays, the largest first."""
        device = self._device
        rows = [self.describe(row) for row in device.live_at_peak]
        if size := device.thread_local.constant_bytes:
            name, labels = "(constants of computations that are applied)", Labels("", "", NOT_PRINTED)
            rows.append(LiveArray(name, "constant", (), None, size, 0, "constant", CONSTANT, 0, None, None, labels, None))
        return sorted(rows, key=lambda array: -array.bytes)

    def describe(self, row: LiveBuffer) -> LiveArray:
        """Return a live buffer with its instruction, purpose and lifetime."""
        device = self._device
        value = self._named_value(row)
        time = device.values.times[value]
        view, number = device.schedule.view(time), device.schedule.rows[time]
        element = self._array(value)[2]
        labels = self._labels_of(view, number)
        relation = self._relation_of(view, number, element)
        start, end = device.live_range(row.buffer)
        source = self._sources.with_phase(self._array(self._written_value(row, value)), labels)
        return LiveArray(
            view.names[number],
            view.opcodes[number],
            element,
            device.shape(row.value),
            row.bytes,
            row.padding,
            row.kind,
            self._role(row, relation),
            row.space,
            start,
            end,
            source.labels,
            view.lines[number],
            row.buffer,
            relation,
            source.parameter,
            source.path,
            source.is_copy,
        )

    def _named_value(self, row: LiveBuffer) -> int:
        """Return the value to name: the row's own value, else the first value of its buffer with a source and the same size."""
        device, members = self._device, self._device.buffers.members[row.buffer]
        if row.kind != "heap" or len(members) == 1 or self._has_source(row.value):
            return row.value
        shape = str(device.shape(row.value))
        written = (value for value in members if str(device.shape(value)) == shape)
        return next((value for value in written if self._has_source(value)), row.value)

    def _written_value(self, row: LiveBuffer, value: int) -> int:
        """Return the value that a loop writes into a buffer as a stack; `value` if none does."""
        if row.kind in {"parameter", "constant"}:
            return value
        shape = str(self._device.shape(row.value))
        members = (member for member in self._device.buffers.members[row.buffer] if str(self._device.shape(member)) == shape)
        return next((member for member in members if self._sources.is_stack(self._array(member))), value)

    def _array(self, value: int) -> ArrayPlace:
        """Return the place of a value in the text."""
        device = self._device
        time = device.values.times[value]
        element = () if time in device.schedule.wrapped else device.values.index(value)
        return device.schedule.view(time).computation.name, device.schedule.rows[time], element

    def _has_source(self, value: int) -> bool:
        time = self._device.values.times[value]
        labels = self._labels_of(self._device.schedule.view(time), self._device.schedule.rows[time])
        return labels.source != NOT_PRINTED and self._device.schedule.opcodes[time] not in {"while", "parameter"}

    # -- roles ----------------------------------------------------------------------------------------------------------

    def _role(self, row: LiveBuffer, relation: Relation | None) -> str:
        if isinstance(self._device.shape(row.value), TupleShape):
            return TABLE
        if row.kind == "constant":
            return CONSTANT
        return self._role_in_step(row, relation) if self._asks_optimizer else NOT_SOUGHT

    def _role_in_step(self, row: LiveBuffer, relation: Relation | None) -> str:
        """Return the role of an array that is neither a table nor a constant."""
        if row.allocation is not None and row.allocation.parameter is not None:
            return self._parameter_role(row.allocation.parameter, row.allocation.index)
        if relation is not None:
            return self._role_by_relation(row, relation)
        if row.kind == "output":
            return OUTPUT
        return ACTIVATION if self._is_saved(row) else TEMPORARY

    def _parameter_role(self, number: int, index: ShapeIndex) -> str:
        return self._roles.get((number, index), INPUT if self._roles else "parameter")

    def _role_by_relation(self, row: LiveBuffer, relation: Relation) -> str:
        role = self._parameter_role(relation.parameter, ())
        if GRADIENT in relation.steps:
            return GRADIENT
        if NEW_VALUE in relation.steps:
            return NEW_VALUE
        if row.kind == "output":
            return OUTPUT
        if role in {INPUT, "parameter"}:
            return INPUT_COPY
        return WEIGHT_COPY if role in _WEIGHTS else STATE_COPY

    def _is_saved(self, row: LiveBuffer) -> bool:
        """Return True if the forward pass writes the buffer and the backward pass reads it."""
        device = self._device
        members = device.buffers.members[row.buffer]
        written = self._phases(device.values.times[value] for value in members)
        if written.isdisjoint(_FIRST):
            return False
        return not _LATER.isdisjoint(self._phases(use for value in members for use in device.uses.get(value)))

    def _phases(self, times: Iterable[int]) -> set[str]:
        schedule = self._device.schedule
        return {self._phase_of(schedule.view(time), schedule.rows[time]) for time in times}


MAX_POINTS = 512
_LEAST_LOOKED_AT = 16
"""Number of instructions whose phases are read in a part of the schedule, at equal distances.

If there are fewer, all are read; at most twice this number are read.
"""
LARGEST = 3
"""Number of temporaries named for each part of the curve."""


class CurvePoint(NamedTuple):
    """A part of the schedule, and the most bytes that are live in it, first at `highest`.

    `phase` is the most common known phase of its instructions, `loop` the innermost loop.
    """

    first: int
    last: int
    bytes: int
    phase: str
    loop: str
    highest: int


class LargestLive(NamedTuple):
    """The number of temporaries at the highest point of a part of the curve, and the largest of them: value and bytes."""

    arrays: int
    largest: tuple[tuple[int, int], ...]


def live_curve(device: DeviceMemory, phase_of: Callable[[View, int], str]) -> list[CurvePoint]:
    """Return the live bytes in parts of equal length: static allocations plus the heap with the highest peak."""
    curve, schedule = device.curve(), device.schedule
    count = min(len(curve) - 1, MAX_POINTS)
    points = []
    for number in range(count):
        first, last = number * (len(curve) - 1) // count, (number + 1) * (len(curve) - 1) // count
        phases: Counter[str] = Counter()
        for time in range(first, last, max(1, (last - first) // _LEAST_LOOKED_AT)):
            phases[phase_of(schedule.view(time), schedule.rows[time])] += 1
        phases.pop(UNKNOWN, None)
        phase = phases.most_common(1)[0][0] if phases else UNKNOWN
        loop = loop_around(device, schedule.run_at[(first + last - 1) // 2])
        highest = max(range(first, last), key=curve.__getitem__)
        points.append(CurvePoint(first, last - 1, device.static_bytes + curve[highest], phase, loop, highest))
    return points


def loop_around(device: DeviceMemory, run: ComputationRun | None) -> str:
    """Return the name of the innermost while that runs a computation, directly or not; empty if there is none."""
    schedule = device.schedule
    while run is not None and run.caller >= 0:
        if run.role in {"body", "condition"}:
            return schedule.name(run.caller)
        run = schedule.run_at[run.caller]
    return ""


def largest_live(device: DeviceMemory, points: Sequence[CurvePoint]) -> list[LargestLive]:
    """Return the live temporaries for each part of the curve, in the heap that reaches the peak."""
    heap = device.peak_heap
    if heap is None:
        return [LargestLive(0, ()) for _ in points]
    changes, live = heap.trace.changes, _LiveTemporaries(heap.trace.intervals)
    largest, done = [], 0
    for point in points:
        begin = done
        while done < len(changes) and changes[done].time <= point.last:
            done += 1
        largest.append(live.apply_to_peak(changes[begin:done]))
    return largest


class _LiveTemporaries:
    """The temporaries that are live at a time. It applies the changes of a trace."""

    def __init__(self, intervals: Mapping[int, Interval]) -> None:
        self._intervals = intervals
        self._bytes = 0
        self._held: dict[int, int] = {}  # allocated value -> the value that holds its memory now

    def apply_to_peak(self, changes: Sequence[Change]) -> LargestLive:
        """Apply some changes and return the live values at the highest point. The state before the changes counts too."""
        highest = max((change.live for change in changes), default=self._bytes)
        largest = self._largest() if highest <= self._bytes else None
        for change in changes:
            change.apply(self._held)
            self._bytes = change.live
            if largest is None and self._bytes == highest:
                largest = self._largest()
        return largest or self._largest()

    def _largest(self) -> LargestLive:
        sized = ((value, self._intervals[base].bytes) for base, value in self._held.items())
        return LargestLive(len(self._held), tuple(nlargest(LARGEST, sized, key=itemgetter(1))))

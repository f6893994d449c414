"""What a compiled program needs of device memory, as XLA's buffer assignment works it out from a scheduled module."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from hlo_inspect.analysis.canonical.order import operands_first
from hlo_inspect.analysis.memory.allocations import Allocation, Assignment, BufferFacts, assign, temporary_bytes
from hlo_inspect.analysis.memory.buffers import Buffers, find_buffers
from hlo_inspect.analysis.memory.heap import Trace, simulate, simulate_preset
from hlo_inspect.analysis.memory.in_place import InPlace
from hlo_inspect.analysis.memory.live_ranges import LiveRanges, Uses, clip_shared, find_live_ranges
from hlo_inspect.analysis.memory.overwriting import Overwriting
from hlo_inspect.analysis.memory.packing import Packing, pack
from hlo_inspect.analysis.memory.platforms import MAX_SPACES, PRESET_SPACES, Platform
from hlo_inspect.analysis.memory.post_order import computation_order, post_orders
from hlo_inspect.analysis.memory.schedule import ComputationRun, MemoryFault, Schedule, flatten_schedule
from hlo_inspect.analysis.memory.shape_trees import ShapeTrees
from hlo_inspect.analysis.memory.sizes import Sizes
from hlo_inspect.analysis.memory.thread_local import ThreadLocal, find_thread_local
from hlo_inspect.analysis.memory.values import Values, find_values
from hlo_inspect.analysis.view import Views
from hlo_inspect.hlo.header import ShapeIndex
from hlo_inspect.hlo.module import Module
from hlo_inspect.hlo.shapes import HOST_SPACE, ArrayShape, Shape, TupleShape


class Place(NamedTuple):
    """An instruction of the text: the row of a computation. `is_printed` is false for what a short spelling of an asynchronous
    instruction leaves out; the row is that of the short spelling.
    """

    computation: str
    row: int
    name: str
    line: int
    is_printed: bool


class Live(NamedTuple):
    """What takes `bytes` at the peak. `kind` is that of the allocation, `heap` for a temporary. `value` is what its buffer
    holds then.
    """

    bytes: int
    padding: int
    kind: str
    space: int
    value: int
    buffer: int
    allocation: Allocation | None


@dataclass(frozen=True, slots=True)
class Heap:
    """The temporaries of one memory space: over time, and where they lie."""

    space: int
    trace: Trace
    packing: Packing

    @property
    def fragmentation(self) -> int:
        """Bytes of the packed heap that no temporary uses at its highest point."""
        return self.packing.bytes - self.trace.peak


@dataclass(eq=False)
class DeviceMemory:
    """The device memory of a scheduled program.

    Times are positions in `schedule`. A value is a number: `values` says where it is defined, `uses` where it is read, `ranges`
    when it is live, `buffers` which values share memory. `sizes` and `spaces` are by buffer, `heaps` by memory space.
    """

    platform: Platform
    schedule: Schedule
    trees: ShapeTrees
    values: Values
    uses: Uses
    ranges: LiveRanges
    buffers: Buffers
    sizes: Sequence[int]
    spaces: Sequence[int]
    assignment: Assignment
    heaps: Mapping[int, Heap]
    thread_local: ThreadLocal
    faults: Sequence[MemoryFault] = field(default_factory=list)

    # -- totals ---------------------------------------------------------------------------------------------------------

    @cached_property
    def argument_bytes(self) -> int:
        return sum(one.bytes for one in self._device if one.kind == "parameter")

    @cached_property
    def output_bytes(self) -> int:
        return sum(one.bytes for one in self._device if one.is_output)

    @cached_property
    def alias_bytes(self) -> int:
        return sum(one.bytes for one in self._device if one.is_aliased)

    @cached_property
    def constant_bytes(self) -> int:
        return sum(one.bytes for one in self._device if one.kind == "constant") + self.thread_local.constant_bytes

    @cached_property
    def temp_bytes(self) -> int:
        """The temporaries of device memory: the heap, and the tables of tuples."""
        return temporary_bytes(
            self.assignment, self._heap_bytes(0), self.thread_local.allocations, self.platform.alignment(0), 0
        )

    @cached_property
    def host_bytes(self) -> int:
        """All in the memory of the host: arguments and outputs, shared ones once, and temporaries."""
        static = sum(one.bytes for one in self.assignment.allocations if one.space == HOST_SPACE)
        return static + self._heap_bytes(HOST_SPACE)

    @cached_property
    def static_bytes(self) -> int:
        """What is there all the time, in all memory spaces: arguments, outputs and constants."""
        return sum(one.bytes for one in self._static) + self.thread_local.constant_bytes

    @cached_property
    def peak_bytes(self) -> int:
        """`ComputePeakMemory`: what is static, and the highest point of one heap."""
        return self.static_bytes + max((heap.trace.peak for heap in self.heaps.values()), default=0)

    @property
    def xla_peak_bytes(self) -> int:
        """`peak_memory_in_bytes` of `memory_analysis()`; XLA keeps no trace of the heap on CPU."""
        return self.peak_bytes if self.platform.keeps_trace else self.static_bytes

    @property
    def needed_bytes(self) -> int:
        return self.argument_bytes + self.output_bytes - self.alias_bytes + self.constant_bytes + self.temp_bytes

    @property
    def heap_bytes(self) -> int:
        return self._heap_bytes(0)

    @property
    def live_peak_bytes(self) -> int:
        """The temporaries that are live at most at a time, in device memory."""
        return self.heaps[0].trace.peak if 0 in self.heaps else 0

    def space_peak_bytes(self) -> dict[int, int]:
        """By memory space what is static there and the highest point of its heap."""
        found: dict[int, int] = {}
        for one in self._static:
            found[one.space] = found.get(one.space, 0) + one.bytes
        for space, heap in self.heaps.items():
            found[space] = found.get(space, 0) + heap.trace.peak
        found[0] = found.get(0, 0) + self.thread_local.constant_bytes
        return dict(sorted(found.items()))

    def _heap_bytes(self, space: int) -> int:
        return self.heaps[space].packing.bytes if space in self.heaps else 0

    @property
    def _device(self) -> Iterator[Allocation]:
        return (one for one in self.assignment.allocations if one.space != HOST_SPACE)

    @property
    def _static(self) -> Iterator[Allocation]:
        return (one for one in self.assignment.allocations if one.kind != "temporary")

    # -- the peak -------------------------------------------------------------------------------------------------------

    @cached_property
    def peak_heap(self) -> Heap | None:
        """The heap whose highest point makes the peak; `None` where there are no temporaries."""
        return max(self.heaps.values(), key=lambda heap: heap.trace.peak, default=None)

    @property
    def peak_time(self) -> int | None:
        """The time of the peak; `None` where nothing changes with time."""
        return self.peak_heap.trace.time if self.peak_heap is not None else None

    @cached_property
    def live_at_peak(self) -> list[Live]:
        """What is there at the peak, static first; the bytes add up to `peak_bytes` without the constants of what is applied
        to elements (`thread_local.constant_bytes`).
        """
        rows = []
        for one in self._static:
            buffer = max(one.buffers, key=lambda buffer: self.sizes[buffer])
            rows.append(self._live(one.kind, one.bytes, self.buffers.members[buffer][0], one))
        heap = self.peak_heap
        if heap is not None:
            rows += [self._live("heap", size, value, None) for value, size in heap.trace.live_at_peak().items()]
        return rows

    def _live(self, kind: str, size: int, value: int, allocation: Allocation | None) -> Live:
        buffer, shape = self.buffers.of[value], self.shape(value)
        padding = size - (shape.array_bytes or 0) if isinstance(shape, ArrayShape) else 0
        return Live(size, padding, kind, self.spaces[buffer], value, buffer, allocation)

    @cached_property
    def padding_bytes(self) -> int:
        """What tiles and alignment add to arrays that are there at the peak."""
        return sum(row.padding for row in self.live_at_peak)

    def curve(self) -> list[int]:
        """By time the live bytes of temporaries, the highest of each time, in the heap that makes the peak."""
        heap = self.peak_heap
        live = [0] * (self.schedule.end + 1)
        if heap is None:
            return live
        now, at = 0, 0
        for change in heap.trace.changes:
            while at < change.time:
                at += 1
                live[at] = now
            now = change.live
            live[at] = max(live[at], now)
        for time in range(at + 1, len(live)):
            live[time] = now
        return live

    # -- values ---------------------------------------------------------------------------------------------------------

    def shape(self, value: int) -> Shape | None:
        return self.values.shape(value, self.schedule, self.trees)

    def shape_index(self, value: int) -> ShapeIndex:
        return self.trees.index(self.schedule.shapes[self.values.times[value]], self.values.places[value])

    def place(self, time: int) -> Place:
        """The instruction that runs at a time."""
        schedule = self.schedule
        view, row = schedule.view(time), schedule.rows[time]
        return Place(view.computation.name, row, view.names[row], view.lines[row], time not in schedule.wrapped)

    def live_range(self, buffer: int) -> tuple[int, int]:
        """From when to when a buffer is live."""
        members = self.buffers.members[buffer]
        return min(self.ranges.starts[one] for one in members), max(self.ranges.ends[one] for one in members)


def find_device_memory(module: Module, views: Views, platform: Platform) -> DeviceMemory:
    """The device memory of a module that was read with its graph, is scheduled and not cut off."""
    return _Analysis(module, views, platform).run()


class _Analysis:
    """The steps from the schedule to the packed heaps."""

    def __init__(self, module: Module, views: Views, platform: Platform) -> None:
        self._module = module
        self._views = views
        self._platform = platform
        self._trees = ShapeTrees()
        self._faults: list[MemoryFault] = []

    def run(self) -> DeviceMemory:
        schedule = flatten_schedule(self._module, self._views)
        orders = post_orders(schedule)
        values = find_values(schedule, self._trees, self._ranks(schedule, orders))
        uses = Uses(schedule, values)
        passing = frozenset({"bitcast", "reshape"} if self._platform.name == "gpu" else {"bitcast"})
        in_place = InPlace(self._views, passing)
        aliases = self._aliases(schedule, values)
        ranges = find_live_ranges(schedule, values, frozenset(aliases))
        outputs = [(output, given) for output, given in aliases.values()]
        buffers = find_buffers(schedule, values, self._trees, in_place, outputs)
        clip_shared(ranges, buffers.members)
        sizes, spaces = self._sizes(schedule, values, buffers)
        facts = BufferFacts(
            schedule,
            values,
            buffers,
            ranges,
            uses,
            sizes,
            spaces,
            self._outputs(schedule, values, buffers),
            self._parameters(schedule, values, frozenset(aliases)),
            frozenset(v for v, p in enumerate(values.places) if self._is_table(schedule, values, v)),
            self._positions(schedule, orders),
            Overwriting(schedule, values, uses, self._trees, self._views, in_place, self._platform),
            self._platform.reuses_allocations,
        )
        presets = PRESET_SPACES if self._platform.is_tpu else frozenset()
        assignment = assign(facts, presets)
        heaps = {}
        for space, members in sorted(assignment.heaps.items()):
            trace = (simulate_preset if space in presets else simulate)(facts, members)
            heaps[space] = Heap(space, trace, pack(trace.intervals, self._platform.alignment(space)))
        thread_local = find_thread_local(self._module, self._views, Sizes(self._platform))
        faults = [*schedule.faults, *values.faults, *self._faults]
        return DeviceMemory(
            self._platform,
            schedule,
            self._trees,
            values,
            uses,
            ranges,
            buffers,
            sizes,
            spaces,
            assignment,
            heaps,
            thread_local,
            faults,
        )

    # -- numbers --------------------------------------------------------------------------------------------------------

    def _ranks(self, schedule: Schedule, orders: Mapping[ComputationRun, Sequence[int]]) -> list[int]:
        """By time the number of an instruction: computations as in the text, post-order in each."""
        in_text = {name: number for number, name in enumerate(self._module.computations)}
        found = computation_order(schedule, in_text)
        ranks = [0] * schedule.end
        rank = 0
        for run in sorted(orders, key=lambda one: found[one]):
            for time in orders[run]:
                ranks[time] = rank
                rank += 1
        return ranks

    def _positions(self, schedule: Schedule, orders: Mapping[ComputationRun, Sequence[int]]) -> list[int]:
        """By time the place in the order of assignment: callers before callees, post-order in each computation."""
        positions = [0] * schedule.end
        position = 0
        for run in _callers_first(schedule):
            for time in orders[run]:
                positions[time] = position
                position += 1
        return positions

    # -- entry ----------------------------------------------------------------------------------------------------------

    def _aliases(self, schedule: Schedule, values: Values) -> dict[tuple[int, int], tuple[int, int]]:
        """By number and place of an entry parameter the output that takes its place, and its own value."""
        found: dict[tuple[int, int], tuple[int, int]] = {}
        entry = schedule.runs[0]
        line = self._module.first_line
        for alias in self._module.header.aliases:
            time = entry.parameters.get(alias.parameter)
            given = self._trees.place(schedule.shapes[time], alias.parameter_index) if time is not None else None
            output = self._trees.place(schedule.shapes[entry.root], alias.output_index) if entry.root >= 0 else None
            if time is None or given is None or output is None:
                self._faults.append(MemoryFault("an alias of the header names what is not there", line, None, of_aliases=True))
                continue
            self._check_alias(alias.parameter, schedule.shapes[time], given, schedule.shapes[entry.root], output)
            found[alias.parameter, given] = values.of(entry.root)[output], values.of(time)[given]
        return found

    def _check_alias(self, number: int, parameter: Shape | None, given: int, result: Shape | None, output: int) -> None:
        """An output takes the place of a parameter of the same size only."""
        sizes = Sizes(self._platform)
        old, new = sizes.bytes(self._trees.part(parameter, given)), sizes.bytes(self._trees.part(result, output))
        if old is not None and new is not None and old != new:
            message = f"an alias of the header joins parameter {number}, of {old} bytes, with an output of {new}"
            self._faults.append(MemoryFault(message, self._module.first_line, None, of_aliases=True))

    def _outputs(self, schedule: Schedule, values: Values, buffers: Buffers) -> frozenset[int]:
        root = schedule.runs[0].root
        return frozenset(buffers.of[value] for value in values.of(root)) if root >= 0 else frozenset()

    def _parameters(
        self, schedule: Schedule, values: Values, aliased: frozenset[tuple[int, int]]
    ) -> dict[int, tuple[int, ShapeIndex, bool]]:
        found = {}
        for number, time in schedule.runs[0].parameters.items():
            for place, value in enumerate(values.of(time)):
                found[value] = number, self._trees.index(schedule.shapes[time], place), (number, place) in aliased
        return found

    # -- buffers --------------------------------------------------------------------------------------------------------

    def _is_table(self, schedule: Schedule, values: Values, value: int) -> bool:
        return isinstance(values.shape(value, schedule, self._trees), TupleShape)

    def _sizes(self, schedule: Schedule, values: Values, buffers: Buffers) -> tuple[list[int], list[int]]:
        """By buffer its bytes, those of its largest value, and its memory space."""
        sizes, spaces = [0] * len(buffers.members), [0] * len(buffers.members)
        measure = Sizes(self._platform)
        known: dict[int, tuple[int | None, int]] = {}
        for value, buffer in enumerate(buffers.of):
            shape = values.shape(value, schedule, self._trees)
            found = known.get(id(shape))
            if found is None:
                layout = shape.layout if isinstance(shape, ArrayShape) else None
                found = known[id(shape)] = measure.bytes(shape), layout.memory_space if layout is not None else 0
            size, space = found
            if size is None or space >= MAX_SPACES:
                time = values.times[value]
                name = schedule.name(time)
                what = f"the size of {name} is not known" if size is None else f"{name} is in an unknown memory space, {space}"
                self._faults.append(MemoryFault(what, schedule.line(time), name, of_sizes=True))
            sizes[buffer] = max(sizes[buffer], size or 0)
            spaces[buffer] = spaces[buffer] or space
        return sizes, spaces


def _callers_first(schedule: Schedule) -> list[ComputationRun]:
    """The computations in reverse post-order of the call graph (`CallGraph::VisitNodes`): a body before its condition."""
    calls: dict[ComputationRun, list[ComputationRun]] = {}
    for time in sorted(schedule.called):
        runs = schedule.called[time]
        calls.setdefault(schedule.run_at[time], []).extend(sorted(runs, key=lambda run: run.role == "condition"))
    return list(operands_first(schedule.runs[:1], lambda run: calls.get(run, [])))[::-1]

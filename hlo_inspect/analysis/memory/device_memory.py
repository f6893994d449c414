"""Device memory of a scheduled module, computed as XLA's buffer assignment does."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from hlo_inspect.analysis.memory.allocations import Allocation, Assigner, Assignment, BufferFacts, partitioned
from hlo_inspect.analysis.memory.buffers import Buffers, LiveRanges, ValueUses, clip_shared, find_buffers, find_live_ranges
from hlo_inspect.analysis.memory.heap import Packing, Trace, pack, simulate, simulate_preset
from hlo_inspect.analysis.memory.hlo_values import Values, find_values
from hlo_inspect.analysis.memory.in_place import InPlace
from hlo_inspect.analysis.memory.overwriting import Overwriting
from hlo_inspect.analysis.memory.platforms import MAX_SPACES, Platform
from hlo_inspect.analysis.memory.schedule import (
    MemoryFault,
    Schedule,
    ScheduleWalk,
    callers_first,
    in_order_of_text,
    numbered,
    post_orders,
)
from hlo_inspect.graph.view import Views
from hlo_inspect.hlo.module import Module
from hlo_inspect.hlo.opcodes import MARKERS, NAMING, TABLE, callee_roles
from hlo_inspect.hlo.values.header import ShapeIndex
from hlo_inspect.hlo.values.shapes import HOST_SPACE, ArrayShape, Shape


class ScheduledInstruction(NamedTuple):
    """An instruction of the text. If a short spelling of an asynchronous instruction leaves it out, that spelling."""

    computation: str
    row: int
    name: str
    line: int


class LiveBuffer(NamedTuple):
    """A buffer that takes `bytes` at the peak.

    `kind` is the kind of the allocation, `heap` for a temporary. `value` is the value in the buffer at the peak.
    """

    bytes: int
    padding: int
    kind: str
    space: int
    value: int
    buffer: int
    allocation: Allocation | None


class Heap(NamedTuple):
    """The temporaries of one memory space: their trace over time, and their offsets."""

    space: int
    trace: Trace
    packing: Packing

    @property
    def fragmentation(self) -> int:
        """Bytes of the packed heap that no temporary uses at the peak."""
        return self.packing.bytes - self.trace.peak


@dataclass(eq=False)
class DeviceMemory:
    """The device memory of a scheduled program.

    Times are positions in `schedule`. A value is a number. `values` holds definitions, `uses` the times of reads, `ranges` the
    lifetimes, `buffers` the values that share memory. `sizes` and `spaces` are by buffer, `heaps` by memory space.
    """

    platform: Platform
    values: Values
    uses: ValueUses
    ranges: LiveRanges
    buffers: Buffers
    sizes: Sequence[int]
    spaces: Sequence[int]
    assignment: Assignment
    heaps: Mapping[int, Heap]
    thread_local: ThreadLocal
    faults: Sequence[MemoryFault]

    @property
    def schedule(self) -> Schedule:
        return self.values.schedule

    # -- totals ---------------------------------------------------------------------------------------------------------

    @cached_property
    def argument_bytes(self) -> int:
        return sum(allocation.bytes for allocation in self._device if allocation.kind == "parameter")

    @cached_property
    def output_bytes(self) -> int:
        return sum(allocation.bytes for allocation in self._device if allocation.is_output)

    @cached_property
    def alias_bytes(self) -> int:
        return sum(allocation.bytes for allocation in self._device if allocation.is_aliased)

    @cached_property
    def constant_bytes(self) -> int:
        return (
            sum(allocation.bytes for allocation in self._device if allocation.kind == "constant")
            + self.thread_local.constant_bytes
        )

    @cached_property
    def temp_bytes(self) -> int:
        """The temporaries of device memory: the heap and the tables of tuples, each at the next multiple of the alignment.

        Follows `BufferAssignment::CombineTempAllocations`. The order matters because the last size is not rounded. Tables come
        in the order of their assignment, then the heap. Allocations of computations applied to elements come last.
        `std::partition` then moves the temporary allocations behind the rest.
        """
        allocations, alignment = self.assignment.allocations, self.platform.alignment(0)
        sizes = [part.bytes if part.kind == "temporary" and part.space == 0 else None for part in allocations]
        heap = [self._heap_bytes(0)] if 0 in self.assignment.heaps else []
        total = 0
        for size in partitioned([*sizes, *heap, *[None] * self.thread_local.allocations]):
            total = -(-total // alignment) * alignment + size
        return total

    @cached_property
    def host_bytes(self) -> int:
        """All bytes in host memory: arguments and outputs, shared buffers once, and temporaries."""
        return sum(allocation.bytes for allocation in self._host) + self._heap_bytes(HOST_SPACE)

    @cached_property
    def static_bytes(self) -> int:
        """Static bytes in all memory spaces except the host's: arguments, outputs and constants."""
        return sum(allocation.bytes for allocation in self._static) + self.thread_local.constant_bytes

    @cached_property
    def peak_bytes(self) -> int:
        """Static allocations plus the peak of one heap, all without the host's memory."""
        return self.static_bytes + (self.peak_heap.trace.peak if self.peak_heap is not None else 0)

    @property
    def xla_peak_bytes(self) -> int:
        """`ComputePeakMemory`, the peak of `memory_analysis()`: host memory counts. XLA keeps no trace of the heap on CPU."""
        keeps_trace = self.platform.keeps_trace
        on_host = sum(allocation.bytes for allocation in self._host if allocation.kind != "temporary")
        return self.static_bytes + on_host + max((heap.trace.peak for heap in self.heaps.values() if keeps_trace), default=0)

    @property
    def needed_bytes(self) -> int:
        return self.argument_bytes + self.output_bytes - self.alias_bytes + self.constant_bytes + self.temp_bytes

    @property
    def heap_bytes(self) -> int:
        return self._heap_bytes(0)

    @property
    def live_peak_bytes(self) -> int:
        """The largest bytes of temporaries that are live at one time, in device memory."""
        return self.heaps[0].trace.peak if 0 in self.heaps else 0

    def space_peak_bytes(self) -> dict[int, int]:
        """Return static allocations plus the peak of the heap for each memory space."""
        peaks: dict[int, int] = {}
        for allocation in self.assignment.allocations:
            if allocation.kind == "temporary":
                continue
            peaks[allocation.space] = peaks.get(allocation.space, 0) + allocation.bytes
        for space, heap in self.heaps.items():
            peaks[space] = peaks.get(space, 0) + heap.trace.peak
        peaks[0] = peaks.get(0, 0) + self.thread_local.constant_bytes
        return dict(sorted(peaks.items()))

    def _heap_bytes(self, space: int) -> int:
        return self.heaps[space].packing.bytes if space in self.heaps else 0

    @property
    def _host(self) -> Iterator[Allocation]:
        return (allocation for allocation in self.assignment.allocations if allocation.space == HOST_SPACE)

    @property
    def _device(self) -> Iterator[Allocation]:
        return (allocation for allocation in self.assignment.allocations if allocation.space != HOST_SPACE)

    @property
    def _static(self) -> Iterator[Allocation]:
        return (allocation for allocation in self._device if allocation.kind != "temporary")

    # -- the peak -------------------------------------------------------------------------------------------------------

    @cached_property
    def peak_heap(self) -> Heap | None:
        """The heap that reaches the peak, not that of the host; None if there are no temporaries."""
        heaps = (heap for heap in self.heaps.values() if heap.space != HOST_SPACE)
        return max(heaps, key=lambda heap: heap.trace.peak, default=None)

    @property
    def peak_time(self) -> int | None:
        """The time of the peak; None if nothing changes with time."""
        return self.peak_heap.trace.time if self.peak_heap is not None else None

    @cached_property
    def live_at_peak(self) -> list[LiveBuffer]:
        """The buffers that are live at the peak, static ones first.

        The bytes add up to `peak_bytes` less the constants of applied computations (`thread_local.constant_bytes`).
        """
        rows = []
        for allocation in self._static:
            buffer = max(allocation.buffers, key=lambda buffer: self.sizes[buffer])
            rows.append(self._live(allocation.kind, allocation.bytes, self.buffers.members[buffer][0], allocation))
        heap = self.peak_heap
        if heap is not None:
            rows += [self._live("heap", size, value, None) for value, size in heap.trace.live_at_peak().items()]
        return rows

    def _live(self, kind: str, size: int, value: int, allocation: Allocation | None) -> LiveBuffer:
        buffer, shape = self.buffers.buffer_of_value[value], self.shape(value)
        padding = size - (shape.array_bytes or 0) if isinstance(shape, ArrayShape) else 0
        return LiveBuffer(size, padding, kind, self.spaces[buffer], value, buffer, allocation)

    @cached_property
    def padding_bytes(self) -> int:
        """Padding of the arrays that are live at the peak: bytes that tiles and alignment add."""
        return sum(row.padding for row in self.live_at_peak)

    def curve(self) -> list[int]:
        """Return the largest number of live bytes of temporaries at each time, in the heap that reaches the peak."""
        heap = self.peak_heap
        live = [0] * (self.schedule.end + 1)
        if heap is None:
            return live
        now, reached = 0, 0
        for change in heap.trace.changes:
            while reached < change.time:
                reached += 1
                live[reached] = now
            now = change.live
            live[reached] = max(live[reached], now)
        for time in range(reached + 1, len(live)):
            live[time] = now
        return live

    # -- values ---------------------------------------------------------------------------------------------------------

    def shape(self, value: int) -> Shape | None:
        return self.values.shape(value)

    def place(self, time: int) -> ScheduledInstruction:
        """Return the instruction that runs at a time."""
        schedule = self.schedule
        view, row = schedule.view(time), schedule.rows[time]
        return ScheduledInstruction(view.computation.name, row, view.names[row], view.lines[row])

    def live_range(self, buffer: int) -> tuple[int, int]:
        """Return the first and the last time at which a buffer is live."""
        members = self.buffers.members[buffer]
        return min(self.ranges.starts[member] for member in members), max(self.ranges.ends[member] for member in members)


def find_device_memory(module: Module, views: Views, platform: Platform) -> DeviceMemory:
    """Compute the device memory of a module that was read with its graph, is scheduled and not truncated."""
    schedule = ScheduleWalk(views).flatten(module)
    orders = post_orders(schedule)
    values = find_values(schedule, numbered(orders, in_order_of_text(schedule, module)))
    faults = [*schedule.faults, *values.faults]
    aliases = _aliases(module, values, platform, faults)
    uses, ranges = ValueUses(values), find_live_ranges(values, aliases.keys())
    in_place = InPlace(views, frozenset({"bitcast", "reshape"} if platform.name == "gpu" else {"bitcast"}))
    buffers = find_buffers(values, in_place, aliases.values())
    clip_shared(ranges, buffers.members)
    sizes, spaces = _sizes(values, buffers, platform, faults)
    facts = BufferFacts(
        platform,
        values,
        buffers,
        ranges,
        uses,
        sizes,
        spaces,
        _outputs(values, buffers),
        _parameters(values, aliases.keys()),
        numbered(orders, callers_first(schedule)),
        Overwriting(values, uses, views, in_place, platform),
    )
    assignment = Assigner(facts).run()
    heaps = {}
    for space, members in sorted(assignment.heaps.items()):
        trace = (simulate_preset if space in platform.presets else simulate)(facts, members)
        heaps[space] = Heap(space, trace, pack(trace.intervals, platform.alignment(space)))
    thread_local = find_thread_local(module, views, platform)
    return DeviceMemory(platform, values, uses, ranges, buffers, sizes, spaces, assignment, heaps, thread_local, faults)


def _aliases(
    module: Module, values: Values, platform: Platform, faults: list[MemoryFault]
) -> dict[tuple[int, int], tuple[int, int]]:
    """Return, by number and place of an entry parameter, the output that uses its buffer and the parameter's own value.

    An output uses the buffer of a parameter of the same size only.
    """
    aliases: dict[tuple[int, int], tuple[int, int]] = {}
    entry, shapes, place = values.schedule.runs[0], values.schedule.shapes, values.trees.place
    for alias in module.header.aliases:
        number, time = alias.parameter, entry.parameters.get(alias.parameter)
        given = place(shapes[time], alias.parameter_index) if time is not None else None
        output = place(shapes[entry.root], alias.output_index) if entry.root >= 0 else None
        if time is None or given is None or output is None:
            message = "an alias of the header names a parameter or output that does not exist"
            faults.append(MemoryFault(message, module.first_line, None, of_aliases=True))
            continue
        aliases[number, given] = values.result(entry.root)[output], values.result(time)[given]
        old = platform.bytes_of(values.trees.part(shapes[time], given))
        new = platform.bytes_of(values.trees.part(shapes[entry.root], output))
        if old is not None and new is not None and old != new:
            message = f"an alias of the header joins parameter {number}, of {old} bytes, with an output of {new}"
            faults.append(MemoryFault(message, module.first_line, None, of_aliases=True))
    return aliases


def _outputs(values: Values, buffers: Buffers) -> frozenset[int]:
    root = values.schedule.runs[0].root
    return frozenset(buffers.buffer_of_value[value] for value in values.result(root)) if root >= 0 else frozenset()


def _parameters(values: Values, aliased: Collection[tuple[int, int]]) -> dict[int, tuple[int, ShapeIndex, bool]]:
    """Return for each value of an entry parameter its number, its shape index, and whether an output uses its buffer."""
    parameters = {}
    for number, time in values.schedule.runs[0].parameters.items():
        for place, value in enumerate(values.result(time)):
            parameters[value] = number, values.index(value), (number, place) in aliased
    return parameters


def _sizes(values: Values, buffers: Buffers, platform: Platform, faults: list[MemoryFault]) -> tuple[list[int], list[int]]:
    """Return the bytes of each buffer, which are the bytes of its largest value, and its memory space."""
    sizes, spaces = [0] * len(buffers.members), [0] * len(buffers.members)
    cache: dict[int, tuple[int | None, int]] = {}
    for value, buffer in enumerate(buffers.buffer_of_value):
        shape = values.shape(value)
        cached = cache.get(id(shape))
        if cached is None:
            cached = cache[id(shape)] = platform.bytes_of(shape), shape.memory_space if isinstance(shape, ArrayShape) else 0
        size, space = cached
        if size is None or space >= MAX_SPACES:
            time = values.times[value]
            name = values.schedule.name(time)
            message = f"the size of {name} is unknown" if size is None else f"{name} is in an unknown memory space, {space}"
            faults.append(MemoryFault(message, values.schedule.line(time), name, of_sizes=True))
        sizes[buffer] = max(sizes[buffer], size or 0)
        spaces[buffer] = spaces[buffer] or space
    return sizes, spaces


_NO_VALUE = frozenset(name for name in NAMING | MARKERS if TABLE[name].operands == 1)
_APPLIED = frozenset({"applied", "custom"})
_APPLYING = frozenset(opcode for opcode in TABLE if not _APPLIED.isdisjoint(callee_roles(opcode).values()))


class ThreadLocal(NamedTuple):
    """Allocations of computations that are applied to elements: reducers, comparators and the like.

    `BufferAssigner::RunAssignBuffers` gives each of their values an allocation on the host's stack. These count nowhere, except
    constants.
    """

    allocations: int
    constant_bytes: int


def find_thread_local(module: Module, views: Views, platform: Platform) -> ThreadLocal:
    """Add up the allocations of all computations of the module that are applied to elements."""
    allocations = constant_bytes = 0
    for name in dict.fromkeys(_applied(module, views)):
        column = module.computations[name].rows.column
        for opcode, shape in zip(column.opcodes, column.shapes, strict=True):
            if opcode == "constant":
                constant_bytes += platform.bytes_of(shape) or 0
            elif opcode not in _NO_VALUE:
                allocations += 1
    return ThreadLocal(allocations, constant_bytes)


def _applied(module: Module, views: Views) -> Iterator[str]:
    """Yield the computations of the module that instructions apply, once for each application."""
    for name, computation in module.computations.items():
        rows = computation.rows
        for row in rows.column.calling:
            if rows.opcodes[row] in _APPLYING:
                called = views.for_computation(name).called_at(row)
                yield from (callee.name for callee in called if callee.role in _APPLIED and callee.name in module.computations)

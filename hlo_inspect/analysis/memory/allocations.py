"""Assignment of buffers to allocations: a new allocation, the allocation of another buffer, or a heap of temporaries.

Follows `BufferAssigner::AssignBuffersForComputations`, `AssignSpecialHloBuffer`, `AssignSingleHloBuffer` and
`MaybeAssignBuffer` (xla/service/buffer_assignment.cc). The allocation of a donated parameter or of an output can be reused. If
several fit, XLA takes the allocation made last, which is the smallest.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from hlo_inspect.analysis.memory.buffers import Buffers, LiveRanges, ValueUses
from hlo_inspect.analysis.memory.hlo_values import Values
from hlo_inspect.analysis.memory.overwriting import Overwriting
from hlo_inspect.analysis.memory.platforms import Platform
from hlo_inspect.hlo.values.header import ShapeIndex
from hlo_inspect.hlo.values.shapes import TupleShape

Kind = Literal["parameter", "constant", "output", "temporary", "heap"]


@dataclass(slots=True, eq=False)
class Allocation:
    """Memory that is allocated at once. `kind` is its first purpose: a `temporary` is the table of a tuple.

    `buffers` are the buffers in it, all at its start. `is_output` is also set for a parameter whose buffer an output uses.
    `parameter` and `index` name the leaf of an entry parameter, `number` is its place among the reusable allocations.
    """

    kind: Kind
    bytes: int
    space: int
    buffers: list[int] = field(default_factory=list)
    is_output: bool = False
    is_aliased: bool = False
    parameter: int | None = None
    index: ShapeIndex = ()
    number: int | None = None


class BufferFacts(NamedTuple):
    """The input of the assignment.

    By buffer: `sizes` in bytes, `spaces`, and `outputs`, True if it is live at the end. `parameters`: number, shape index and
    "is aliased" by value of an entry parameter. `positions`: by time, the position in the order in which buffers of one size
    are assigned.
    """

    platform: Platform
    values: Values
    buffers: Buffers
    ranges: LiveRanges
    uses: ValueUses
    sizes: Sequence[int]
    spaces: Sequence[int]
    outputs: frozenset[int]
    parameters: Mapping[int, tuple[int, ShapeIndex, bool]]
    positions: Sequence[int]
    overwriting: Overwriting


@dataclass(slots=True, eq=False)
class Assignment:
    """The result: `allocations` in the order of assignment.

    `of` is the allocation of each buffer, `heaps` the heap buffers of each memory space.
    """

    allocations: list[Allocation] = field(default_factory=list)
    allocation_of_buffer: dict[int, Allocation] = field(default_factory=dict)
    heaps: dict[int, list[int]] = field(default_factory=dict)


class Assigner:
    """Assigns an allocation to each buffer."""

    def __init__(self, facts: BufferFacts) -> None:
        self._facts = facts
        self._schedule = facts.values.schedule
        self._found = Assignment()
        self._reusable: list[Allocation] = []
        self._falling_sizes: list[int] = []  # of the reusable allocations, negative
        self._taken = Occupancy(2 * self._schedule.end + 3)
        self._starting: list[dict[int, list[int]]] = []
        self._ending: list[dict[int, list[int]]] = []
        self._of_space: dict[int, int] = {}
        opcodes, values = self._schedule.opcodes, facts.values
        constants = [value for value, time in enumerate(values.times) if opcodes[time] == "constant"]
        self._tables = {value for value in range(len(values.times)) if isinstance(values.shape(value), TupleShape)}
        self._special = {facts.buffers.buffer_of_value[value] for value in self._tables.union(constants, facts.parameters)}

    def run(self) -> Assignment:
        facts, assignment = self._facts, self._found
        members, times = facts.buffers.members, facts.values.times
        positions, presets = facts.positions, facts.platform.presets
        order = sorted(
            range(len(members)),
            key=lambda allocation: (
                -facts.sizes[allocation],
                allocation not in facts.outputs,
                min([positions[times[v]] for v in members[allocation]]),
                allocation,
            ),
        )
        for buffer in order:
            space = facts.spaces[buffer]
            if space in presets:
                assignment.heaps.setdefault(space, []).append(buffer)
            elif not self._assign_special(buffer):
                self._assign(buffer)
        return assignment

    # -- new allocations ------------------------------------------------------------------------------------------------

    def _assign_special(self, buffer: int) -> bool:
        """Give constants, entry parameters and tables allocations of their own (`AssignSpecialHloBuffer`); True if it did."""
        facts = self._facts
        if buffer not in self._special:
            return False
        for value in facts.buffers.members[buffer]:
            if self._schedule.opcodes[facts.values.times[value]] == "constant":
                self._new("constant", buffer)
                return True
            given = facts.parameters.get(value)
            if given is not None:
                allocation = self._new("parameter", buffer)
                allocation.parameter, allocation.index, allocation.is_aliased = given
                if allocation.is_aliased and value not in self._tables:
                    self._register(allocation)
                return True
        self._new("output" if buffer in facts.outputs else "temporary", buffer)
        return True

    def _new(self, kind: Kind, buffer: int) -> Allocation:
        facts = self._facts
        allocation = Allocation(kind, facts.sizes[buffer], facts.spaces[buffer])
        self._found.allocations.append(allocation)
        self._put(buffer, allocation)
        return allocation

    def _put(self, buffer: int, allocation: Allocation) -> None:
        allocation.buffers.append(buffer)
        allocation.is_output |= buffer in self._facts.outputs
        self._found.allocation_of_buffer[buffer] = allocation
        if allocation.number is not None:
            self._occupy(buffer, allocation.number)

    def _register(self, allocation: Allocation) -> None:
        """Let other buffers use the allocation again."""
        number = allocation.number = len(self._reusable)
        self._reusable.append(allocation)
        self._starting.append({})
        self._ending.append({})
        self._of_space[allocation.space] = self._of_space.get(allocation.space, 0) | 1 << number
        self._falling_sizes.append(-allocation.bytes)
        for buffer in allocation.buffers:
            self._occupy(buffer, number)

    def _occupy(self, buffer: int, number: int) -> None:
        ranges = self._facts.ranges
        for value in self._facts.buffers.members[buffer]:
            start, end = ranges.starts[value], ranges.ends[value]
            self._taken.take(*_open_interval(start, end), number)
            self._starting[number].setdefault(start, []).append(value)
            self._ending[number].setdefault(end, []).append(value)

    # -- reused allocations ---------------------------------------------------------------------------------------------

    def _assign(self, buffer: int) -> None:
        """Assign an operand's allocation, else the smallest that fits, else the heap (`AssignSingleHloBuffer`)."""
        facts = self._facts
        free = self._free(buffer) if self._reusable and facts.platform.reuses_allocations else 0
        if free:
            for number in self._operand_allocations(buffer):
                if free >> number & 1 and self._may_touch(buffer, number):
                    self._put(buffer, self._reusable[number])
                    return
            while free:
                number = free.bit_length() - 1
                if self._may_touch(buffer, number):
                    self._put(buffer, self._reusable[number])
                    return
                free ^= 1 << number
        if buffer in facts.outputs:
            self._register(self._new("output", buffer))
        else:
            self._found.heaps.setdefault(facts.spaces[buffer], []).append(buffer)

    def _operand_allocations(self, buffer: int) -> list[int]:
        """Return the reusable allocations that hold operands of the buffer's values."""
        facts = self._facts
        candidates: dict[int, None] = {}
        for value in facts.buffers.members[buffer]:
            if facts.values.places[value]:
                continue
            for operand in [time for time in self._schedule.operands[facts.values.times[value]] if time >= 0]:
                buffer_of_operand = facts.buffers.buffer_of_value[facts.values.top(operand)]
                allocation = self._found.allocation_of_buffer.get(buffer_of_operand)
                if allocation is not None and allocation.number is not None:
                    candidates[allocation.number] = None
        return list(candidates)

    def _free(self, buffer: int) -> int:
        """Return the allocations that are large enough and free at all times of the buffer, as bits."""
        facts = self._facts
        size = facts.sizes[buffer]
        free = self._of_space.get(facts.spaces[buffer], 0) & self._sufficient_allocations(size, exactly=buffer in facts.outputs)
        for value in facts.buffers.members[buffer]:
            if not free:
                break
            free = self._taken.free(free, *_open_interval(facts.ranges.starts[value], facts.ranges.ends[value]))
            time = facts.values.times[value]
            if self._schedule.opcodes[time] == "copy":
                for operand in self._schedule.operands[time]:
                    free &= ~self._result_allocations(operand)
        return free

    def _sufficient_allocations(self, size: int, *, exactly: bool) -> int:
        """Return the allocations of `size` bytes or more, or of exactly that size. They are made in falling order of size."""
        first = bisect_left(self._falling_sizes, -size) if exactly else 0
        return (1 << bisect_right(self._falling_sizes, -size)) - (1 << first)

    def _result_allocations(self, time: int) -> int:
        """Return the reusable allocations that hold values of a result, as bits. A copy never overwrites its operand."""
        bits = 0
        for value in self._facts.values.result(time) if time >= 0 else ():
            allocation = self._found.allocation_of_buffer.get(self._facts.buffers.buffer_of_value[value])
            if allocation is not None and allocation.number is not None:
                bits |= 1 << allocation.number
        return bits

    def _may_touch(self, buffer: int, number: int) -> bool:
        """Return True if touching ranges may share memory: the later buffer may overwrite the earlier one.

        Follows `LiveRangeInterferes`.
        """
        facts = self._facts
        starts, ends = facts.ranges.starts, facts.ranges.ends
        for value in facts.buffers.members[buffer]:
            for earlier in self._ending[number].get(starts[value], ()):
                if not self._may_follow(earlier, value):
                    return False
            for later in self._starting[number].get(ends[value], ()):
                if not self._may_follow(value, later):
                    return False
        return True

    def _may_follow(self, earlier: int, later: int) -> bool:
        facts = self._facts
        time, place = facts.values.times[later], facts.values.places[later]
        if self._schedule.opcodes[time] == "copy":
            return False
        operand, operand_place = facts.ranges.last_positions[earlier]
        return operand in self._schedule.operands[time] and facts.overwriting.is_possible(operand, operand_place, time, place)


def _open_interval(start: int, end: int) -> tuple[int, int]:
    """Return the open interval of a range in half positions: position p is 2p, the step after it 2p + 1.

    An empty range keeps its single time. Two ranges conflict if their intervals overlap.
    """
    return (2 * start + 1, 2 * end) if start < end else (2 * start, 2 * start + 1)


def partitioned(sizes: list[int | None]) -> list[int]:
    """Return the sizes in the order in which `std::partition` of libstdc++ leaves them behind the others."""
    first, last = 0, len(sizes)
    while True:
        while first != last and sizes[first] is None:
            first += 1
        if first == last:
            break
        last -= 1
        while first != last and sizes[last] is not None:
            last -= 1
        if first == last:
            break
        sizes[first], sizes[last] = sizes[last], sizes[first]
        first += 1
    return [size for size in sizes[first:] if size is not None]


class Occupancy:
    """Allocations by number, and the time spans in which each is taken.

    It is a tree over the times: its nodes hold sets of allocations as bits of an integer. `free` and `take` need logarithmic
    time.
    """

    def __init__(self, times: int) -> None:
        self._leaves = 1 << max(1, times - 1).bit_length()
        self._covering = [0] * (2 * self._leaves)
        self._within = [0] * (2 * self._leaves)

    def take(self, start: int, end: int, allocation: int) -> None:
        """Mark an allocation as taken from `start` to before `end`."""
        bit = 1 << allocation
        low, high = start + self._leaves, end + self._leaves
        covering, within = self._covering, self._within
        while low < high:
            if low & 1:
                covering[low] |= bit
                within[low] |= bit
                low += 1
            if high & 1:
                high -= 1
                covering[high] |= bit
                within[high] |= bit
            low >>= 1
            high >>= 1
        for leaf in (start + self._leaves, end - 1 + self._leaves):
            node = leaf
            while node:
                within[node] |= bit
                node >>= 1

    def free(self, wanted: int, start: int, end: int) -> int:
        """Return the `wanted` allocations that are free from `start` to before `end`, all as bits."""
        covering, within = self._covering, self._within
        for leaf in (start + self._leaves, end - 1 + self._leaves):
            node = leaf
            while node and wanted:
                wanted &= ~covering[node]
                node >>= 1
        low, high = start + self._leaves, end + self._leaves
        while low < high and wanted:
            if low & 1:
                wanted &= ~within[low]
                low += 1
            if high & 1:
                high -= 1
                wanted &= ~within[high]
            low >>= 1
            high >>= 1
        return wanted

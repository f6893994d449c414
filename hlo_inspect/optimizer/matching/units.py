"""Units of a step's arrays that change together, such as a weight with its moments, and groups of equal units.

The layers of a model repeat a few updates. The cone of a new value is its expression down to scalars and to leaves. Its key
keeps scalars by identity: the rate, the step, a global norm. Leaves, and the arrays of the step in the cone, are numbered by
first visit. The key also has, for each leaf and scalar, the arrays of the unit on which it depends. So equal keys are equal
updates of different arrays.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import or_
from typing import NamedTuple

from hlo_inspect.hlo.opcodes import COMMUTATIVE
from hlo_inspect.optimizer.dataflow import Dataflow
from hlo_inspect.optimizer.graph import with_bits
from hlo_inspect.optimizer.matching.step_expressions import OtherArrays, inputs_of_node, moved_arrays
from hlo_inspect.optimizer.step.state_arrays import StateArray, TrainingStep

LEAST_VISITS = 10_000  # of nodes in all cones: values that cones share are visited again
MAX_VISITS = 4  # further visits for each node of the graph
MAX_ARRAYS = 64  # of one unit, or behind a scalar
LEAST_ARRAYS = 3  # of an update whose form alone shows an optimizer: the backward pass is asked for each plain step


class Unit(NamedTuple):
    """The nodes of a cone, the ranges that its slices take, and the arrays whose values are in it, all by position.

    `inputs` are those behind its leaves, as bits.
    """

    nodes: tuple[int, ...]
    slices: tuple[Hashable, ...]
    arrays: tuple[StateArray, ...]
    inputs: int


@dataclass(slots=True)
class Group:
    """Equal units. The rules see the `first` one; `others` are empty if they see all."""

    first: Unit
    others: list[Unit] = field(default_factory=list)


class _Held(NamedTuple):
    """The inputs behind an expression, as bits, and the arrays whose values it holds, by their ids."""

    inputs: int
    arrays: dict[int, StateArray]


class Units:
    """The groups of the units of a step."""

    def __init__(self, flow: Dataflow, step: TrainingStep) -> None:
        self._flow = flow
        self._dependence = step.input_dependence
        self._new: dict[int, list[StateArray]] = {}
        self._old = {array.old: array for array in step.arrays}
        for array in step.arrays:
            self._new.setdefault(array.new, []).append(array)
        self._edges: dict[int, _Held] = {}
        self._held: dict[int, _Held] = {}
        self._moved = moved_arrays(flow, step)
        self._seen: set[int] = {id(array) for array in self._moved if array.shape.elements == 1}
        self._by_key: dict[Hashable, Group] = {}
        self._visits_left = LEAST_VISITS + MAX_VISITS * len(flow.graph.ops)
        self._find()

    @property
    def groups(self) -> list[Group]:
        """The groups of several units."""
        return [group for group in self._by_key.values() if group.others]

    @property
    def others(self) -> OtherArrays:
        """The arrays that the rules do not see, with the inputs behind the leaves of their units."""
        ids = frozenset(id(array) for array in self._moved if id(array) not in self._seen)
        inputs = {
            id(array): reduce(or_, (unit.inputs for unit in group.others))
            for group in self.groups
            for array in group.first.arrays
        }
        return OtherArrays(ids, inputs)

    def own(self, array: StateArray) -> int:
        """Return the inputs, as bits, that hold the old value of an array."""
        bits = self._dependence.bit(array.source)
        for copy in array.same_value:
            bits |= self._dependence.bit(copy.source)
        return bits

    def split(self, groups: Iterable[Group]) -> None:
        """Let the rules see all units of some groups, and the units of other groups that share an array with these."""
        for group in groups:
            self._seen.update(id(array) for unit in group.others for array in unit.arrays)
            group.others = []
        moved = {id(array) for array in self._moved}
        is_complete = False
        while not is_complete:
            is_complete = True
            for group in self.groups:
                others = []
                for unit in group.others:
                    own = moved.intersection(map(id, unit.arrays))
                    if self._seen.isdisjoint(own):
                        others.append(unit)
                    else:
                        self._seen |= own
                is_complete = is_complete and len(others) == len(group.others)
                group.others = others

    def _find(self) -> None:
        """Group the units, from the arrays that no other array's new value holds."""
        covered: set[int] = set()
        for array in sorted(self._moved, key=lambda array: -array.new):  # operands have lower numbers
            if array.new in covered or array.shape.elements == 1:
                continue
            if self._read(array, covered) is None:
                self._see_all()
                break
        self._seen.update(id(array) for group in self._by_key.values() for array in group.first.arrays)
        self.split([])

    def _see_all(self) -> None:
        """Let the rules see everything, if units are too large to compare."""
        self._seen.update(map(id, self._moved))

    def _read(self, root: StateArray, covered: set[int]) -> Unit | None:
        """Add the unit of an array to its group. Return None if the cones are too large."""
        graph = self._flow.graph
        ops, all_args, attributes, sizes = graph.ops, graph.args, graph.attributes, graph.sizes
        positions: dict[int, int] = {}
        arrays: list[StateArray] = []
        numbers: dict[int, int] = {}  # of `arrays`, by their ids
        scalars: dict[int, None] = {}
        slices: dict[Hashable, int] = {}
        leaves: list[int] = []
        key: list[Hashable] = []
        stack = [root.new]
        while stack:
            node = stack.pop()
            if sizes[node] == 1:
                scalars[node] = None
                key.append(~node)
                continue
            position = positions.get(node)
            if position is not None:
                key.append(position)
                continue
            positions[node] = len(positions)
            args = all_args[node]
            new = self._new.get(node, ())
            old = self._old.get(node)
            if args and old is None:
                attribute = attributes[node]
                if ops[node] == "slice":
                    attribute = slices.setdefault(attribute, len(slices)), isinstance(attribute, tuple) and len(attribute)
                key.append((ops[node], attribute, sizes[node], len(args), len(new)))
                stack += self._in_order(*args) if ops[node] in COMMUTATIVE else args
            else:
                leaves.append(node)
                key.append((ops[node], self._leaf(node), sizes[node], len(new), old is not None))
            for array in (*new, old) if old is not None else new:
                number = numbers.setdefault(id(array), len(arrays))
                key.append(number)
                if number == len(arrays):
                    arrays.append(array)
                    key += self._array(array)
            if new:
                covered.add(node)
            if len(positions) > self._visits_left or len(arrays) > MAX_ARRAYS:
                return None
        self._visits_left -= len(positions)
        inputs, depending = self._inputs(arrays, leaves, scalars)
        unit = Unit(tuple(positions), tuple(slices), tuple(arrays), inputs)
        is_plain_step = len(arrays) < LEAST_ARRAYS and any(inputs & self.own(array) for array in arrays)
        group = self._by_key.setdefault((tuple(key), depending, root.new if is_plain_step else None), Group(unit))
        if group.first is not unit:
            group.others.append(unit)
        return unit

    def _in_order(self, left: int, right: int) -> tuple[int, int]:
        """Return two operands in an order that does not depend on their numbers: these tell which unit was read first."""
        graph = self._flow.graph
        sizes, args, ops = graph.sizes, graph.args, graph.ops
        if left == right or sizes[left] == 1:
            return left, right
        if sizes[right] != 1:
            first, second = (
                (ops[node], node in self._new, node in self._old, [arg for arg in args[node] if sizes[arg] == 1])
                for node in (left, right)
            )
            if first <= second:
                return left, right
        return right, left

    def _leaf(self, node: int) -> Hashable:
        """Return the properties of a leaf that the matching reads, without its place."""
        graph, frames = self._flow.graph, self._flow.frames
        place = graph.places.get(node)
        if place is None:
            return node in graph.counts
        return frames.opcode(place), frames.opcode(frames.start(place)), node in graph.broken

    def _array(self, array: StateArray) -> Iterable[Hashable]:
        """Return the properties of an array that the matching reads."""
        whole = array.whole.dimensions if array.whole is not None else None
        kind = array.is_given, array.is_resharded, array.is_unchanged, self._flow.graph.value(array.new)
        return array.shape.dtype, array.shape.dimensions, kind, whole, len(array.same_value)

    def _inputs(
        self, arrays: Sequence[StateArray], leaves: Iterable[int], scalars: Iterable[int]
    ) -> tuple[int, tuple[Hashable, ...]]:
        """Return the inputs behind a cone, and for each leaf and scalar the numbers of the arrays on which it depends."""
        own = [self.own(array) for array in arrays]
        total = 0
        depending: list[Hashable] = []
        for leaf in leaves:
            inputs = inputs_of_node(self._flow, self._dependence, leaf) if self._flow.graph.ops[leaf] == "opaque" else 0
            total |= max(inputs, 0)
            depending.append((inputs < 0, inputs > 0, *[number for number, bits in enumerate(own) if inputs & bits]))
        for scalar in scalars:
            edge = self._edges.get(scalar)
            if edge is None:
                edge = self._edges[scalar] = self._edge(scalar)
            if edge.inputs or edge.arrays:
                held_numbers = [number for number, array in enumerate(arrays) if id(array) in edge.arrays]
                depending.append(
                    (edge.inputs < 0, *[number for number, bits in enumerate(own) if edge.inputs & bits], -1, *held_numbers)
                )
        return total, tuple(depending)

    def _edge(self, scalar: int) -> _Held:
        """Return what is behind a scalar, also through the new values of arrays that it holds. The rules see these arrays."""
        inputs, direct = self._held_by(scalar)
        arrays: dict[int, StateArray] = {}
        waiting = list(direct.values())
        while waiting:
            array = waiting.pop()
            if id(array) not in arrays:
                arrays[id(array)] = array
                more, direct = self._held_by(array.new)
                inputs |= more
                waiting += direct.values()
        self._seen |= arrays.keys()
        return _Held(inputs, arrays)

    def _held_by(self, node: int) -> _Held:
        """Return what an expression holds; each node is read once, as scalars may share a norm over all gradients."""
        graph, cache = self._flow.graph, self._held
        below: set[int] = set()
        stack = [node]
        while stack:
            top = stack.pop()
            if top not in cache and top not in below:
                below.add(top)
                stack += graph.args[top]
        for member in sorted(below):  # operands have lower numbers
            inputs = inputs_of_node(self._flow, self._dependence, member) if graph.ops[member] == "opaque" else 0
            here = (*self._new.get(member, ()), *([self._old[member]] if member in self._old else ()))
            arrays = {id(array): array for array in here if array.is_float and not array.is_unchanged}
            for arg in graph.args[member]:
                inputs = with_bits(inputs, cache[arg].inputs)
                arrays = arrays | cache[arg].arrays if arrays else cache[arg].arrays
            if len(arrays) > MAX_ARRAYS:
                self._see_all()
                arrays = {}
            cache[member] = _Held(inputs, arrays)
        return cache[node]

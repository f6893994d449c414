"""Pairs of the outputs and inputs of a step: an output is the new value of its input.

An alias (`input_output_alias`) only says whose buffer an output uses. JAX gives a donated buffer to the first result of its
shape and type, whatever that holds. Data flow decides first, by the values in an output, element by element:

1. an input of its shape, all or most of it, and an addend: a new weight, the next value of an average; a computed part may be
   in the factor, such as a decay that is an argument
2. the same with another factor, or a computed one: an average whose decay is an argument
3. the input itself, returned unchanged
4. an input times an array, and an addend: a masked weight, a step size that grows and shrinks with each element
5. a function of an input, or its replacement, such as the last gradient; a new value holds the output and an input without
   a successor; so does a reduction that depends on that input

An output with one possible input takes it before those with several, so `m' = 0.9 * m + g` leaves `w' = w - 0.1 * m'` its `w`.
The alias decides among the remaining inputs. It also gives an input to outputs without a hint in the data flow.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from heapq import heapify, heappop, heappush
from operator import or_
from typing import NamedTuple

from hlo_inspect.graph.frames import Input, Place
from hlo_inspect.hlo.opcodes import opcodes_that_are
from hlo_inspect.hlo.values.header import ShapeIndex
from hlo_inspect.hlo.values.shapes import ArrayShape
from hlo_inspect.optimizer.graph import Graph, each_bit
from hlo_inspect.optimizer.step.step_dependence import InputDependence

FLOATS = frozenset({"f16", "bf16", "f32", "f64"})
"""Types of weights and moments."""

MAX_HELD = 32  # inputs in one sum: an average of many models is no update
MOST = 0.5  # of the old value that an update keeps

KEPT, SCALED, UNCHANGED, MULTIPLIED = range(4)
"""Kinds of terms with which an output holds an input: 1. to 4. above."""


@dataclass(frozen=True, slots=True)
class Result:
    """An output of a step: its index, shape, and the input whose buffer it uses.

    `is_certain`: that input is the same element of a loop's state. `place` is the place of its value, if not at its index.
    `is_partitioned`: the program runs on one of several devices, and an output can have another sharding than its input.
    """

    index: ShapeIndex
    shape: ArrayShape
    taken: Input | None
    is_certain: bool = False
    place: Place | None = None
    is_partitioned: bool = False


class Succession(NamedTuple):
    """The input that an output succeeds; `is_given` if the text says so, or if the output is kept in place of that input."""

    source: Input
    is_given: bool


def is_resharded(first: ArrayShape, second: ArrayShape) -> bool:
    """Return True if two shapes can belong to one array in two shardings."""
    if first.dtype != second.dtype or len(first.dimensions) != len(second.dimensions) or first.dimensions == second.dimensions:
        return False
    pairs = zip(first.dimensions, second.dimensions, strict=True)
    return all(a and b and (a % b == 0 or b % a == 0) for a, b in pairs)


class _Factor(NamedTuple):
    """Factor of an input in a sum: a number, or the known part of a number.

    `computed` counts its unknown numbers. `is_uniform`: all elements have the same factor.
    """

    value: float
    computed: int = 0
    is_uniform: bool = True

    @property
    def is_known(self) -> bool:
        return not self.computed

    def plus(self, other: _Factor, sign: float = 1.0) -> _Factor:
        return self._combine(other, self.value + sign * other.value, max(self.computed, other.computed))

    def times(self, other: _Factor) -> _Factor:
        return self._combine(other, self.value * other.value, min(self.computed + other.computed, MAX_HELD))

    def either(self, other: _Factor) -> _Factor:
        return self._combine(other, max(self.value, other.value), max(self.computed, other.computed))

    def _combine(self, other: _Factor, value: float, computed: int) -> _Factor:
        return _Factor(value, computed, self.is_uniform and other.is_uniform)


_NOTHING = _Factor(0.0)
_ONE = _Factor(1.0)
_COMPUTED = _Factor(0.0, computed=1)
_ARRAY = _Factor(0.0, computed=1, is_uniform=False)

_Terms = dict[int, _Factor]
"""The factors of the inputs in a sum, by node."""


class _Sums:
    """Nodes as sums, as far as they are linear in inputs; operands come first in `order`.

    `held` are the inputs that each node holds as terms, with their factors.
    """

    def __init__(self, graph: Graph, order: Iterable[int]) -> None:
        self._graph = graph
        self._numbers: dict[int, _Factor] = {}
        """Scalars as the sum of a number and a computed rest: the number of `1 - rate * decay` is 1."""
        self.held: dict[int, _Terms] = {}
        for node in order:
            if graph.sizes[node] == 1:
                self._numbers[node] = self._number(node, [self._numbers.get(arg, _COMPUTED) for arg in graph.args[node]])
            args = list(map(self.held.__getitem__, graph.args[node])) if graph.ops[node] in _LINEAR else []
            self.held[node] = self._terms(node, args) if any(args) else {}
            if graph.ops[node] == "input":
                self.held[node] = {node: _ONE}

    def _number(self, node: int, args: Sequence[_Factor]) -> _Factor:
        value = self._graph.value(node)
        if value is not None:
            return _Factor(value)
        op = self._graph.ops[node]
        if op in {"add", "subtract"}:
            return args[0].plus(args[1], 1.0 if op == "add" else -1.0)
        if op == "negate":
            return _Factor(-args[0].value, args[0].computed)
        if op == "multiply":
            return args[0].times(args[1])
        if op == "divide" and args[1].is_known and args[1].value:
            return _Factor(args[0].value / args[1].value, args[0].computed)
        return _COMPUTED

    def _terms(self, node: int, args: Sequence[_Terms]) -> _Terms:
        op, operands = self._graph.ops[node], self._graph.args[node]
        if op in {"add", "subtract"}:
            return _join(args[0], args[1], lambda left, right: left.plus(right, 1.0 if op == "add" else -1.0), _NOTHING)
        if op == "negate":
            return {term: _Factor(-1.0).times(factor) for term, factor in args[0].items()}
        if op == "multiply":
            return _join(self._times(args[0], operands[1]), self._times(args[1], operands[0]), _Factor.either)
        return self._times(args[0], operands[1], is_divided=True) if op == "divide" else self._choice(op, operands, args)

    def _choice(self, op: str, operands: Sequence[int], args: Sequence[_Terms]) -> _Terms:
        """Return the terms of a choice between sums."""
        if op == "select":
            whole = self._graph.sizes[operands[0]] == 1
            both = args[1].keys() & args[2].keys()
            chosen = _join(args[1], args[2], _Factor.either)
            return {node: f if whole or node in both else f.times(_ARRAY) for node, f in chosen.items()}
        if op in {"maximum", "minimum"}:
            return _join(args[0], args[1], _Factor.either)
        return args[1] if op == "clamp" else {}

    def _times(self, terms: _Terms, other: int, *, is_divided: bool = False) -> _Terms:
        if not terms:
            return terms
        if self._graph.sizes[other] != 1:
            return dict.fromkeys(terms, _ARRAY)
        number = self._numbers[other]
        if is_divided:
            number = _Factor(1 / number.value) if number.is_known and number.value else _COMPUTED
        return {node: factor.times(number) for node, factor in terms.items()}


_LINEAR = opcodes_that_are("sum", "scale", "choice")


def _join(left: _Terms, right: _Terms, join: Callable[[_Factor, _Factor], _Factor], missing: _Factor | None = None) -> _Terms:
    """Join the factors of two sums; a missing one counts as `missing`, or the other is copied."""
    if not right:
        return left
    total = dict(left)
    for node, factor in right.items():
        before = total.get(node, missing)
        total[node] = factor if before is None else join(before, factor)
    return total if len(total) <= MAX_HELD else {}


class Successions:
    """Pairs of outputs and inputs of a step. `nodes` are the values of the outputs, `own` the nodes of the inputs."""

    def __init__(
        self,
        graph: Graph,
        nodes: Sequence[int],
        results: Sequence[Result],
        inputs: dict[Input, ArrayShape],
        own: dict[Input, int],
        dependence: InputDependence,
    ) -> None:
        self._graph = graph
        self._dependence = dependence
        self._nodes = nodes
        self._results = results
        self._texts = [str(result.shape) for result in results]
        self._inputs = {source: str(shape) for source, shape in inputs.items()}
        self._shapes = inputs
        self._order = {source: number for number, source in enumerate(inputs)}
        self._by_node = {node: source for source, node in own.items()}
        self._successions: list[Succession | None] = [
            Succession(result.taken, is_given=True) if result.is_certain and result.taken else None for result in results
        ]
        self._aliases = [
            result.taken if result.taken is not None and self._inputs.get(result.taken) == text else None
            for result, text in zip(results, self._texts, strict=True)
        ]
        self._taken = {succession.source for succession in self._successions if succession is not None}

    def find(self) -> list[Succession | None]:
        """Return the input whose new value each output is; None for an output that succeeds no input."""
        if self._unpaired():
            self._pair_by_terms()
            self._pair_by_held_inputs()
            self._pair_copies()
        return self._successions

    def _unpaired(self) -> list[int]:
        return [number for number, succession in enumerate(self._successions) if succession is None]

    def _take(self, number: int, source: Input, *, is_given: bool = False) -> None:
        self._successions[number] = Succession(source, is_given or source == self._results[number].taken)
        self._taken.add(source)

    # -- by terms: 1. to 4. ---------------------------------------------------------------------------------------------

    def _pair_by_terms(self) -> None:
        for number in self._unpaired():  # outputs that are unchanged, in their own buffers
            if self._aliases[number] is not None and self._by_node.get(self._nodes[number]) == self._aliases[number]:
                self._take(number, self._by_node[self._nodes[number]])
        sums = _Sums(self._graph, self._graph.reachable(self._nodes))
        returned = {self._by_node[node] for node in self._nodes if node in self._by_node}
        pairs: dict[int, list[tuple[bool, bool, int, float, bool, int, Input]]] = {}
        holders: Counter[Input] = Counter()
        for number in self._unpaired():
            averaged_input = self._averaged_input(number)
            for node, factor in sums.held[self._nodes[number]].items():
                source = self._by_node.get(node)
                if source is None or source in self._taken or not self._fits(number, source):
                    continue
                kind = _kind(factor) if node != self._nodes[number] else UNCHANGED
                kind = MULTIPLIED if source == averaged_input else kind
                is_other = self._inputs[source] != self._texts[number]
                order = (
                    is_other,
                    source in returned,
                    factor.computed,
                    abs(1.0 - factor.value),
                    self._aliases[number] != source,
                )
                pairs.setdefault(kind, []).append((*order, number, source))
                holders[source] += 1
        for kind in sorted(pairs):
            best = sorted(
                (order, holders[source], abs(number - self._order[source]), number, source)
                for *order, number, source in pairs[kind]
            )
            self._assign([(number, source) for *_, number, source in best])

    def _fits(self, number: int, source: Input) -> bool:
        """Return True if an output has the shape of an input, or a shape that the input can have in another sharding."""
        result = self._results[number]
        if self._inputs[source] == self._texts[number]:
            return True
        return result.is_partitioned and is_resharded(result.shape, self._shapes[source])

    def _averaged_input(self, number: int) -> Input | None:
        """Return the averaged input of an output `k * a + (1 - k) * b`, not the old average.

        It is the input that is no alias, or the input that more outputs depend on.
        """
        averaged = self._average_operands(self._nodes[number])
        if averaged is None:
            return None
        alias = self._aliases[number]
        if alias in averaged:
            return averaged[0] if alias == averaged[1] else averaged[1]
        reached = self._count_dependents(averaged)
        return max(averaged, key=reached.__getitem__) if reached[averaged[0]] != reached[averaged[1]] else averaged[1]

    def _average_operands(self, node: int) -> tuple[Input, Input] | None:
        """Return the inputs `a` and `b` of `k * a + (1 - k) * b`."""
        graph = self._graph
        if graph.ops[node] != "add":
            return None
        products = [graph.args[arg] if graph.ops[arg] == "multiply" else () for arg in graph.args[node]]
        for first, second in (products, reversed(products)):
            for b, rest in zip(second, reversed(second), strict=True):
                if graph.ops[rest] != "subtract" or graph.value(graph.args[rest][0]) != 1.0:
                    continue
                others = [a for a, k in zip(first, reversed(first), strict=True) if k == graph.args[rest][1]]
                if others and others[0] in self._by_node and b in self._by_node:
                    return self._by_node[others[0]], self._by_node[b]
        return None

    def _count_dependents(self, sources: Iterable[Input]) -> Counter[Input]:
        """Return the number of outputs that depend on each of `sources`."""
        bits = {node: 1 << number for number, (node, source) in enumerate(self._by_node.items()) if source in sources}
        below = self._graph.bits_below(self._nodes, bits)
        return Counter(self._by_node[node] for node, bit in bits.items() for output in self._nodes if below[output] & bit)

    def _assign(self, fitting: Iterable[tuple[int, Input]]) -> None:
        """Assign inputs to outputs, the best pairs first. Outputs with only one free input precede others."""
        left: dict[int, dict[Input, None]] = {}
        outputs: dict[Input, list[int]] = {}
        ranks: dict[tuple[int, Input], int] = {}
        for number, source in fitting:
            if self._successions[number] is None and source not in self._taken:
                left.setdefault(number, {})[source] = None
                outputs.setdefault(source, []).append(number)
                ranks[number, source] = len(ranks)
        clear = [(ranks[number, next(iter(free))], number) for number, free in left.items() if len(free) == 1]
        heapify(clear)
        several = [number for number in reversed(left) if len(left[number]) > 1]
        while clear or several:
            number = heappop(clear)[1] if clear else several.pop()
            free = left.pop(number, {})
            if not free:
                continue
            source = next(iter(free))
            self._take(number, source)
            for other in outputs[source]:
                if other in left:
                    del left[other][source]
                    if len(left[other]) == 1:
                        heappush(clear, (ranks[other, next(iter(left[other]))], other))

    # -- by inputs held at any depth, and by aliases: 5. ----------------------------------------------------------------

    def _pair_by_held_inputs(self) -> None:
        """Pair outputs that are functions of an input, that are kept in place of an input, or that only an alias pairs."""
        unpaired = self._unpaired()
        inputs_held, kept = self._inputs_held_and_beside(unpaired)
        for number in unpaired:
            alias = self._aliases[number]
            fitting = inputs_held.get(number, []) + kept.get(number, [])
            if alias is None or alias in self._taken or (fitting and alias not in fitting):
                continue
            if self._results[number].shape.elements != 1 or not self._is_float(number) or alias in fitting:
                self._take(number, alias)
        self._assign([(number, source) for number, sources in inputs_held.items() for source in sources])
        for number in self._unpaired():
            free = [source for source in kept.get(number, []) if source not in self._taken]
            if free:
                self._take(number, free[0], is_given=True)

    def _inputs_held_and_beside(self, unpaired: Sequence[int]) -> tuple[dict[int, list[Input]], dict[int, list[Input]]]:
        """Return the free inputs of its shape for each unpaired output: inputs in its expression, and inputs beside it.

        An input is beside the output if some new value holds both.
        """
        graph = self._graph
        free = [source for source in self._by_node.items() if source[1] not in self._taken]
        bits = {node: self._dependence.bit(source) for node, source in free}
        by_bit = {bits[node]: (place, source) for place, (node, source) in enumerate(free)}
        of_shape: dict[str, int] = {}
        for node, source in free:
            of_shape[self._inputs[source]] = of_shape.get(self._inputs[source], 0) | bits[node]
        if not any(self._texts[number] in of_shape for number in unpaired):
            return {}, {}
        first = max(by_bit).bit_length()
        for number in unpaired:
            if graph.args[self._nodes[number]] or graph.ops[self._nodes[number]] == "opaque":
                bits.setdefault(self._nodes[number], 1 << (first + len(bits)))
        below = graph.bits_below(self._nodes, bits)
        matched = [below[self._nodes[number]] for number, succession in enumerate(self._successions) if succession is not None]
        anywhere = reduce(or_, matched, 0)
        inputs_by_bit = self._inputs_by_output_bit(
            matched, reduce(or_, (bits.get(self._nodes[number], 0) for number in unpaired), 0)
        )
        inputs_held: dict[int, list[Input]] = {}
        kept: dict[int, list[Input]] = {}
        for number in unpaired:
            node, result = self._nodes[number], self._results[number]
            mine, fitting = below[node], of_shape.get(self._texts[number], 0)
            inside = [source for _, source in sorted(map(by_bit.__getitem__, each_bit(fitting & mine)))]
            if inside and (self._is_float(number) or (result.shape.elements == 1 and mine.bit_count() <= 2)):
                inputs_held[number] = inside
            if fitting and self._is_float(number) and result.shape.elements != 1:
                around = inputs_by_bit.get(bits.get(node, 0), 0) | (anywhere & self._followed_inputs(number))
                kept[number] = [source for _, source in sorted(map(by_bit.__getitem__, each_bit(fitting & ~mine & around)))]
        return inputs_held, kept

    @staticmethod
    def _inputs_by_output_bit(matched: Iterable[int], own: int) -> dict[int, int]:
        """Return the inputs, as bits, that new values hold together with each bit of `own`, the unpaired outputs."""
        inputs_by_bit: dict[int, int] = {}
        for holding in matched:
            for bit in each_bit(holding & own):
                inputs_by_bit[bit] = inputs_by_bit.get(bit, 0) | holding
        return inputs_by_bit

    def _followed_inputs(self, number: int) -> int:
        """Return the inputs, as bits, on which an opaque output depends."""
        place = self._graph.places.get(self._nodes[number])
        return max(0, self._dependence.inputs(place)) if place is not None else 0

    def _is_float(self, number: int) -> bool:
        return self._results[number].shape.dtype in FLOATS

    # -- copies ---------------------------------------------------------------------------------------------------------

    def _pair_copies(self) -> None:
        """Pair outputs that hold another array's new value in another type with the remaining inputs of their shape.

        The working copy of a master weight is read only by the forward pass.
        """
        paired = {node for node, succession in zip(self._nodes, self._successions, strict=True) if succession is not None}
        left: dict[str, list[Input]] = {}
        for source, text in self._inputs.items():
            if source not in self._taken:
                left.setdefault(text, []).append(source)
        for number in self._unpaired():
            if self._nodes[number] in paired and self._is_float(number) and left.get(self._texts[number]):
                self._take(number, left[self._texts[number]].pop(0))


def _kind(factor: _Factor) -> int:
    if MOST <= factor.value <= 1.0 + 1e-6:
        return KEPT
    return MULTIPLIED if not factor.is_uniform or (factor.is_known and factor.value <= 0.0) else SCALED

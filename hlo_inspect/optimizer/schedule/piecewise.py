"""An expression of a counter as a piecewise function: curves between counters.

Each comparison, minimum, maximum, limit and sign is decided for a whole range of counters. If it changes within the range, the
range is split at that counter. Within a range every atom is then a curve of the counter, or the expression has no pieces. Sums
and products are those of real numbers: integers are assumed not to overflow.

Some schedules of optax (`cosine_onecycle_schedule`, `linear_onecycle_schedule`, `piecewise_interpolate_schedule`) are computed
as a small array of segments. Each element is 0 outside of its own segment, and their sum is the rate. Such a sum is written out
first.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from hlo_inspect.hlo.values.shapes import ArrayShape
from hlo_inspect.optimizer.algebra.normal_form import ONE, Atom, NormalForms, Sum, added, scaled
from hlo_inspect.optimizer.dataflow import Dataflow
from hlo_inspect.optimizer.graph import Graph
from hlo_inspect.optimizer.operations import ELEMENTWISE, apply, constant_values
from hlo_inspect.optimizer.schedule import curve as curves
from hlo_inspect.optimizer.schedule.curve import Curve

LAST = 2**31 - 2
"""The highest value of a 32-bit counter that it can still increase."""

MAX_ELEMENTS = 12  # of a small array
MAX_NODES = 200  # operands of an array, at any depth
MAX_RANGES = 200
MAX_ATOMS = 500


class Piece(NamedTuple):
    """A curve from counter `first` to `last`, both included."""

    first: int
    last: int
    curve: Curve


def pieces_of(forms: NormalForms, form: Sum, counter: int, ahead: int = 0) -> list[Piece] | None:
    """Return the pieces of a sum as a function of a counter, from 0 to `LAST`; None if a piece is no curve, or too long.

    With `ahead` of 1, it is a function of the counter + 1.
    """
    atoms = sorted(forms.atoms_below(form))
    if len(atoms) > MAX_ATOMS:
        return None
    pieces: list[Piece] = []
    waiting = [(0, LAST)]
    for _ in range(MAX_RANGES):
        if not waiting:
            return pieces
        first, last = waiting.pop()
        part = _Range(first, last, ahead)
        for number in atoms:
            part.take(number, forms.atoms[number], is_counter=number == counter)
            if part.split is not None:
                break
        if part.split is not None:
            waiting += [(part.split, last), (first, part.split - 1)]
            continue
        result = part.sum(form)
        if result is None:
            return None
        pieces.append(Piece(first, last, result))
    return None


class _Range:
    """The curves of atoms between two counters; `split` is the counter at which a decision changes."""

    def __init__(self, first: int, last: int, ahead: int) -> None:
        self._counter = Curve("linear", float(-ahead), 1.0) if first < last else curves.constant(float(first - ahead))
        self.first = first
        self.last = last
        self.split: int | None = None
        self._curves: dict[int, Curve | None] = {}

    def take(self, number: int, atom: Atom, *, is_counter: bool) -> None:
        """Add an atom; its parts are added already."""
        if is_counter:
            self._curves[number] = self._counter
        elif atom.node is not None or atom.op == "zero":
            self._curves[number] = curves.constant(0.0) if atom.op == "zero" else None
        else:
            parts = [self.sum(part) for part in atom.parts]
            self._curves[number] = parts[0] if atom.op == "sum" else self._function(atom, parts)

    def sum(self, form: Sum) -> Curve | None:
        terms: list[tuple[float, Curve]] = []
        for monomial, coefficient in form.items():
            factors = [(self._curves[atom], exponent) for atom, exponent in monomial]
            powers = [curves.power(base, exponent) if base is not None else None for base, exponent in factors]
            whole = [factor for factor in powers if factor is not None]
            term = curves.product(whole) if len(whole) == len(powers) else None
            if term is None:
                return None
            terms.append((coefficient, term))
        return curves.total(terms)

    def _function(self, atom: Atom, parts: list[Curve | None]) -> Curve | None:
        curves_of_parts = [part for part in parts if part is not None]
        if atom.op in _CHOICES:
            return _CHOICES[atom.op](self, parts)
        if len(curves_of_parts) < len(parts):
            return None
        if all(part.kind == "constant" for part in curves_of_parts):
            value = apply(atom.op, atom.attribute, [part.base for part in curves_of_parts])
            return None if value is None else curves.constant(value)
        if atom.op == "compare":
            return self._compared(str(atom.attribute), *curves_of_parts)
        function = _FUNCTIONS.get(atom.op)
        return function(self, *curves_of_parts) if function is not None else None

    # -- decisions ------------------------------------------------------------------------------------------------------

    def _changes(self, truth: Callable[[int], object]) -> bool:
        """Return True and set `split` if `truth` changes within the range. It changes at most once."""
        before = truth(self.first)
        if truth(self.last) == before:
            return False
        low, high = self.first, self.last
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if truth(middle) == before else (low, middle)
        self.split = high
        return True

    def _difference(self, left: Curve, right: Curve) -> Callable[[int], float] | None:
        """Return `left - right`, if that only rises or only falls."""
        first, second = (curve.direction(self.first, self.last) for curve in (left, right))
        both = curves.total([(1.0, left), (-1.0, right)])
        direction = both.direction(self.first, self.last) if both is not None else None
        if both is not None and direction is not None:
            return both.value
        if first is None or second is None or first * second > 0:
            return None
        return lambda counter: left.value(counter) - right.value(counter)

    def _compared(self, direction: str, left: Curve, right: Curve) -> Curve | None:
        difference = self._difference(left, right)
        if difference is None or self._changes(lambda counter: _sign(difference(counter))):
            return None
        value = apply("compare", direction, [_sign(difference(self.first)), 0.0])
        return None if value is None else curves.constant(value)

    def _larger(self, left: Curve, right: Curve) -> Curve | None:
        difference = self._difference(left, right)
        if difference is None or self._changes(lambda counter: difference(counter) > 0):
            return None
        return left if difference(self.first) > 0 else right

    def _smaller(self, left: Curve, right: Curve) -> Curve | None:
        larger = self._larger(left, right)
        return None if larger is None else right if larger is left else left

    def _limited(self, low: Curve, value: Curve, high: Curve) -> Curve | None:
        above = self._larger(low, value)
        return self._smaller(above, high) if above is not None else None

    def _signed(self, value: Curve) -> Curve | None:
        if value.direction(self.first, self.last) is None or self._changes(lambda counter: _sign(value.value(counter))):
            return None
        return curves.constant(_sign(value.value(self.first)))

    # -- functions ------------------------------------------------------------------------------------------------------

    def _cosine(self, value: Curve) -> Curve | None:
        return Curve("cosine", 0.0, 1.0, value) if value.kind == "linear" else None

    def _power(self, base: Curve, exponent: Curve) -> Curve | None:
        if exponent.kind == "constant":
            return curves.power(base, exponent.base)
        return curves.exponential(base.base, exponent) if base.kind == "constant" else None

    def _whole(self, value: Curve) -> Curve | None:
        return curves.whole(value, self.first, self.last)

    def _divided(self, value: Curve, divisor: Curve) -> Curve | None:
        if divisor.kind != "constant" or divisor.base <= 0:
            return None
        quotient = curves.total([(1 / divisor.base, value)])
        return self._whole(quotient) if quotient is not None else None

    # -- choices --------------------------------------------------------------------------------------------------------

    def _selected(self, parts: list[Curve | None]) -> Curve | None:
        condition, then, other = parts
        if condition is None or condition.kind != "constant":
            return None
        return then if condition.base else other

    def _decide(self, parts: list[Curve | None], strong: float) -> Curve | None:
        """Return a truth that one of two operands decides, or both together."""
        truths = [float(bool(part.base)) if part is not None and part.kind == "constant" else None for part in parts]
        if strong in truths:
            return curves.constant(strong)
        return None if None in truths else curves.constant(1.0 - strong)


def _sign(value: float) -> float:
    return float((value > 0) - (value < 0))


_CHOICES: dict[str, Callable[[_Range, list[Curve | None]], Curve | None]] = {
    "select": _Range._selected,
    "and": lambda limits, parts: limits._decide(parts, 0.0),
    "or": lambda limits, parts: limits._decide(parts, 1.0),
}
_FUNCTIONS: dict[str, Callable[..., Curve | None]] = {
    "clamp": _Range._limited,
    "cosine": _Range._cosine,
    "exponential": lambda _, value: curves.exponential(math.e, value),
    "floor": _Range._whole,
    "integer-divide": _Range._divided,
    "maximum": _Range._larger,
    "minimum": _Range._smaller,
    "power": _Range._power,
    "sign": _Range._signed,
    "truncate": _Range._whole,
}


# -- sums over small arrays --------------------------------------------------------------------------------------------


def expand_segments(flow: Dataflow, forms: NormalForms, rate: Sum) -> Sum:
    """Write out sums over small arrays of constants and scalars in a rate."""
    totals = {leaf: total for leaf in forms.leaves(rate) if (total := _total(flow, forms, leaf)) is not None}
    return _replace_leaves(forms, rate, totals) if totals else rate


def _total(flow: Dataflow, forms: NormalForms, leaf: int) -> Sum | None:
    """Return the sum that a leaf stands for, element by element of the array."""
    frames, node = flow.frames, forms.atoms[leaf].node
    place = flow.graph.places.get(node) if node is not None else None
    if place is None or frames.opcode(place) != "reduce" or frames.size(place) != 1 or not frames.applies(place, "add"):
        return None
    operands = frames.operands(place)
    if len(operands) != 2 or not 1 < frames.size(operands[0]) <= MAX_ELEMENTS:
        return None
    array, start = map(flow.node, operands)
    below = _nodes_below(flow.graph, array)
    if flow.graph.value(start) != 0.0 or below is None:
        return None
    total: Sum = {}
    for number in range(frames.size(operands[0])):
        element = _element(flow, below, number, frames.size(operands[0]))
        if element is None:
            return None
        total = added(total, forms.form(element))
    return total


def _nodes_below(graph: Graph, array: int) -> list[int] | None:
    """Return the nodes below an array, operands first, down to scalars; None if there are too many."""
    nodes = {array}
    stack = [array]
    while stack:
        node = stack.pop()
        new = set(graph.args[node]) - nodes if graph.sizes[node] != 1 else set()
        nodes |= new
        stack += new
        if len(nodes) > MAX_NODES:
            return None
    return sorted(nodes)


def _element(flow: Dataflow, below: Sequence[int], number: int, size: int) -> int | None:
    """Return the node of one element of the last of the nodes `below`, an array of that size."""
    graph = flow.graph
    elements: dict[int, int] = {}
    for node in below:
        values = _numbers(flow, node)
        if graph.sizes[node] == 1:
            elements[node] = node
        elif values is not None and len(values) == size:
            elements[node] = graph.constant(values[number])
        elif graph.ops[node] in ELEMENTWISE and graph.sizes[node] == size:
            elements[node] = graph.make(
                graph.ops[node], tuple([elements[arg] for arg in graph.args[node]]), graph.attributes[node]
            )
        else:
            return None
    return elements[below[-1]]


def _numbers(flow: Dataflow, node: int) -> Sequence[float] | None:
    """Return the numbers of an array with one dimension: a constant, or 0, 1, 2 and so on."""
    place = flow.graph.places.get(node)
    instruction = flow.frames.instruction(place) if place is not None else None
    shape = instruction.shape if instruction is not None else None
    if instruction is None or not isinstance(shape, ArrayShape) or len(shape.dimensions) != 1:
        return None
    if instruction.opcode == "constant":
        return constant_values(instruction.literal)
    return range(shape.elements or 0) if instruction.opcode == "iota" else None


def _replace_leaves(forms: NormalForms, form: Sum, by: Mapping[int, Sum]) -> Sum:
    """Replace some leaves by sums, at any depth."""
    replacements: dict[int, Sum] = {}
    for number in sorted(forms.atoms_below(form)):
        atom = forms.atoms[number]
        parts = tuple([_replace_atoms(forms, part, replacements) for part in atom.parts])
        if number in by or not parts:
            replacements[number] = by.get(number, {((number, 1.0),): 1.0})
        else:
            replacements[number] = parts[0] if atom.op == "sum" else forms.function(atom.op, parts, atom.attribute)
    return _replace_atoms(forms, form, replacements)


def _replace_atoms(forms: NormalForms, form: Sum, replacements: Mapping[int, Sum]) -> Sum:
    """Replace each atom of a sum."""
    total: Sum = {}
    for monomial, value in form.items():
        product: Sum = {ONE: 1.0}
        for atom, exponent in monomial:
            product = forms.multiply(product, forms.power(replacements[atom], exponent))
        total = added(total, scaled(product, value))
    return total

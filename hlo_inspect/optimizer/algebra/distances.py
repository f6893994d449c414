"""The estimate of the distance to the solution, by which D-Adaptation and Prodigy scale their steps.

    r' = b * r + (something all weights add up)
    d' = max(d, factor * r' / sum(abs(s')))

The sum is over the elements of all weights, each of which has a sum of gradients s of its own.
"""

from __future__ import annotations

from dataclasses import dataclass

from hlo_inspect.optimizer.algebra.normal_form import ONE, Monomial, Sum, close, product
from hlo_inspect.optimizer.algebra.update import State, Update, split
from hlo_inspect.optimizer.step.state_arrays import StateArray


@dataclass(frozen=True, slots=True)
class DistanceEstimate:
    """`distance` and `numerator` are d and r. `update` is that of the weight where both count as scalars.

    `decay` and `scale` are those of r: `r' = decay * r + scale * total`, with the atom of the total; `sizes` is the atom of the
    sum of sizes.
    """

    update: Update
    distance: State
    numerator: State
    factor: float
    decay: Sum
    scale: Sum
    total: int
    sizes: int


@dataclass(frozen=True, slots=True)
class GradientSum:
    """A sum of gradients `s' = decay * s + rest`; `old` is the atom of s."""

    array: StateArray
    old: int
    decay: Sum
    rest: Sum


def distance_estimate(update: Update) -> DistanceEstimate | None:
    """The estimate among the states of an update."""
    for distance in update.states:
        atom = update.forms.only_atom(distance.form)
        if distance.array.shape.elements != 1 or atom is None or atom.op != "maximum":
            continue
        others = [part for part in atom.parts if part != {((distance.old, 1.0),): 1.0}]
        if len(others) == 1 and len(others[0]) == 1:
            found = _with_numerator(update, distance, *next(iter(others[0].items())))
            if found is not None:
                return found
    return None


def _with_numerator(update: Update, distance: State, ratio: Monomial, factor: float) -> DistanceEstimate | None:
    """The estimate with a ratio `factor * r' / sizes`."""
    for numerator in update.states:
        left = product(ratio, ((numerator.new, -1.0),))
        if numerator.array.shape.elements != 1 or len(ratio) != 2 or len(left) != 1 or left[0][1] != -1.0:
            continue
        inner = update.without([distance, numerator])
        decay, rest = split(numerator.form, numerator.old)
        if len(rest) != 1 or not decay or not inner.are_scalar(decay) or factor <= 0.0:
            continue
        ((monomial, value),) = rest.items()
        totals = [atom for atom, exponent in monomial if exponent == 1.0 and update.reductions.added_up(atom)]
        if len(totals) == 1:
            scale: Sum = {product(monomial, ((totals[0], -1.0),)): value}
            return DistanceEstimate(inner, distance, numerator, factor, decay, scale, totals[0], left[0][0])
    return None


def gradient_sum(estimate: DistanceEstimate, gradient: Sum) -> GradientSum | None:
    """The sum of a weight's gradients, of which the estimate takes the size."""
    update = estimate.update
    for form in _holding(update, estimate.sizes, gradient):
        size = update.forms.only_atom(form)
        value = update.forms.only_atom(size.parts[0]) if size is not None and size.op == "abs" else None
        array = update.array_of(next(iter(size.parts[0]))[0][0]) if size is not None and value is not None else None
        if array is None or array.is_unchanged or array.shape.dimensions != update.array.shape.dimensions:
            continue
        old = update.forms.leaf(array.old)
        decay, rest = split(update.forms.definition(array.new), old)
        if decay and update.are_scalar(decay) and update.same_direction(rest, gradient):
            return GradientSum(array, old, decay, rest)
    return None


def added_for(estimate: DistanceEstimate, gradient: Sum, atom: int) -> list[Sum]:
    """What the numerator adds up that holds an atom and the gradient."""
    held = estimate.update.reductions.added_up(estimate.total).get(atom, [])
    return [form for form in held if any(form is one for one in _holding(estimate.update, estimate.total, gradient))]


def _holding(update: Update, total: int, gradient: Sum) -> list[Sum]:
    """What a sum adds up that holds an atom of the gradient which is no scalar."""
    by_atom = update.reductions.added_up(total)
    atoms = {atom for monomial in gradient for atom, _ in monomial if not update.is_scalar(atom)}
    return [form for atom in atoms for form in by_atom.get(atom, [])]


def without_power(form: Sum, atom: int, exponent: float) -> Sum | None:
    """A form divided by a power of an atom, `None` unless all of its terms have just that."""
    if any(dict(monomial).get(atom, 0.0) != exponent for monomial in form):
        return None
    return {product(monomial, ((atom, -exponent),)): value for monomial, value in form.items()}


def are_alike(left: Sum, right: Sum) -> bool:
    """Whether two products have the same factors, and numbers that are equal but for the rounding of `1 - b`."""
    if len(left) != 1 or len(right) != 1 or next(iter(left)) != next(iter(right)):
        return False
    (one,), (other,) = left.values(), right.values()
    return abs(one - other) <= 1e-3 * abs(other)


def is_number(form: Sum, value: float) -> bool:
    """Whether a form is a number."""
    return set(form) == {ONE} and close(form[ONE], value)

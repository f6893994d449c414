"""Adam's step with the gradient beside the first moment, as NAdam takes it."""

from __future__ import annotations

from hlo_inspect.analysis.optimizer.adaptive import Step, adam_claim
from hlo_inspect.analysis.optimizer.moments import Root, find_root, gradient_average, square_average, take_corrections
from hlo_inspect.analysis.optimizer.normal import Sum, close, scaled
from hlo_inspect.analysis.optimizer.readings import Reading
from hlo_inspect.analysis.optimizer.update import Claim, State, Update


def find_nadam(update: Update) -> Claim | None:
    """The update of NAdam, with decoupled decay or none."""
    states = update.used(update.rest)
    if len(states) != 2 or len(update.rest) < 2 or not update.is_plain():
        return None
    for first, second in (states, reversed(states)):
        claim = _with(update, first, second)
        if claim is not None:
            return claim
    return None


def _with(update: Update, first: State, second: State) -> Claim | None:
    ahead = [monomial for monomial in update.rest if dict(monomial).get(first.new) == 1.0]
    average = gradient_average(update, first)
    root = find_root(update, ahead[0], second.new) if len(ahead) == 1 else None
    if average is None or root is None or average.decay.value is None:
        return None
    momentum = tuple(factor for factor in root.rest if factor[0] != first.new)
    outer, scalars = take_corrections(update, momentum)
    beside = _beside(update, {m: v for m, v in update.rest.items() if m not in ahead}, second, root)
    inner, left = take_corrections(update, root.correction)
    squares = square_average(update, second, average.rest)
    if squares is None or beside is None or left or not all(update.is_scalar(atom) for atom, _ in scalars):
        return None
    if any(exponent != -1.0 for _, exponent in outer) or any(exponent != -0.5 for _, exponent in inner):
        return None
    rate: Sum = {scalars: -update.rest[ahead[0]] * root.scale / average.decay.value}
    if not _fits(update, beside, update.forms.multiply(scaled(rate, -1.0 / root.scale), average.rest)):
        return None
    step = Step(first, second, root, rate, (outer[0][0] if outer else None, inner[0][0] if inner else None))
    return adam_claim(update, step, average, squares)


def _beside(update: Update, terms: Sum, second: State, root: Root) -> tuple[list[tuple[Reading, float]], Sum] | None:
    """The other terms without the root that they share and their corrections."""
    found: Sum = {}
    shared: list[tuple[Reading, float]] = []
    for monomial, value in terms.items():
        other = find_root(update, monomial, second.new)
        if other is None or (other.epsilon, other.inner, other.correction) != (root.epsilon, root.inner, root.correction):
            return None
        shared, rest = take_corrections(update, other.rest)
        found[rest] = value
    return (shared, found) if all(exponent == -1.0 for _, exponent in shared) else None


def _fits(update: Update, beside: tuple[list[tuple[Reading, float]], Sum], expected: Sum) -> bool:
    """Whether the gradient beside the moment has the factor that goes with it."""
    (a, left), (b, right) = update.forms.factored(beside[1]), update.forms.factored(expected)
    return left == right and close(a, b, max(update.tolerance * 2, 1e-4))

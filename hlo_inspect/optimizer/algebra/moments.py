"""Moments, bias corrections, the root of a second moment that divides a step, and Adam's step, which combines them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from hlo_inspect.optimizer.algebra.hyperparameter import ABSENT, COMPUTED, Hyperparameter, constant
from hlo_inspect.optimizer.algebra.normal_form import ONE, Monomial, Sum, close, inverse, is_constant, key_of, product, scaled
from hlo_inspect.optimizer.algebra.update import Claim, State, Update, expanded, split


class Root(NamedTuple):
    """`(value + inner) ** 0.5 + epsilon` with `value` a second moment times `correction`, taken to the power of -1.

    `rest` are the other factors of the step. `scale` multiplies them, so that the factor of the root is 1.
    """

    epsilon: Sum
    inner: Sum
    correction: Monomial
    scale: float
    rest: Monomial

    @property
    def epsilons(self) -> Sum:
        return self.epsilon or self.inner


def find_root(update: Update, monomial: Monomial, moment: int, mean: int | None = None) -> Root | None:
    """Return the root of the atom `moment` that divides a product.

    Return None unless the root has just the form of `Root`. With `mean`, the square of that atom is subtracted from the moment.
    """
    forms = update.forms
    holding = [(a, e) for a, e in monomial if update.holds(a, moment)]
    if len(holding) != 1:
        return None
    ((atom, exponent),) = holding
    rest = tuple(factor for factor in monomial if factor not in holding)
    if atom == moment:
        return Root({}, {}, ONE, 1.0, rest) if exponent == -0.5 else None
    if forms.atoms[atom].op != "sum" or exponent not in {-1.0, -0.5}:
        return None
    part = forms.atoms[atom].parts[0]
    if exponent == -0.5:
        inner_match = _match_inside_root(update, part, moment, mean)
        return None if inner_match is None else Root({}, inner_match[0], inner_match[1], inner_match[2], rest)
    return _match_outside_root(update, part, moment, mean, rest)


def _match_inside_root(update: Update, form: Sum, moment: int, mean: int | None) -> tuple[Sum, Monomial, float] | None:
    """Match `moment * correction * k + inner` below a root.

    Return `inner / k`, the square root of the correction, and `1 / sqrt(k)`.
    """
    factor, inner = split(form, moment)
    if mean is not None:
        square = product(next(iter(factor), ONE), ((mean, 2.0),))
        if not factor or not close(inner.pop(square, 0.0), -next(iter(factor.values()))):
            return None
    if len(factor) != 1 or not update.are_scalar(factor) or not update.are_scalar(inner):
        return None
    ((correction, value),) = factor.items()
    if value <= 0:
        return None
    return scaled(inner, 1 / value), tuple((a, e / 2) for a, e in correction), value**-0.5


def _match_outside_root(update: Update, divisor: Sum, moment: int, mean: int | None, rest: Monomial) -> Root | None:
    """Match `root * k + epsilon` as a divisor; scalars that both share are factors of the step."""
    forms = update.forms
    form = update.without_scalars(divisor)
    rest = product(rest, product(next(iter(form), ONE), inverse(next(iter(divisor), ONE))))
    roots = {m: v for m, v in form.items() if any(update.holds(atom, moment) for atom, _ in m)}
    epsilon = {m: v for m, v in form.items() if m not in roots}
    if len(roots) != 1 or not update.are_scalar(epsilon):
        return None
    ((monomial, value),) = roots.items()
    exponents = dict(monomial)
    if mean is None and exponents.pop(moment, None) == 0.5:
        correction = tuple(sorted(exponents.items()))
        inner: Sum = {}
        scale = 1.0
    else:
        holders = [atom for atom in exponents if update.holds(atom, moment)]
        if len(holders) != 1 or exponents.pop(holders[0]) != 0.5 or forms.atoms[holders[0]].op != "sum":
            return None
        inner_match = _match_inside_root(update, forms.atoms[holders[0]].parts[0], moment, mean)
        if inner_match is None:
            return None
        inner, correction, scale = inner_match
        correction = product(correction, tuple(sorted(exponents.items())))
    value /= scale
    if value <= 0 or not all(update.is_scalar(atom) for atom, _ in correction):
        return None
    return Root(scaled(epsilon, 1 / value), inner, correction, 1 / value, rest)


def base_of(update: Update, atom: int) -> Hyperparameter | None:
    """Return `b` of an atom `1 - b ** t`, if `t` is a counter or computed from one, or `b ** t` is kept as a product."""
    forms = update.forms
    whole = forms.atoms[atom]
    if whole.op != "sum" or len(whole.parts[0]) != 2:
        return None
    constant_term = whole.parts[0].get(ONE)
    (power, factor) = next((m, v) for m, v in whole.parts[0].items() if m != ONE)
    if (
        constant_term is None
        or abs(constant_term + factor) > 1e-5 * abs(constant_term)
        or len(power) != 1
        or power[0][1] != 1.0
    ):
        return None
    if power[0][0] in update.running_products:
        decay = update.running_products[power[0][0]]
        return COMPUTED if decay is None else constant(decay, update.tolerance)
    inner = forms.atoms[power[0][0]]
    if inner.op == "power" and not is_constant(inner.parts[1]) and update.are_scalar(inner.parts[1]):
        base = inner.parts[0]
        return constant(base.get(ONE, 0.0)) if is_constant(base) else COMPUTED
    if inner.op == "exponential" and len(inner.parts[0]) == 1 and update.are_scalar(inner.parts[0]):
        ((counter, logarithm),) = inner.parts[0].items()
        return constant(math.exp(logarithm), 1e-6) if counter and logarithm < 0 else None
    return None


def take_corrections(update: Update, monomial: Monomial) -> tuple[list[tuple[Hyperparameter, float]], Monomial]:
    """Split factors into the bias corrections, with their exponents, and the others."""
    corrections: list[tuple[Hyperparameter, float]] = []
    rest: list[tuple[int, float]] = []
    for atom, exponent in monomial:
        base = base_of(update, atom)
        if base is None:
            rest.append((atom, exponent))
        else:
            corrections.append((base, exponent))
    return corrections, tuple(rest)


def exact_decay(coefficient: Hyperparameter, base: Hyperparameter | None) -> Hyperparameter:
    """Return the base of a power if it is the same number as the coefficient, else the coefficient.

    The base is never rounded.
    """
    if base is None or base.value is None or coefficient.value is None:
        return coefficient
    return base if abs(base.value - coefficient.value) <= 0.006 * base.value else coefficient


class Average(NamedTuple):
    """A state that is `decay * old + rest`."""

    state: State
    decay: Hyperparameter
    rest: Sum


def gradient_average(update: Update, state: State) -> Average | None:
    """Return a state as an average if it adds up gradients."""
    recursion = update.recursion(state)
    if recursion is None or not update.is_gradient(recursion[1]):
        return None
    return Average(state, update.read(recursion[0]), recursion[1])


class Momentum(NamedTuple):
    """Steps that a state adds up: `factor * m'` with `m' = decay * m + step`.

    If `is_ahead`, Nesterov's look ahead makes it `factor * (decay * m' + step)`.
    """

    state: State
    decay: Sum
    step: Sum
    factor: Sum
    is_ahead: bool

    @property
    def nesterov(self) -> Hyperparameter:
        return Hyperparameter(float(self.is_ahead), "constant")


def find_momentum(update: Update, form: Sum, state: State) -> Momentum | None:
    """Return the momentum of a form that is a step along a state."""
    factor, others = split(form, state.new)
    recursion = update.recursion(state)
    if recursion is None or len(factor) != 1 or not update.are_scalar(factor):
        return None
    if others:
        factor = update.forms.multiply(factor, update.forms.power(recursion[0], -1.0))
        if key_of(others) != key_of(update.forms.multiply(factor, recursion[1])):
            return None
    return Momentum(state, *recursion, factor, bool(others))


def square_average(update: Update, state: State, gradient: Sum) -> Average | None:
    """Return a state as an average if it adds up squares of `gradient`.

    Under a root its sign cannot change from step to step.
    """
    recursion = update.recursion(state)
    if recursion is None or not holds_square(update, recursion[1], gradient):
        return None
    decay = update.read(recursion[0])
    return None if decay.value is not None and decay.value < 0 else Average(state, decay, recursion[1])


def holds_square(update: Update, form: Sum, gradient: Sum) -> bool:
    """Return True if a form is a positive factor times the square of another form.

    The gradient of an embedding is a sum of rows; the moment may add the sum of their squares.
    """
    if not form or not gradient:
        return False
    content, monomial = update.direction(form)
    _, inner = update.direction(gradient)
    return content > 0 and (monomial == _squared(inner) or _are_scattered_squares(update, monomial, inner))


def _squared(monomial: Monomial) -> Monomial:
    return tuple((atom, 2 * exponent) for atom, exponent in monomial)


def _are_scattered_squares(update: Update, squares: Monomial, gradient: Monomial) -> bool:
    """Return True if a sum of rows has the squares of another sum's rows, at the same indices."""
    if len(squares) != 1 or len(gradient) != 1 or squares[0][1] != 1.0 or gradient[0][1] != 1.0:
        return False
    left, right = update.reductions.scattered(squares[0][0]), update.reductions.scattered(gradient[0][0])
    if left is None or right is None or left[0] != right[0] or not left[1] or not right[1]:
        return False
    return update.direction(left[1])[1] == _squared(update.direction(right[1])[1])


def l2_of(update: Update, average: Average) -> Hyperparameter:
    """Return the factor of the weight inside the gradient of a first moment `b1 * m + (1 - b1) * (g + l2 * w)`."""
    decay = average.decay.value
    factor = l2_in(update, average.rest, None if decay is None else 1 - decay)
    return COMPUTED if decay is None and factor != ABSENT else factor


def l2_in(update: Update, gradient: Sum, share: float | None = None) -> Hyperparameter:
    """Return the factor of the weight in a gradient `g + l2 * w`.

    `share` is the factor of that gradient, unless it holds `g` whole. Both may be clipped together. Another factor that depends
    on the weight belongs to `g`: the loss reads `w / norm(w)`.
    """
    factor, rest = split(expanded(update, gradient), update.weight)
    shared = set.intersection(*map(set, rest)) if rest else set()
    factor = {tuple([power for power in monomial if power not in shared]): value for monomial, value in factor.items()}
    factor = {monomial: value for monomial, value in factor.items() if update.are_scalar({monomial: 1.0})}
    if not factor:
        return ABSENT
    value, *others = rest.values() or (0.0,)
    if not is_constant(factor) or not value or not all(close(value, other) for other in others):
        return COMPUTED
    scale = share if share and not close(value, 1.0, 0.01) else value
    return constant(factor[ONE] / scale, max(update.tolerance, 2e-6))


# -- Adam's step -------------------------------------------------------------------------------------------------------


class AdamStep(NamedTuple):
    """A term of a new value: `-rate * first' / root(second')`.

    `bases` are the bases of the two moments' corrections. `kept` is the factor of the weight if it differs from the update's.
    """

    first: State
    second: State
    root: Root
    rate: Sum
    bases: tuple[Hyperparameter | None, Hyperparameter | None]
    kept: Sum | None = None


def find_adam_step(update: Update, rest: Sum | None = None) -> AdamStep | None:
    """Return the step as a single term with two states, each explained; the moments themselves are left to the caller."""
    if rest is None and not update.is_plain():
        return None
    rest = update.rest if rest is None else rest
    if len(rest) != 1:
        return None
    ((monomial, value),) = rest.items()
    states = update.used(rest)
    if len(states) != 2:
        return None
    for first, second in (states, reversed(states)):
        if dict(monomial).get(first.new) == 1.0:
            factors = tuple(factor for factor in monomial if factor[0] != first.new)
            root = find_root(update, factors, second.new)
            if root is not None:
                return _make_step(update, first, second, root, value)
    return None


def _make_step(update: Update, first: State, second: State, root: Root, value: float) -> AdamStep | None:
    inner, _ = take_corrections(update, root.correction)  # other scalars are corrections that are inputs
    outer, factors = take_corrections(update, root.rest)
    if not all(update.is_scalar(atom) for atom, _ in factors):
        return None
    ones = [base for base, exponent in outer if exponent == -1.0]
    roots = [base for base, exponent in outer if exponent == 0.5] + [base for base, exponent in inner if exponent == -0.5]
    if len(ones) + len(roots) != len(outer) + len(inner) or len(ones) > 1 or len(roots) > 1:
        return None
    rate: dict[Monomial, float] = {factors: -value * root.scale}
    return AdamStep(first, second, root, rate, (ones[0] if ones else None, roots[0] if roots else None))


def adam_claim(update: Update, step: AdamStep, first: Average, second: Average) -> Claim:
    """Return the claim of a rule with Adam's two moments."""
    return Claim(
        step.rate,
        first.rest,
        {
            "learning_rate": update.read(step.rate),
            "beta1": exact_decay(first.decay, step.bases[0]),
            "beta2": exact_decay(second.decay, step.bases[1]),
            "epsilon": update.read(step.root.epsilons) if step.root.epsilons else ABSENT,
            "weight_decay": update.decay_of(step.rate, step.kept),
            "l2": l2_of(update, first),
        },
        {"first_moment": first.state.array, "second_moment": second.state.array},
        [step.second.array] if second.state is not step.second else [],
    )


SecondMoment = Callable[[Update, State, Average], Average | None]
"""Function that returns a rule's second moment from the update, the state below the root and the first moment."""


def squares_of(update: Update, state: State, first: Average) -> Average | None:
    """Return Adam's second moment: an average of the squares of the first moment's addend."""
    return square_average(update, state, first.rest)


def averages_of(update: Update, step: AdamStep | None, second: SecondMoment = squares_of) -> tuple[Average, Average] | None:
    """Return both moments of a step if the first moment is an average of gradients."""
    first = gradient_average(update, step.first) if step is not None else None
    second_average = second(update, step.second, first) if step is not None and first is not None else None
    return (first, second_average) if first is not None and second_average is not None else None

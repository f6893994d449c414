"""Steps that are scaled by an estimate of the distance to the solution: Prodigy and D-Adaptation.

* `r' = b3 * r + total`, with a total over all weights
* `d' = max(d, coefficient * r' / sum(abs(s')))`

The sums are over the elements of all weights, each of which has a sum of gradients s of its own.

Prodigy (Mishchenko and Defazio 2023, arXiv:2306.06101), AdamW with a rate times d:

* `m' = b1 * m + (1 - b1) * d * g`
* `v' = b2 * v + (1 - b2) * (d * g) ** 2`
* `rate = learning_rate * d * sqrt(1 - b2 ** t) / (1 - b1 ** t)`
* `s' = b3 * s + rate * d / d0 * g`
* `r' = b3 * r + rate * d / d0 * sum(g * (w0 - w))`
* `w' = w - rate * (m' / (sqrt(v') + d' * epsilon) + decay * w)`

With a safeguard for warm-up, s' has d instead of the rate. State: m, v, s and the initial weight w0 of each weight, and d, r
and the counter. prodigyopt for PyTorch estimates d outside of the step: it is then in factors that are inputs. The text holds
Adam, and the rule is named so.

D-Adaptation of AdamW (Defazio and Mishchenko 2023, arXiv:2301.07733), with the same rate and b3 = sqrt(b2):

* `m' = b1 * m + (1 - b1) * rate * g`
* `v' = b2 * v + (1 - b2) * g ** 2`
* `s' = b3 * s + (1 - b3) * rate * g`
* `r' = b3 * r + (1 - b3) * rate * sum(g * s / (sqrt(v) + epsilon))`
* `d' = max(d, r' / ((1 - b3) * sum(abs(s'))))`
* `w' = w - m' / (sqrt(v') + epsilon) - rate * decay * w`

State: m, v and s of each weight, and d, r and the counter. Both read the rate beside d, b1, b2, epsilon, decay. As in
optax.contrib.
"""

from __future__ import annotations

from dataclasses import dataclass

from hlo_inspect.optimizer.algebra.moments import (
    AdamStep,
    Average,
    adam_claim,
    averages_of,
    exact_decay,
    find_adam_step,
    find_root,
    take_corrections,
)
from hlo_inspect.optimizer.algebra.normal_form import ONE, Monomial, Sum, close, key_of, product, scaled, split_zero
from hlo_inspect.optimizer.algebra.update import Claim, State, Update, quotient, split
from hlo_inspect.optimizer.step.state_arrays import StateArray


@dataclass(frozen=True, slots=True)
class _DistanceEstimate:
    """`distance` and `numerator` are d and r. `update` is the weight's update in which both count as scalars.

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
class _GradientSum:
    """A sum of gradients `s' = decay * s + rest`; `old` is the atom of s."""

    array: StateArray
    old: int
    decay: Sum
    rest: Sum


def _distance_estimate(update: Update) -> _DistanceEstimate | None:
    """Return the estimate among the states of an update."""
    for distance in update.states:
        atom = update.forms.only_atom(distance.form)
        if distance.array.shape.elements != 1 or atom is None or atom.op != "maximum":
            continue
        others = [part for part in atom.parts if part != {((distance.old, 1.0),): 1.0}]
        if len(others) == 1 and len(others[0]) == 1:
            estimate = _match_numerator(update, distance, *next(iter(others[0].items())))
            if estimate is not None:
                return estimate
    return None


def _match_numerator(update: Update, distance: State, ratio: Monomial, factor: float) -> _DistanceEstimate | None:
    """Return the estimate with a ratio `factor * r' / sizes`."""
    for numerator in update.states:
        left = product(ratio, ((numerator.new, -1.0),))
        if numerator.array.shape.elements != 1 or len(ratio) != 2 or len(left) != 1 or left[0][1] != -1.0:
            continue
        inner = update.with_scalar_states([distance, numerator])
        decay, rest = split(numerator.form, numerator.old)
        if len(rest) != 1 or not decay or not inner.are_scalar(decay) or factor <= 0.0:
            continue
        ((monomial, value),) = rest.items()
        totals = [atom for atom, exponent in monomial if exponent == 1.0 and update.reductions.addends_by_atom(atom)]
        if len(totals) == 1:
            scale: Sum = {product(monomial, ((totals[0], -1.0),)): value}
            return _DistanceEstimate(inner, distance, numerator, factor, decay, scale, totals[0], left[0][0])
    return None


def _gradient_sum(estimate: _DistanceEstimate, gradient: Sum) -> _GradientSum | None:
    """Return the sum of a weight's gradients whose size the estimate reads."""
    update = estimate.update
    for form in _gradient_addends(update, estimate.sizes, gradient):
        size = update.forms.only_atom(form)
        value = update.forms.only_atom(size.parts[0]) if size is not None and size.op == "abs" else None
        array = update.array_of(next(iter(size.parts[0]))[0][0]) if size is not None and value is not None else None
        if array is None or array.is_unchanged or array.shape.dimensions != update.array.shape.dimensions:
            continue
        old = update.forms.leaf(array.old)
        decay, rest = split(update.forms.definition(array.new), old)
        if decay and update.are_scalar(decay) and update.same_direction(rest, gradient):
            return _GradientSum(array, old, decay, rest)
    return None


def _numerator_addends(estimate: _DistanceEstimate, gradient: Sum, atom: int) -> list[Sum]:
    """Return the addends of the numerator that hold an atom and the gradient."""
    addends = estimate.update.reductions.addends_by_atom(estimate.total).get(atom, [])
    return [
        form
        for form in addends
        if any(form is addend for addend in _gradient_addends(estimate.update, estimate.total, gradient))
    ]


def _gradient_addends(update: Update, total: int, gradient: Sum) -> list[Sum]:
    """Return the addends of a sum that hold a non-scalar atom of the gradient."""
    by_atom = update.reductions.addends_by_atom(total)
    atoms = {atom for monomial in gradient for atom, _ in monomial if not update.is_scalar(atom)}
    return [form for atom in atoms for form in by_atom.get(atom, [])]


def _without_power(form: Sum, atom: int, exponent: float) -> Sum | None:
    """Return a form divided by a power of an atom; None unless all terms have exactly that power."""
    if any(dict(monomial).get(atom, 0.0) != exponent for monomial in form):
        return None
    return {product(monomial, ((atom, -exponent),)): value for monomial, value in form.items()}


def _are_equal_products(left: Sum, right: Sum) -> bool:
    """Return True if two products have the same factors, and numbers that are equal but for the rounding of `1 - b`."""
    if len(left) != 1 or len(right) != 1 or next(iter(left)) != next(iter(right)):
        return False
    (first,), (second,) = left.values(), right.values()
    return abs(first - second) <= 1e-3 * abs(second)


def _is_number(form: Sum, value: float) -> bool:
    """Return True if a form is a number."""
    return set(form) == {ONE} and close(form[ONE], value)


# -- Prodigy -------------------------------------------------------------------------------------------------------------


def match_prodigy(update: Update) -> Claim | None:
    estimate = _distance_estimate(update)
    if estimate is None:
        return None
    inner, distance = estimate.update, estimate.distance
    rest = _without_power(update.rest, distance.old, 1.0)
    step = find_adam_step(inner, rest) if rest is not None and inner.is_plain() else None
    moments = averages_of(inner, step)
    if step is None or moments is None:
        return None
    gradient = _without_power(moments[0].rest, distance.old, 1.0)
    squares = _without_power(moments[1].rest, distance.old, 2.0)
    epsilon = _without_power(step.root.epsilon, distance.new, 1.0)
    if gradient is None or squares is None or not epsilon or set(epsilon) != {ONE} or step.root.inner:
        return None
    sums = _gradient_sum(estimate, gradient)
    initial = _initial_weight(estimate, gradient)
    rate: Sum = {step.root.rest: next(iter(step.rate.values()))}
    if sums is None or initial is None or not _is_prodigy_average(estimate, sums, initial[1], rate):
        return None
    claim = adam_claim(inner, step, *moments)
    claim.gradient = gradient
    whole = inner.forms.multiply(rate, {((distance.old, 1.0),): 1.0})
    claim.hyperparameters |= {"epsilon": inner.read(epsilon), "weight_decay": inner.decay_of(whole)}
    del claim.hyperparameters["l2"]
    claim.roles |= {"gradient_sum": sums.array, "initial_weight": initial[0]}
    claim.roles |= {"distance": distance.array, "distance_numerator": estimate.numerator.array}
    return claim


def _initial_weight(estimate: _DistanceEstimate, gradient: Sum) -> tuple[StateArray, Sum] | None:
    """Return the initial weight `w0` and `g`, if a numerator adds up `g * (w0 - w)`."""
    update = estimate.update
    for form in _numerator_addends(estimate, gradient, update.weight):
        factor, rest = split(form, update.weight)
        gradient_form = scaled(factor, -1.0)
        for atom in {atom for monomial in rest for atom, _ in monomial}:
            array = update.array_of(atom)
            if array is None or not array.is_unchanged or array.shape.dimensions != update.array.shape.dimensions:
                continue
            expected = update.forms.multiply({((atom, 1.0),): 1.0}, gradient_form)
            if key_of(expected) == key_of(rest) and update.same_direction(gradient_form, gradient):
                return array, gradient_form
    return None


def _is_prodigy_average(estimate: _DistanceEstimate, sums: _GradientSum, gradient: Sum, rate: Sum) -> bool:
    """Return True if the numerator and the sum of gradients are averages with the same decay and factor."""
    old, forms = estimate.distance.old, estimate.update.forms
    scale = _without_power(estimate.scale, old, 2.0)
    rest = _without_power(sums.rest, old, 2.0)
    factor = quotient(forms, rest, gradient) if rest is not None else None
    if scale is None or factor is None or key_of(split_zero(estimate.decay)) != key_of(split_zero(sums.decay)):
        return False
    guarded = {product(m, next(iter(rate))): value * next(iter(rate.values())) for m, value in factor.items()}
    return estimate.update.are_scalar(factor) and (_are_equal_products(scale, factor) or _are_equal_products(scale, guarded))


# -- D-Adaptation --------------------------------------------------------------------------------------------------------


def match_dadapt_adamw(update: Update) -> Claim | None:
    estimate = _distance_estimate(update)
    inner = estimate.update if estimate is not None else None
    step = find_adam_step(inner) if inner is not None else None
    moments = averages_of(inner, step) if inner is not None else None
    if estimate is None or inner is None or step is None or moments is None:
        return None
    first, second = moments
    decay = first.decay.value
    rest = _without_power(first.rest, estimate.distance.old, 1.0)
    squares = _without_power(second.rest, estimate.distance.old, 0.0)
    if decay is None or decay >= 1.0 or rest is None or len(rest) != 1 or squares is None:
        return None
    if not _is_number(step.rate, 1.0) or step.bases != (None, None) or step.root.correction or step.root.inner:
        return None  # the step is no bare `m' / (sqrt(v') + epsilon)`
    ((monomial, value),) = rest.items()
    scalars, gradient = inner.split_scalars(monomial)
    sums = _gradient_sum(estimate, {gradient: 1.0})
    if sums is None or not _is_dadapt_average(estimate, sums, step, gradient, {scalars: value / (1.0 - decay)}):
        return None
    return _dadapt_claim(estimate, step, moments, sums, ({scalars: value / (1.0 - decay)}, gradient))


def _is_dadapt_average(estimate: _DistanceEstimate, sums: _GradientSum, step: AdamStep, gradient: Monomial, rate: Sum) -> bool:
    """Return True if the sum of gradients and the numerator are averages as in the equations, with `rate` beside d."""
    update, old = estimate.update, ((estimate.distance.old, 1.0),)
    if key_of(estimate.decay) != key_of(sums.decay):
        return False
    decay = update.read(sums.decay).value
    if decay is None or not 0.0 < decay < 1.0:
        return False
    expected = {product(monomial, old): value * (1.0 - decay) for monomial, value in rate.items()}
    rest = {product(monomial, gradient): value for monomial, value in expected.items()}
    is_average = _are_equal_products(sums.rest, rest) and _are_equal_products(estimate.scale, expected)
    is_ratio = abs(estimate.factor * (1.0 - decay) - 1.0) <= 1e-3
    product_of = ((sums.old, 1.0), *gradient)
    return (
        is_average
        and is_ratio
        and any(
            _is_step(update, form, step, product(product_of, ()))
            for form in _numerator_addends(estimate, {gradient: 1.0}, sums.old)
        )
    )


def _is_step(update: Update, form: Sum, step: AdamStep, above: Monomial) -> bool:
    """Return True if a form is a product over the root of the old second moment."""
    if len(form) != 1:
        return False
    ((monomial, value),) = form.items()
    root = find_root(update, monomial, step.second.old)
    if root is None or root.inner or root.correction or key_of(root.epsilon) != key_of(step.root.epsilon):
        return False
    return _is_number({(): value * root.scale}, 1.0) and root.rest == tuple(sorted(above))


def _dadapt_claim(
    estimate: _DistanceEstimate,
    step: AdamStep,
    moments: tuple[Average, Average],
    sums: _GradientSum,
    parts: tuple[Sum, Monomial],
) -> Claim | None:
    """Return the claim with a rate beside d, with its corrections, and a gradient."""
    update, (rate, gradient) = estimate.update, parts
    ((monomial, value),) = rate.items()
    corrections, factors = take_corrections(update, monomial)
    bases = {exponent: base for base, exponent in corrections}
    if len(bases) != len(corrections) or not set(bases) <= {-1.0, 0.5}:
        return None
    claim = adam_claim(update, step, *moments)
    whole = update.forms.multiply(rate, {((estimate.distance.old, 1.0),): 1.0})
    claim.rate, claim.gradient = {factors: value}, {gradient: 1.0}
    del claim.hyperparameters["l2"]
    claim.hyperparameters |= {
        "learning_rate": update.read(claim.rate, tolerance=max(update.tolerance, 2e-6)),
        "beta1": exact_decay(moments[0].decay, bases.get(-1.0)),
        "beta2": exact_decay(moments[1].decay, bases.get(0.5)),
        "weight_decay": update.decay_of(whole),
    }
    claim.roles |= {"gradient_sum": sums.array, "distance": estimate.distance.array}
    claim.roles["distance_numerator"] = estimate.numerator.array
    return claim

"""Prodigy (Mishchenko and Defazio 2023, arXiv:2306.06101): AdamW whose rate is an estimate d of the distance to the solution.

    m' = b1 * m + (1 - b1) * d * g
    v' = b2 * v + (1 - b2) * (d * g) ** 2
    rate = learning_rate * d * sqrt(1 - b2 ** t) / (1 - b1 ** t)
    s' = b3 * s + rate * d / d0 * g
    r' = b3 * r + rate * d / d0 * sum(g * (w0 - w))
    d' = max(d, coefficient * r' / sum(abs(s')))
    w' = w - rate * (m' / (sqrt(v') + d' * epsilon) + decay * w)

The sums of r' and d' are over all weights. With a safeguard for warm-up, s' has d in the place of the rate. State: m, v, s and
the initial weight w0 of each weight, and d, r and the counter. Reads the rate beside d, b1, b2, epsilon, decay. As in
optax.contrib. Where d is estimated outside of the step, as prodigyopt for PyTorch does, it is in factors that are handed in:
what is left in the text is Adam, and named so.
"""

from __future__ import annotations

from hlo_inspect.optimizer.algebra.toolkit import (
    ONE,
    Claim,
    DistanceEstimate,
    GradientSum,
    OptimizerRule,
    StateArray,
    Sum,
    Update,
    adam_claim,
    added_for,
    are_alike,
    averages_of,
    distance_estimate,
    find_adam_step,
    gradient_sum,
    key_of,
    product,
    quotient,
    scaled,
    split,
    split_zero,
    without_power,
)


def match(update: Update) -> Claim | None:
    estimate = distance_estimate(update)
    if estimate is None:
        return None
    inner, distance = estimate.update, estimate.distance
    rest = without_power(update.rest, distance.old, 1.0)
    step = find_adam_step(inner, rest) if rest is not None and inner.is_plain() else None
    moments = averages_of(inner, step)
    if step is None or moments is None:
        return None
    gradient = without_power(moments[0].rest, distance.old, 1.0)
    squares = without_power(moments[1].rest, distance.old, 2.0)
    epsilon = without_power(step.root.epsilon, distance.new, 1.0)
    if gradient is None or squares is None or not epsilon or set(epsilon) != {ONE} or step.root.inner:
        return None
    sums = gradient_sum(estimate, gradient)
    initial = _initial_weight(estimate, gradient)
    rate: Sum = {step.root.rest: next(iter(step.rate.values()))}
    if sums is None or initial is None or not _adds_alike(estimate, sums, initial[1], rate):
        return None
    claim = adam_claim(inner, step, *moments)
    claim.gradient = gradient
    whole = inner.forms.multiply(rate, {((distance.old, 1.0),): 1.0})
    claim.hyperparameters |= {"epsilon": inner.read(epsilon), "weight_decay": inner.decay_of(whole)}
    del claim.hyperparameters["l2"]
    claim.roles |= {"gradient_sum": sums.array, "initial_weight": initial[0]}
    claim.roles |= {"distance": distance.array, "distance_numerator": estimate.numerator.array}
    return claim


def _initial_weight(estimate: DistanceEstimate, gradient: Sum) -> tuple[StateArray, Sum] | None:
    """The initial weight, of which a numerator adds up `g * (w0 - w)`, and g."""
    update = estimate.update
    for form in added_for(estimate, gradient, update.weight):
        factor, rest = split(form, update.weight)
        found = scaled(factor, -1.0)
        for atom in {atom for monomial in rest for atom, _ in monomial}:
            array = update.array_of(atom)
            if array is None or not array.is_unchanged or array.shape.dimensions != update.array.shape.dimensions:
                continue
            expected = update.forms.multiply({((atom, 1.0),): 1.0}, found)
            if key_of(expected) == key_of(rest) and update.same_direction(found, gradient):
                return array, found
    return None


def _adds_alike(estimate: DistanceEstimate, sums: GradientSum, gradient: Sum, rate: Sum) -> bool:
    """Whether the numerator and the sum of gradients are averages with the same decay and factor."""
    old, forms = estimate.distance.old, estimate.update.forms
    scale = without_power(estimate.scale, old, 2.0)
    rest = without_power(sums.rest, old, 2.0)
    factor = quotient(forms, rest, gradient) if rest is not None else None
    if scale is None or factor is None or key_of(split_zero(estimate.decay)) != key_of(split_zero(sums.decay)):
        return False
    guarded = {product(m, next(iter(rate))): value * next(iter(rate.values())) for m, value in factor.items()}
    return estimate.update.are_scalar(factor) and (are_alike(scale, factor) or are_alike(scale, guarded))


RULE = OptimizerRule(
    name="prodigy",
    title="Prodigy",
    paper="Mishchenko and Defazio 2023, arXiv:2306.06101",
    hyperparameters=("learning_rate", "beta1", "beta2", "epsilon", "weight_decay"),
    state=("first_moment", "second_moment", "gradient_sum", "initial_weight", "distance", "distance_numerator"),
    match=match,
)

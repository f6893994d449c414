"""D-Adaptation of AdamW (Defazio and Mishchenko 2023, arXiv:2301.07733): the rate is an estimate d of a distance.

    rate = learning_rate * d * sqrt(1 - b2 ** t) / (1 - b1 ** t)
    m' = b1 * m + (1 - b1) * rate * g
    v' = b2 * v + (1 - b2) * g ** 2
    s' = b3 * s + (1 - b3) * rate * g, with b3 = sqrt(b2)
    r' = b3 * r + (1 - b3) * rate * sum(g * s / (sqrt(v) + epsilon))
    d' = max(d, r' / ((1 - b3) * sum(abs(s'))))
    w' = w - m' / (sqrt(v') + epsilon) - rate * decay * w

The sums of r' and d' are over all weights; d is how far the solution is from the initial weights. State: m, v and s of each
weight, and d, r and the counter. Reads the rate beside d, b1, b2, epsilon, decay. As in optax.contrib.
"""

from __future__ import annotations

from hlo_inspect.optimizer.algebra.toolkit import (
    AdamStep,
    Average,
    Claim,
    DistanceEstimate,
    GradientSum,
    Monomial,
    OptimizerRule,
    Sum,
    Update,
    adam_claim,
    added_for,
    are_alike,
    averages_of,
    distance_estimate,
    exact_decay,
    find_adam_step,
    find_root,
    gradient_sum,
    is_number,
    key_of,
    product,
    take_corrections,
    without_power,
)


def match(update: Update) -> Claim | None:
    estimate = distance_estimate(update)
    inner = estimate.update if estimate is not None else None
    step = find_adam_step(inner) if inner is not None else None
    moments = averages_of(inner, step) if inner is not None else None
    if estimate is None or inner is None or step is None or moments is None:
        return None
    first, second = moments
    decay = first.decay.value
    rest = without_power(first.rest, estimate.distance.old, 1.0)
    squares = without_power(second.rest, estimate.distance.old, 0.0)
    if decay is None or decay >= 1.0 or rest is None or len(rest) != 1 or squares is None or not _is_bare(step):
        return None
    ((monomial, value),) = rest.items()
    scalars, gradient = inner.split_scalars(monomial)
    sums = gradient_sum(estimate, {gradient: 1.0})
    if sums is None or not _adds_alike(estimate, sums, step, gradient, {scalars: value / (1.0 - decay)}):
        return None
    return _claim(estimate, step, moments, sums, ({scalars: value / (1.0 - decay)}, gradient))


def _is_bare(step: AdamStep) -> bool:
    """Whether a step is `m' / (sqrt(v') + epsilon)`."""
    return is_number(step.rate, 1.0) and step.bases == (None, None) and not step.root.correction and not step.root.inner


def _adds_alike(estimate: DistanceEstimate, sums: GradientSum, step: AdamStep, gradient: Monomial, rate: Sum) -> bool:
    """Whether the sum of gradients and the numerator are averages as the equations have them, with `rate` beside d."""
    update, old = estimate.update, ((estimate.distance.old, 1.0),)
    if key_of(estimate.decay) != key_of(sums.decay):
        return False
    decay = update.read(sums.decay).value
    if decay is None or not 0.0 < decay < 1.0:
        return False
    expected = {product(monomial, old): value * (1.0 - decay) for monomial, value in rate.items()}
    rest = {product(monomial, gradient): value for monomial, value in expected.items()}
    is_average = are_alike(sums.rest, rest) and are_alike(estimate.scale, expected)
    is_ratio = abs(estimate.factor * (1.0 - decay) - 1.0) <= 1e-3
    product_of = ((sums.old, 1.0), *gradient)
    return (
        is_average
        and is_ratio
        and any(
            _is_step(update, form, step, product(product_of, ())) for form in added_for(estimate, {gradient: 1.0}, sums.old)
        )
    )


def _is_step(update: Update, form: Sum, step: AdamStep, above: Monomial) -> bool:
    """Whether a form is a product over the root of the second moment of before."""
    if len(form) != 1:
        return False
    ((monomial, value),) = form.items()
    root = find_root(update, monomial, step.second.old)
    if root is None or root.inner or root.correction or key_of(root.epsilon) != key_of(step.root.epsilon):
        return False
    return is_number({(): value * root.scale}, 1.0) and root.rest == tuple(sorted(above))


def _claim(
    estimate: DistanceEstimate, step: AdamStep, moments: tuple[Average, Average], sums: GradientSum, parts: tuple[Sum, Monomial]
) -> Claim | None:
    """The claim with a rate beside d, with its corrections, and a gradient."""
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


RULE = OptimizerRule(
    name="dadapt_adamw",
    title="D-Adapt AdamW",
    paper="Defazio and Mishchenko 2023, arXiv:2301.07733",
    hyperparameters=("learning_rate", "beta1", "beta2", "epsilon", "weight_decay"),
    state=("first_moment", "second_moment", "gradient_sum", "distance", "distance_numerator"),
    match=match,
)

"""LAMB (You et al. 2020, arXiv:1904.00962).

    u = m' / (1 - b1 ** t) / (sqrt(v' / (1 - b2 ** t)) + epsilon) + decay * w
    w' = w - rate * (norm(w) / norm(u), or 1 where a norm is 0) * u

State: Adam's m, v and t. Reads rate, b1, b2, epsilon, decay. Keras has the decay before the step: w is `w * (1 - rate * decay)`
in the last line then, and u has none.
"""

from __future__ import annotations

from hlo_inspect.optimizer.algebra.toolkit import (
    ONE,
    Claim,
    OptimizerRule,
    Update,
    adam_claim,
    added,
    averages_of,
    find_adam_step,
    inverse,
    is_trust_ratio,
    product,
    trust_factor,
)


def match(update: Update) -> Claim | None:
    trust = trust_factor(update, update.rest)
    if trust is None or len(update.rest) != 1:
        return None
    divisor = ((trust, -1.0),)
    bare = {product(monomial, divisor): value for monomial, value in update.rest.items()}
    is_inside = not update.are_scalar(update.kept)
    extra = {m: v for m, v in added(update.kept, {ONE: -1.0}).items() if v != 0.0}
    decayed = {product(m, divisor): v for m, v in extra.items()} if is_inside else {}
    step = find_adam_step(update, bare)
    if step is None or not update.are_scalar(decayed) or (is_inside and abs(update.kept.get(ONE, 0.0) - 1.0) > 1e-9):
        return None
    moments = averages_of(update, step)
    if moments is None:
        return None
    claim = adam_claim(update, step, *moments)
    if is_inside:
        claim.hyperparameters["weight_decay"] = update.decay_of(step.rate, added({ONE: 1.0}, decayed))
    ((rate, value),) = step.rate.items()
    whole = {product(monomial, ((update.weight, 1.0),)): v for monomial, v in decayed.items()} | bare
    coefficient = is_trust_ratio(update, trust, update.forms.multiply({inverse(rate): -1.0 / value}, whole))
    return claim if coefficient == 1.0 else None


RULE = OptimizerRule(
    name="lamb",
    title="LAMB",
    paper="You et al. 2020, arXiv:1904.00962",
    hyperparameters=("learning_rate", "beta1", "beta2", "epsilon", "weight_decay", "l2"),
    state=("first_moment", "second_moment"),
    match=match,
)

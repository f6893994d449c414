"""AdaBound (Luo et al. 2019, arXiv:1902.09843): Adam whose step size of each element has limits that come together.

    size = rate * sqrt(1 - b2 ** t) / (1 - b1 ** t) / (sqrt(v') + epsilon), between two functions of t
    w' = w - size * m'

State: Adam's m, v and t. Reads rate (that of Adam, not of the limits), b1, b2, epsilon, decay, l2.
"""

from __future__ import annotations

from hlo_inspect.optimizer.algebra.toolkit import (
    Claim,
    OptimizerRule,
    Sum,
    Update,
    adam_claim,
    averages_of,
    find_adam_step,
    is_constant,
    product,
    within_limits,
)


def match(update: Update) -> Claim | None:
    if len(update.rest) != 1 or not update.is_plain():
        return None
    ((monomial, value),) = update.rest.items()
    for atom, exponent in monomial:
        size = within_limits(update, atom) if exponent == 1.0 else {}
        if len(size) != 1 or is_constant(size):
            continue
        outer: Sum = {product(monomial, ((atom, -1.0),)): value}
        step = find_adam_step(update, update.forms.multiply(outer, size))
        moments = averages_of(update, step)
        if step is not None and moments is not None:
            return adam_claim(update, step, *moments)
    return None


RULE = OptimizerRule(
    name="adabound",
    title="AdaBound",
    paper="Luo et al. 2019, arXiv:1902.09843",
    hyperparameters=("learning_rate", "beta1", "beta2", "epsilon", "weight_decay", "l2"),
    state=("first_moment", "second_moment"),
    match=match,
)

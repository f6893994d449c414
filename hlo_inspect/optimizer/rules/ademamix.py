"""AdEMAMix (Pagliardini, Ablin and Grangier 2024, arXiv:2409.03137): Adam with a second, slow average of the gradient.

    m1' = b1 * m1 + (1 - b1) * g
    m2' = b3 * m2 + (1 - b3) * g
    v' = b2 * v + (1 - b2) * g ** 2
    w' = w - rate * ((m1' / (1 - b1 ** t) + alpha * m2') / (sqrt(v' / (1 - b2 ** t)) + epsilon) + decay * w)

The slow average has no bias correction, which distinguishes the two. State: m1, m2, v and counters. Reads rate, b1, b2, b3,
alpha, epsilon, decay, l2; alpha and b3 may follow a schedule.
"""

from __future__ import annotations

from hlo_inspect.optimizer.algebra.toolkit import (
    AdamStep,
    Claim,
    OptimizerRule,
    Update,
    adam_claim,
    find_adam_step,
    gradient_average,
    quotient,
    square_average,
)


def match(update: Update) -> Claim | None:
    if len(update.rest) != 2 or not update.is_plain():
        return None
    one, other = [find_adam_step(update, {monomial: value}) for monomial, value in update.rest.items()]
    if one is None or other is None:
        return None
    return _claim(update, one, other) or _claim(update, other, one)


def _claim(update: Update, fast: AdamStep, slow: AdamStep) -> Claim | None:
    """The claim where the first of two steps is that of the corrected average."""
    if fast.bases[0] is None or slow.bases[0] is not None or not _divide_alike(fast, slow):
        return None
    first, older = gradient_average(update, fast.first), gradient_average(update, slow.first)
    if first is None or older is None or not update.same_direction(first.rest, older.rest):
        return None
    second = square_average(update, fast.second, first.rest)
    alpha = quotient(update.forms, slow.rate, fast.rate)
    if second is None or alpha is None or not update.are_scalar(alpha):
        return None
    claim = adam_claim(update, fast, first, second)
    claim.hyperparameters |= {"beta3": older.decay, "alpha": update.read(alpha)}
    claim.roles["first_moment_slow"] = slow.first.array
    return claim


def _divide_alike(one: AdamStep, other: AdamStep) -> bool:
    """Whether two steps are divided by the same root."""
    roots = [(step.second, step.root.epsilon, step.root.inner, step.root.correction, step.bases[1]) for step in (one, other)]
    return roots[0] == roots[1]


RULE = OptimizerRule(
    name="ademamix",
    title="AdEMAMix",
    paper="Pagliardini, Ablin and Grangier 2024, arXiv:2409.03137",
    hyperparameters=("learning_rate", "beta1", "beta2", "beta3", "alpha", "epsilon", "weight_decay", "l2"),
    state=("first_moment", "first_moment_slow", "second_moment"),
    match=match,
)

"""MARS (Yuan et al. 2024, arXiv:2411.10438), with AdamW's step: variance reduction by the last gradient.

    c = g + gamma * b1 / (1 - b1) * (g - g_last), with a norm of at most 1
    m' = b1 * m + (1 - b1) * c
    v' = b2 * v + (1 - b2) * c ** 2
    w' = w - rate * (m' / (1 - b1 ** t) / (sqrt(v' / (1 - b2 ** t)) + epsilon) + decay * w)

State: Adam's m, v and t, and the last gradient. Reads rate, b1, b2, epsilon, decay.
"""

from __future__ import annotations

from hlo_inspect.optimizer.algebra.toolkit import (
    Average,
    Claim,
    OptimizerRule,
    State,
    Sum,
    Update,
    adam_claim,
    find_adam_step,
    holds_square,
    split,
    unclipped,
)


def match(update: Update) -> Claim | None:
    step = find_adam_step(update)
    first = update.recursion(step.first) if step is not None else None
    second = update.recursion(step.second) if step is not None else None
    if step is None or first is None or second is None or not holds_square(update, second[1], first[1]):
        return None
    last = _last_gradient(update, unclipped(update, first[1]), [step.first, step.second])
    if last is None:
        return None
    averages = [Average(state, update.read(one[0]), last.form) for state, one in ((step.first, first), (step.second, second))]
    claim = adam_claim(update, step, averages[0], averages[1])
    del claim.hyperparameters["l2"]
    claim.roles["last_gradient"] = last.array
    return claim


def _last_gradient(update: Update, corrected: Sum, moments: list[State]) -> State | None:
    """The state that is the gradient itself, of which a form is a sum with its last value."""
    for state in update.used(corrected):
        factor, gradient = split(corrected, state.old)
        is_last = state not in moments and update.is_gradient(state.form) and update.same_direction(gradient, state.form)
        if is_last and len(factor) == 1 and update.are_scalar(factor) and not update.used(gradient):
            return state
    return None


RULE = OptimizerRule(
    name="mars",
    title="MARS",
    paper="Yuan et al. 2024, arXiv:2411.10438",
    hyperparameters=("learning_rate", "beta1", "beta2", "epsilon", "weight_decay"),
    state=("first_moment", "second_moment", "last_gradient"),
    match=match,
)

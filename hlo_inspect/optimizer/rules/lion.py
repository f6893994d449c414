"""Lion (Chen et al. 2023, arXiv:2302.06675).

    m' = b2 * m + (1 - b2) * g
    w' = w - rate * (sign(b1 * m + (1 - b1) * g) + decay * w)

State: m. Reads rate, b1, b2, decay, l2.
"""

from __future__ import annotations

from hlo_inspect.optimizer.algebra.moments import gradient_average, l2_of
from hlo_inspect.optimizer.algebra.normal_form import Sum
from hlo_inspect.optimizer.algebra.update import Claim, OptimizerRule, Update, split


def match(update: Update) -> Claim | None:
    states = update.used(update.rest)
    if len(states) != 1 or len(update.rest) != 1 or not update.is_plain():
        return None
    state = states[0]
    ((monomial, value),) = update.rest.items()
    signs = [(a, e) for a, e in monomial if update.forms.atoms[a].op == "sign"]
    factors = tuple(factor for factor in monomial if factor not in signs)
    if len(signs) != 1 or signs[0][1] != 1.0 or not all(update.is_scalar(atom) for atom, _ in factors):
        return None
    average = gradient_average(update, state)
    blend, gradient = split(update.forms.atoms[signs[0][0]].parts[0], state.old)
    if average is None or not blend or not update.are_scalar(blend) or not update.same_direction(gradient, average.rest):
        return None
    rate: Sum = {factors: -value}
    hyperparameters = {
        "learning_rate": update.read(rate),
        "beta1": update.read(blend),
        "beta2": average.decay,
        "weight_decay": update.decay_of(rate),
        "l2": l2_of(update, average),
    }
    return Claim(rate, average.rest, hyperparameters, {"first_moment": state.array})


RULES = (
    OptimizerRule(
        name="lion",
        title="Lion",
        paper="Chen et al. 2023, arXiv:2302.06675",
        hyperparameters=("learning_rate", "beta1", "beta2", "weight_decay", "l2"),
        state=("first_moment",),
        match=match,
    ),
)

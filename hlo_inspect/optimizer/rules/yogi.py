"""Yogi (Zaheer et al. 2018, "Adaptive Methods for Nonconvex Optimization").

    v' = v - (1 - b2) * sign(v - g ** 2) * g ** 2
    everything else as in Adam

State: m, v and t. Reads rate, b1, b2, epsilon, decay, l2.
"""

from __future__ import annotations

from hlo_inspect.optimizer.algebra.toolkit import (
    ONE,
    Average,
    Claim,
    OptimizerRule,
    State,
    Sum,
    Update,
    claim_like_adam,
    constant,
    holds_square,
    scaled,
    split,
)


def match(update: Update) -> Claim | None:
    return claim_like_adam(update, _second)


def _second(update: Update, state: State, first: Average) -> Average | None:
    kept, rest = split(state.form, state.old)
    if kept != {ONE: 1.0} or len(rest) != 1:
        return None
    ((monomial, value),) = rest.items()
    signs = [atom for atom, exponent in monomial if update.forms.atoms[atom].op == "sign" and exponent == 1.0]
    squares: Sum = {tuple(factor for factor in monomial if factor[0] not in signs): -value}
    if len(signs) != 1 or not holds_square(update, squares, first.rest):
        return None
    old, below = split(update.forms.atoms[signs[0]].parts[0], state.old)
    if set(old) != {ONE} or old[ONE] <= 0 or not holds_square(update, scaled(below, -1.0), first.rest):
        return None
    scale = -value / -next(iter(below.values())) * old[ONE]
    return Average(state, constant(1 - scale, max(update.tolerance, 1e-6)), squares)


RULE = OptimizerRule(
    name="yogi",
    title="Yogi",
    paper="Zaheer et al. 2018, NeurIPS 31",
    hyperparameters=("learning_rate", "beta1", "beta2", "epsilon", "weight_decay", "l2"),
    state=("first_moment", "second_moment"),
    match=match,
)

"""AdaBelief (Zhuang et al. 2020, arXiv:2010.07468).

    s' = b2 * s + (1 - b2) * (g - m') ** 2 + epsilon
    everything else as in Adam

State: m, s and t. Reads rate, b1, b2, epsilon (that of the step), decay, l2.
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
    added,
    claim_like_adam,
    scaled,
)


def match(update: Update) -> Claim | None:
    return claim_like_adam(update, _second)


def _second(update: Update, state: State, first: Average) -> Average | None:
    found = update.recursion(state)
    if found is None or first.decay.value is None:
        return None
    squares = {monomial: value for monomial, value in found[1].items() if monomial != ONE}
    gradient = scaled(first.rest, 1 / (1 - first.decay.value))
    surprise: Sum = added(gradient, {((first.state.new, 1.0),): 1.0}, -1.0)
    content, monomial = update.direction(squares) if squares else (0.0, ONE)
    expected = update.forms.factored(update.forms.power(surprise, 2.0))[1]
    return Average(state, update.read(found[0]), squares) if content > 0 and monomial == expected else None


RULE = OptimizerRule(
    name="adabelief",
    title="AdaBelief",
    paper="Zhuang et al. 2020, arXiv:2010.07468",
    hyperparameters=("learning_rate", "beta1", "beta2", "epsilon", "weight_decay", "l2"),
    state=("first_moment", "second_moment"),
    match=match,
)

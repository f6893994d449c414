"""Adadelta (Zeiler 2012, arXiv:1212.5701).

    v' = b2 * v + (1 - b2) * g ** 2
    u = g * sqrt(d + epsilon) / sqrt(v' + epsilon)
    d' = b2 * d + (1 - b2) * u ** 2
    w' = w - rate * u

State: v and d. Reads rate, b2, epsilon, decay, l2.
"""

from __future__ import annotations

from hlo_inspect.optimizer.algebra.toolkit import (
    Claim,
    Monomial,
    OptimizerRule,
    State,
    Sum,
    Update,
    find_root,
    key_of,
    l2_in,
    split,
    square_average,
)


def match(update: Update) -> Claim | None:
    states = update.used(update.rest)
    if len(update.rest) != 1 or len(states) != 2 or not update.is_plain():
        return None
    ((monomial, value),) = update.rest.items()
    for second, steps in (states, reversed(states)):
        root = find_root(update, monomial, second.new)
        above = [(a, e) for a, e in monomial if update.holds(a, steps.old) and e == 0.5]
        if root is None or root.correction or len(above) != 1:
            continue
        rest = tuple(factor for factor in root.rest if factor not in above)
        scalars, others = update.split_scalars(rest)
        gradient: Sum = {others: 1.0}
        average = square_average(update, second, gradient) if update.is_gradient(gradient) else None
        unit = tuple(factor for factor in monomial if factor not in scalars)
        if average is None or not _averages(update, steps, above[0][0], unit, root.inner):
            continue
        rate: Sum = {scalars: -value * root.scale}
        hyperparameters = {
            "learning_rate": update.read(rate),
            "beta2": average.decay,
            "epsilon": update.read(root.inner),
            "weight_decay": update.decay_of(rate),
            "l2": l2_in(update, gradient),
        }
        roles = {"second_moment": second.array, "second_moment_of_steps": steps.array}
        return Claim(rate, gradient, hyperparameters, roles)
    return None


def _averages(update: Update, state: State, below: int, unit: Monomial, epsilon: Sum) -> bool:
    """Whether a state averages the squares of the step, and its root is taken with the same epsilon."""
    atom = update.forms.atoms[below]
    old, inner = split(atom.parts[0], state.old) if atom.op == "sum" else ({}, {})
    decay, rest = split(state.form, state.old)
    if (
        not decay
        or not rest
        or not update.are_scalar(decay)
        or len(old) != 1
        or not update.are_scalar(old)
        or key_of(inner) != key_of(epsilon)
    ):
        return False
    content, monomial = update.direction(rest)
    return content > 0 and monomial == tuple((a, 2 * e) for a, e in unit)


RULE = OptimizerRule(
    name="adadelta",
    title="Adadelta",
    paper="Zeiler 2012, arXiv:1212.5701",
    hyperparameters=("learning_rate", "beta2", "epsilon", "weight_decay", "l2"),
    state=("second_moment", "second_moment_of_steps"),
    match=match,
)

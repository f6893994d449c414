"""NovoGrad (Ginsburg et al. 2019, arXiv:1905.11286).

    v' = b2 * v + (1 - b2) * norm(g) ** 2, a scalar;  norm(g) ** 2 in the first step
    m' = b1 * m + g / (sqrt(v') + epsilon) + decay * w
    w' = w - rate * m'

State: m, v and the counter. Reads rate, b1, b2, epsilon, decay.
"""

from __future__ import annotations

from hlo_inspect.analysis.optimizer.toolkit import (
    ABSENT,
    Claim,
    OptimizerRule,
    Root,
    State,
    Sum,
    Update,
    find_root,
    holds_square,
    key_of,
    split,
)


def match(update: Update) -> Claim | None:
    states = update.used(update.rest)
    if len(states) != 1 or not update.is_plain():
        return None
    first = states[0]
    factor, others = split(update.rest, first.new)
    seconds = [s for s in update.states if s is not first and s.array.shape.elements == 1]
    found = _recursion(update, first)
    if len(factor) != 1 or others or not update.are_scalar(factor) or len(seconds) != 1 or found is None:
        return None
    decayed, scaled = split(found[1], update.weight)
    parts = _gradient(update, scaled, seconds[0])
    second = _recursion(update, seconds[0])
    if parts is None or second is None or not update.are_scalar(decayed):
        return None
    root, gradient = parts
    squared = _norm(update, second[1])
    if squared is None or not holds_square(update, squared, gradient) or not update.is_gradient(gradient):
        return None
    ((monomial, value),) = factor.items()
    rate: Sum = {monomial: -value * root.scale}
    hyperparameters = {
        "learning_rate": update.read(rate),
        "beta1": update.read(found[0]),
        "beta2": update.read(second[0]),
        "epsilon": update.read(root.epsilons) if root.epsilons else ABSENT,
        "weight_decay": update.read(decayed) if decayed else ABSENT,
    }
    return Claim(rate, gradient, hyperparameters, {"first_moment": first.array, "second_moment": seconds[0].array})


def _recursion(update: Update, state: State) -> tuple[Sum, Sum] | None:
    """Decay and rest of a state that may be set anew in the first step."""
    form = state.form
    ((monomial, value),) = form.items() if len(form) == 1 else (((), 0.0),)
    atom = update.forms.atoms[monomial[0][0]] if len(monomial) == 1 and value == 1.0 else None
    if atom is not None and atom.op == "select" and update.are_scalar(atom.parts[0]):
        form = atom.parts[2]
    decay, rest = split(form, state.old)
    return (decay, rest) if decay and rest and update.are_scalar(decay) else None


def _gradient(update: Update, form: Sum, second: State) -> tuple[Root, Sum] | None:
    """The gradient that is divided by the root of the second moment."""
    if len(form) != 1:
        return None
    ((monomial, _),) = form.items()
    root = find_root(update, monomial, second.new)
    if root is None or root.correction:
        return None
    _, gradient = update.split_scalars(root.rest)
    return (root, {gradient: 1.0}) if gradient else None


def _norm(update: Update, form: Sum) -> Sum | None:
    """What a squared norm adds up the squares of, squared."""
    if len(form) != 1:
        return None
    ((monomial, _),) = form.items()
    opaque = [atom for atom, exponent in update.split_scalars(monomial)[1] if exponent == 1.0]
    return update.reductions.summed(opaque[0]) if len(opaque) == 1 and key_of(form) else None


RULE = OptimizerRule(
    name="novograd",
    title="NovoGrad",
    paper="Ginsburg et al. 2019, arXiv:1905.11286",
    hyperparameters=("learning_rate", "beta1", "beta2", "epsilon", "weight_decay"),
    state=("first_moment", "second_moment"),
    match=match,
)

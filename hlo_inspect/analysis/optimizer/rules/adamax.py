"""AdaMax (Kingma and Ba 2015, section 7.1).

    m' = b1 * m + (1 - b1) * g
    u' = max(b2 * u, abs(g) + epsilon)
    w' = w - rate / (1 - b1 ** t) * m' / u'

State: m, u and t. Reads rate, b1, b2, epsilon, decay, l2. Epsilon may be added to u' in the step instead.
"""

from __future__ import annotations

from hlo_inspect.analysis.optimizer.toolkit import (
    ABSENT,
    ONE,
    Average,
    Claim,
    Hyperparameter,
    OptimizerRule,
    State,
    Sum,
    Update,
    exact_decay,
    gradient_average,
    l2_of,
    split,
    split_zero,
    take_corrections,
)


def match(update: Update) -> Claim | None:
    states = update.used(update.rest)
    if len(update.rest) != 1 or len(states) != 2 or not update.is_plain():
        return None
    ((monomial, value),) = update.rest.items()
    for first, largest in (states, reversed(states)):
        exponents = dict(monomial)
        if exponents.get(first.new) != 1.0 or exponents.get(largest.new) != -1.0:
            continue
        rest = tuple((a, e) for a, e in monomial if a not in {first.new, largest.new})
        average = gradient_average(update, first)
        bases, scalars = take_corrections(update, rest)
        norm = _norm(update, largest, average) if average is not None else None
        if average is None or norm is None or len(bases) > 1 or any(exponent != -1.0 for _, exponent in bases):
            continue
        if not all(update.is_scalar(atom) for atom, _ in scalars):
            continue
        rate: Sum = {scalars: -value}
        hyperparameters = {
            "learning_rate": update.read(rate),
            "beta1": exact_decay(average.decay, bases[0][0] if bases else None),
            "beta2": norm[0],
            "epsilon": norm[1],
            "weight_decay": update.decay_of(rate),
            "l2": l2_of(update, average),
        }
        return Claim(rate, average.rest, hyperparameters, {"first_moment": first.array, "second_moment": largest.array})
    return None


def _norm(update: Update, state: State, average: Average) -> tuple[Hyperparameter, Hyperparameter] | None:
    """Decay and epsilon of `max(b2 * u, abs(g) + epsilon)`."""
    atoms = [update.forms.atoms[m[0][0]] for m in state.form if len(m) == 1 and m[0][1] == 1.0]
    if len(state.form) != 1 or len(atoms) != 1 or atoms[0].op != "maximum":
        return None
    for decayed, grown in (atoms[0].parts, atoms[0].parts[::-1]):
        decay, left = split(decayed, state.old)
        sizes = {monomial: value for monomial, value in grown.items() if monomial != ONE}
        if not decay or left or not update.are_scalar(decay) or len(sizes) != 1:
            continue
        ((monomial, value),) = sizes.items()
        inner = update.forms.atoms[monomial[0][0]] if len(monomial) == 1 else None
        if inner is None or inner.op != "abs" or value <= 0 or not update.same_direction(inner.parts[0], average.rest):
            continue
        epsilon = split_zero({ONE: grown.get(ONE, 0.0)})
        return update.read(decay), update.read(epsilon) if epsilon else ABSENT
    return None


RULE = OptimizerRule(
    name="adamax",
    title="AdaMax",
    paper="Kingma and Ba 2015, arXiv:1412.6980, section 7.1",
    hyperparameters=("learning_rate", "beta1", "beta2", "epsilon", "weight_decay", "l2"),
    state=("first_moment", "second_moment"),
    match=match,
)

"""AdaMax (Kingma and Ba 2015, section 7.1).

    m' = b1 * m + (1 - b1) * g
    u' = max(b2 * u, abs(g) + epsilon)
    w' = w - rate / (1 - b1 ** t) * m' / u'

State: m, u and t. Reads rate, b1, b2, epsilon, decay, l2. Epsilon may be added to u' in the step instead.
"""

from __future__ import annotations

from hlo_inspect.optimizer.algebra.hyperparameter import ABSENT, Hyperparameter
from hlo_inspect.optimizer.algebra.moments import Average, exact_decay, gradient_average, l2_of, take_corrections
from hlo_inspect.optimizer.algebra.normal_form import Monomial, Sum, only_term, product
from hlo_inspect.optimizer.algebra.update import Claim, State, Update, quotient, split


def match(update: Update) -> Claim | None:
    states = update.used(update.rest)
    if len(update.rest) != 1 or len(states) != 2 or not update.is_plain():
        return None
    ((monomial, value),) = update.rest.items()
    for first, largest in (states, reversed(states)):
        divided = _divided(update, monomial, largest)
        if divided is None or dict(divided[0]).get(first.new) != 1.0:
            continue
        rest = tuple((a, e) for a, e in divided[0] if a != first.new)
        average = gradient_average(update, first)
        bases, scalars = take_corrections(update, rest)
        norm = _norm(update, largest, average) if average is not None else None
        if average is None or norm is None or len(bases) > 1 or any(exponent != -1.0 for _, exponent in bases):
            continue
        if not all(update.is_scalar(atom) for atom, _ in scalars):
            continue
        rate: Sum = {scalars: -value * divided[2]}
        hyperparameters = {
            "learning_rate": update.read(rate),
            "beta1": exact_decay(average.decay, bases[0][0] if bases else None),
            "beta2": norm[0],
            "epsilon": divided[1] if divided[1] != ABSENT else norm[1],
            "weight_decay": update.decay_of(rate),
            "l2": l2_of(update, average),
        }
        return Claim(rate, average.rest, hyperparameters, {"first_moment": first.array, "second_moment": largest.array})
    return None


def _divided(update: Update, monomial: Monomial, largest: State) -> tuple[Monomial, Hyperparameter, float] | None:
    """A product without the `1 / (k * (u' + epsilon))` that is one of its factors, epsilon, and 1 / k."""
    holding = [(atom, exponent) for atom, exponent in monomial if update.holds(atom, largest.new)]
    if len(holding) != 1 or holding[0][1] != -1.0:
        return None
    atom, _ = holding[0]
    rest = product(monomial, ((atom, 1.0),))
    if atom == largest.new:
        return rest, ABSENT, 1.0
    factor, added = split(update.forms.atoms[atom].parts[0], largest.new) if update.forms.atoms[atom].op == "sum" else ({}, {})
    epsilon = quotient(update.forms, added, factor) if len(factor) == 1 and len(added) == 1 else None
    if epsilon is None or not update.are_scalar(factor) or not update.are_scalar(epsilon):
        return None
    ((scalars, value),) = factor.items()
    return product(rest, tuple((a, -e) for a, e in scalars)), update.read(epsilon), 1 / value


def _norm(update: Update, state: State, average: Average) -> tuple[Hyperparameter, Hyperparameter] | None:
    """Decay and epsilon of `max(b2 * u, abs(g) + epsilon)`."""
    largest = update.forms.only_atom(state.form)
    if largest is None or largest.op != "maximum":
        return None
    for decayed, grown in (largest.parts, largest.parts[::-1]):
        decay, left = split(decayed, state.old)
        if not decay or left or not update.are_scalar(decay):
            continue
        epsilon = {monomial: value for monomial, value in grown.items() if update.are_scalar({monomial: value})}
        size = {monomial: value for monomial, value in grown.items() if monomial not in epsilon}
        monomial, value = only_term(size)
        inner = update.forms.atoms[monomial[0][0]] if len(monomial) == 1 else None
        if inner is not None and inner.op == "abs" and value > 0 and update.same_direction(inner.parts[0], average.rest):
            return update.read(decay), update.read(epsilon) if any(epsilon.values()) else ABSENT
    return None

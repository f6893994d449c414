"""Sophia (Liu et al. 2023, arXiv:2305.14342): momentum over an estimate of the Hessian's diagonal, each element clipped.

* `m' = b1 * m + (1 - b1) * g`
* `h' = b2 * h + (1 - b2) * estimate`, in every k-th step
* `w' = w - rate * (clip(m' / max(gamma * h, epsilon), -1, 1) + decay * w)`

State: m, h and counters. Reads rate, b1, b2, epsilon, decay. A backward pass computes the estimate: a square of a gradient
(Gauss-Newton-Bartlett), or a product with a random direction (Hutchinson). h may be the old or the new one.
"""

from __future__ import annotations

from hlo_inspect.optimizer.algebra.hyperparameter import Hyperparameter, constant
from hlo_inspect.optimizer.algebra.moments import gradient_average
from hlo_inspect.optimizer.algebra.normal_form import ONE, Sum, is_constant, only_term, product
from hlo_inspect.optimizer.algebra.norms import clipped_value
from hlo_inspect.optimizer.algebra.update import Claim, State, Update, split


def match(update: Update) -> Claim | None:
    if len(update.rest) != 1 or not update.is_plain():
        return None
    ((monomial, value),) = update.rest.items()
    for atom, exponent in monomial:
        inner = clipped_value(update, atom) if exponent == 1.0 else {}
        scalars = product(monomial, ((atom, -1.0),))
        divided = _divided(update, inner) if len(inner) == 1 and update.are_scalar({scalars: 1.0}) else None
        if divided is None:
            continue
        first, second, epsilon, decay = divided
        average = gradient_average(update, first)
        if average is None:
            continue
        rate: Sum = {scalars: -value}
        hyperparameters = {
            "learning_rate": update.read(rate),
            "beta1": average.decay,
            "beta2": decay,
            "epsilon": epsilon,
            "weight_decay": update.decay_of(rate),
        }
        return Claim(rate, average.rest, hyperparameters, {"first_moment": first.array, "second_moment": second.array})
    return None


def _divided(update: Update, form: Sum) -> tuple[State, State, Hyperparameter, Hyperparameter] | None:
    """Return the states, epsilon and b2 of `m' / max(gamma * h, epsilon)`."""
    ((monomial, _),) = form.items()
    firsts = [state for state in update.states if dict(monomial).get(state.new) == 1.0]
    divisors = [atom for atom, exponent in monomial if exponent == -1.0 and update.forms.atoms[atom].op == "maximum"]
    if len(firsts) != 1 or len(divisors) != 1 or len(monomial) != 2:
        return None
    parts = update.forms.atoms[divisors[0]].parts
    limits = [part for part in parts if is_constant(part)]
    others = [part for part in parts if not is_constant(part)]
    if len(limits) != 1 or len(others[0]) != 1:
        return None
    ((scaled, _),) = others[0].items()
    for second in update.states:
        holds = dict(scaled).get(second.old) == 1.0 or dict(scaled).get(second.new) == 1.0
        decay = _decay(update, second) if holds and second is not firsts[0] else None
        if decay is not None:
            return firsts[0], second, constant(limits[0].get(ONE, 0.0)), decay
    return None


def _decay(update: Update, state: State) -> Hyperparameter | None:
    """Return the decay of a state that averages a result of a backward pass, in each step or in some."""
    form = state.form
    monomial, _ = only_term(form)
    atom = update.forms.only_factor(monomial)
    if atom is not None and atom.op == "select" and update.are_scalar(atom.parts[0]):
        old: Sum = {((state.old, 1.0),): 1.0}
        changed = [part for part in atom.parts[1:] if part != old]
        form = changed[0] if len(changed) == 1 else form
    decay, rest = split(form, state.old)
    return update.read(decay) if decay and update.are_scalar(decay) and update.is_gradient(rest) else None

"""SM3-II (Anil et al. 2019, arXiv:1901.11150).

* u = the minimum over dimensions of (the accumulator of that dimension) `+ g ** 2`
* accumulator' of a dimension = the maximum of u over the other dimensions
* `m' = momentum * m + (1 - momentum) * g / sqrt(u + epsilon)`
* `w' = w - rate * m'`

State: an accumulator for each dimension (for a vector u itself), and m. Reads rate, momentum, epsilon, decay, and the l2 of a
gradient `g + l2 * w`.
"""

from __future__ import annotations

from hlo_inspect.optimizer.algebra.hyperparameter import constant
from hlo_inspect.optimizer.algebra.moments import find_momentum, holds_square, l2_in
from hlo_inspect.optimizer.algebra.normal_form import ONE, Atom, Monomial, Sum, close
from hlo_inspect.optimizer.algebra.update import Claim, State, Update, split


def match(update: Update) -> Claim | None:
    states = update.used(update.rest)
    if len(states) != 1 or not update.is_plain():
        return None
    state = states[0]
    momentum = find_momentum(update, update.rest, state)
    if momentum is None or momentum.is_ahead or len(momentum.step) != 1:
        return None
    decay = update.read(momentum.decay)
    ((scaled, share),) = momentum.step.items()
    parts = _scaled(update, scaled)
    if parts is None or decay.value is None or not close(share, 1 - decay.value, 0.006):
        return None
    gradient, below = parts
    accumulators = [other for other in update.states if other is not state]
    if not _accumulates(update, below, gradient, accumulators):
        return None
    ((monomial, value),) = momentum.factor.items()
    rate: Sum = {monomial: -value}
    hyperparameters = {
        "learning_rate": update.read(rate),
        "momentum": decay,
        "epsilon": constant(below.get(ONE, 0.0), update.tolerance),
        "weight_decay": update.decay_of(rate),
        "l2": l2_in(update, gradient),
    }
    arrays = [other.array for other in accumulators]
    return Claim(rate, gradient, hyperparameters, {"first_moment": state.array, "second_moment": arrays[0]}, arrays[1:])


def _scaled(update: Update, monomial: Monomial) -> tuple[Sum, Sum] | None:
    """Return the gradient and the sum below the root of `g / sqrt(u + epsilon)`, which may be 0 if u is."""
    below: Sum | None = None
    gradient: list[tuple[int, float]] = []
    for atom, exponent in monomial:
        root = _root(update, update.forms.atoms[atom], exponent)
        if root is not None:
            below = root
        elif not update.is_scalar(atom):
            gradient.append((atom, exponent))
    form: Sum = {tuple(gradient): 1.0}
    return (form, below) if below is not None and gradient and update.is_gradient(form) else None


def _root(update: Update, atom: Atom, exponent: float) -> Sum | None:
    if atom.op == "select" and exponent == 1.0 and len(atom.parts[1]) == 1 and not any(atom.parts[2].values()):
        ((monomial, value),) = atom.parts[1].items()
        if len(monomial) == 1 and value == 1.0:
            return _root(update, update.forms.atoms[monomial[0][0]], monomial[0][1])
    return atom.parts[0] if atom.op == "sum" and exponent == -0.5 else None


def _accumulates(update: Update, below: Sum, gradient: Sum, states: list[State]) -> bool:
    """Return True if the sum below the root is `u + epsilon`, of these accumulators."""
    total = {monomial: value for monomial, value in below.items() if monomial != ONE}
    if len(states) == 1 and total == {((states[0].new, 1.0),): 1.0}:
        old, rest = split(states[0].form, states[0].old)
        return old == {ONE: 1.0} and holds_square(update, rest, gradient)
    least = [m for m in total if len(m) == 1 and update.forms.atoms[m[0][0]].op == "minimum"]
    squares = {monomial: value for monomial, value in total.items() if monomial not in least}
    if len(least) != 1 or not states or not holds_square(update, squares, gradient):
        return False
    if not all(update.holds(least[0][0][0], state.old) for state in states):
        return False
    return all(update.reductions.summed(state.new, "maximum") == total for state in states)

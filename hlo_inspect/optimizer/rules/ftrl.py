"""FTRL-Proximal (McMahan et al. 2013, "Ad Click Prediction").

* `n' = n + g ** 2`
* `z' = z + g - (sqrt(n') - sqrt(n)) / rate * w`
* `w' = 0 if abs(z') <= l1, else -(z' - sign(z') * l1) / ((beta + sqrt(n')) / rate + l2)`

State: n and z. Reads rate. The new weight is a function of n' and z' alone.
"""

from __future__ import annotations

from hlo_inspect.optimizer.algebra.moments import square_average
from hlo_inspect.optimizer.algebra.normal_form import ONE, Monomial, Sum, close, scaled, split_zero
from hlo_inspect.optimizer.algebra.update import Claim, State, Update, split


def match(update: Update) -> Claim | None:
    states = update.used(update.form)
    if update.kept or len(states) != 2 or update.depends_on_itself(update.form):
        return None
    for squares, total in (states, reversed(states)):
        rate_and_gradient = _rate(update, squares, total)
        second = square_average(update, squares, rate_and_gradient[1]) if rate_and_gradient is not None else None
        if rate_and_gradient is not None and second is not None and second.decay.value == 1.0:
            hyperparameters = {"learning_rate": update.read(rate_and_gradient[0])}
            roles = {"second_moment": squares.array, "first_moment": total.array}
            return Claim(rate_and_gradient[0], rate_and_gradient[1], hyperparameters, roles)
    return None


def _rate(update: Update, squares: State, total: State) -> tuple[Sum, Sum] | None:
    """Return the rate and the gradient of z."""
    old, rest = split(total.form, total.old)
    factor, gradient = split(split_zero(rest), update.weight)
    divided: dict[int, Sum] = {squares.new: {}, squares.old: {}}
    for monomial, value in factor.items():
        scalars, roots = update.split_scalars(monomial)
        for inner, number in _expand_sum(update, roots).items():
            if len(inner) != 1 or inner[0][0] not in divided or inner[0][1] != 0.5:
                return None
            divided[inner[0][0]][scalars] = value * number
    inverse = scaled(divided[squares.new], -1.0)
    if len(inverse) != 1:
        return None
    ((scalars, value),) = inverse.items()
    if not close(value, divided[squares.old].get(scalars, 0.0)):
        return None
    rate = update.forms.power(inverse, -1.0)
    return (rate, gradient) if old == {ONE: 1.0} and min(rate.values()) > 0 and update.is_gradient(gradient) else None


def _expand_sum(update: Update, monomial: Monomial) -> Sum:
    """Return the terms of a factor that is a sum; any other product as a single term."""
    atom = update.forms.only_factor(monomial)
    return atom.parts[0] if atom is not None and atom.op == "sum" else {monomial: 1.0}

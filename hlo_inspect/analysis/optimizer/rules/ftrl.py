"""FTRL-Proximal (McMahan et al. 2013, "Ad Click Prediction").

    n' = n + g ** 2
    z' = z + g - (sqrt(n') - sqrt(n)) / rate * w
    w' = 0 if abs(z') <= l1, else -(z' - sign(z') * l1) / ((beta + sqrt(n')) / rate + l2)

State: n and z. Reads rate. The new weight is a function of n' and z' alone.
"""

from __future__ import annotations

from hlo_inspect.analysis.optimizer.toolkit import (
    Claim,
    Monomial,
    OptimizerRule,
    State,
    Sum,
    Update,
    close,
    constant,
    split,
    square_average,
)


def match(update: Update) -> Claim | None:
    states = update.used(update.form)
    if update.kept or len(states) != 2 or update.depends_on_itself(update.form):
        return None
    for squares, total in (states, reversed(states)):
        rate, gradient = _rate(update, squares, total)
        second = square_average(update, squares, gradient) if rate > 0 else None
        if second is not None and second.decay.value == 1.0:
            hyperparameters = {"learning_rate": constant(rate)}
            roles = {"second_moment": squares.array, "first_moment": total.array}
            return Claim({(): rate}, gradient, hyperparameters, roles)
    return None


def _rate(update: Update, squares: State, total: State) -> tuple[float, Sum]:
    """The rate and the gradient of z, 0 where it is something else."""
    old, rest = split(total.form, total.old)
    factor, gradient = split(rest, update.weight)
    content, _ = update.forms.factored(factor)
    roots: list[Monomial] = [((squares.new, 0.5),), ((squares.old, 0.5),)]
    opened = {m: v for monomial, value in factor.items() for m, v in _opened(update, monomial, value).items()}
    is_known = set(opened) == set(roots) and close(opened[roots[0]], -opened[roots[1]]) and old == {(): 1.0}
    if not is_known or not content or not update.is_gradient(gradient):
        return 0.0, {}
    return -1 / opened[roots[0]], gradient


def _opened(update: Update, monomial: Monomial, value: float) -> Sum:
    """A factor that is a sum as that sum."""
    atom = update.forms.atoms[monomial[0][0]] if len(monomial) == 1 and monomial[0][1] == 1.0 else None
    if atom is None or atom.op != "sum":
        return {monomial: value}
    return {inner: value * factor for inner, factor in atom.parts[0].items()}


RULE = OptimizerRule(
    name="ftrl",
    title="FTRL-Proximal",
    paper="McMahan et al. 2013, KDD",
    hyperparameters=("learning_rate",),
    state=("first_moment", "second_moment"),
    match=match,
)

"""ADOPT (Taniguchi et al. 2024, arXiv:2411.02853): Adam with the old second moment, and with momentum after the division.

* `u = g / max(sqrt(v), epsilon)`, clipped to `-t ** 0.25` and `t ** 0.25`
* `m' = b1 * m + (1 - b1) * u`
* `v' = b2 * v + (1 - b2) * g ** 2`
* `w' = w - rate * (m' + decay * w)`, or with Nesterov's look ahead `b1 * m' + (1 - b1) * u` instead of m'

State: m, v and t. Reads rate, b1, b2, epsilon, decay. The first step may only fill v.
"""

from __future__ import annotations

from hlo_inspect.optimizer.algebra.hyperparameter import ABSENT, Hyperparameter, constant
from hlo_inspect.optimizer.algebra.moments import Momentum, find_momentum, holds_square
from hlo_inspect.optimizer.algebra.normal_form import ONE, Monomial, Sum, is_constant
from hlo_inspect.optimizer.algebra.norms import clipped_value
from hlo_inspect.optimizer.algebra.numeric import value_of_form
from hlo_inspect.optimizer.algebra.update import Claim, State, Update

LATER = 1000.0  # any step but the first


def match(update: Update) -> Claim | None:
    for first in update.used(update.rest) if update.is_plain() else []:
        momentum = find_momentum(update, update.rest, first)
        if momentum is not None and len(momentum.step) == 1:
            return _claim(update, momentum)
    return None


def _claim(update: Update, momentum: Momentum) -> Claim | None:
    ((monomial, _),) = momentum.step.items()
    scaled = [atom for atom, exponent in monomial if exponent == 1.0 and not update.is_scalar(atom)]
    inner: Sum = clipped_value(update, scaled[0]) if len(scaled) == 1 else {}
    parts = _divided(update, next(iter(inner or {monomial: 1.0})))
    second = update.recursion(parts[1]) if parts is not None else None
    if parts is None or second is None or not holds_square(update, second[1], parts[0]):
        return None
    ((rest, value),) = momentum.factor.items()
    rate: Sum = {rest: -value}
    hyperparameters = {
        "learning_rate": update.read(rate),
        "beta1": _read_decay(update, momentum.decay),
        "beta2": _read_decay(update, second[0]),
        "epsilon": parts[2],
        "weight_decay": update.decay_of(rate),
        "nesterov": constant(1.0) if momentum.is_ahead else ABSENT,
    }
    return Claim(rate, parts[0], hyperparameters, {"first_moment": momentum.state.array, "second_moment": parts[1].array})


def _divided(update: Update, monomial: Monomial) -> tuple[Sum, State, Hyperparameter] | None:
    """Return gradient, second moment and epsilon of `g / max(sqrt(v), epsilon)` with the old v."""
    for atom, exponent in monomial:
        limit = update.forms.atoms[atom]
        if exponent != -1.0 or limit.op != "maximum":
            continue
        limits = [part for part in limit.parts if is_constant(part)]
        roots = [part for part in limit.parts if not is_constant(part)]
        seconds = [state for state in update.states if roots == [{((state.old, 0.5),): 1.0}]]
        _, gradient = update.split_scalars(tuple(factor for factor in monomial if factor[0] != atom))
        form: Sum = {gradient: 1.0}
        if len(limits) == 1 and len(seconds) == 1 and gradient and update.is_gradient(form):
            return form, seconds[0], constant(limits[0].get(ONE, 0.0))
    return None


def _read_decay(update: Update, decay: Sum) -> Hyperparameter:
    """Read a decay, which may be another number in the first step."""
    reading = update.read(decay)
    value = value_of_form(update.forms, decay, lambda _: LATER) if reading.value is None else None
    is_chosen = any(update.forms.atoms[atom].op == "select" for monomial in decay for atom, _ in monomial)
    return constant(value, update.tolerance) if value is not None and is_chosen else reading

"""Stochastic gradient descent: plain, with momentum or Nesterov's momentum, and averaged.

Momentum is that of Polyak 1964, Nesterov's that of Sutskever et al. 2013:

* plain: `w' = w - rate * (g + decay * w)`
* momentum: `m' = momentum * m + g + l2 * w`, `w' = w - rate * m'`
* Nesterov: `w' = w - rate * (g + l2 * w + momentum * m')`

State: nothing, or m. Reads rate, momentum, decay or l2. The rate may be part of the momentum instead: `m' = momentum * m - rate
* g` and `w' = w + m'`. XLA folds a constant factor of the gradient (1 / accumulated steps) into the rate; the rule reads their
product.

Averaged SGD (Polyak and Juditsky 1992), with the schedule of Bottou 2010 that PyTorch has:

* `w' = (1 - decay * eta) * w - eta * g`
* `x' = x + mu * (w' - x)`
* `eta' = rate / (1 + decay * rate * t) ** alpha`, `mu' = 1 / max(1, t - t0)`

State: x, the average; eta and mu may be state, inputs or computed in the step. Reads decay. An average alone belongs to no
optimizer: many steps keep one for evaluation. It is ASGD's if the weights decay by a multiple of the rate, the rate is a
falling power of the steps, and `mu` changes.
"""

from __future__ import annotations

from hlo_inspect.optimizer.algebra.hyperparameter import Hyperparameter
from hlo_inspect.optimizer.algebra.moments import Average, gradient_average, l2_in
from hlo_inspect.optimizer.algebra.normal_form import (
    ONE,
    Sum,
    added,
    close,
    inverse,
    is_constant,
    product,
    scaled,
)
from hlo_inspect.optimizer.algebra.plain_gradients import is_backward, is_plain_gradient, plain_rate
from hlo_inspect.optimizer.algebra.update import LEAST_KEPT, Claim, State, Update, split
from hlo_inspect.optimizer.step.state_arrays import StateArray


def match_sgd(update: Update) -> Claim | None:
    if not update.is_plain():
        return None
    states = update.used(update.rest)
    if not states:
        return _plain(update)
    return _momentum(update, states[0]) if len(states) == 1 else None


def _plain(update: Update) -> Claim | None:
    rate = plain_rate(update, update.rest)
    if rate is None or not LEAST_KEPT <= update.kept.get(ONE, 0.0) <= 1.0 or _find_average(update, rate) is not None:
        return None
    if update.is_velocity:
        return None  # leapfrog: positions and velocities are updated from each other
    return Claim(rate, update.rest, {"learning_rate": update.read(rate), "weight_decay": update.decay_of(rate)})


def _momentum(update: Update, state: State) -> Claim | None:
    average = gradient_average(update, state)
    if average is None or (average.decay.value or 0.0) >= 1.0:
        return None  # a velocity that never decays: the symplectic Euler method
    gradient = split(average.rest, update.weight)[1]
    inner = plain_rate(update, gradient) if gradient else None
    factor, rest = split(update.rest, state.new)
    if len(factor) != 1 or not update.are_scalar(factor):
        return None
    nesterov = bool(update.used(rest) or update.is_gradient(rest)) or bool(rest)
    kept = update.kept
    if nesterov:
        looked_ahead = _nesterov(update, average, factor)
        if looked_ahead is None:
            return None
        factor, kept = looked_ahead
    ((monomial, value),) = factor.items()
    rate: Sum = {monomial: -value}
    if value > 0 and is_constant(factor) and inner is not None:
        rate = scaled(inner, value)
    elif inner is None and (value > 0 or not _is_sum_of_gradients(update, average)):
        return None
    hyperparameters = {
        "learning_rate": update.read(rate),
        "momentum": average.decay,
        "weight_decay": update.decay_of(rate, kept),
        "l2": l2_in(update, average.rest),
        "nesterov": Hyperparameter(float(nesterov), "constant"),
    }
    return Claim(rate, average.rest, hyperparameters, {"first_moment": state.array})


def _nesterov(update: Update, average: Average, factor: Sum) -> tuple[Sum, Sum] | None:
    """Return the factor `c` of `w' = kept * w + c * (g + momentum * m')`, and the factor `kept` of the weight."""
    decay, _ = split(average.state.form, average.state.old)
    step = update.forms.multiply(factor, update.forms.power(decay, -1.0))
    left = added(update.form, update.forms.multiply(step, average.rest), -1.0)
    left = added(left, update.forms.multiply(factor, {((average.state.new, 1.0),): 1.0}), -1.0)
    scale = max(abs(value) for value in update.form.values())
    left = {monomial: value for monomial, value in left.items() if abs(value) > 1e-6 * scale * 1e-3}
    kept, others = split(left, update.weight)
    return (step, kept) if not others and kept else None


def _is_sum_of_gradients(update: Update, average: Average) -> bool:
    """Return True if terms with several factors are gradients: a standardized weight times a sum."""
    factor, gradient = split(average.rest, update.weight)
    terms = [term for term in factor if not update.are_scalar({term: 1.0})]
    return all(is_backward(update, term) for term in terms) and is_plain_gradient(update, gradient)


# -- averaged SGD --------------------------------------------------------------------------------------------------------


def match_asgd(update: Update) -> Claim | None:
    if not update.is_plain() or update.used(update.rest):
        return None
    rate = plain_rate(update, update.rest)
    average = _find_average(update, rate) if rate is not None else None
    if rate is None or average is None:
        return None
    constants = {"learning_rate": update.read(rate), "weight_decay": update.decay_of(rate)}
    return Claim(rate, update.rest, constants, {"average": average})


def _find_average(update: Update, rate: Sum) -> StateArray | None:
    """Return ASGD's average of a weight whose step has this rate; None if the step is not ASGD's."""
    decay = {monomial: -value for monomial, value in added(update.kept, {ONE: -1.0}).items() if value}
    if is_constant(rate) or len(rate) != 1 or not decay:
        return None
    ((factors, value),) = rate.items()
    if not all(set(factors) <= set(monomial) for monomial in decay):
        return None
    decays = {product(monomial, inverse(factors)): number / value for monomial, number in decay.items()}
    if not any(_is_schedule(update, form, decays) for form in (rate, *update.returned_scalars)):
        return None
    return next(
        (average.array for average in update.averages if not is_constant(average.share) and update.are_scalar(average.share)),
        None,
    )


def _is_schedule(update: Update, form: Sum, decays: Sum) -> bool:
    """Return True if a rate is `c * (1 + decay * c * t) ** -alpha`; numbers that are inputs are not compared."""
    if len(form) != 1:
        return False
    ((monomial, rate),) = form.items()
    for atom, exponent in monomial:
        base = update.forms.atoms[atom]
        if base.op != "sum" or not -1.0 <= exponent < 0.0 or not update.is_scalar(atom):
            continue
        steps = dict(base.parts[0])
        start = steps.pop(ONE, 0.0)
        if start <= 0.0 or len(steps) != 1:
            continue
        ((step, slope),) = steps.items()
        if len(step) > 1 or len(monomial) > 1 or not is_constant(decays):
            return True
        return close(slope / start, decays[ONE] * rate, 0.05)  # the number of the first step differs
    return False

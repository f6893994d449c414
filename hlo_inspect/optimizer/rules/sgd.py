"""Stochastic gradient descent, with momentum (Polyak 1964) or Nesterov's momentum (Sutskever et al. 2013).

    plain      w' = w - rate * (g + decay * w)
    momentum   m' = momentum * m + g + l2 * w            w' = w - rate * m'
    Nesterov   w' = w - rate * (g + l2 * w + momentum * m')

State: nothing, or m. Reads rate, momentum, decay or l2. The rate may be part of the momentum instead: `m' = momentum * m -
rate * g` and `w' = w + m'`. Where the gradient was multiplied by a constant before the rate (1 / accumulated steps), XLA
folds the two, and the rate that is read is their product.
"""

from __future__ import annotations

from hlo_inspect.optimizer.algebra.toolkit import (
    LEAST_KEPT,
    ONE,
    Average,
    Claim,
    Hyperparameter,
    OptimizerRule,
    State,
    Sum,
    Update,
    added,
    averaged_by,
    gradient_average,
    is_backward,
    is_constant,
    is_plain_gradient,
    l2_in,
    plain_rate,
    scaled,
    split,
)


def match(update: Update) -> Claim | None:
    if not update.is_plain():
        return None
    states = update.used(update.rest)
    if not states:
        return _plain(update)
    return _momentum(update, states[0]) if len(states) == 1 else None


def _plain(update: Update) -> Claim | None:
    rate = plain_rate(update, update.rest)
    if rate is None or not LEAST_KEPT <= update.kept.get(ONE, 0.0) <= 1.0 or averaged_by(update, rate) is not None:
        return None
    hyperparameters = {"learning_rate": update.read(rate), "weight_decay": update.decay_of(rate)}
    return Claim(rate, update.rest, hyperparameters)


def _momentum(update: Update, state: State) -> Claim | None:
    average = gradient_average(update, state)
    if average is None or (average.decay.value or 0.0) >= 1.0:
        return None  # a velocity that never decays: the symplectic Euler method
    inner = _scale(update, average)
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
    """The factor `c` of `w' = kept * w + c * (g + momentum * m')`, and what then keeps the weight."""
    decay, _ = split(average.state.form, average.state.old)
    step = update.forms.multiply(factor, update.forms.power(decay, -1.0))
    left = added(update.form, update.forms.multiply(step, average.rest), -1.0)
    left = added(left, update.forms.multiply(factor, {((average.state.new, 1.0),): 1.0}), -1.0)
    scale = max(abs(value) for value in update.form.values())
    left = {monomial: value for monomial, value in left.items() if abs(value) > 1e-6 * scale * 1e-3}
    kept, others = split(left, update.weight)
    return (step, kept) if not others and kept else None


def _scale(update: Update, average: Average) -> Sum | None:
    _, gradient = split(average.rest, update.weight)
    return plain_rate(update, gradient) if gradient else None


def _is_sum_of_gradients(update: Update, average: Average) -> bool:
    """Whether terms with several factors are gradients: of a standardized weight, which they hold, multiplied with a sum."""
    factor, gradient = split(average.rest, update.weight)
    return all(is_backward(update, term) for term in factor if not update.are_scalar({term: 1.0})) and is_plain_gradient(
        update, gradient
    )


RULE = OptimizerRule(
    name="sgd",
    title="SGD",
    paper="Polyak 1964 (momentum), Sutskever et al. 2013 (Nesterov's)",
    hyperparameters=("learning_rate", "momentum", "nesterov", "weight_decay", "l2"),
    state=("first_moment",),
    match=match,
)

"""Stochastic gradient descent, with momentum (Polyak 1964) or Nesterov's momentum (Sutskever et al. 2013).

    plain      w' = w - rate * (g + decay * w)
    momentum   m' = momentum * m + g + l2 * w            w' = w - rate * m'
    Nesterov   w' = w - rate * (g + l2 * w + momentum * m')

State: nothing, or m. Reads rate, momentum, decay or l2. The rate may stand in the momentum instead: `m' = momentum * m - rate * g`
and `w' = w + m'`. Where the gradient was multiplied by a constant before the rate (1 / accumulated steps), XLA folds the two, and
the rate that is read is their product.
"""

from __future__ import annotations

from hlo_inspect.analysis.optimizer.clipping import clip_of
from hlo_inspect.analysis.optimizer.moments import Average, gradient_average
from hlo_inspect.analysis.optimizer.normal import ONE, Sum, added, is_constant, scaled
from hlo_inspect.analysis.optimizer.readings import ABSENT, COMPUTED, Reading, constant
from hlo_inspect.analysis.optimizer.update import Claim, State, Update, split


def match(update: Update) -> Claim | None:
    if not update.is_plain():
        return None
    states = update.used(update.rest)
    if not states:
        return _plain(update)
    return _momentum(update, states[0]) if len(states) == 1 else None


def _plain(update: Update) -> Claim | None:
    rate = _linear(update, update.rest)
    if rate is None:
        return None
    readings = {"learning_rate": update.read(rate), "weight_decay": update.decay_of(rate)}
    return Claim("sgd", rate, update.rest, readings)


def _linear(update: Update, form: Sum) -> Sum | None:
    """The factor of a gradient that stands in a sum of opaque terms, all with the same factor."""
    if not update.is_gradient(form):
        return None
    factors: list[Sum] = []
    for monomial, value in form.items():
        scalars = tuple((a, e) for a, e in monomial if update.is_scalar(a))
        gradient = [(a, e) for a, e in monomial if not update.is_scalar(a)]
        if not gradient or not all(_is_gradient_atom(update, atom, exponent) for atom, exponent in gradient):
            return None
        factors.append({scalars: -value})
    return factors[0] if all(factor == factors[0] for factor in factors) else None


def _is_gradient_atom(update: Update, atom: int, exponent: float) -> bool:
    """Whether an atom can be a factor of a gradient as backward passes make it: no sign, no root, no norm."""
    found = update.forms.atoms[atom]
    if clip_of(update, atom, exponent) is not None:
        return True
    if found.op == "select":
        return exponent == 1.0 and all(size != 1 for size in update.sizes_in(found.parts[0]))
    return exponent == 1.0 and found.op in _GRADIENT_OPS


_GRADIENT_OPS = frozenset({"opaque", "broadcast", "slice", "dynamic-slice", "concatenate", "sum"})


def _momentum(update: Update, state: State) -> Claim | None:
    average = gradient_average(update, state)
    if average is None:
        return None
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
    inner = _scale(update, average)
    if value > 0 and inner is not None and is_constant(factor):
        rate = scaled(inner, -value)
    readings = {
        "learning_rate": update.read(rate),
        "momentum": average.decay,
        "weight_decay": update.decay_of(rate, kept),
        "l2": _l2(update, average),
        "nesterov": Reading(float(nesterov), "constant"),
    }
    return Claim("sgd", rate, average.rest, readings, {"first_moment": state.site})


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
    return _linear(update, gradient) if gradient else None


def _l2(update: Update, average: Average) -> Reading:
    factor, rest = split(average.rest, update.weight)
    if not factor:
        return ABSENT
    values = set(rest.values())
    if not is_constant(factor) or len(values) != 1:
        return COMPUTED
    return constant(factor[ONE] / values.pop(), max(update.tolerance, 1e-6))

"""Steps of one length for all elements, along a sign: signSGD, Signum and Lion.

* sign_sgd: `w' = w - rate * (sign(g) + decay * w)`
* signum: `m' = momentum * m + (1 - momentum) * g`, `w' = w - rate * (sign(m') + decay * w)`
* lion: `m' = b2 * m + (1 - b2) * g`, `w' = w - rate * (sign(b1 * m + (1 - b1) * g) + decay * w)`

signSGD and Signum: Bernstein et al. 2018, arXiv:1802.04434. Lion: Chen et al. 2023, arXiv:2302.06675; with b1 = b2 it is
Signum. The factor of g in m' changes no sign and may be 1. State: nothing, or m. Each reads rate, decay and l2, Signum
momentum, Lion b1 and b2.
"""

from __future__ import annotations

from hlo_inspect.optimizer.algebra.hyperparameter import Hyperparameter
from hlo_inspect.optimizer.algebra.moments import Average, gradient_average, l2_in, l2_of
from hlo_inspect.optimizer.algebra.normal_form import Sum
from hlo_inspect.optimizer.algebra.plain_gradients import is_plain_gradient
from hlo_inspect.optimizer.algebra.update import Claim, Update, split


def match_sign_sgd(update: Update) -> Claim | None:
    step = _signed_step(update)
    if step is None or not _is_gradient(update, step[1]):
        return None
    rate, gradient = step
    return Claim(rate, gradient, _constants(update, rate) | {"l2": l2_in(update, gradient)})


def match_signum(update: Update) -> Claim | None:
    step, average = _signed_step(update), _average(update)
    if step is None or average is None or not _is_gradient(update, average.rest):
        return None
    if step[1] != {((average.state.new, 1.0),): 1.0}:
        return None
    constants = _constants(update, step[0]) | {"momentum": average.decay, "l2": l2_of(update, average)}
    return Claim(step[0], average.rest, constants, {"first_moment": average.state.array})


def match_lion(update: Update) -> Claim | None:
    step, average = _signed_step(update), _average(update)
    if step is None or average is None:
        return None
    blend, gradient = split(step[1], average.state.old)
    if not blend or not update.are_scalar(blend) or not update.same_direction(gradient, average.rest):
        return None
    constants = {"beta1": update.read(blend), "beta2": average.decay, "l2": l2_of(update, average)}
    return Claim(step[0], average.rest, _constants(update, step[0]) | constants, {"first_moment": average.state.array})


def _signed_step(update: Update) -> tuple[Sum, Sum] | None:
    """Return the rate and the form whose sign is the step."""
    if len(update.rest) != 1 or not update.is_plain():
        return None
    ((monomial, value),) = update.rest.items()
    signs = [(atom, exponent) for atom, exponent in monomial if update.forms.atoms[atom].op == "sign"]
    factors = tuple(factor for factor in monomial if factor not in signs)
    if len(signs) != 1 or signs[0][1] != 1.0 or not all(update.is_scalar(atom) for atom, _ in factors):
        return None
    return {factors: -value}, update.forms.atoms[signs[0][0]].parts[0]


def _is_gradient(update: Update, form: Sum) -> bool:
    """Return True if a form is a gradient, perhaps with an L2 term."""
    return is_plain_gradient(update, split(form, update.weight)[1])


def _average(update: Update) -> Average | None:
    """Return the average of gradients if it is the only state in the step."""
    states = update.used(update.rest)
    return gradient_average(update, states[0]) if len(states) == 1 else None


def _constants(update: Update, rate: Sum) -> dict[str, Hyperparameter]:
    return {"learning_rate": update.read(rate), "weight_decay": update.decay_of(rate)}

"""Schedule-free SGD and AdamW (Defazio et al. 2024, arXiv:2405.15682).

* `z' = z - rate * (g(y) + decay * y)`, or `z - rate * (g(y) / (sqrt(v' / (1 - b2 ** t)) + epsilon) + decay * y)`
* `x' = (1 - c) * x + c * z'`
* `y' = (1 - b1) * z' + b1 * x'`

The weight is y; x is not kept: `x = (y - (1 - b1) * z) / b1`. State: z, with AdamW v, and the state from which c is computed.
"""

from __future__ import annotations

from hlo_inspect.optimizer.algebra.hyperparameter import ABSENT
from hlo_inspect.optimizer.algebra.moments import exact_decay, find_root, square_average, take_corrections
from hlo_inspect.optimizer.algebra.normal_form import ONE, Sum, added, is_constant, key_of, scaled, split_zero
from hlo_inspect.optimizer.algebra.update import Claim, Update, expanded, quotient, split


def match(update: Update) -> Claim | None:
    states = [state for state in update.used(update.rest) if update.array.shape == state.array.shape]
    if len(states) != 1 or len(update.used(update.rest)) != 1:
        return None
    state = states[0]
    ahead, others = split(update.rest, state.new)
    behind, left = split(others, state.old)
    blend = _blend(update, ahead, behind) if not split_zero(left) else None
    recursion = update.recursion(state)
    if blend is None or recursion is None or key_of(recursion[0]) != key_of({ONE: 1.0}):
        return None
    decayed, step = split(recursion[1], update.weight)
    inner = _adam_step(update, step) if update.used(step) else _plain_step(update, step)
    if inner is None or not update.are_scalar(decayed):
        return None
    inner.hyperparameters["beta1"] = update.read({ONE: blend})
    inner.hyperparameters["weight_decay"] = update.decay_of(inner.rate, added({ONE: 1.0}, decayed))
    inner.roles["iterate"] = state.array
    return inner


def _plain_step(update: Update, step: Sum) -> Claim | None:
    """Match `-rate * g`."""
    if len(step) != 1 or not update.is_gradient(step):
        return None
    ((monomial, value),) = step.items()
    rate: Sum = {update.split_scalars(monomial)[0]: -value}
    return Claim(rate, step, {"learning_rate": update.read(rate)})


def _adam_step(update: Update, step: Sum) -> Claim | None:
    """Match `-rate * g / (sqrt(v' / (1 - b2 ** t)) + epsilon)`."""
    states = update.used(step)
    if len(step) != 1 or len(states) != 1:
        return None
    ((monomial, value),) = step.items()
    root = find_root(update, monomial, states[0].new)
    if root is None:
        return None
    scalars, rest = update.split_scalars(root.rest)
    gradient: Sum = {rest: 1.0}
    second = square_average(update, states[0], gradient) if update.is_gradient(gradient) else None
    bases, left = take_corrections(update, root.correction)
    if second is None or left or any(exponent != -0.5 for _, exponent in bases):
        return None
    rate: Sum = {scalars: -value * root.scale}
    hyperparameters = {
        "learning_rate": update.read(rate),
        "beta2": exact_decay(second.decay, bases[0][0] if bases else None),
        "epsilon": update.read(root.epsilons) if root.epsilons else ABSENT,
    }
    return Claim(rate, gradient, hyperparameters, {"second_moment": states[0].array})


def _blend(update: Update, ahead: Sum, behind: Sum) -> float | None:
    """Return `b1` of `y' = k * y - (1 - b1) * k * z + (1 - b1 * k) * z'`."""
    ratio = quotient(update.forms, behind, update.kept)
    if ratio is None or not is_constant(ratio):
        return None
    b1 = 1 + ratio.get(ONE, 0.0)
    expected = added({ONE: 1.0}, scaled(update.kept, -b1))
    return b1 if 0 < b1 <= 1 and key_of(split_zero(expanded(update, ahead))) == key_of(split_zero(expected)) else None

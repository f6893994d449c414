"""RMSProp (Hinton, lecture 6e of "Neural Networks for Machine Learning", 2012), centered (Graves 2013, arXiv:1308.0850) or not,
with momentum or without.

    v' = b2 * v + (1 - b2) * g ** 2
    centered   a' = b2 * a + (1 - b2) * g,  variance = v' - a' ** 2;  else  variance = v'
    step = g / sqrt(variance + epsilon)   or   g / (sqrt(variance) + epsilon)
    w' = w - rate * step   or   m' = momentum * m + step,  w' = w - rate * m'

State: v, with it a and m. Reads rate, b2, epsilon, momentum, decay, l2. The rate may be part of m', v' corrected as in Adam.
"""

from __future__ import annotations

from hlo_inspect.optimizer.algebra.toolkit import (
    Claim,
    OptimizerRule,
    Update,
    exact_decay,
    find_scaled_gradient,
    gradient_average,
    square_average,
    take_corrections,
)


def match(update: Update) -> Claim | None:
    found = find_scaled_gradient(update)
    if found is None:
        return None
    second = square_average(update, found.second, found.gradient)
    if second is None or second.decay.value == 1.0:
        return None
    if found.average is not None:
        mean = gradient_average(update, found.average)
        if mean is None or mean.decay != second.decay or not update.same_direction(mean.rest, found.gradient):
            return None
    bases, _ = take_corrections(update, found.root.correction)
    return found.claim(update, {"beta2": exact_decay(second.decay, bases[0][0] if bases else None)})


RULE = OptimizerRule(
    name="rmsprop",
    title="RMSProp",
    paper="Hinton 2012, lecture 6e; centered: Graves 2013, arXiv:1308.0850",
    hyperparameters=("learning_rate", "beta2", "epsilon", "weight_decay", "l2", "momentum", "nesterov"),
    state=("first_moment", "second_moment"),
    match=match,
)

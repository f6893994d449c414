"""AdaGrad (Duchi, Hazan and Singer 2011).

    v' = v + g ** 2
    w' = w - rate * g / sqrt(v' + epsilon)   or   w - rate * g / (sqrt(v') + epsilon)

State: v. Reads rate, epsilon, decay, l2. Where v' is 0 the step may be defined as 0.
"""

from __future__ import annotations

from hlo_inspect.optimizer.algebra.toolkit import Claim, OptimizerRule, Update, find_scaled_gradient, square_average


def match(update: Update) -> Claim | None:
    found = find_scaled_gradient(update)
    if found is None or found.average is not None or found.momentum is not None or found.root.correction:
        return None
    second = square_average(update, found.second, found.gradient)
    if second is None or second.decay.value != 1.0:
        return None
    return found.claim(update, {})


RULE = OptimizerRule(
    name="adagrad",
    title="AdaGrad",
    paper="Duchi, Hazan and Singer 2011, JMLR 12",
    hyperparameters=("learning_rate", "epsilon", "weight_decay", "l2", "momentum", "nesterov"),
    state=("second_moment",),
    match=match,
)

"""Adam (Kingma and Ba 2015, arXiv:1412.6980), with the L2 term inside the gradient if there is one.

    g = gradient + l2 * w
    m' = b1 * m + (1 - b1) * g
    v' = b2 * v + (1 - b2) * g ** 2
    w' = w - rate * m' / (1 - b1 ** t) / (sqrt(v' / (1 - b2 ** t)) + epsilon)

AdamW (Loshchilov and Hutter 2019, arXiv:1711.05101) has the decay of the weights beside the step:

    w' = w - rate * (m' / (1 - b1 ** t) / (sqrt(v' / (1 - b2 ** t)) + epsilon) + decay * w)

State: m, v and the counter t. Reads rate, b1, b2, epsilon, l2 or decay; a decay of 0 that is written in the text makes AdamW.
The corrections may be missing, or folded into the rate as `sqrt(1 - b2 ** t) / (1 - b1 ** t)`; epsilon may be below the root.
Factors that are handed in may stand for anything: `1 - b1` of a step of PyTorch is as well Prodigy's estimate times that.
"""

from __future__ import annotations

from hlo_inspect.optimizer.algebra.toolkit import (
    Claim,
    OptimizerRule,
    Update,
    claim_like_adam,
)


def match(update: Update) -> Claim | None:
    return claim_like_adam(update)


RULE = OptimizerRule(
    name="adam",
    title="Adam",
    paper="Kingma and Ba 2015, arXiv:1412.6980; AdamW: Loshchilov and Hutter 2019, arXiv:1711.05101",
    hyperparameters=("learning_rate", "beta1", "beta2", "epsilon", "weight_decay", "l2"),
    state=("first_moment", "second_moment"),
    match=match,
    with_decay="adamw",
)

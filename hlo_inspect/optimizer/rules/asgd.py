"""Averaged stochastic gradient descent (Polyak and Juditsky 1992), with the schedule of Bottou 2010 that PyTorch has.

    w' = (1 - decay * eta) * w - eta * g
    x' = x + mu * (w' - x)
    eta' = rate / (1 + decay * rate * t) ** alpha      mu' = 1 / max(1, t - t0)

State: x, the average; eta and mu may be kept, handed in or computed in the step. Reads decay. Without this schedule a step with
an average of its weights is that of SGD.
"""

from __future__ import annotations

from hlo_inspect.optimizer.algebra.toolkit import Claim, OptimizerRule, Update, averaged_by, plain_rate


def match(update: Update) -> Claim | None:
    if not update.is_plain() or update.used(update.rest):
        return None
    rate = plain_rate(update, update.rest)
    average = averaged_by(update, rate) if rate is not None else None
    if rate is None or average is None:
        return None
    decay = update.decay_of(rate)
    return Claim(rate, update.rest, {"learning_rate": update.read(rate), "weight_decay": decay}, {"average": average})


RULE = OptimizerRule(
    name="asgd",
    title="Averaged SGD",
    paper="Polyak and Juditsky 1992, SIAM J. Control Optim. 30(4)",
    hyperparameters=("learning_rate", "weight_decay"),
    state=("average",),
    match=match,
)

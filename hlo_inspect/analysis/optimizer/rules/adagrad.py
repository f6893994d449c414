"""AdaGrad (Duchi, Hazan and Singer 2011).

    v' = v + g ** 2
    w' = w - rate * g / sqrt(v' + epsilon)   or   w - rate * g / (sqrt(v') + epsilon)

State: v. Reads rate, epsilon, decay. Where v' is 0 the step may be defined as 0.
"""

from __future__ import annotations

from hlo_inspect.analysis.optimizer.moments import square_average
from hlo_inspect.analysis.optimizer.scaled_gradient import find_scaled
from hlo_inspect.analysis.optimizer.update import Claim, Update


def match(update: Update) -> Claim | None:
    found = find_scaled(update)
    if found is None or found.average is not None or found.momentum is not None:
        return None
    second = square_average(update, found.second, found.gradient)
    if second is None or second.decay.value != 1.0:
        return None
    return found.claim(update, "adagrad", {})

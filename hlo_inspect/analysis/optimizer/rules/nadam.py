"""NAdam (Dozat 2016): Adam with Nesterov's momentum.

    w' = w - rate * (b1 * m' / (1 - b1 ** (t + 1)) + (1 - b1) * g / (1 - b1 ** t)) / (sqrt(v' / (1 - b2 ** t)) + epsilon)

State: Adam's m, v and t. Reads rate, b1, b2, epsilon.
"""

from __future__ import annotations

from hlo_inspect.analysis.optimizer.nesterov import find_nadam
from hlo_inspect.analysis.optimizer.update import Claim, Update


def match(update: Update) -> Claim | None:
    claim = find_nadam(update)
    if claim is None or claim.readings["weight_decay"].state != "absent":
        return None
    claim.rule = "nadam"
    return claim

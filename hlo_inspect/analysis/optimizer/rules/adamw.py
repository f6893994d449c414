"""AdamW (Loshchilov and Hutter 2019, arXiv:1711.05101): Adam with the decay of the weights beside the step.

    w' = w - rate * (m' / (1 - b1 ** t) / (sqrt(v' / (1 - b2 ** t)) + epsilon) + decay * w)

State and readings are Adam's, with the decay. A decay of 0 that stands in the text is one.
"""

from __future__ import annotations

from hlo_inspect.analysis.optimizer.adaptive import find_adam
from hlo_inspect.analysis.optimizer.update import Claim, Update


def match(update: Update) -> Claim | None:
    claim = update.once(find_adam)
    if claim is None or claim.readings["weight_decay"].state == "absent":
        return None
    claim.rule = "adamw"
    return claim

"""Adam (Kingma and Ba 2015, arXiv:1412.6980), with the L2 term inside the gradient if there is one.

    g = gradient + l2 * w
    m' = b1 * m + (1 - b1) * g
    v' = b2 * v + (1 - b2) * g ** 2
    w' = w - rate * m' / (1 - b1 ** t) / (sqrt(v' / (1 - b2 ** t)) + epsilon)

State: m, v and the counter t. Reads rate, b1, b2, epsilon, l2. The corrections may be missing, or folded into the rate as
`sqrt(1 - b2 ** t) / (1 - b1 ** t)`; epsilon may stand below the root.
"""

from __future__ import annotations

from hlo_inspect.analysis.optimizer.adaptive import find_adam
from hlo_inspect.analysis.optimizer.update import Claim, Update


def match(update: Update) -> Claim | None:
    claim = update.once(find_adam)
    if claim is None or claim.readings["weight_decay"].state != "absent":
        return None
    claim.rule = "adam"
    return claim

"""NAdamW: NAdam (Dozat 2016) with the decay of the weights beside the step (Loshchilov and Hutter 2019, arXiv:1711.05101).

State and readings are NAdam's, with the decay.
"""

from __future__ import annotations

from hlo_inspect.analysis.optimizer.nesterov import find_nadam
from hlo_inspect.analysis.optimizer.update import Claim, Update


def match(update: Update) -> Claim | None:
    claim = find_nadam(update)
    if claim is None or claim.readings["weight_decay"].state == "absent":
        return None
    claim.rule = "nadamw"
    return claim

"""A weight of a training step, with the rule that explains its update."""

from __future__ import annotations

from dataclasses import dataclass, field

from hlo_inspect.analysis.optimizer.state_arrays import StateArray
from hlo_inspect.analysis.optimizer.update import Claim, Update


@dataclass(slots=True)
class Weight:
    """One weight. `claim` is `None` where no rule explains it; `copy` is the copy that the forward pass reads. A weight
    `is_frozen` that has no gradient: it is returned as it came, or updated by decay alone.
    `is_learnt`: whether the gradient comes from a backward pass, `None` where that is not known.
    """

    array: StateArray
    update: Update
    claim: Claim | None
    copy: StateArray | None = None
    counters: list[StateArray] = field(default_factory=list)
    accumulators: list[StateArray] = field(default_factory=list)
    is_learnt: bool | None = None
    is_frozen: bool = False

    @property
    def rule(self) -> str:
        if self.is_frozen:
            return "frozen"
        return self.claim.rule if self.claim is not None else "unknown"

"""Two moments below one step, in the ways of Adam's relatives."""

from __future__ import annotations

from hlo_inspect.analysis.optimizer.adaptive import Step, adam_claim, find_step
from hlo_inspect.analysis.optimizer.moments import Average, gradient_average
from hlo_inspect.analysis.optimizer.update import Claim, State, Update


def claim_with(update: Update, rule: str, step: Step, first: Average, second: Average) -> Claim:
    """Adam's claim under another name."""
    claim = adam_claim(update, step, first, second)
    claim.rule = rule
    return claim


def find_first(update: Update) -> tuple[Step, Average] | None:
    """The step of an update and its first moment, where that is an average of gradients."""
    step = find_step(update)
    first = gradient_average(update, step.first) if step is not None else None
    return (step, first) if step is not None and first is not None else None


def state_in(update: Update, values: list[int], but: list[State]) -> State | None:
    """The state whose new value is among atoms, other than some."""
    found = [state for state in update.states if state.new in values and state not in but]
    return found[0] if len(found) == 1 else None

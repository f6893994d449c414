"""The update of an array as the rules see it, and the first claim that one of them makes on it."""

from __future__ import annotations

from dataclasses import dataclass

from hlo_inspect.optimizer.algebra.hyperparameter import COARSE, EXACT
from hlo_inspect.optimizer.algebra.normal_form import ONE, Sum, is_constant
from hlo_inspect.optimizer.algebra.norms import is_norm_of_clip
from hlo_inspect.optimizer.algebra.update import Claim, Update, UpdateContext
from hlo_inspect.optimizer.matching.candidates import StateChains, StateInputs
from hlo_inspect.optimizer.matching.step_expressions import StepExpressions
from hlo_inspect.optimizer.rules import claims_of
from hlo_inspect.optimizer.step.state_arrays import StateArray


@dataclass(frozen=True, slots=True)
class Proposal:
    """The first claim on an update; None if no rule explains it.

    `chain` are the new values of the array and of its states. `refused_states` are inputs, as bits: rules took forms that
    depend on them for no gradients, as states are in these inputs.
    """

    update: Update
    claim: Claim | None
    chain: list[Sum]
    refused_states: int

    @property
    def gradient(self) -> Sum:
        """The gradient of the claim, or all that is added to the weight."""
        return self.update.rest if self.claim is None else self.claim.gradient

    @property
    def has_two_states(self) -> bool:
        """True if the rule keeps two states or more; no field of a solver has them."""
        return self.claim is not None and len(self.claim.roles) > 1

    def can_change(self, explained: int) -> bool:
        """Return True if rules can claim more once the inputs `explained` count as states no more."""
        return self.claim is not None or bool(self.refused_states & explained)


def make_update(
    expressions: StepExpressions, chains: StateChains, states: StateInputs, array: StateArray, others: int = 0
) -> Update:
    """Make the update of an array whose gradient depends on its own old value, or on one of the inputs `others`."""
    own = expressions.values.own(array)
    return Update(
        expressions.forms,
        array,
        chains.states(array),
        UpdateContext(
            expressions.dependence,
            expressions.reductions,
            own,
            own | expressions.gradient_inputs | others,
            states.bits(array),
            expressions.values.running_products,
            expressions.array_by_node,
            lambda: expressions.averages,
            lambda: expressions.returned_scalars,
        ),
        tolerance=COARSE if expressions.flow.graph.coarse[array.new] else EXACT,
    )


def propose(update: Update, chain: list[Sum]) -> Proposal:
    """Ask the rules for a claim. The norm by which gradients are clipped counts as a number, not as a state."""
    norms = [state for state in update.states if is_norm_of_clip(update, state)]
    update = update.without(norms) if norms else update
    claim = next(claims_of(update), None)
    return Proposal(update, claim, chain, update.refused_states)


def descends(claim: Claim) -> bool:
    """Return True if the step goes down: a rate that is a number has to be positive."""
    return not is_constant(claim.rate) or claim.rate.get(ONE, 0.0) > 0.0

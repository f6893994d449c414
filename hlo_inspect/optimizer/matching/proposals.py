"""The update of an array for the rules, and the first claim of a rule on it.

Bounded steps, which keep the new weight within bounds, have no rule; this module finds them too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from hlo_inspect.optimizer.algebra.hyperparameter import COARSE, EXACT
from hlo_inspect.optimizer.algebra.normal_form import ONE, FormKinds, Sum, close, is_constant, product
from hlo_inspect.optimizer.algebra.norms import is_norm_of_clip
from hlo_inspect.optimizer.algebra.update import LEAST_KEPT, Claim, Update, UpdateContext, split
from hlo_inspect.optimizer.matching.candidates import StateChains, StateInputs
from hlo_inspect.optimizer.matching.step_expressions import StepExpressions
from hlo_inspect.optimizer.rules import claims_of
from hlo_inspect.optimizer.step.state_arrays import StateArray


class Proposal(NamedTuple):
    """The first claim on an update; None if no rule explains it.

    `chain` are the new values of the array and of its states. `refused_states` are inputs, as bits, that hold states: rules
    refused forms that depend on them as gradients.
    """

    update: Update
    claim: Claim | None
    chain: list[Sum]
    refused_states: int

    @property
    def gradient(self) -> Sum:
        """The gradient of the claim, or without a claim the whole addend of the weight."""
        return self.update.rest if self.claim is None else self.claim.gradient

    @property
    def is_unmistakable(self) -> bool:
        """True if the form of the update alone shows an optimizer: two states or more, or Muon's products of its momentum."""
        return self.claim is not None and (len(self.claim.roles) > 1 or self.claim.rule == "muon")

    def can_change(self, explained: int) -> bool:
        """Return True if rules can claim more once the inputs `explained` no longer count as states."""
        return self.claim is not None or bool(self.refused_states & explained)


def make_update(
    expressions: StepExpressions, chains: StateChains, states: StateInputs, array: StateArray, others: int = 0
) -> Update:
    """Make the update of an array whose gradient depends on the array's old value, or on any of the inputs `others`."""
    own = expressions.own(array)
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
            expressions.running_products,
            expressions.array_by_node,
            lambda: expressions.averages,
            lambda: expressions.returned_scalars,
            lambda: expressions.velocities,
        ),
        tolerance=COARSE if expressions.flow.graph.coarse[array.new] else EXACT,
    )


def propose(update: Update, chain: list[Sum]) -> Proposal:
    """Ask the rules for a claim. The norm by which gradients are clipped counts as a number, not as a state."""
    norms = [state for state in update.states if is_norm_of_clip(update, state)]
    update = update.with_scalar_states(norms) if norms else update
    claim = next(claims_of(update), None)
    return Proposal(update, claim, chain, update.refused_states)


def descends(claim: Claim) -> bool:
    """Return True if the step descends: a rate that is a number has to be positive."""
    return not is_constant(claim.rate) or claim.rate.get(ONE, 0.0) > 0.0


# -- bounded steps -----------------------------------------------------------------------------------------------------


def may_be_bounded_step(expressions: StepExpressions, proposal: Proposal) -> bool:
    """Return True if a new value that is no plain step can hold a step."""
    return _holds_step(expressions, proposal) or _holds_last_step(proposal.update)


def find_bounded_steps(expressions: StepExpressions, proposals: Iterable[Proposal]) -> list[Update]:
    """Find the updates with a visible gradient, and the updates of the same form."""
    kinds = FormKinds(expressions.forms)
    by_kind: dict[int, list[Proposal]] = {}
    for proposal in proposals:
        by_kind.setdefault(kinds.number(proposal.update.form), []).append(proposal)
    is_in = expressions.backward_passes.is_in
    return [
        proposal.update
        for members in by_kind.values()
        if any(is_in(member.update, member.chain) for member in members)
        for proposal in members
    ]


def _holds_step(expressions: StepExpressions, proposal: Proposal) -> bool:
    """Return True if a new value holds a sum of the old value, or of a state, and an addend that depends on the weight."""
    atoms, dependence, update = expressions.forms.atoms, expressions.dependence, proposal.update
    own = expressions.own(update.array)
    values = [update.weight, *(state.old for state in update.states)]
    inner = {atom for form in proposal.chain for atom in expressions.forms.atoms_below(form)}
    for form in (*proposal.chain, *(part for atom in inner for part in atoms[atom].parts)):
        if len(form) > 1 and dependence.inputs(form) & own and _is_sum_with(expressions, update, form, values):
            return True
    return False


def _is_sum_with(expressions: StepExpressions, update: Update, form: Sum, values: Sequence[int]) -> bool:
    """Return True if a form is the sum of most of one of `values` and an addend that depends on the weight."""
    own = expressions.own(update.array)
    for value in values:
        factor, rest = split(_divide_by_shared_factors(form), value)
        is_kept = LEAST_KEPT <= factor.get(ONE, 1.0) <= 1.0 and update.are_scalar(factor)
        if factor and is_kept and expressions.dependence.inputs(rest) & own:
            return True
    return False


def _holds_last_step(update: Update) -> bool:
    """Return True for `w + b * (w - last) + ...` with the previous step's value: momentum without a state of its own.

    With b = 1 it is a wave.
    """
    again = update.kept.get(ONE, 0.0) - 1.0
    if len(update.kept) != 1 or not 0.0 < again < 1.0:
        return False
    inputs = [m[0][0] for m, value in update.rest.items() if len(m) == 1 and m[0][1] == 1.0 and close(value, -again)]
    return any(update.forms.atoms[atom].op == "input" for atom in inputs)


def _divide_by_shared_factors(form: Sum) -> Sum:
    """Divide a sum by the factors that all of its terms share."""
    terms = [set(monomial) for monomial, value in form.items() if value != 0.0]
    shared = set.intersection(*terms) if terms else set()
    divisor = tuple(sorted((atom, -exponent) for atom, exponent in shared))
    return {product(monomial, divisor): value for monomial, value in form.items()} if divisor else form

"""The weights among the arrays of a training step, and the rule that updates each.

Each step of the matching hands a plain value to the next one:

    arrays -> candidates -> proposals of rules -> does the step train? -> verdicts on gradients -> matches -> weights

Nothing depends on the order of the arrays: whether the step trains is decided from all proposals before the first verdict.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import replace
from functools import cached_property, reduce
from operator import or_
from typing import NamedTuple

from hlo_inspect.hlo.values.shapes import BITS
from hlo_inspect.optimizer.algebra.normal_form import ONE
from hlo_inspect.optimizer.algebra.numeric import agrees
from hlo_inspect.optimizer.algebra.update import Claim, Update
from hlo_inspect.optimizer.dataflow import Dataflow
from hlo_inspect.optimizer.matching.candidates import Candidates, StateInputs, find_candidates
from hlo_inspect.optimizer.matching.proposals import (
    Proposal,
    descends,
    find_bounded_steps,
    make_update,
    may_be_bounded_step,
    propose,
)
from hlo_inspect.optimizer.matching.scalar_weights import find_doubtful_scalars, find_scalar_weights
from hlo_inspect.optimizer.matching.step_expressions import NO_OTHERS, OtherArrays, StepExpressions
from hlo_inspect.optimizer.matching.weights import Weight, WeightFilter, find_frozen_weights
from hlo_inspect.optimizer.rules import claims_of
from hlo_inspect.optimizer.step.state_arrays import StateArray, TrainingStep

MAX_ROUNDS = 4


class GradientVerdict(NamedTuple):
    """An update that can be the update of a weight.

    `claim` is None if the proposal's claim cannot be right. `is_learnt` is True if the gradient comes from a backward pass,
    None if that is unknown.
    """

    proposal: Proposal
    claim: Claim | None
    is_learnt: bool | None


class WeightMatch(NamedTuple):
    """The weight that a proposal leads to, or none.

    If `is_bounded_step`, it counts only if updates of the same form show a gradient.
    """

    proposal: Proposal
    weight: Weight | None
    is_bounded_step: bool = False


class Round(NamedTuple):
    """Matches by the node of the new value, under the assumption that `states` are states and that the step trains or not."""

    matches: dict[int, WeightMatch]
    states: StateInputs
    is_training: bool

    @property
    def weights(self) -> list[Weight]:
        """The weights of all matches."""
        return [match.weight for match in self.matches.values() if match.weight is not None]


class Matcher:
    """Matches the arrays of one step with the rules.

    With `gradients_are_inputs` the step is an update alone: the caller computes its gradients, and a rule with two states
    identifies them. Inputs that are `delayed_gradients`, as bits, need no such rule. `doubtful_scalars` change like weights,
    but nothing shows that a gradient changes them. The updates of `others` equal some that the rules see. `matches` are of the
    last round; `asked_count` is the number of updates that the rules saw.
    """

    def __init__(
        self,
        flow: Dataflow,
        step: TrainingStep,
        others: OtherArrays = NO_OTHERS,
        *,
        gradients_are_inputs: bool = False,
        delayed_gradients: int = 0,
    ) -> None:
        self.expressions = StepExpressions(
            flow, step, others, gradients_are_inputs=gradients_are_inputs, delayed_gradients=delayed_gradients
        )
        self.matches: dict[int, WeightMatch] = {}
        self.shows_training = False
        self.asked_count = 0
        self._backward_passes = self.expressions.backward_passes
        self.doubtful_scalars: list[StateArray] = []

    @cached_property
    def candidates(self) -> Candidates:
        """The arrays that can be weights or states."""
        return find_candidates(self.expressions)

    def weights(self) -> list[Weight]:
        """Return the weights of the step, by output."""
        linear = self._find_linear_weights()
        last = self._explain_states(self._match_all(linear))
        self.matches, self.shows_training = last.matches, last.is_training
        rules = {weight.rule for weight in last.weights if weight.claim is not None}
        weights = last.weights + [replace(weight, is_linear=True) for weight in linear if weight.rule in rules]
        self._note_large_expressions()
        bounded = [match.proposal for match in last.matches.values() if match.is_bounded_step]
        weights += [self._weight(update, None, is_learnt=True) for update in find_bounded_steps(self.expressions, bounded)]
        weights = self._drop_others(weights)
        scalars = [*find_scalar_weights(self.expressions, self.candidates, last.states, weights)]
        right = self._check_algebra(scalars)
        weights += [self._weight(update, claim, is_learnt=True) for claim, update in scalars if _kind(claim) in right]
        self.doubtful_scalars = find_doubtful_scalars(self.expressions, weights)
        weights += find_frozen_weights(self.expressions, self.candidates, last.states, weights)
        order = {id(array): number for number, array in enumerate(self.expressions.step.arrays)}
        return sorted(weights, key=lambda weight: order[id(weight.array)])

    # -- rounds ---------------------------------------------------------------------------------------------------------

    def _find_linear_weights(self) -> list[Weight]:
        """Find arrays that may be weights in which the loss is linear, such as the weights of a critic's last layer.

        Their gradient depends on other weights alone, and gradients of others depend on them.
        """
        expressions, chains = self.expressions, self.candidates.chains
        states = StateInputs(self.expressions, self.candidates.states)
        others = reduce(or_, map(expressions.own, self.candidates.changed_by_gradients), 0)
        claims = []
        for array in self.candidates.states:
            if self.candidates.read & expressions.own(array) and expressions.is_kept(array):
                update = make_update(self.expressions, chains, states, array, others)
                claim = next(claims_of(update), None)
                if claim is not None and descends(claim):
                    claims.append((claim, update))
        right = self._check_algebra(claims)
        return [
            self._weight(update, claim, is_learnt=True)
            for claim, update in claims
            if _kind(claim) in right and self._may_be_linear(claim, update)
        ]

    def _may_be_linear(self, claim: Claim, update: Update) -> bool:
        is_learnt = self._backward_passes.holds(update, claim.gradient)
        is_possible = is_learnt or (is_learnt is None and len(claim.roles) > 1)  # no field has two states
        return bool(is_possible) and self._backward_passes.may_be_linear(update, claim.gradient)

    def _match_all(self, linear: Iterable[Weight]) -> Round:
        """Match all candidates. Weights in which the loss is linear and arrays without a gradient are no states."""
        candidates = self.candidates
        weights = {id(array) for array in (*candidates.without_gradient, *(weight.array for weight in linear))}
        states = StateInputs(self.expressions, [array for array in candidates.states if id(array) not in weights])
        primaries = {array.new: array for array in map(self.expressions.primary, candidates.changed_by_gradients)}
        # The gradient of a matrix is a product, which shows at once that the step trains: asking matrices first saves time.
        matrices_first = sorted(primaries.values(), key=lambda array: -len(array.shape.dimensions))
        proposals = [self._propose(array, states) for array in matrices_first]
        is_training = self._shows_training(proposals)
        return Round(self._match(proposals, is_training=is_training), states, is_training)

    def _explain_states(self, first: Round) -> Round:
        """Match arrays without a rule again, without the states that other claims explain.

        The gradient of one network may go through the update of another.
        """
        last = first
        for _ in range(MAX_ROUNDS):
            claims = [weight.claim for weight in last.weights if weight.claim is not None]
            roles = {id(array) for claim in claims for array in (*claim.roles.values(), *claim.extra)}
            explained = [array for array in last.states.arrays if id(array) in roles]
            if len(claims) == len(last.weights) or not explained:
                break
            last = self._match_again(last, explained)
        return last

    def _match_again(self, last: Round, explained: list[StateArray]) -> Round:
        """Match the weights without a claim again, in case `explained` are no states."""
        explained_ids = {id(array) for array in explained}
        states = StateInputs(self.expressions, [array for array in last.states.arrays if id(array) not in explained_ids])
        bits = reduce(or_, (self.expressions.input_dependence.bit(array.source) for array in explained))
        unexplained = [weight for weight in last.weights if weight.claim is None]
        again = [weight.array for weight in unexplained if last.matches[weight.array.new].proposal.can_change(bits)]
        proposals = [self._propose(array, states) for array in again]
        is_training = last.is_training or self._shows_training(proposals)
        matches = dict(last.matches)
        for node, match in self._match(proposals, is_training=is_training).items():
            matches[node] = WeightMatch(match.proposal, match.weight or last.matches[node].weight)
        return Round(matches, states, is_training)

    # -- one round ------------------------------------------------------------------------------------------------------

    def _propose(self, array: StateArray, states: StateInputs) -> Proposal:
        chains = self.candidates.chains
        self.asked_count += 1
        return propose(make_update(self.expressions, chains, states, array), chains.forms(array))

    def _shows_training(self, proposals: Iterable[Proposal]) -> bool:
        """Return True if the backward pass holds a gradient of a rule with two states. One is enough for all weights."""
        if self.expressions.gradients_are_inputs:
            return False
        claims = (proposal for proposal in proposals if proposal.is_unmistakable)
        return any(self._backward_passes.holds(proposal.update, proposal.gradient) is True for proposal in claims)

    def _match(self, proposals: Iterable[Proposal], *, is_training: bool) -> dict[int, WeightMatch]:
        """Match proposals, by the node of the new value."""
        proposals = list(proposals)
        verdicts = [self._judge(proposal, is_training=is_training) for proposal in proposals]
        right = self._check_algebra((v.claim, v.proposal.update) for v in verdicts if v is not None and v.claim is not None)
        matches = [
            self._conclude(verdict, right) if verdict is not None else WeightMatch(proposal, None)
            for proposal, verdict in zip(proposals, verdicts, strict=True)
        ]
        return {match.proposal.update.array.new: match for match in matches}

    def _judge(self, proposal: Proposal, *, is_training: bool) -> GradientVerdict | None:
        """Judge if the gradient of a rule's claim is a gradient. Return None for steps of solvers and similar programs."""
        claim, update = proposal.claim, proposal.update
        is_learnt = self._is_learnt(proposal, is_training=is_training)
        if is_learnt is False:
            if claim is not None and self._backward_passes.is_in(update, proposal.chain):
                claim = None  # a gradient between matrices
            if claim is not None or self._backward_passes.is_anywhere(update) is False:
                return None  # a step of a solver, a recurrent cell
        if claim is not None and not descends(claim):
            is_scaled = claim.rate != {ONE: -1.0} or self._adds_rows(claim)
            if not claim.roles and not (is_learnt and is_scaled):
                return None  # a step of a solver, a residual: an ascent without a state is an update only along a gradient
            claim = None
        return GradientVerdict(proposal, claim, is_learnt)

    def _adds_rows(self, claim: Claim) -> bool:
        """Return True if a gradient is scattered: compilers multiply its rows by the rate before."""
        forms, frames = self.expressions.forms, self.expressions.flow.frames
        nodes = [forms.atoms[leaf].node for leaf in forms.leaves(claim.gradient)]
        places = [forms.graph.places[node] for node in nodes if node in forms.graph.places]
        return any(frames.opcode(place) == "scatter" for place in places)

    def _is_learnt(self, proposal: Proposal, *, is_training: bool) -> bool | None:
        """Return True if the change of a weight comes from a backward pass, None if that is unknown.

        If gradients are inputs, or the step trains, two states show it: no field has them.
        """
        if self.expressions.gradients_are_inputs or (proposal.is_unmistakable and is_training):
            inputs = self.expressions.dependence.inputs(proposal.gradient)
            return proposal.is_unmistakable or bool(inputs & self.expressions.delayed_gradients)
        return self._backward_passes.holds(proposal.update, proposal.gradient)

    def _check_algebra(self, claims: Iterable[tuple[Claim, Update]]) -> set[Hashable]:
        """Return the kinds of claims for which the algebra holds in numbers.

        One update of each kind is evaluated, because this takes long: the update of the lowest node, for any order of claims.
        """
        lowest: dict[Hashable, Update] = {}
        for claim, update in claims:
            kind = _kind(claim)
            if kind not in lowest or update.array.new < lowest[kind].array.new:
                lowest[kind] = update
        return {kind for kind, update in lowest.items() if agrees(self.expressions.forms, update.array.new, update.form)}

    def _conclude(self, verdict: GradientVerdict, right: set[Hashable]) -> WeightMatch:
        """Make a weight of an update, with its claim if the algebra is right."""
        proposal, claim, is_learnt = verdict.proposal, verdict.claim, verdict.is_learnt
        update = proposal.update
        if claim is not None and _kind(claim) in right:
            return WeightMatch(proposal, self._weight(update, claim, is_learnt=is_learnt))
        if self.expressions.gradients_are_inputs:
            return WeightMatch(proposal, None)
        if not update.is_step():
            return WeightMatch(proposal, None, may_be_bounded_step(self.expressions, proposal))
        is_seen = self._backward_passes.is_in(update, proposal.chain)
        is_learnt = True if is_learnt or is_seen or self._backward_passes.is_anywhere(update) else is_seen
        return WeightMatch(proposal, self._weight(update, None, is_learnt=is_learnt))

    # -- weights --------------------------------------------------------------------------------------------------------

    def _weight(self, update: Update, claim: Claim | None, *, is_learnt: bool | None) -> Weight:
        """Make a weight, with the counters and accumulators in the expression of its update."""
        dependence = self.expressions.dependence
        values = dependence.values(update.form)
        for state in update.states:
            values |= dependence.values(state.form)
        counters, accumulators = (
            [array for array in arrays if dependence.bit(self.expressions.forms.leaf(array.old)) & values]
            for arrays in (self.expressions.counters, self.expressions.accumulators)
        )
        copy = self._find_working_copy(update.array)
        averages = [average.array for average in update.averages]
        return Weight(update.array, update, claim, copy, counters, accumulators, is_learnt=is_learnt, averages=averages)

    def _find_working_copy(self, array: StateArray) -> StateArray | None:
        """Find the first copy of a less precise type; it may be whole on a device that holds a part of the master."""
        copies = (*array.same_value, *self.expressions.copies.get(array.new, ()))
        return next((copy for copy in copies if BITS[copy.shape.dtype] < BITS[array.shape.dtype]), None)

    def _drop_others(self, weights: list[Weight]) -> list[Weight]:
        """Leave out arrays that only look like weights, such as averages of weights."""
        expressions = self.expressions
        arrays = [array for array in expressions.moved if array.shape.elements != 1]
        moved = [expressions.input_dependence.bit(array.source) for array in arrays]
        weight_filter = WeightFilter(expressions.forms, expressions.dependence, moved)
        return weight_filter.drop_followers(weight_filter.drop_unseen(weight_filter.drop_doubtful(weights)))

    def _note_large_expressions(self) -> None:
        if self.expressions.forms.is_cut_short:
            frames = self.expressions.flow.frames
            frames.give_up(frames.root(self.expressions.step.frame, ()), "has expressions too large to compare")


def _kind(claim: Claim) -> Hashable:
    return claim.rule, tuple(claim.hyperparameters.items())

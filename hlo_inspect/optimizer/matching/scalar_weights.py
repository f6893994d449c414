"""Scalar weights, such as a temperature, whose gradient may hold no product that shows the way back.

The gradient of a scale that divides the logits, or of a multiplier of a constraint, is a sum alone. A solver's position has
such sums too. So a scalar is a weight only if it changes exactly as weights with a visible gradient do.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from functools import reduce
from operator import or_

from hlo_inspect.optimizer.algebra.normal_form import ONE, key_of
from hlo_inspect.optimizer.algebra.update import Claim, Update, split
from hlo_inspect.optimizer.matching.candidates import Candidates, StateChains, StateInputs
from hlo_inspect.optimizer.matching.proposals import make_update
from hlo_inspect.optimizer.matching.step_expressions import StepExpressions
from hlo_inspect.optimizer.matching.weights import Weight, inputs_read
from hlo_inspect.optimizer.rules import claims_of
from hlo_inspect.optimizer.step.state_arrays import StateArray


def find_scalar_weights(
    expressions: StepExpressions, candidates: Candidates, states: StateInputs, weights: Sequence[Weight]
) -> Iterator[tuple[Claim, Update]]:
    """Yield the updates of scalars, with a claim that equals one of `weights` in rule, constants and learning rate."""
    manners = {_manner(weight.claim) for weight in weights if weight.claim is not None and weight.is_learnt}
    scalars = [array for array in expressions.moving if array.shape.elements == 1] if manners else []
    used = {id(array) for weight in weights for array in weight.arrays}
    others = reduce(or_, map(expressions.own, candidates.changed_by_gradients), 0)
    chains = StateChains(expressions, candidates.chains.weights, of_scalars=True)
    for array in scalars:
        if id(array) not in used and expressions.is_kept(array):
            update = make_update(expressions, chains, states, array, others)
            claim = next(claims_of(update), None)
            if claim is not None and _manner(claim) in manners:
                yield claim, update


def find_doubtful_scalars(expressions: StepExpressions, weights: Sequence[Weight]) -> list[StateArray]:
    """Find scalars that gradients of `weights` or the loss read and that a step along an opaque value changes, but no weights.

    Plain SGD on a scalar is a number times any value, so nothing tells the learning rate or the direction.
    """
    read = inputs_read(expressions, weights)
    used = {id(array) for weight in weights for array in weight.arrays}
    scalars = [array for array in expressions.moving if array.shape.elements == 1 and id(array) not in used]
    is_read = (bool(read & expressions.own(array)) or _is_in_loss(expressions, array) for array in scalars)
    return [array for array, reads in zip(scalars, is_read, strict=True) if reads and _takes_step(expressions, array)]


def _is_in_loss(expressions: StepExpressions, array: StateArray) -> bool:
    """Return True if a returned scalar, except the new value, holds the old value of an array."""
    old, new = expressions.dependence.bit(expressions.forms.leaf(array.old)), expressions.definition(array)
    return any(expressions.dependence.values(form) & old for form in expressions.returned_scalars if form != new)


def _takes_step(expressions: StepExpressions, array: StateArray) -> bool:
    kept, rest = split(expressions.definition(array), expressions.forms.leaf(array.old))
    return kept == {ONE: 1.0} and bool(expressions.dependence.inputs(rest) or expressions.dependence.values(rest))


def _manner(claim: Claim) -> Hashable:
    return claim.rule, tuple(claim.hyperparameters.items()), key_of(claim.rate)

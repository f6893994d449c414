"""Arrays without a gradient that are weights: frozen ones, and those to which the step adds an array of the caller."""

from __future__ import annotations

from hlo_inspect.optimizer.matching.candidates import Candidates, StateInputs
from hlo_inspect.optimizer.matching.proposals import make_update
from hlo_inspect.optimizer.matching.step_expressions import StepExpressions
from hlo_inspect.optimizer.matching.weights import Weight
from hlo_inspect.optimizer.step.state_arrays import StateArray


def find_frozen_weights(
    expressions: StepExpressions, candidates: Candidates, states: StateInputs, weights: list[Weight]
) -> list[Weight]:
    """Find the arrays without a gradient on which gradients of `weights` depend, and that hold no weight's value, such as an
    average of it. A weight is frozen, unless an array of the caller is added to it.
    """
    forms, dependence, chains = expressions.forms, expressions.dependence, candidates.chains
    read = values = 0
    for weight in weights:
        inputs = dependence.inputs(weight.claim.gradient if weight.claim is not None else weight.update.rest)
        read |= inputs if inputs > 0 else 0
    for array in expressions.moving:
        if array.new in chains.weights:
            values |= dependence.bit(forms.leaf(array.new)) | dependence.bit(forms.leaf(array.old))
    frozen = []
    for array in candidates.without_gradient:
        holds_weight = any(dependence.values(form) & values for form in chains.forms(array))
        if holds_weight or not read & expressions.values.own(array):
            continue
        added = _find_added(expressions, candidates, array)
        if added <= {"input"}:
            update = make_update(expressions, chains, states, array)
            frozen.append(Weight(array, update, None, is_frozen=not added, is_learnt=bool(added) or None))
    return frozen


def _find_added(expressions: StepExpressions, candidates: Candidates, array: StateArray) -> set[str]:
    """Find the operations that make a new value, except its own old values and scalars."""
    forms = expressions.forms
    own = {forms.leaf(node) for member in candidates.chains.arrays(array) for node in (member.old, member.new)}
    leaves = {leaf for form in candidates.chains.forms(array) for leaf in forms.leaves(form)} - own
    return {forms.atoms[leaf].op for leaf in leaves if not expressions.dependence.are_scalars(leaf)}

"""Weights of a training step, and the filter for arrays that only look like weights.

Such arrays are averages of weights, states, and positions that simulations and samplers move.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import reduce
from operator import or_

from hlo_inspect.graph.frames import Place
from hlo_inspect.hlo.values.attributes import SliceDimension
from hlo_inspect.optimizer.algebra.dependence import AtomDependence
from hlo_inspect.optimizer.algebra.hyperparameter import ABSENT
from hlo_inspect.optimizer.algebra.normal_form import ONE, Atom, NormalForms, Sum, is_constant
from hlo_inspect.optimizer.algebra.update import Claim, Update
from hlo_inspect.optimizer.matching.candidates import Candidates, StateInputs
from hlo_inspect.optimizer.matching.proposals import make_update
from hlo_inspect.optimizer.matching.step_expressions import StepExpressions
from hlo_inspect.optimizer.step.state_arrays import StateArray

MAX_ATOMS = 20_000  # atoms of one update that are read

Part = SliceDimension | None
"""Range of the elements of a flattened array; None for all."""


@dataclass(slots=True)
class Weight:
    """A weight. `claim` is None if no rule explains it; `copy` is the copy that the forward pass reads.

    `is_frozen`: it has no gradient; the step returns it unchanged, or updated by decay alone. `is_learnt`: its gradient comes
    from a backward pass, None if unknown. `is_linear`: the loss is linear in it, so no cotangent from the loss is in its
    gradient. `averages` are arrays that add some of the new weight, `states` those of a frozen weight.

    If the rules saw an equal weight instead of this one, that is `first`. Then the forms of `update` and `claim` are those of
    `first`; `nodes` and `parts` have the weight's own leaves and parts of arrays by those of `first`.
    """

    array: StateArray
    update: Update
    claim: Claim | None
    copy: StateArray | None = None
    counters: list[StateArray] = field(default_factory=list)
    accumulators: list[StateArray] = field(default_factory=list)
    is_learnt: bool | None = None
    is_frozen: bool = False
    is_linear: bool = False
    averages: list[StateArray] = field(default_factory=list)
    states: list[StateArray] = field(default_factory=list)
    first: Weight | None = None
    nodes: Mapping[int, int] = field(default_factory=dict)
    parts: Mapping[Part, Part] = field(default_factory=dict)

    @property
    def arrays(self) -> list[StateArray]:
        """The array with all of its state."""
        claim = self.claim
        claimed = (*claim.roles.values(), *claim.extra) if claim is not None else ()
        return [self.array, *self.accumulators, *self.averages, *self.states, *claimed]

    @property
    def rule(self) -> str:
        if self.is_frozen:
            return "frozen"
        return self.claim.rule if self.claim is not None else "unknown"

    def gradient_places(self) -> list[tuple[Place, Part]]:
        """Return the places of the opaque values that stand for the gradient, with their parts of long arrays.

        They are factors with exponent 1 in the form of the gradient, or without a rule in the form of the new value. They are
        as large as the weight. In regions with manual sharding, which have smaller arrays, they are the largest arrays. The
        norm of a clip is a scalar, and a second moment holds a square. The condition of a `select` is left out.
        """
        forms, graph = self.update.forms, self.update.forms.graph
        waiting: list[tuple[Sum, Part]] = [(self.update.form if self.claim is None else self.claim.gradient, None)]
        seen: set[tuple[int, Part]] = set()
        opaque: list[tuple[int, Part]] = []
        while waiting and len(seen) < MAX_ATOMS:
            form, part = waiting.pop()
            for monomial in form:
                for number, exponent in monomial:
                    if exponent == 1.0 and (number, part) not in seen:
                        seen.add((number, part))
                        waiting += _parts_below(forms, forms.atoms[number], part, opaque)
        least = min(self.array.shape.elements or 1, max((graph.sizes[node] for node, _ in opaque), default=1))
        leaves = [(self.own_node(node), part) for node, part in opaque if graph.sizes[node] >= least]
        return [(graph.places[node], self.parts.get(part, part)) for node, part in leaves]

    def own_node(self, node: int) -> int:
        """Return the weight's own leaf instead of a leaf of the forms, which are those of the first weight."""
        return self.nodes.get(node, node)


def _parts_below(forms: NormalForms, atom: Atom, part: Part, opaque: list[tuple[int, Part]]) -> list[tuple[Sum, Part]]:
    """Return the forms in an atom. Append the node of an opaque atom to `opaque`."""
    if atom.node is None:
        cut = atom.attribute
        if atom.op == "slice" and isinstance(cut, tuple) and len(cut) == 1 and isinstance(cut[0], SliceDimension):
            return [(atom.parts[0], cut[0])]
        return [(form, part) for form in (atom.parts[1:] if atom.op == "select" else atom.parts)]
    if atom.node in forms.graph.places:
        opaque.append((atom.node, part))
        return []
    return [(forms.definition(atom.node), part)] if forms.graph.args[atom.node] else []


class WeightFilter:
    """Filter for arrays that are no weights. `moved` are the bits of the inputs that the step changes."""

    def __init__(self, forms: NormalForms, dependence: AtomDependence, moved: Iterable[int]) -> None:
        self._forms = forms
        self._dependence = dependence
        self._moved = reduce(or_, moved, 0)

    def drop_unseen(self, weights: list[Weight]) -> list[Weight]:
        """Leave out steps without a rule if the whole training step has no known gradient: such steps are simulations."""
        if any(weight.claim is not None or weight.is_learnt for weight in weights):
            return weights
        return [weight for weight in weights if weight.is_learnt is None]

    def drop_doubtful(self, weights: list[Weight]) -> list[Weight]:
        """Leave out doubtful steps, unless the same rule learns another weight."""
        learnt = {weight.rule for weight in weights if weight.is_learnt}
        return [weight for weight in weights if weight.is_learnt or weight.rule in learnt or not self._is_doubtful(weight)]

    def _is_doubtful(self, weight: Weight) -> bool:
        """Return True if a step without a state may not descend along a gradient.

        * it goes up if all scalars are positive
        * its length comes from other arrays that the step changes, or its direction from elsewhere than the weight: samplers,
          and the method of conjugate gradients
        * it goes part of the way to another value, `w + rate * (f(w) - w)`, to find a fixed point
        * it subtracts what is the same along a dimension, as a softmax its maximum and a normalization its mean
        """
        claim, update = weight.claim, weight.update
        if claim is None or claim.roles:
            return False
        goes_up = not is_constant(claim.rate) and all(value < 0.0 for value in claim.rate.values())
        return (
            goes_up
            or (claim.rate == {ONE: 1.0} and self._is_repeated(claim.gradient))
            or claim.hyperparameters.get("weight_decay", ABSENT).value == 1.0
            or bool(self._dependence.inputs(claim.rate) & self._moved & ~update.own_inputs)
            or not update.turns(claim.gradient)
        )

    def _is_repeated(self, form: Sum) -> bool:
        """Return True if all arrays in a sum are broadcasts of fewer dimensions."""
        arrays = {atom for monomial in form for atom, _ in monomial if not self._dependence.are_scalars(atom)}
        return all(self._forms.atoms[atom].op == "broadcast" for atom in arrays)

    def drop_followers(self, weights: list[Weight]) -> list[Weight]:
        """Leave out arrays that follow another weight (an average of it) or serve one as its state."""
        serving = {id(array) for w in weights if w.claim for array in (*w.claim.roles.values(), *w.claim.extra)}
        new = old = 0
        for weight in weights:
            new |= self._dependence.bit(self._forms.leaf(weight.array.new))
            if weight.claim is not None:
                old |= self._dependence.bit(self._forms.leaf(weight.array.old))
        kept = []
        for weight in weights:
            form = weight.update.form
            follows = self._dependence.values(form) & new or self._values_added(form) & old
            if id(weight.array) in serving or (weight.claim is None and follows):
                continue
            kept.append(weight)
        return kept

    def _values_added(self, form: Sum) -> int:
        """Return the values, as bits, that are terms of a sum, or of a choice in it, with scalar factors.

        An average may add the old value of a weight, while a gradient holds other weights as factors.
        """
        values = 0
        seen: set[int] = set()
        stack = [form]
        while stack:
            for monomial in stack.pop():
                arrays = [atom for atom, _ in monomial if not self._dependence.are_scalars(atom)]
                if len(arrays) == 1 and arrays[0] not in seen:
                    seen.add(arrays[0])
                    values |= self._dependence.bit(arrays[0])
                    inner = self._forms.atoms[arrays[0]]
                    stack += inner.parts[1:] if inner.op == "select" else inner.parts if inner.op == "sum" else ()
        return values


# -- frozen weights ----------------------------------------------------------------------------------------------------


def find_frozen_weights(
    expressions: StepExpressions, candidates: Candidates, states: StateInputs, weights: list[Weight]
) -> list[Weight]:
    """Find the arrays without a gradient that the gradients of `weights` depend on, except averages of weights.

    A weight is frozen, unless an array of the caller is added to it.
    """
    forms, dependence, chains = expressions.forms, expressions.dependence, candidates.chains
    read, values = inputs_read(expressions, weights), 0
    for array in expressions.moving:
        if array.new in chains.weights:
            values |= dependence.bit(forms.leaf(array.new)) | dependence.bit(forms.leaf(array.old))
    frozen = []
    for array in candidates.without_gradient:
        holds_weight = any(dependence.values(form) & values for form in chains.forms(array))
        if holds_weight or not read & expressions.own(array):
            continue
        added = _find_addends(expressions, candidates, array)
        if added <= {"input"}:
            update = make_update(expressions, chains, states, array)
            own = [state.array for state in update.states]
            frozen.append(Weight(array, update, None, is_frozen=not added, is_learnt=bool(added) or None, states=own))
    return frozen


def inputs_read(expressions: StepExpressions, weights: Iterable[Weight]) -> int:
    """Return the inputs, as bits, that the gradients of weights read, and those of the others that equal them."""
    read = 0
    for weight in weights:
        inputs = expressions.dependence.inputs(weight.claim.gradient if weight.claim is not None else weight.update.rest)
        read |= (inputs if inputs > 0 else 0) | expressions.others.inputs.get(id(weight.array), 0)
    return read


def _find_addends(expressions: StepExpressions, candidates: Candidates, array: StateArray) -> set[str]:
    """Find the operations that make a new value, except its own old values and scalars."""
    forms = expressions.forms
    own = {forms.leaf(node) for member in candidates.chains.arrays(array) for node in (member.old, member.new)}
    leaves = {leaf for form in candidates.chains.forms(array) for leaf in forms.leaves(form)} - own
    return {forms.atoms[leaf].op for leaf in leaves if not expressions.dependence.are_scalars(leaf)}

"""Weights of a training step, and which arrays that look like weights are none: what simulations and samplers move, averages
of weights, states.
"""

from __future__ import annotations

from collections.abc import Iterable
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

MAX_ATOMS = 20_000  # of one update that are looked at

Part = SliceDimension | None
"""A range of the elements of a flattened array; all of them for `None`."""


@dataclass(slots=True)
class Weight:
    """One weight. `claim` is `None` where no rule explains it; `copy` is the copy that the forward pass reads. A weight
    `is_frozen` that has no gradient: it is returned as it came, or updated by decay alone.
    `is_learnt`: whether the gradient comes from a backward pass, `None` where that is not known. `is_linear`: whether the
    loss is linear in it, so that its gradient depends on no cotangent that the loss decides.
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

    @property
    def rule(self) -> str:
        if self.is_frozen:
            return "frozen"
        return self.claim.rule if self.claim is not None else "unknown"

    def gradient_places(self) -> list[tuple[Place, Part]]:
        """Return where the opaque values are that stand for the gradient in the update, and of long arrays which part of them.

        Of the opaque values in the form of the gradient, without a rule in that of the new value, these are the factors with
        exponent 1 that are as large as the weight; inside of regions with manual sharding, where arrays are smaller, the
        largest. The norm of a clip is a scalar, and a second moment holds a square. The condition of a `select` is left out.
        """
        forms = self.update.forms
        waiting: list[tuple[Sum, Part]] = [(self.update.form if self.claim is None else self.claim.gradient, None)]
        seen: set[tuple[int, Part]] = set()
        places: list[tuple[int, Place, Part]] = []
        while waiting and len(seen) < MAX_ATOMS:
            form, part = waiting.pop()
            for monomial in form:
                for number, exponent in monomial:
                    if exponent == 1.0 and (number, part) not in seen:
                        seen.add((number, part))
                        waiting += _below(forms, forms.atoms[number], part, places)
        least = min(self.update.array.shape.elements or 1, max((size for size, *_ in places), default=1))
        return [(place, part) for size, place, part in places if size >= least]


def _below(forms: NormalForms, atom: Atom, part: Part, places: list[tuple[int, Place, Part]]) -> list[tuple[Sum, Part]]:
    """What an atom is made of; the size and place of an opaque one are added to `places`."""
    if atom.node is None:
        cut = atom.attribute
        if atom.op == "slice" and isinstance(cut, tuple) and len(cut) == 1 and isinstance(cut[0], SliceDimension):
            return [(atom.parts[0], cut[0])]
        return [(form, part) for form in (atom.parts[1:] if atom.op == "select" else atom.parts)]
    place = forms.graph.places.get(atom.node)
    if place is not None:
        places.append((forms.graph.sizes[atom.node], place, part))
        return []
    return [(forms.definition(atom.node), part)] if forms.graph.args[atom.node] else []


class Exclusions:
    """What is left out of the weights that were found in a step. `moved` are the bits of the inputs that the step changes."""

    def __init__(self, forms: NormalForms, dependence: AtomDependence, moved: Iterable[int]) -> None:
        self._forms = forms
        self._dependence = dependence
        self._moved = reduce(or_, moved, 0)

    def without_unseen(self, found: list[Weight]) -> list[Weight]:
        """Leaves out steps without a rule where no gradient is seen in the whole training step: those of simulations."""
        if any(weight.claim is not None or weight.is_learnt for weight in found):
            return found
        return [weight for weight in found if weight.is_learnt is None]

    def without_doubtful(self, found: list[Weight]) -> list[Weight]:
        """Leaves out steps that are only perhaps those of a gradient, unless one beside them is learnt by the same rule."""
        learnt = {weight.rule for weight in found if weight.is_learnt}
        return [weight for weight in found if weight.is_learnt or weight.rule in learnt or not self._is_doubtful(weight)]

    def _is_doubtful(self, weight: Weight) -> bool:
        """Whether a step without a state goes up where all scalars are positive, has its length from other arrays that the step
        changes, or its direction from elsewhere than the weight: samplers, and the method of conjugate gradients. Or whether it
        goes part of the way to another value, `w + rate * (f(w) - w)`: a fixed point is looked for. Or whether it takes
        off what is the same along a dimension: a softmax takes off the maximum, a normalization the mean.
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
        """Whether the arrays in a sum are repeated ones of fewer dimensions."""
        arrays = {atom for monomial in form for atom, _ in monomial if not self._dependence.are_scalars(atom)}
        return all(self._forms.atoms[atom].op == "broadcast" for atom in arrays)

    def without_followers(self, found: list[Weight]) -> list[Weight]:
        """Leaves out what follows another weight (an average of it) or serves one as its state."""
        serving = {id(array) for w in found if w.claim for array in (*w.claim.roles.values(), *w.claim.extra)}
        new = old = 0
        for weight in found:
            new |= self._dependence.bit(self._forms.leaf(weight.array.new))
            if weight.claim is not None:
                old |= self._dependence.bit(self._forms.leaf(weight.array.old))
        kept = []
        for weight in found:
            form = weight.update.form
            follows = self._dependence.values(form) & new or self._values_added(form) & old
            if id(weight.array) in serving or (weight.claim is None and follows):
                continue
            kept.append(weight)
        return kept

    def _values_added(self, form: Sum) -> int:
        """The values that are terms of a sum, or of a choice in it, with scalar factors: an average may take in what a weight
        was before the step, while a gradient holds other weights as factors.
        """
        found = 0
        stack = [form]
        while stack:
            for monomial in stack.pop():
                arrays = [atom for atom, _ in monomial if not self._dependence.are_scalars(atom)]
                if len(arrays) == 1:
                    found |= self._dependence.bit(arrays[0])
                    inner = self._forms.atoms[arrays[0]]
                    stack += inner.parts[1:] if inner.op == "select" else inner.parts if inner.op == "sum" else ()
        return found


# -- frozen weights ----------------------------------------------------------------------------------------------------


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
        if holds_weight or not read & expressions.own(array):
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

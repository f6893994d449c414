"""Arrays of a step that can be weights or states, before any rule sees them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import or_
from typing import NamedTuple

from hlo_inspect.optimizer.algebra.normal_form import Sum
from hlo_inspect.optimizer.algebra.update import State
from hlo_inspect.optimizer.matching.step_expressions import StepExpressions
from hlo_inspect.optimizer.step.state_arrays import StateArray

MAX_STATES = 64  # of one array


class StateChains:
    """The states of each array: the other arrays in its expression, and in the expressions of these.

    `weights` are nodes of new values that are no states. `of_scalars`: scalars can be states. The field `_chains` is a cache.
    """

    def __init__(self, expressions: StepExpressions, weights: frozenset[int], *, of_scalars: bool = False) -> None:
        self._expressions = expressions
        self._of_scalars = of_scalars
        self.weights = weights
        self._weight_bits = expressions.dependence.bits(
            atom for atom, array in expressions.by_atom.items() if array.new in weights
        )
        self._chains: dict[int, list[State]] = {}

    def states(self, array: StateArray) -> list[State]:
        """Return the states of an array."""
        states = self._chains.get(array.new)
        if states is None:
            states = self._chains[array.new] = self._find_states(array)
        return states

    def arrays(self, array: StateArray) -> list[StateArray]:
        """Return an array and its states."""
        return [array, *(state.array for state in self.states(array))]

    def forms(self, array: StateArray) -> list[Sum]:
        """Return the new values of an array and of its states."""
        return [self._expressions.definition(member) for member in self.arrays(array)]

    def _find_states(self, array: StateArray) -> list[State]:
        expressions = self._expressions
        forms, dependence = expressions.forms, expressions.dependence
        states: dict[int, State] = {}
        seen = 0
        stack = [array]
        while stack:
            unseen = expressions.values_in(stack.pop()) & ~seen
            seen |= unseen
            for atom in dependence.atoms(unseen & ~self._weight_bits):
                other = expressions.by_atom.get(atom)
                if other is None or other is array or other.new in states:
                    continue
                is_scalar = other.shape.elements == 1 and not self._of_scalars
                if is_scalar and not expressions.inputs_behind(other) & expressions.own(array):
                    continue  # a loss scale, a counter
                if len(states) == MAX_STATES:
                    expressions.flow.frames.give_up(array.place, "combines too many others to compare")
                    return list(states.values())
                states[other.new] = State(other, forms.leaf(other.old), forms.leaf(other.new), expressions.definition(other))
                stack.append(other)
        return list(states.values())


class StateInputs:
    """The inputs of `arrays`, which can be states, by the weight of these states.

    `_by_own_sizes` has the inputs of arrays by the sizes of their dimensions, without 1. `_by_sizes` is a cache by those of
    weights.
    """

    def __init__(self, expressions: StepExpressions, arrays: Sequence[StateArray]) -> None:
        self.arrays = arrays
        self._expressions = expressions
        self._by_own_sizes: dict[frozenset[int | None], int] = {}
        self._by_sizes: dict[frozenset[int | None], int] = {}
        for array in arrays:
            sizes = frozenset(array.shape.dimensions) - {1}
            bit = expressions.input_dependence.bit(array.source)
            self._by_own_sizes[sizes] = self._by_own_sizes.get(sizes, 0) | bit

    def bits(self, weight: StateArray) -> int:
        """Return the inputs, as bits, on which the gradient of a weight never depends: its states and its history."""
        sizes = frozenset(weight.shape.dimensions)
        bits = self._by_sizes.get(sizes)
        if bits is None:
            fitting = (bits for own, bits in self._by_own_sizes.items() if own <= sizes)
            bits = self._by_sizes[sizes] = reduce(or_, fitting, 0)
        return bits | self._expressions.histories.get(weight.new, 0)


class Candidates(NamedTuple):
    """The arrays of a step by what they can be.

    `changed_by_gradients` can be weights, `states` can be states. Gradients depend on the inputs `read`, as bits. So they
    depend on the arrays `without_gradient`: frozen weights, averages of weights that the loss reads.
    """

    changed_by_gradients: list[StateArray]
    without_gradient: list[StateArray]
    states: list[StateArray]
    chains: StateChains
    read: int


def find_candidates(expressions: StepExpressions) -> Candidates:
    """Sort the arrays of a step by what they can be."""
    changed = _find_changed_by_gradients(expressions)
    possible = {id(array) for array in changed}
    states = [
        array
        for array in expressions.moving
        if not any(id(equal) in possible for equal in (array, *array.same_value)) and expressions.is_state(array)
    ]
    chains = StateChains(expressions, frozenset(array.new for array in changed if expressions.is_kept(array)))
    inputs = (expressions.inputs_behind(member) for array in changed for member in chains.arrays(array))
    read = reduce(or_, (bits for bits in inputs if bits > 0), 0)
    read = reduce(or_, (expressions.others.inputs.get(id(array), 0) for array in changed), read)
    return Candidates(changed, _find_without_gradient(expressions, changed, chains, read), states, chains, read)


def _find_changed_by_gradients(expressions: StepExpressions) -> list[StateArray]:
    """Find the arrays that can be weights: their gradients depend on the arrays themselves.

    If gradients are inputs, a weight gets an addend that depends on a state and on such an input. A weight without a state gets
    one that depends on a gradient of the last step.
    """
    if not expressions.gradients_are_inputs:
        return [array for array in expressions.moving if expressions.feeds_itself(array)]
    chains = StateChains(expressions, frozenset())
    kept = [array for array in expressions.moving if array.shape.elements != 1 and expressions.is_kept(array)]
    states = {id(state.array) for array in kept for state in chains.states(array)}
    changed = []
    for array in kept:
        gradients = 0 if id(array) in states else expressions.delayed_gradients
        gradients = expressions.gradient_inputs if chains.states(array) else gradients
        if any(expressions.inputs_behind(member) & gradients for member in chains.arrays(array)):
            changed.append(array)
    return changed


def _find_without_gradient(
    expressions: StepExpressions, changed: list[StateArray], chains: StateChains, read: int
) -> list[StateArray]:
    others = expressions.others.ids.union(id(array) for array in (*changed, *expressions.accumulators))
    return [
        array
        for array in expressions.step.arrays
        if array.is_float
        and array.shape.elements != 1
        and id(array) not in others
        and read & expressions.own(array)
        and not any(expressions.inputs_behind(member) for member in chains.arrays(array))
    ]

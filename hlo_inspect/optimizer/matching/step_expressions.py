"""The expressions of one step: the normal forms of its arrays, and what these depend on."""

from __future__ import annotations

from functools import cached_property, reduce
from operator import or_

from hlo_inspect.optimizer.algebra.normal_form import NormalForms, Sum
from hlo_inspect.optimizer.algebra.reductions import Reductions
from hlo_inspect.optimizer.algebra.update import WeightAverage
from hlo_inspect.optimizer.algebra.weight_averages import weight_averages
from hlo_inspect.optimizer.dataflow import Dataflow
from hlo_inspect.optimizer.matching.backward_pass import BackwardPasses
from hlo_inspect.optimizer.matching.new_values import NewValues
from hlo_inspect.optimizer.step.state_arrays import StateArray, TrainingStep


class StepExpressions:
    """Expressions of the arrays of one step.

    `moving` are the arrays of floats that the step changes, `accumulators` those that it sets to 0, `counters` the integers.
    With `gradients_are_inputs` the step is an update alone: the caller computes its gradients.
    """

    def __init__(self, flow: Dataflow, step: TrainingStep, *, gradients_are_inputs: bool = False) -> None:
        self.flow = flow
        self.step = step
        self.gradients_are_inputs = gradients_are_inputs
        self.input_dependence = step.input_dependence
        graph = flow.graph
        changed = [array for array in step.arrays if array.is_float and not array.is_unchanged]
        self.accumulators = [s for s in changed if s.shape.elements != 1 and graph.value(s.new) == 0.0]
        self.counters = [s for s in step.arrays if not s.is_float and s.shape.elements == 1 and not s.is_unchanged]
        self.moving = self._without_unread([array for array in changed if graph.ops[array.new] != "constant"])
        cut = frozenset(node for array in self.moving for node in (array.new, array.old) if graph.args[node])
        live = frozenset(array.old for array in self.moving)
        self.forms = NormalForms(graph, cut, live)
        self.reductions = Reductions(flow, step, self.forms)
        places = [array.place for array in step.arrays]
        self.backward_passes = BackwardPasses(flow.frames, places, self.input_dependence)
        unmatched = self.counters + self.accumulators
        self.values = NewValues(
            flow, self.forms, self.input_dependence, self.moving, unmatched, reads_inputs=gradients_are_inputs
        )
        self.dependence = self.values.dependence
        floats = [array for array in step.arrays if array.is_float]
        self.array_by_node = {node: array for array in floats for node in (array.new, array.old)}

    @cached_property
    def gradient_inputs(self) -> int:
        """The inputs, as bits, that can be gradients that the caller computes: arrays of which no output is the new value."""
        if not self.gradients_are_inputs:
            return 0
        sizes, sources = self.flow.graph.sizes, self.flow.graph.sources
        others = [array.source for array in self.step.arrays]
        others += [source for node, source in sources.items() if sizes[node] == 1]
        return ~reduce(or_, map(self.input_dependence.bit, others), 0)

    @cached_property
    def averages(self) -> dict[int, list[WeightAverage]]:
        """The averages of weights."""
        return weight_averages(self.forms, self.moving)

    @cached_property
    def returned_scalars(self) -> list[Sum]:
        """The scalars that the step returns."""
        return [self.forms.definition(node) for node in self.step.results if self.flow.graph.sizes[node] == 1]

    @cached_property
    def histories(self) -> dict[int, int]:
        """The inputs that keep what an array was in the last steps, as `NewValues.find_histories` returns them."""
        return self.values.find_histories(self.step)

    def _without_unread(self, arrays: list[StateArray]) -> list[StateArray]:
        """Leave out arrays that are only written: the step never reads the input that they replace."""
        graph = self.flow.graph
        below = graph.below([array.new for array in self.step.arrays])
        read = set(below)
        if all(array.old in read or array.same_value for array in arrays):
            return arrays
        inputs = 0
        for node in below:
            inputs |= self.input_dependence.inputs(graph.places[node]) if node in graph.places else 0
        return [
            array
            for array in arrays
            if array.old in read or array.same_value or inputs & self.input_dependence.bit(array.source)
        ]

"""The expressions of one step: the normal forms of its arrays' new values, and their dependences."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property, partial, reduce
from operator import or_
from typing import NamedTuple

from hlo_inspect.graph.frames import Input
from hlo_inspect.optimizer.algebra.dependence import AtomDependence
from hlo_inspect.optimizer.algebra.normal_form import ONE, NormalForms, Sum, add_to, added, key_of, split_zero
from hlo_inspect.optimizer.algebra.reductions import Reductions
from hlo_inspect.optimizer.algebra.update import LEAST_KEPT, WeightAverage, split
from hlo_inspect.optimizer.dataflow import Dataflow
from hlo_inspect.optimizer.matching.backward_pass import BackwardPasses
from hlo_inspect.optimizer.operations import IN_PLACE
from hlo_inspect.optimizer.step.state_arrays import StateArray, TrainingStep
from hlo_inspect.optimizer.step.step_dependence import InputDependence

MAX_AVERAGED = 4  # terms of an average


class OtherArrays(NamedTuple):
    """Arrays, by their ids, with updates that equal those of arrays that are looked at.

    `inputs` are the inputs, as bits, behind the leaves of the others, by the ids of the arrays that are looked at.
    """

    ids: frozenset[int]
    inputs: Mapping[int, int]


NO_OTHERS = OtherArrays(frozenset(), {})


class StepExpressions:
    """Expressions of the arrays of one step.

    `moving` are the arrays of floats that the step changes, `accumulators` the arrays that it sets to 0, `counters` the
    integers. With `gradients_are_inputs` the step is an update alone: the caller computes its gradients, or the last step did.
    Then `delayed_gradients` are their inputs, as bits. `by_atom` are the moving arrays by the atoms of their old and new
    values. `dependence` holds the dependence of atoms on values of these and of the other arrays. They leave out `others`,
    whose updates equal some of these. `moved` has all arrays that the step moves.
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
        self.flow = flow
        self.step = step
        self.gradients_are_inputs = gradients_are_inputs
        self.delayed_gradients = delayed_gradients
        self.input_dependence = step.input_dependence
        graph = flow.graph
        floats = [array for array in step.arrays if array.is_float]
        self.accumulators = [s for s in floats if s.shape.elements != 1 and graph.value(s.new) == 0.0]
        counters = [s for s in step.arrays if not s.is_float and not s.is_unchanged]
        self.counters = [s for s in counters if s.shape.elements == 1 or s.old in graph.counts]
        self.moved = moved_arrays(flow, step)
        self.moving = [array for array in self.moved if id(array) not in others.ids]
        self.others = others
        cut = frozenset(node for array in self.moved for node in (array.new, array.old) if graph.args[node])
        live = frozenset(array.old for array in self.moved)
        self.forms = NormalForms(graph, cut, live)
        self.reductions = Reductions(flow, step, self.forms)
        places = [array.place for array in step.arrays]
        self.backward_passes = BackwardPasses(flow.frames, places, self.input_dependence)
        self.by_atom: dict[int, StateArray] = {}
        for array in self.moving:
            if self.forms.is_cut(array.new):
                self.by_atom.setdefault(self.forms.leaf(array.new), array)
            self.by_atom.setdefault(self.forms.leaf(array.old), array)
        other_atoms = [self.forms.leaf(array.old) for array in self.counters + self.accumulators]
        values = dict.fromkeys([*self.by_atom, *other_atoms])
        inputs_of = partial(inputs_of_node, flow, self.input_dependence)
        self.dependence = AtomDependence(self.forms, values, inputs_of, reads_inputs=gradients_are_inputs)
        self._new = self.dependence.bits(atom for atom, array in self.by_atom.items() if self.forms.leaf(array.new) == atom)
        self._inputs: dict[int, int] = {}
        self._values: dict[int, int] = {}
        self._own_bits: dict[int, int] = {}
        self.copies = self._find_copies()
        self.running_products = self._find_running_products()
        self.array_by_node = {node: array for array in floats for node in (array.new, array.old)}

    @cached_property
    def gradient_inputs(self) -> int:
        """The inputs, as bits, that can be gradients of the caller: arrays without an output that is their new value."""
        if not self.gradients_are_inputs:
            return 0
        sizes, sources = self.flow.graph.sizes, self.flow.graph.sources
        others = [array.source for array in self.step.arrays]
        others += [source for node, source in sources.items() if sizes[node] == 1]
        return ~reduce(or_, map(self.input_dependence.bit, others), 0)

    @cached_property
    def averages(self) -> dict[int, list[WeightAverage]]:
        """The averages `x' = x + mu * (w' - x)` of weights, by the atoms of `w'`."""
        averages: dict[int, list[WeightAverage]] = {}
        for array in [array for array in self.moving if array.shape.elements != 1]:
            form = self.forms.definition(array.new)
            atoms = {atom for monomial in form for atom, _ in monomial} if 2 <= len(form) <= MAX_AVERAGED else ()
            for atom in [atom for atom in atoms if self.forms.atoms[atom].op == "value"]:
                share, rest = split(form, atom)
                kept, others = split(rest, self.forms.leaf(array.old))
                whole = added(self._expanded(kept), self._expanded(share))
                if share and kept and not others and key_of(split_zero(whole)) == key_of({ONE: 1.0}):
                    averages.setdefault(atom, []).append(WeightAverage(array, share))
        return averages

    @cached_property
    def velocities(self) -> set[int]:
        """The nodes of the new values of velocities: `x' = x + c * v`, and the change of `v` depends on `x`.

        Integrators such as leapfrog have them. A step of training decays one of both.
        """
        velocities: set[int] = set()
        for position in [array for array in self.moving if array.shape.elements != 1]:
            kept, rest = split(self.definition(position), self.forms.leaf(position.old))
            if key_of(kept) != key_of({ONE: 1.0}):
                continue
            for monomial in rest:
                arrays = [atom for atom, _ in monomial if not self.dependence.are_scalars(atom)]
                array = self.by_atom.get(arrays[0]) if len(arrays) == 1 and (arrays[0], 1.0) in monomial else None
                if array is None or array is position or array.shape.dimensions != position.shape.dimensions:
                    continue
                if self.inputs_behind(array) & self.own(position):
                    velocities.add(array.new)
        return velocities

    def _expanded(self, form: Sum) -> Sum:
        """Return a sum with the terms of the sums in it: a computed share `1 - d` is an atom."""
        expanded: Sum = {}
        for monomial, value in form.items():
            atom = self.forms.only_factor(monomial)
            add_to(expanded, atom.parts[0] if atom is not None and atom.op == "sum" else {monomial: 1.0}, value)
        return expanded

    @cached_property
    def returned_scalars(self) -> list[Sum]:
        """The scalars that the step returns."""
        return [self.forms.definition(node) for node in self.step.results if self.flow.graph.sizes[node] == 1]

    # -- new values -----------------------------------------------------------------------------------------------------

    def definition(self, array: StateArray) -> Sum:
        return self.forms.definition(array.new)

    def inputs_behind(self, array: StateArray) -> int:
        """Return the inputs, as bits, behind the opaque values in a new value."""
        bits = self._inputs.get(array.new)
        if bits is None:
            bits = self._inputs[array.new] = self.dependence.inputs(self.definition(array))
        return bits

    def values_in(self, array: StateArray) -> int:
        """Return the values of the training state in a new value, as bits."""
        bits = self._values.get(array.new)
        if bits is None:
            bits = self._values[array.new] = self.dependence.values(self.definition(array))
        return bits

    def own(self, array: StateArray) -> int:
        """Return the inputs, as bits, that hold the old value of an array: its own input and the inputs of its copies."""
        bits = self._own_bits.get(array.new)
        if bits is None:
            bits = 0
            for copy in (array, *array.same_value, *self.copies.get(array.new, ())):
                bits |= self.input_dependence.bit(copy.source)
            self._own_bits[array.new] = bits
        return bits

    def _find_copies(self) -> dict[int, list[StateArray]]:
        """Find arrays whose new value is the new value of another array, apart from `+ 0 * x`.

        The keys are the nodes of that value.
        """
        copies: dict[int, list[StateArray]] = {}
        for array in self.moving:
            atom = self.forms.only_atom(split_zero(self.definition(array)))
            if atom is not None and atom.node is not None and atom.node != array.old:
                copies.setdefault(atom.node, []).append(array)
        return copies

    def _find_running_products(self) -> dict[int, float | None]:
        """Find scalars that each step multiplies by the same number, such as a bias correction's power.

        Return the number by the atoms of both values; None if it is an input.
        """
        decays: dict[int, float | None] = {}
        for array in [array for array in self.moving if array.shape.elements == 1]:
            factor, rest = split(self.definition(array), self.forms.leaf(array.old))
            if not rest and len(factor) == 1:
                decay = factor.get(ONE)
                if decay is None or 0.0 < decay < 1.0:
                    decays |= dict.fromkeys((self.forms.leaf(array.old), self.forms.leaf(array.new)), decay)
        return decays

    @cached_property
    def histories(self) -> dict[int, int]:
        """The inputs, as bits, that keep an array's last values or changes, by the node of its new value.

        An output is such an input with a part that is made of that array, other inputs and new values alone: L-BFGS has them.
        """
        histories = {array.new: 0 for array in self.by_atom.values()}
        written: list[tuple[int, int]] = []
        for node in dict.fromkeys(self.step.results):
            source, parts = self._written_parts(node)
            if source is not None:
                written += [(self.input_dependence.bit(source), part) for part in parts]
        nodes = self.step.resolved(self.flow.graph, dict.fromkeys(part for _, part in written))
        made = [(bit, self.forms.form(nodes[part])) for bit, part in written]
        opaque = self._atoms_with_opaque_arrays(form for _, form in made)
        for bit, form in made:
            if opaque.isdisjoint(atom for monomial in form for atom, _ in monomial):
                for atom in self.dependence.atoms(self.dependence.values(form)):
                    if atom in self.by_atom:
                        histories[self.by_atom[atom].new] |= bit
        return histories

    def _atoms_with_opaque_arrays(self, sums: Iterable[Sum]) -> set[int]:
        """Return the atoms below sums that are or hold an opaque array (no scalar)."""
        atoms: set[int] = set()
        for number in sorted(self.forms.atoms_below({monomial: 1.0 for form in sums for monomial in form})):
            atom = self.forms.atoms[number]
            inner = (inner_number for part in atom.parts for monomial in part for inner_number, _ in monomial)
            if (atom.op == "opaque" and not self.dependence.are_scalars(number)) or not atoms.isdisjoint(inner):
                atoms.add(number)
        return atoms

    def _written_parts(self, node: int) -> tuple[Input | None, list[int]]:
        """Return the input whose other rows an output keeps, and the nodes of the new rows."""
        graph, frames = self.flow.graph, self.flow.frames
        place = graph.places.get(node)
        if place is not None and frames.opcode(place) in IN_PLACE:
            part = frames.operand(place, 2 if frames.opcode(place) == "scatter" else 1)
            return frames.carried_input(place, IN_PLACE), [] if part is None else [self.flow.node(part)]
        args = graph.args[node] if graph.ops[node] == "concatenate" else ()
        for kept in args:  # an input with a single part that is read stands for that part
            source = graph.args[kept][0] if graph.ops[kept] == "slice" else kept
            if source in graph.sources and graph.sizes[source] == graph.sizes[node]:
                return graph.sources[source], [arg for arg in args if arg != kept]
        return None, []

    def feeds_itself(self, array: StateArray) -> bool:
        """Return True if the new value depends on the old one through something opaque, as a gradient does.

        Other arrays are followed through their new values, not through their old ones.
        """
        own = self.own(array)
        stack = [array]
        unseen = self._new & ~self.dependence.bit(self.forms.leaf(array.new))
        while stack:
            member = stack.pop()
            if self.inputs_behind(member) & own:
                return True
            values = self.values_in(member) & unseen
            unseen ^= values
            stack += [self.by_atom[atom] for atom in self.dependence.atoms(values)]
        return False

    def is_state(self, array: StateArray) -> bool:
        """Return True if an array that is not a weight can be state of an optimizer.

        Scalars cannot, nor can outputs that are merely computed from an input of their shape.
        """
        if array.shape.elements == 1:
            return False
        factor, _ = split(self.definition(array), self.forms.leaf(array.old))
        atoms = (atom for monomial in factor for atom, _ in monomial)
        return array.is_given or (bool(factor) and all(self.dependence.are_scalars(atom) for atom in atoms))

    def is_kept(self, array: StateArray) -> bool:
        """Return True if the new value is `k * old + rest` with `LEAST_KEPT <= k <= 1` and a rest."""
        factor, rest = split(self.definition(array), self.forms.leaf(array.old))
        return bool(rest) and LEAST_KEPT <= factor.get(ONE, 0.0) <= 1.0

    def primary(self, array: StateArray) -> StateArray:
        """Return the array whose old value the new value holds, among arrays with the same new value."""
        values = self.values_in(array)
        return next((s for s in (array, *array.same_value) if self.dependence.bit(self.forms.leaf(s.old)) & values), array)


def moved_arrays(flow: Dataflow, step: TrainingStep) -> list[StateArray]:
    """Return the arrays of floats that a step changes, except those that it only writes: it never reads their old values."""
    graph, dependence = flow.graph, step.input_dependence
    changed = [array for array in step.arrays if array.is_float and not array.is_unchanged]
    arrays = [array for array in changed if graph.ops[array.new] != "constant"]
    below = graph.reachable([array.new for array in step.arrays])
    read = set(below)
    if all(array.old in read or array.same_value for array in arrays):
        return arrays
    inputs = 0
    for node in below:
        inputs |= dependence.inputs(graph.places[node]) if node in graph.places else 0
    return [array for array in arrays if array.old in read or array.same_value or inputs & dependence.bit(array.source)]


def inputs_of_node(flow: Dataflow, dependence: InputDependence, node: int | None) -> int:
    """Return the inputs, as bits, behind an opaque node, or an input itself. Return -1, all, if it was not followed."""
    if node in flow.graph.sources:
        return dependence.bit(flow.graph.sources[node])
    place = flow.graph.places.get(node) if node is not None else None
    if place is None or node in flow.graph.broken:
        return -1
    frames = flow.frames
    if frames.opcode(place) != "scatter" or frames.applies(place, "add") is frames.applies(place, "subtract"):
        return dependence.inputs(place)
    bits = 0
    for operand in frames.operands(place)[1:]:  # the leaf stands for the rows, not for the array that they are added to
        bits |= dependence.inputs(operand)
    return bits

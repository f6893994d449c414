"""Which arrays of a training step are weights, and by which rule each is updated."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from functools import cached_property, reduce
from operator import or_

from hlo_inspect.analysis.optimizer.backward_pass import BackwardPasses
from hlo_inspect.analysis.optimizer.dataflow import Dataflow
from hlo_inspect.analysis.optimizer.hyperparameter import COARSE, EXACT
from hlo_inspect.analysis.optimizer.new_values import NewValues
from hlo_inspect.analysis.optimizer.normal_form import ONE, FormKinds, NormalForms, Sum, close, is_constant, product
from hlo_inspect.analysis.optimizer.norms import is_norm_of_clip
from hlo_inspect.analysis.optimizer.numeric import agrees
from hlo_inspect.analysis.optimizer.reductions import Reductions
from hlo_inspect.analysis.optimizer.rules import claims_of
from hlo_inspect.analysis.optimizer.state_arrays import StateArray, TrainingStep
from hlo_inspect.analysis.optimizer.update import LEAST_KEPT, Claim, State, Update, UpdateContext, WeightAverage, split
from hlo_inspect.analysis.optimizer.weight_averages import weight_averages
from hlo_inspect.analysis.optimizer.weights import Exclusions, Weight
from hlo_inspect.hlo.shapes import BITS

MAX_ROUNDS = 4
MAX_STATES = 64  # of one array


class Matcher:
    """Matches the arrays of one step with the rules.

    With `gradients_are_inputs` the step is an update alone: its gradients are handed in, and only rules with two states say so.
    `changed_by_gradients` are the arrays that can be weights; `weights` finds them.
    """

    def __init__(self, flow: Dataflow, step: TrainingStep, *, gradients_are_inputs: bool = False) -> None:
        self._gradients_are_inputs = gradients_are_inputs
        self.flow = flow
        self.step = step
        self.input_dependence = step.input_dependence
        graph = flow.graph
        changed = [array for array in step.arrays if array.is_float and not array.is_unchanged]
        self.moving = [array for array in changed if graph.ops[array.new] != "constant"]
        self.accumulators = [s for s in changed if s.shape.elements != 1 and graph.value(s.new) == 0.0]
        self.counters = [s for s in step.arrays if not s.is_float and s.shape.elements == 1 and not s.is_unchanged]
        self.moving = self._without_unread(self.moving)
        cut = frozenset(node for array in self.moving for node in (array.new, array.old) if graph.args[node])
        live = frozenset(array.old for array in self.moving)
        self.forms = NormalForms(graph, cut, live)
        self.reductions = Reductions(flow, step, self.forms)
        places = [array.place for array in step.arrays]
        self.backward_passes = BackwardPasses(flow.frames, places, self.input_dependence)
        beside = self.counters + self.accumulators
        self.values = NewValues(flow, self.forms, self.input_dependence, self.moving, beside, reads_inputs=gradients_are_inputs)
        self.dependence = self.values.dependence
        self.changed_by_gradients: list[StateArray] = []
        self._states: list[StateArray] = []
        self._hidden_bits: dict[frozenset[int | None], int] = {}
        self._candidates: set[int] = set()
        self._odd: list[Update] = []
        self._is_training = False
        self._refused: list[StateArray] = []  # with two states, before a gradient was recognized
        self._checked: dict[Hashable, bool] = {}
        self._chains: dict[int, list[State]] = {}
        self._unclaimed: dict[int, int] = {}
        floats = [array for array in step.arrays if array.is_float]
        self._arrays = {node: array for array in floats for node in (array.new, array.old)}

    def weights(self) -> list[Weight]:
        """The weights of the step, by output."""
        candidates = self.changed_by_gradients = self._find_changed_by_gradients()
        possible = {id(array) for array in candidates}
        for array in self.moving:
            if not any(id(one) in possible for one in (array, *array.same_value)) and self.values.is_state(array):
                self._states.append(array)
        self._candidates = {array.new for array in candidates if self.values.is_kept(array)}
        self._chains.clear()  # other weights are no states
        read = self._read_by(candidates)
        without_gradient = self._without_gradient(candidates, read)
        linear = self._linear(candidates, read)
        weights = {id(array) for array in (*without_gradient, *(weight.array for weight in linear))}
        self._states = [array for array in self._states if id(array) not in weights]
        self._hidden_bits.clear()
        primaries = {primary.new: primary for primary in map(self.values.primary, candidates)}
        matrices_first = sorted(primaries.values(), key=lambda array: -len(array.shape.dimensions))  # see `_is_gradient`
        found = self._with_refused([weight for array in matrices_first if (weight := self._match(array)) is not None])
        for _ in range(MAX_ROUNDS):
            known = {id(array) for w in found if w.claim for array in (*w.claim.roles.values(), *w.claim.extra)}
            if all(w.claim for w in found) or not any(id(array) in known for array in self._states):
                break  # else: where one network's gradient goes through the update of another, that one's states are explained
            gone = [array for array in self._states if id(array) in known]
            self._states = [array for array in self._states if id(array) not in known]
            self._hidden_bits.clear()
            explained = reduce(or_, (self.input_dependence.bit(array.source) for array in gone))
            found = [w if w.claim or not self._may_match(w, explained) else self._match(w.array) or w for w in found]
        rules = {weight.rule for weight in found if weight.claim is not None}
        found += [replace(weight, is_linear=True) for weight in linear if weight.rule in rules]
        if self.forms.is_cut_short:
            frames = self.flow.frames
            frames.give_up(frames.root(self.step.frame, ()), "has expressions too large to compare")
        moved = [self.input_dependence.bit(array.source) for array in self.moving if array.shape.elements != 1]
        exclusions = Exclusions(self.forms, self.dependence, moved)
        found = exclusions.without_unseen(exclusions.without_doubtful(found + self._odd_ones()))
        found = exclusions.without_followers(found)
        found += self._gradientless(without_gradient, found)
        order = {id(array): number for number, array in enumerate(self.step.arrays)}
        return sorted(found, key=lambda weight: order[id(weight.array)])

    def _find_changed_by_gradients(self) -> list[StateArray]:
        """The arrays that can be weights: those that feed themselves, or to which something is added that is made of two or
        more states and of what is handed in.
        """
        if not self._gradients_are_inputs:
            return [array for array in self.moving if self.values.feeds_itself(array)]
        kept = [array for array in self.moving if array.shape.elements != 1 and self.values.is_kept(array)]
        return [
            array
            for array in kept
            if len(self._states_of(array)) > 1
            and any(self.values.inputs_behind(one) & self._handed_in for one in self._chain_of(array))
        ]

    @cached_property
    def _handed_in(self) -> int:
        """The inputs, as bits, that can be gradients which are handed in: arrays of which no output is the new value."""
        if not self._gradients_are_inputs:
            return 0
        sizes, sources = self.flow.graph.sizes, self.flow.graph.sources
        others = [array.source for array in self.step.arrays] + [one for node, one in sources.items() if sizes[node] == 1]
        return ~reduce(or_, map(self.input_dependence.bit, others), 0)

    def _without_unread(self, arrays: list[StateArray]) -> list[StateArray]:
        """Leaves out what is only written: a value in the place of an input that the step never looks at."""
        graph = self.flow.graph
        below = graph.below([array.new for array in self.step.arrays])
        read = set(below)
        if all(array.old in read or array.same_value for array in arrays):
            return arrays
        behind = 0
        for node in below:
            behind |= self.input_dependence.inputs(graph.places[node]) if node in graph.places else 0
        return [
            array
            for array in arrays
            if array.old in read or array.same_value or behind & self.input_dependence.bit(array.source)
        ]

    @cached_property
    def _averages(self) -> dict[int, list[WeightAverage]]:
        """The averages of weights."""
        return weight_averages(self.forms, self.moving)

    @cached_property
    def _returned_scalars(self) -> list[Sum]:
        """The scalars that the step returns."""
        return [self.forms.definition(node) for node in self.step.results if self.flow.graph.sizes[node] == 1]

    def _read_by(self, candidates: list[StateArray]) -> int:
        """The inputs on which gradients depend, as bits."""
        behind = (self.values.inputs_behind(one) for array in candidates for one in self._chain_of(array))
        return reduce(or_, (inputs for inputs in behind if inputs > 0), 0)

    def _linear(self, candidates: list[StateArray], read: int) -> list[Weight]:
        """What may be weights in which the loss is linear, such as those of a critic's last layer: their gradient depends on
        other weights alone, and gradients of others on them.
        """
        others = reduce(or_, map(self.values.own, candidates), 0)
        found = []
        for array in self._states:
            if not read & self.values.own(array) or not self.values.is_kept(array):
                continue
            update = self._update(array, others)
            claim = next(claims_of(update), None)
            if claim is None or not _descends(claim) or not self._agrees(claim, update):
                continue
            is_learnt = self.backward_passes.holds(update, claim.gradient)
            is_possible = is_learnt or (is_learnt is None and len(claim.roles) > 1)  # no field has two states
            if is_possible and self.backward_passes.may_be_linear(update, claim.gradient):
                found.append(self._weight(update, claim, is_learnt=True))
        return found

    def _without_gradient(self, candidates: list[StateArray], read: int) -> list[StateArray]:
        """Arrays that gradients depend on and that have none: frozen weights, averages of weights that the loss reads."""
        others = {id(array) for array in (*candidates, *self.accumulators)}
        return [
            array
            for array in self.step.arrays
            if array.is_float
            and array.shape.elements != 1
            and id(array) not in others
            and read & self.values.own(array)
            and not any(self.values.inputs_behind(one) for one in self._chain_of(array))
        ]

    def _chain(self, array: StateArray) -> list[Sum]:
        """The new value of an array and those of the states in it."""
        return [self.values.definition(one) for one in self._chain_of(array)]

    def _chain_of(self, array: StateArray) -> list[StateArray]:
        return [array, *(state.array for state in self._states_of(array))]

    def _hidden(self, weight: StateArray) -> int:
        """The inputs that hold states which can belong to a weight: a gradient never depends on these."""
        sizes = frozenset(weight.shape.dimensions)
        bits = self._hidden_bits.get(sizes)
        if bits is None:
            bits = 0
            for array in self._states:
                if sizes.issuperset(set(array.shape.dimensions) - {1}):
                    bits |= self.input_dependence.bit(array.source)
            self._hidden_bits[sizes] = bits
        return bits | self._histories.get(weight.new, 0)

    @cached_property
    def _histories(self) -> dict[int, int]:
        return self.values.find_histories(self.step)

    # -- matching -------------------------------------------------------------------------------------------------------

    def _update(self, array: StateArray, others: int = 0) -> Update:
        """The update of an array whose gradient depends on its own old value, or on one of the `others`."""
        return Update(
            self.forms,
            array,
            self._states_of(array),
            UpdateContext(
                self.dependence,
                self.reductions,
                self.values.own(array),
                self.values.own(array) | self._handed_in | others,
                self._hidden(array),
                self.values.running_products,
                self._arrays,
                lambda: self._averages,
                lambda: self._returned_scalars,
            ),
            tolerance=COARSE if self.flow.graph.coarse[array.new] else EXACT,
        )

    def _gradientless(self, arrays: list[StateArray], found: list[Weight]) -> list[Weight]:
        """Of arrays without a gradient those that are weights: the gradient of another one depends on them, and they hold no
        weight's value, such as an average of it. A weight is frozen, unless an array that is handed in is added to it.
        """
        read = weights = 0
        for weight in found:
            inputs = self.dependence.inputs(weight.claim.gradient if weight.claim is not None else weight.update.rest)
            read |= inputs if inputs > 0 else 0
        for node in (node for array in self.moving if array.new in self._candidates for node in (array.new, array.old)):
            weights |= self.dependence.bit(self.forms.leaf(node))
        own = [
            array
            for array in arrays
            if read & self.values.own(array) and not any(self.dependence.values(form) & weights for form in self._chain(array))
        ]
        kinds = [(array, self._added_to(array)) for array in own]
        return [
            Weight(array, self._update(array), None, is_frozen=not added, is_learnt=bool(added) or None)
            for array, added in kinds
            if added <= {"input"}
        ]

    def _added_to(self, array: StateArray) -> set[str]:
        """What a weight without a gradient is made of beside its own values and scalars."""
        chain = self._chain_of(array)
        own = {self.forms.leaf(node) for one in chain for node in (one.old, one.new)}
        leaves = {leaf for form in self._chain(array) for leaf in self.forms.leaves(form)} - own
        return {self.forms.atoms[leaf].op for leaf in leaves if not self.dependence.are_scalars(leaf)}

    def _match(self, array: StateArray) -> Weight | None:
        update = self._update(array)
        norms = [state for state in update.states if is_norm_of_clip(update, state)]
        update = update.without(norms) if norms else update
        claim = next(claims_of(update), None)
        self._unclaimed.pop(array.new, None)
        if claim is None:
            self._unclaimed[array.new] = update.refused_states
        is_learnt = self._is_gradient(update, claim)
        if is_learnt is False and claim is not None and self.backward_passes.is_in(update, self._chain(array)):
            claim = None  # a gradient between matrices
        if is_learnt is False and (claim is not None or self.backward_passes.is_anywhere(update) is False):
            return None  # a step of a solver, a recurrent cell
        if claim is not None and not _descends(claim):
            if not claim.roles and (not is_learnt or claim.rate == {ONE: -1.0}):
                return None  # a step of a solver, a residual: of what goes up without a state only a gradient is an update
            claim = None
        if claim is not None and not self._agrees(claim, update):
            claim = None
        if claim is None and self._gradients_are_inputs:
            return None
        if claim is None:
            seen = self.backward_passes.is_in(update, self._chain(array))
            is_learnt = True if is_learnt or seen or self.backward_passes.is_anywhere(update) else seen
            if not update.is_step():
                if self._holds_step(update) or self._holds_last_step(update):
                    self._odd.append(update)
                return None
        return self._weight(update, claim, is_learnt=is_learnt)

    def _with_refused(self, found: list[Weight]) -> list[Weight]:
        """The weights that were found, and what was refused before one of them showed that the step trains."""
        if not self._is_training or not self._refused:
            return found
        refused = {id(array) for array in self._refused}
        self._odd = [update for update in self._odd if id(update.array) not in refused]
        again = [weight for array in self._refused if (weight := self._match(array)) is not None]
        return [weight for weight in found if id(weight.array) not in refused] + again

    def _may_match(self, weight: Weight, explained: int) -> bool:
        """Whether a weight without a claim can come out otherwise where some inputs count as states no more. It cannot where
        none of them kept a form from being a gradient.
        """
        refused = self._unclaimed.get(weight.array.new)
        return refused is None or bool(refused & explained)

    def _is_gradient(self, update: Update, claim: Claim | None) -> bool | None:
        """Whether what changes a weight comes from a backward pass. No field has two states: of weights with such a rule one
        shows it for all, mostly a matrix, whose gradient is a product; where gradients are inputs the rule alone shows it.
        """
        has_states = claim is not None and len(claim.roles) > 1
        if self._gradients_are_inputs or (has_states and self._is_training):
            return has_states
        found = self.backward_passes.holds(update, update.rest if claim is None else claim.gradient)
        self._is_training |= has_states and found is True
        if has_states and found is False:
            self._refused.append(update.array)
        return found

    def _weight(self, update: Update, claim: Claim | None, *, is_learnt: bool | None) -> Weight:
        array = update.array
        return Weight(array, update, claim, self._working_copy(array), *self._beside(update), is_learnt=is_learnt)

    def _holds_step(self, update: Update) -> bool:
        """Whether a new value is made of a sum of the old one, or of a state, and something that depends on the weight."""
        own = self.values.own(update.array)
        values = [update.weight, *(state.old for state in update.states)]
        chain = self._chain(update.array)
        inner = {atom for form in chain for atom in self.forms.atoms_below(form)}
        for form in (*chain, *(part for atom in inner for part in self.forms.atoms[atom].parts)):
            for value in values if self.dependence.inputs(form) & own and len(form) > 1 else ():
                factor, rest = split(_without_shared(form), value)
                is_kept = LEAST_KEPT <= factor.get(ONE, 1.0) <= 1.0 and update.are_scalar(factor)
                if factor and is_kept and self.dependence.inputs(rest) & own:
                    return True
        return False

    def _holds_last_step(self, update: Update) -> bool:
        """Whether a new value is `w + b * (w - last) + ...` with the value of the step before: momentum without a state of its
        own. With b = 1 it is a wave.
        """
        again = update.kept.get(ONE, 0.0) - 1.0
        if len(update.kept) != 1 or not 0.0 < again < 1.0:
            return False
        inputs = [m[0][0] for m, value in update.rest.items() if len(m) == 1 and m[0][1] == 1.0 and close(value, -again)]
        return any(self.forms.atoms[atom].op == "input" for atom in inputs)

    def _odd_ones(self) -> list[Weight]:
        """Weights whose new value is not the old one and something added, such as those that are kept within bounds after the
        step: the gradient shows in them, or in others of the same form.
        """
        kinds = FormKinds(self.forms)
        learnt = {
            kinds.of(update.form) for update in self._odd if self.backward_passes.is_in(update, self._chain(update.array))
        }
        odd = [update for update in self._odd if learnt and kinds.of(update.form) in learnt]
        return [self._weight(update, None, is_learnt=True) for update in odd]

    def _agrees(self, claim: Claim, update: Update) -> bool:
        """Whether the algebra holds in numbers; looked at once for each rule and set of constants."""
        kind = (claim.rule, tuple(claim.hyperparameters.items()))
        if kind not in self._checked:
            self._checked[kind] = agrees(self.forms, update.array.new, update.form)
        return self._checked[kind]

    def _beside(self, update: Update) -> tuple[list[StateArray], list[StateArray]]:
        """The counters and the accumulators in the expression of an update."""
        values = self.dependence.values(update.form)
        for state in update.states:
            values |= self.dependence.values(state.form)
        counters, accumulators = (
            [array for array in arrays if self.dependence.bit(self.forms.leaf(array.old)) & values]
            for arrays in (self.counters, self.accumulators)
        )
        return counters, accumulators

    def _states_of(self, array: StateArray) -> list[State]:
        """The other arrays in the expression of an array, and in theirs."""
        known = self._chains.get(array.new)
        if known is not None:
            return known
        found: dict[int, State] = {}
        seen = 0
        open_ = [array]
        while open_:
            values = self.values.values_in(open_.pop()) & ~seen
            seen |= values
            for atom in self.dependence.atoms(values):
                other = self.values.by_atom.get(atom)
                if other is None or other is array or other.new in found or other.new in self._candidates:
                    continue
                if other.shape.elements == 1 and not self.values.inputs_behind(other) & self.values.own(array):
                    continue  # a loss scale, a counter
                if len(found) == MAX_STATES:
                    self.flow.frames.give_up(array.place, "is made of too many others to compare")
                    open_.clear()
                    break
                old, new = self.forms.leaf(other.old), self.forms.leaf(other.new)
                found[other.new] = State(other, old, new, self.values.definition(other))
                open_.append(other)
        self._chains[array.new] = list(found.values())
        return self._chains[array.new]

    def _working_copy(self, array: StateArray) -> StateArray | None:
        """The first copy of a less precise type; it may be whole on a device that holds a part of the master."""
        copies = (*array.same_value, *self.values.copies.get(array.new, ()))
        return next((one for one in copies if BITS[one.shape.dtype] < BITS[array.shape.dtype]), None)


def _without_shared(form: Sum) -> Sum:
    """A sum without the factors that all of its terms share."""
    terms = [set(monomial) for monomial, value in form.items() if value != 0.0]
    shared = set.intersection(*terms) if terms else set()
    divisor = tuple(sorted((atom, -exponent) for atom, exponent in shared))
    return {product(monomial, divisor): value for monomial, value in form.items()} if divisor else form


def _descends(claim: Claim) -> bool:
    """Whether the step goes down: with a rate that is a number, it has to be positive."""
    return not is_constant(claim.rate) or claim.rate.get(ONE, 0.0) > 0.0

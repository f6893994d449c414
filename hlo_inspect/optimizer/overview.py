"""The optimizer of a module for other packages: the only file of this package that they import.

`find_optimizer` returns the `Overview`: one name, the constants of all updates, the bytes of each kind of state, and the source
of the learning rate. Imports that only modules with updates need come late.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from hlo_inspect.graph.frames import DefinedAt
from hlo_inspect.graph.parameters import Interface, ParameterLeaf
from hlo_inspect.graph.view import Views
from hlo_inspect.hlo.module import Module
from hlo_inspect.hlo.opcodes import COLLECTIVE_KINDS
from hlo_inspect.hlo.values.header import ShapeIndex
from hlo_inspect.optimizer.algebra.hyperparameter import ABSENT, Hyperparameter
from hlo_inspect.optimizer.matching.training_steps import WeightUpdates, find_updates
from hlo_inspect.optimizer.operations import IN_PLACE
from hlo_inspect.optimizer.step.state_arrays import StateArray

if TYPE_CHECKING:
    from hlo_inspect.optimizer.algebra.norms import Clip
    from hlo_inspect.optimizer.matching.weights import Weight
    from hlo_inspect.optimizer.schedule.recognition import Rates

HYPERPARAMETERS = {
    "learning_rate": "learning rate: the constant factor of the step",
    "beta1": "decay of the first moment",
    "beta2": "decay of the second moment",
    "beta3": "decay of AdEMAMix's slow average of gradients",
    "alpha": "factor of the slow average in the step (AdEMAMix)",
    "epsilon": "constant added to the root of the second moment",
    "weight_decay": "decoupled weight decay, applied beside the gradient step",
    "l2": "L2 weight decay, added to the gradient",
    "momentum": "momentum factor of SGD or RMSProp",
    "nesterov": "true if the momentum is Nesterov's",
}
"""The hyper-parameters that rules read, by the names of facts and columns. Each is a number; `nesterov` is 0 or 1."""

_WRITING = IN_PLACE | {"concatenate"}
_NOT_LOCAL = frozenset({*COLLECTIVE_KINDS, "opaque"})


def rule_names() -> tuple[str, ...]:
    """Return the names of the optimizers that are recognised."""
    from hlo_inspect.optimizer.rules import RULES

    return tuple(name for rule in RULES for name in rule.names)


def role_names() -> frozenset[str]:
    """Return the roles that an entry parameter can have in a training step."""
    from hlo_inspect.optimizer.rules import RULES

    states = (state for rule in RULES for state in rule.state)
    return frozenset(("weight", "master_weight", "counter", "accumulator", "average", "frozen", *states))


def find_optimizer(module: Module, interface: Interface, views: Views | None = None, *, makes_values: bool = True) -> Overview:
    """Find the updates of weights in a module that was read with its graph; none unless it `makes_values`."""
    return Overview(find_updates(module, interface, views, makes_values=makes_values))


@dataclass(slots=True)
class Row:
    """An updated weight: `weight` is the array that the forward pass reads, `master` its more precise copy."""

    matched: Weight
    rule: str
    weight: StateArray
    master: StateArray | None
    hyperparameters: dict[str, Hyperparameter]
    roles: dict[str, StateArray]
    clip: Clip | None
    has_unknown_clip: bool = False
    counters: list[StateArray] = field(default_factory=list)

    def hyperparameter(self, name: str) -> Hyperparameter:
        return self.hyperparameters.get(name, ABSENT)

    @property
    def clip_text(self) -> str | None:
        """The clip of the gradient: `value 0.5`, `norm 1` of its own, or `global norm 1`; None without one."""
        if self.clip is None:
            return "unknown" if self.has_unknown_clip else None
        limit = f"{self.clip.limit:g}" if self.clip.limit is not None else "computed"
        return f"{'global ' * self.clip.is_global}{self.clip.kind} {limit}"

    @property
    def expression(self) -> str:
        """The new value of a weight that no rule explains, and the part that the nearest rule explains."""
        from hlo_inspect.optimizer.algebra.unexplained_updates import describe_update

        return describe_update(self.matched.update)


class Overview:
    """The rows of an optimizer and their common figures: `rows` of updated weights, `frozen` of weights without a gradient.

    `is_training_step`: weights are updated, and something besides the form of an update shows training.
    `faults` are the places that were not followed, in the order of the search. `is_complete` is True if all expressions could
    be compared. Later searches through the same values change neither.
    """

    def __init__(self, updates: WeightUpdates) -> None:
        self.updates = updates
        self.frames = updates.flow.frames
        self.steps = updates.steps
        self.parameters = updates.parameters
        self._clips: dict[int, tuple[Clip | None, bool]] = {}
        self.all_rows = [self._row(weight) for weight in updates.weights]
        self.rows = [row for row in self.all_rows if not row.matched.is_frozen]
        self.frozen = [row for row in self.all_rows if row.matched.is_frozen]
        self.is_training_step = updates.is_training and bool(self.rows)
        self.is_complete = not self.frames.is_cut_short
        self.faults = list(self.frames.faults)
        if self.rows:
            self._name_with_decay()

    def _name_with_decay(self) -> None:
        """Give weights without decay the rule's name with decay if other weights are decayed."""
        from hlo_inspect.optimizer.rules import RULES

        rules = {row.rule for row in self.rows}
        names = {rule.name: rule.with_decay for rule in RULES if rule.with_decay in rules}
        for row in self.rows:
            row.rule = names.get(row.rule) or row.rule

    def _row(self, weight: Weight) -> Row:
        claim, copy = weight.claim, weight.copy
        clip, has_unknown_clip = self._clip(weight.first or weight)
        return Row(
            weight,
            weight.rule,
            copy or weight.array,
            weight.array if copy is not None else None,
            claim.hyperparameters if claim is not None else {},
            claim.roles if claim is not None else {},
            clip,
            has_unknown_clip,
            weight.counters,
        )

    def _clip(self, weight: Weight) -> tuple[Clip | None, bool]:
        """Return the clip of a weight's gradient, and True if something bounds it that is no known clip."""
        from hlo_inspect.optimizer.algebra.norms import find_clip, unknown_bounds

        claim = weight.claim
        if claim is not None and id(weight) not in self._clips:
            is_unknown = bool(unknown_bounds(weight.update, claim.gradient))
            self._clips[id(weight)] = find_clip(weight.update, claim.gradient), is_unknown
        return self._clips.get(id(weight), (None, False))

    @cached_property
    def _rates(self) -> Rates:
        from hlo_inspect.optimizer.schedule.recognition import Rates

        return Rates(self.updates)

    def rate_of(self, row: Row) -> str:
        """Return `constant`, `absent`, a schedule by name, a parameter, or the source and expression of the rate."""
        return self._rates.text(row.matched)

    def returns_gradients(self, interface: Interface) -> bool:
        """Return True if outputs of the program are gradients of its parameters."""
        return bool(self.parameters_with_gradients(interface))

    def parameters_with_gradients(self, interface: Interface) -> list[ParameterLeaf]:
        """Return the parameters of which outputs of the program are gradients."""
        from hlo_inspect.optimizer.matching.gradient_outputs import parameters_with_gradients

        step = next(iter(self.steps), None)
        return [] if step is None else parameters_with_gradients(self.frames, step.frame, step.input_dependence, interface)

    @property
    def partial_reason(self) -> str:
        """The reason why there may be more updates than `rows`; empty if the text shows all of them."""
        if not self.is_complete:
            return "the expressions are too large to compare them all"
        if self.updates.is_cut_off:
            return "the module is truncated, and its missing part may update weights"
        if self.faults:
            computation, name, reason = self.faults[0]
            return f"{computation}: {name} {reason}, so a part of the computation is unknown"
        return ""

    @property
    def doubtful_scalars(self) -> list[int]:
        """The entry parameters of scalars that change like weights, but that nothing shows to be weights."""
        arrays = self.updates.doubtful_scalars if self.is_training_step else []
        return sorted({number for array in arrays if (number := self.number(array)) is not None})

    @cached_property
    def name(self) -> str | None:
        """The rule of the updates; None if the text may hold updates but none was found.

        One update without a rule makes it `unknown`: `mixed` is a claim that there are several optimizers.
        """
        rules = {row.rule for row in self.rows}
        if not self.is_complete or (not rules and self.partial_reason):
            return None
        if not rules:
            return "none"
        if "unknown" in rules:
            return "unknown"
        return rules.pop() if len(rules) == 1 else "mixed"

    @cached_property
    def unknown(self) -> list[list[Row]]:
        """The weights that no rule explains, by the form of their expressions, the most first."""
        from hlo_inspect.optimizer.algebra.normal_form import FormKinds

        kinds: dict[int, FormKinds] = {}
        rows_by_form: dict[tuple[int, int], list[Row]] = {}
        for row in self.rows:
            if row.matched.claim is None:
                forms = row.matched.update.forms
                kind = kinds.setdefault(id(forms), FormKinds(forms)).number(row.matched.update.form)
                rows_by_form.setdefault((id(forms), kind), []).append(row)
        return sorted(rows_by_form.values(), key=len, reverse=True)

    def shared(self, name: str) -> float | None:
        """Return the value of a hyper-parameter, if all updates that have it agree."""
        values = {row.hyperparameter(name) for row in self.rows} - {ABSENT}
        return values.pop().value if len(values) == 1 else None

    @cached_property
    def clip_norm(self) -> float | None:
        limits = {row.clip.limit for row in self.rows if row.clip is not None and row.clip.kind == "norm"}
        return limits.pop() if len(limits) == 1 else None

    @cached_property
    def decayed(self) -> int:
        decays = [(row.hyperparameter("weight_decay"), row.hyperparameter("l2")) for row in self.rows]
        return sum(any(decay.status != "absent" and decay.value != 0.0 for decay in both) for both in decays)

    def bytes_of(self, arrays: Iterable[StateArray | None]) -> int:
        """Return the bytes of distinct arrays."""
        return sum(array.bytes for array in {array.source: array for array in arrays if array is not None}.values())

    def number(self, array: StateArray | None) -> int | None:
        """Return the number of the entry parameter that holds an array."""
        parameter = self.parameters.get(array.source) if array is not None else None
        return parameter[0] if parameter is not None else None

    def origin(self, row: Row) -> DefinedAt:
        """Return the instruction that makes the new weight."""
        return self.frames.origin(row.matched.array.place)

    def moments(self, order: str) -> list[StateArray]:
        return [array for row in self.rows for role, array in row.roles.items() if role.startswith(order)]

    @cached_property
    def states(self) -> list[StateArray]:
        """All state except weights and masters."""
        states = [array for row in self.rows for array in (*row.roles.values(), *row.counters)]
        for row in self.rows:
            states += row.matched.claim.extra if row.matched.claim is not None else []
            states += row.matched.accumulators
        for row in self.frozen:
            states += [array for array in row.matched.states if array.shape.elements != 1]
        return states

    @cached_property
    def roles(self) -> dict[tuple[int, ShapeIndex], str]:
        """The role of each entry parameter that belongs to the training state, or is a weight that the step only reads."""
        return self._adapted_weights() | self._second_weights() | self._state_roles

    @cached_property
    def _state_roles(self) -> dict[tuple[int, ShapeIndex], str]:
        """The role of each entry parameter of which the step returns the new value.

        If a step updates weights and returns an array unchanged, the array is `frozen`. An unchanged scalar is not: it is
        rather a rate. An `average` follows a weight: its mean over time, or its copy of some earlier step.
        """
        named: list[tuple[str, StateArray | None]] = []
        for row in self.rows:
            named += [("weight", row.weight), ("master_weight", row.master), *row.roles.items()]
            named += [("counter", array) for array in row.counters]
            named += [("accumulator", array) for array in row.matched.accumulators]
            named += [("average", array) for array in row.matched.averages]
            named += [("average", array) for array in self._rare_copies(row.matched.array)]
        if not self.is_training_step:
            return {}
        if self.rows:
            arrays = self.steps[0].arrays
            named += [("frozen", row.weight) for row in self.frozen]
            unchanged = [array for array in arrays if array.is_float and array.is_unchanged and array.shape.elements != 1]
            named += [("frozen", array) for array in unchanged]
        roles: dict[tuple[int, ShapeIndex], str] = {}
        for role, array in named:
            parameter = self.parameters.get(array.source) if array is not None else None
            if parameter is not None:
                roles.setdefault(parameter, role)
        return roles

    def _rare_copies(self, weight: StateArray) -> list[StateArray]:
        """Return the arrays that become the new weight in some steps only, such as a target network's in every 100th step."""
        flow = self.updates.flow
        copies = [array for array in weight.same_value if array.shape.dtype == weight.shape.dtype]
        if not copies or flow.graph.ops[flow.node(weight.place)] == "select":
            return []
        return [array for array in copies if flow.graph.ops[flow.node(array.place)] == "select"]

    @cached_property
    def _state(self) -> set[tuple[int, ShapeIndex]]:
        """The entry parameters that have a role in the training state, or that a step changes."""
        changed = [array.source for step in self.steps for array in step.arrays if not array.is_unchanged]
        return self._state_roles.keys() | {self.parameters[source] for source in changed if source in self.parameters}

    def _adapted_weights(self) -> dict[tuple[int, ShapeIndex], str]:
        """Return the weights to which the step learns an addition of low rank: they are `frozen`."""
        from hlo_inspect.optimizer.matching.adapted_weights import find_adapted_weights

        weights = {leaf for leaf, role in self._state_roles.items() if role == "weight"}
        adapted = find_adapted_weights(self.frames, self.parameters, self.updates.leaves, weights, self._state)
        return dict.fromkeys(adapted, "frozen")

    def _second_weights(self) -> dict[tuple[int, ShapeIndex], str]:
        """Return the arrays that the step only reads and that together have the shapes of all weights: they are `frozen`.

        A teacher has them, or a target network; a batch has not. A single weight, or weights of one shape, show nothing.
        """
        roles = self._state_roles
        leaves = {(leaf.number, leaf.index): str(leaf.shape) for leaf in self.updates.leaves if leaf.shape.elements != 1}
        weights = Counter(leaves[leaf] for leaf, role in roles.items() if role == "weight" and leaf in leaves)
        others = {leaf: shape for leaf, shape in leaves.items() if leaf not in self._state and shape in weights}
        counts = Counter(others.values())
        is_copy = len(weights) > 1 and all(counts[shape] and counts[shape] % weights[shape] == 0 for shape in weights)
        return dict.fromkeys(others, "frozen") if is_copy else {}

    def succeeded_parameters(self, interface: Interface) -> set[tuple[int, ShapeIndex]]:
        """Return the entry parameters whose new value is an output, by data flow.

        A step can donate them without a loss. In a step that updates weights these are the arrays of its training state. In any
        other program they are two kinds of arrays:

        * those of which it writes a part, such as the cache of a decode step (dynamic-update-slices and scatters). The writes
          can be in the body of a loop, or in slices that are joined again.
        * those whose new values take no matrix product, no reduction and no other device

        An output that is only of a parameter's shape, as in a forward pass, is not its new value.
        """
        arrays = [array for step in self.steps for array in step.arrays if array.source in self.parameters]
        resharded = {self.parameters[array.source] for array in arrays if array.is_resharded}  # they cannot take the buffers
        if self.rows and all(row.rule != "unknown" for row in self.rows):
            return set(self._state_roles) - resharded
        if self.rows:
            return {self.parameters[array.source] for array in arrays} - resharded
        if not self.steps:
            return set()
        results = (self.frames.root(self.steps[0].frame, output.index) for output in interface.outputs)
        written = (self.frames.carried_input(place, _WRITING) for place in results)
        return {source[1:] for source in written if source is not None} | (self._local() - resharded)

    def _local(self) -> set[tuple[int, ShapeIndex]]:
        """Return the parameters whose new values need no matrix product, reduction or other device."""
        graph, arrays = self.updates.flow.graph, self.steps[0].arrays
        others: set[int] = set()  # nodes that hold a value that is not local
        for node in graph.reachable([array.new for array in arrays]):
            if graph.ops[node] in _NOT_LOCAL or not others.isdisjoint(graph.args[node]):
                others.add(node)
        local = [array.source for array in arrays if array.new not in others]
        return {self.parameters[source] for source in local if source in self.parameters}

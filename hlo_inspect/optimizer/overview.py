"""A summary of a module's updates: one name, the constants that all updates share, the bytes of each kind of state, and where
the learning rate comes from.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

from hlo_inspect.hlo.values.header import ShapeIndex
from hlo_inspect.optimizer.algebra.descriptions import describe
from hlo_inspect.optimizer.algebra.hyperparameter import ABSENT, Hyperparameter
from hlo_inspect.optimizer.algebra.normal_form import FormKinds, NormalForms, Sum
from hlo_inspect.optimizer.algebra.norms import Clip, find_clip
from hlo_inspect.optimizer.matching.training_steps import WeightUpdates
from hlo_inspect.optimizer.matching.weights import Weight
from hlo_inspect.optimizer.rules import RULES
from hlo_inspect.optimizer.schedule.recognition import counts_steps, expanded_rate, schedule_in_words
from hlo_inspect.optimizer.schedule.tables import with_segments
from hlo_inspect.optimizer.step.state_arrays import StateArray


class Rates:
    """Learning rates in words; equal expressions are examined once."""

    def __init__(self, updates: WeightUpdates) -> None:
        self._updates = updates
        self._known: dict[tuple[int, frozenset[tuple[object, float]]], str] = {}
        self._counters = {id(m.forms): {m.forms.leaf(array.old): array for array in m.counters} for m in updates.matchers}

    def text(self, weight: Weight) -> str:
        """`constant`, `absent`, a schedule by name, a parameter, or what the rate is computed from and how."""
        claim, forms = weight.claim, weight.update.forms
        state = (claim.hyperparameters.get("learning_rate", ABSENT) if claim is not None else ABSENT).known
        if claim is None or state != "computed":
            return state
        key = (id(forms), frozenset(claim.rate.items()))
        if key not in self._known:
            self._known[key] = self._schedule(forms, claim.rate) or self._expression(forms, claim.rate)
        return self._known[key]

    def _schedule(self, forms: NormalForms, rate: Sum) -> str | None:
        rate = with_segments(self._updates.flow, forms, expanded_rate(forms, rate))
        leaves = forms.leaves(rate)
        counter = next(iter(leaves)) if len(leaves) == 1 else None
        array = self._counters[id(forms)].get(counter) if counter is not None else None
        if counter is None or array is None or not counts_steps(forms, forms.definition(array.new), counter):
            return None
        return schedule_in_words(forms, rate, counter)

    def _expression(self, forms: NormalForms, rate: Sum) -> str:
        sources = [forms.graph.sources.get(node) for leaf in forms.leaves(rate) if (node := forms.atoms[leaf].node) is not None]
        parameters = [self._updates.parameters[source] for source in sources if source in self._updates.parameters]
        numbers = sorted({number for number, _ in parameters})
        plural = "s" if len(numbers) > 1 else ""
        source = f" from parameter{plural} {', '.join(map(str, numbers))}" if numbers else ""
        expression = describe(forms, rate)
        if len(numbers) == 1 and expression == f"p{numbers[0]}":
            return f"parameter {numbers[0]}"
        return f"computed{source}" if "…" in expression else f"computed{source}: {expression}"


WITH_DECAY = {rule.name: rule.with_decay for rule in RULES if rule.with_decay is not None}
"""Names of rules and those with weight decay: where other weights are decayed, those without decay have the second name too."""


@dataclass(slots=True)
class Row:
    """One updated weight: `weight` is the array that the forward pass reads, `master` a more precise copy beside it."""

    matched: Weight
    rule: str
    weight: StateArray
    master: StateArray | None
    hyperparameters: dict[str, Hyperparameter]
    roles: dict[str, StateArray]
    clip: Clip | None
    counters: list[StateArray] = field(default_factory=list)

    def hyperparameter(self, name: str) -> Hyperparameter:
        return self.hyperparameters.get(name, ABSENT)


class Overview:
    """The rows of an optimizer and what they share: `rows` of updated weights, `frozen` of those without a gradient.

    `faults` are what could not be followed to find them, in the order in which it was met. `is_complete` is True if all
    expressions could be compared. Others that follow the same values later change neither.
    """

    def __init__(self, updates: WeightUpdates) -> None:
        self.updates = updates
        self.all_rows = [_row(weight) for weight in updates.weights]
        self.rows = [row for row in self.all_rows if not row.matched.is_frozen]
        self.frozen = [row for row in self.all_rows if row.matched.is_frozen]
        self.rates = Rates(updates)
        self.is_complete = not updates.flow.frames.is_cut_short
        self.faults = list(updates.flow.frames.faults)
        rules = {row.rule for row in self.rows}
        for plain, decoupled in WITH_DECAY.items():
            if decoupled in rules:
                for row in self.rows:
                    row.rule = decoupled if row.rule == plain else row.rule

    @property
    def why_partial(self) -> str:
        """Why there may be more updates than were found; empty where the text shows all of them."""
        if not self.is_complete:
            return "the expressions are too large to compare all of them"
        if self.updates.is_cut_off:
            return "the text is cut off, and the missing part may update weights"
        if self.faults:
            computation, name, reason = self.faults[0]
            return f"{computation}: {name} {reason}, so that not all is known that the module computes"
        return ""

    @cached_property
    def name(self) -> str | None:
        """The rule of the updates; `None` where none was found and there may be some."""
        rules = {row.rule for row in self.rows}
        if not self.is_complete or (not rules and self.why_partial):
            return None
        if not rules:
            return "none"
        return rules.pop() if len(rules) == 1 else "mixed"

    @cached_property
    def unknown(self) -> list[list[Row]]:
        """The weights that no rule explains, by the form of their expressions, the most first."""
        kinds: dict[int, FormKinds] = {}
        found: dict[tuple[int, int], list[Row]] = {}
        for row in self.rows:
            if row.matched.claim is None:
                forms = row.matched.update.forms
                kind = kinds.setdefault(id(forms), FormKinds(forms)).of(row.matched.update.form)
                found.setdefault((id(forms), kind), []).append(row)
        return sorted(found.values(), key=len, reverse=True)

    def shared(self, name: str) -> float | None:
        """The value of a hyper-parameter on which all updates agree that have it."""
        found = {row.hyperparameter(name) for row in self.rows} - {ABSENT}
        return found.pop().value if len(found) == 1 else None

    @cached_property
    def clip_norm(self) -> float | None:
        found = {row.clip.limit for row in self.rows if row.clip is not None and row.clip.kind == "norm"}
        return found.pop() if len(found) == 1 else None

    @cached_property
    def decayed(self) -> int:
        return sum(any(_acts(row.hyperparameter(name)) for name in ("weight_decay", "l2")) for row in self.rows)

    def bytes_of(self, arrays: Iterable[StateArray | None]) -> int:
        """Bytes of distinct arrays."""
        return sum(array.bytes for array in {array.source: array for array in arrays if array is not None}.values())

    def moments(self, order: str) -> list[StateArray]:
        return [array for row in self.rows for role, array in row.roles.items() if role.startswith(order)]

    @cached_property
    def states(self) -> list[StateArray]:
        """Everything that is kept beside weights and masters."""
        found = [array for row in self.rows for array in (*row.roles.values(), *row.counters)]
        for row in self.rows:
            found += row.matched.claim.extra if row.matched.claim is not None else []
            found += row.matched.accumulators
        for row in self.frozen:
            found += [state.array for state in row.matched.update.states if state.array.shape.elements != 1]
        return found

    @cached_property
    def roles(self) -> dict[tuple[int, ShapeIndex], str]:
        """The role of each entry parameter that belongs to the optimizer.

        In a step that updates weights an array that is returned unchanged is `frozen`; a scalar is rather a rate that is kept.
        """
        named: list[tuple[str, StateArray | None]] = []
        for row in self.rows:
            named += [("weight", row.weight), ("master_weight", row.master), *row.roles.items()]
            named += [("counter", array) for array in row.counters]
            named += [("accumulator", array) for array in row.matched.accumulators]
        if self.rows:
            arrays = self.updates.steps[0].arrays
            named += [("frozen", row.weight) for row in self.frozen]
            unchanged = [array for array in arrays if array.is_float and array.is_unchanged and array.shape.elements != 1]
            named += [("frozen", array) for array in unchanged]
        found: dict[tuple[int, ShapeIndex], str] = {}
        for role, array in named:
            parameter = self.updates.parameters.get(array.source) if array is not None else None
            if parameter is not None:
                found.setdefault(parameter, role)
        return found


def _acts(reading: Hyperparameter) -> bool:
    return reading.known != "absent" and reading.value != 0.0


def _row(weight: Weight) -> Row:
    claim, copy = weight.claim, weight.copy
    master = weight.array if copy is not None else None
    return Row(
        weight,
        weight.rule,
        copy or weight.array,
        master,
        claim.hyperparameters if claim is not None else {},
        claim.roles if claim is not None else {},
        find_clip(weight.update, claim.gradient) if claim is not None else None,
        weight.counters,
    )

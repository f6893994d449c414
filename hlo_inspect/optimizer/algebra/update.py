"""The update of a weight for the rules: its new value as a sum over the old value, the states and the gradient."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from hlo_inspect.hlo.opcodes import opcodes_that_are
from hlo_inspect.optimizer.algebra.dependence import AtomDependence
from hlo_inspect.optimizer.algebra.hyperparameter import ABSENT, COMPUTED, Hyperparameter, constant, shortest
from hlo_inspect.optimizer.algebra.normal_form import (
    ONE,
    Monomial,
    NormalForms,
    Sum,
    added,
    close,
    inverse,
    is_constant,
    product,
    scaled,
)
from hlo_inspect.optimizer.algebra.reductions import Reductions
from hlo_inspect.optimizer.algebra.regularized import factor_out_gradient, regularized_gradient
from hlo_inspect.optimizer.step.state_arrays import StateArray


class State(NamedTuple):
    """Another array in the expression of an update: the atoms of its old and new value and the form of the new one."""

    array: StateArray
    old: int
    new: int
    form: Sum


class WeightAverage(NamedTuple):
    """An array that adds `share` of another array's new value."""

    array: StateArray
    share: Sum


@dataclass(slots=True)
class Claim:
    """A rule's explanation of an update.

    `rate` is the factor of the step, positive for descent; `gradient` is the form that the rule takes as the gradient. `roles`
    are the arrays of the rule's state, `extra` the other arrays. `OptimizerRule.claim` fills in `rule`.
    """

    rate: Sum
    gradient: Sum
    hyperparameters: dict[str, Hyperparameter] = field(default_factory=dict)
    roles: dict[str, StateArray] = field(default_factory=dict)
    extra: list[StateArray] = field(default_factory=list)
    rule: str = ""


class OptimizerRule(NamedTuple):
    """An optimizer, as facts, help, README and tests describe it.

    `match` returns a claim if the rule wholly explains an update. `hyperparameters` and `state` are the names that a claim can
    have: facts of `optimizer`, and roles of parameters. `with_decay` is the rule's name with decoupled weight decay, if that
    has its own.
    """

    name: str
    title: str
    paper: str
    match: Callable[[Update], Claim | None]
    hyperparameters: tuple[str, ...]
    state: tuple[str, ...]
    with_decay: str | None = None

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name,) if self.with_decay is None else (self.name, self.with_decay)

    def claim(self, update: Update) -> Claim | None:
        """Return the claim of the rule, by its name."""
        claim = self.match(update)
        if claim is not None:
            decay = claim.hyperparameters.get("weight_decay", ABSENT)
            claim.rule = self.name if self.with_decay is None or decay == ABSENT else self.with_decay
        return claim


@dataclass(slots=True)
class UpdateContext:
    """The step's data that an update reads.

    `own_inputs` hold its own old value. Its gradient depends on one or more of `gradient_inputs`, and states are in
    `state_inputs`; all are bits. `running_products` are atoms of scalars that each step multiplies by the same number, with
    that number; None if it is an input. `arrays` are those of the training state by the nodes of their values. `averages`
    returns those of weights by the atoms of the new weights, `returned_scalars` the scalars that the step returns. `velocities`
    returns the nodes of new values that an integrator adds to positions.
    `refused_states` are the `state_inputs` that kept a form from being a gradient.
    """

    dependence: AtomDependence
    reductions: Reductions
    own_inputs: int
    gradient_inputs: int
    state_inputs: int
    running_products: Mapping[int, float | None]
    arrays: Mapping[int, StateArray]
    averages: Callable[[], Mapping[int, Sequence[WeightAverage]]]
    returned_scalars: Callable[[], Sequence[Sum]]
    velocities: Callable[[], Container[int]]
    refused_states: int = 0


class Update:
    """The update of `array`.

    `weight` is the atom of the old value; `kept` the factor of the weight in the new value (1 without decay), `rest` the sum of
    the other terms.
    """

    def __init__(
        self, forms: NormalForms, array: StateArray, states: Iterable[State], context: UpdateContext, *, tolerance: float
    ) -> None:
        self.forms = forms
        self.array = array
        self.tolerance = tolerance
        self.reductions = context.reductions
        self.weight = forms.leaf(array.old)
        self.running_products = context.running_products
        self._context = context
        self._dependence = context.dependence
        self._special = self._dependence.bit(self.weight)
        self.form = self._drop_zero_terms(forms.definition(array.new))
        self.states: list[State] = []
        for state in states:
            form = self._drop_zero_terms(state.form)
            self.states.append(state if form is state.form else state._replace(form=form))
            self._special |= self._dependence.bit(state.old) | self._dependence.bit(state.new)
        kept, rest = self._split(self._factor_out_gradient())
        self.kept = expanded(self, kept)
        self.rest = self._merge_decayed_terms(rest)

    def _factor_out_gradient(self) -> Sum:
        """Factor a regularized gradient out of the new value, and out of the states."""
        own = self._dependence.bit(self.weight)
        holding = [state.form for state in self.states if self._dependence.values(state.form) & own]
        gradient = regularized_gradient(self.forms, holding, self._is_regularized) if holding else None
        if gradient is None:
            return self.form
        self.states = [
            state._replace(form=factor_out_gradient(self.forms, state.form, self.weight, gradient)) for state in self.states
        ]
        return factor_out_gradient(self.forms, self.form, self.weight, gradient)

    def _drop_zero_terms(self, form: Sum) -> Sum:
        """Drop terms of a sum that are 0 times the weight in a scaled gradient: the factor of a regularization may be 0.

        A decay of 0 stays, and 0 times a state or a gradient.
        """
        if 0.0 not in form.values():
            return form
        own, are_scalars = (self.weight, 1.0), self._dependence.are_scalars
        return {
            monomial: value
            for monomial, value in form.items()
            if value != 0.0 or own not in monomial or all(are_scalars(atom) for atom, _ in monomial if atom != self.weight)
        }

    def _split(self, form: Sum) -> tuple[Sum, Sum]:
        """Split a form into the factor of the weight and the rest.

        The gradient of a standardized weight holds the weight itself.
        """
        kept, rest = split(form, self.weight)
        are_scalars = self._dependence.are_scalars
        inner = {m for m in kept if self.depends_on_itself({m: 1.0}) and not all(are_scalars(atom) for atom, _ in m)}
        if not inner or len(inner) == len(kept):
            return kept, rest
        rest |= {product(monomial, ((self.weight, 1.0),)): kept[monomial] for monomial in inner}
        return {monomial: value for monomial, value in kept.items() if monomial not in inner}, rest

    def _merge_decayed_terms(self, form: Sum) -> Sum:
        """Return the rest as one term if the sum of weight and step is decayed.

        `(w + s) * k` with a `k` of several scalars, such as `1 - rate * decay`, adds `s * k`.
        """
        parts = [self.split_scalars(monomial) for monomial in form]
        if len(form) != len(self.kept) or len(form) < 2 or ONE not in self.kept or len({others for _, others in parts}) != 1:
            return form
        scalars = dict(zip((scalars for scalars, _ in parts), form.values(), strict=True))
        for step, value in scalars.items():
            ratio = value / self.kept[ONE]
            if all(close(scalars.get(product(decay, step), 0.0), ratio * kept) for decay, kept in self.kept.items()):
                content, factor = self.forms.factored(self.kept)
                return {product(product(parts[0][1], step), factor): content * ratio}
        return form

    @cached_property
    def is_normalized(self) -> bool:
        """True if the gradient holds the weight times something that depends on it: the loss reads `w / norm(w)`."""
        for form in (self.form, *(state.form for state in self.states)):
            factor, _ = split(form, self.weight)
            if any(self.depends_on_itself({m: 1.0}) and not self.are_scalar({m: 1.0}) for m in factor):
                return True
        return False

    def _is_regularized(self, form: Sum) -> bool:
        """Return True if a form is a gradient and a scalar times the weight."""
        factor, rest = split(form, self.weight)
        return bool(factor) and bool(rest) and self.are_scalar(factor) and self.is_gradient(rest)

    # -- kinds of atoms -------------------------------------------------------------------------------------------------

    def is_scalar(self, atom: int) -> bool:
        """Return True if an atom is made only of constants, counters and other scalars, and does not depend on the weight."""
        dependence = self._dependence
        if not dependence.are_scalars(atom) or dependence.values_in(atom) & self._special:
            return False
        return not dependence.inputs_in(atom) & self._context.gradient_inputs

    def is_bound(self, atom: int) -> bool:
        """Return True if the weight is an array and the atom one number: a minimum or maximum of several, or a chosen one."""
        if self.array.shape.elements == 1 or self.forms.atoms[atom].op not in _BOUNDS:
            return False
        return self._dependence.are_scalars(atom)

    def holds(self, atom: int, value: int) -> bool:
        """Return True if an atom holds an array's value at any depth."""
        return bool(self._dependence.values_in(atom) & self._dependence.bit(value))

    @property
    def refused_states(self) -> int:
        """The inputs, as bits, whose states keep other forms from being gradients."""
        return self._context.refused_states

    @property
    def own_inputs(self) -> int:
        """The inputs that hold the old value of the weight, as bits."""
        return self._context.own_inputs

    def depends_on_itself(self, form: Sum) -> bool:
        """Return True if an opaque value in a form depends on an input of the gradient.

        This input is mostly the old value of the weight.
        """
        return bool(self._dependence.inputs(form) & self._context.gradient_inputs)

    def dependent_leaves(self, form: Sum) -> set[int]:
        """Return the leaf atoms, at any depth, that depend on an input of the gradient."""
        own, inputs_in, atoms = self._context.gradient_inputs, self._dependence.inputs_in, self.forms.atoms
        seen: set[int] = set()
        stack = [atom for monomial in form for atom, _ in monomial]
        while stack:
            number = stack.pop()
            if number not in seen and inputs_in(number) & own:
                seen.add(number)
                stack += [inner for part in atoms[number].parts for monomial in part for inner, _ in monomial]
        return {number for number in seen if atoms[number].node is not None}

    def turns(self, form: Sum) -> bool:
        """Return True if the direction of a form, not only its length, depends on an input of the gradient."""
        own, inputs_in = self._context.gradient_inputs, self._dependence.inputs_in
        atoms = {atom for monomial in form for atom, _ in monomial if not self._dependence.are_scalars(atom)}
        return self.array.shape.elements == 1 or any(inputs_in(atom) & own for atom in atoms)

    def are_scalar(self, form: Sum) -> bool:
        return all(self.is_scalar(atom) for monomial in form for atom, _ in monomial)

    def is_gradient(self, form: Sum) -> bool:
        """Return True if a form can be a gradient.

        It depends on the old value through something opaque, and holds no state.
        """
        if self._dependence.values(form) & self._special & ~self._dependence.bit(self.weight):
            return False
        inputs = self._dependence.inputs(form)
        if inputs < 0 or not inputs & self._context.gradient_inputs:
            return False
        states = inputs & self._context.state_inputs
        self._context.refused_states |= states
        return not states

    def split_scalars(self, monomial: Monomial) -> tuple[Monomial, Monomial]:
        """Split a product into its scalar factors and the other factors."""
        scalars = tuple([factor for factor in monomial if self.is_scalar(factor[0])])
        return scalars, tuple([factor for factor in monomial if factor not in scalars])

    def without_scalars(self, form: Sum) -> Sum:
        """Divide a form by the scalar factors that all of its terms share."""
        shared: dict[int, float] | None = None
        for monomial, value in form.items():
            if value != 0.0:
                scalars = {atom: exponent for atom, exponent in monomial if self.is_scalar(atom)}
                shared = scalars if shared is None else {a: e for a, e in shared.items() if scalars.get(a) == e}
        divisor = tuple(sorted((atom, -exponent) for atom, exponent in (shared or {}).items()))
        return {product(monomial, divisor): value for monomial, value in form.items()} if divisor else form

    def direction(self, form: Sum) -> tuple[float, Monomial]:
        """Return a form up to scalar factors, as content times monomial."""
        return self.forms.factored(self.without_scalars(form))

    def same_direction(self, left: Sum, right: Sum) -> bool:
        """Return True if two forms differ only by scalar factors."""
        return bool(left) and bool(right) and self.direction(left)[1] == self.direction(right)[1]

    # -- states ---------------------------------------------------------------------------------------------------------

    def used(self, form: Sum) -> list[State]:
        """Return the states that a form holds, as old or as new values."""
        values = self._dependence.values(form)
        return [state for state in self.states if values & (self._dependence.bit(state.old) | self._dependence.bit(state.new))]

    def recursion(self, state: State) -> tuple[Sum, Sum] | None:
        """Return a state's new value as `decay * old + rest`, if it is linear in the old value."""
        decay, rest = split(state.form, state.old)
        if not decay or self._dependence.values(rest) & self._dependence.bit(state.old) or not self.are_scalar(decay):
            return None
        return decay, rest

    @property
    def averages(self) -> Sequence[WeightAverage]:
        """The arrays that add some of the new weight."""
        return self._context.averages().get(self.forms.leaf(self.array.new), ())

    @property
    def returned_scalars(self) -> Sequence[Sum]:
        """The scalars that the training step returns."""
        return self._context.returned_scalars()

    @property
    def is_velocity(self) -> bool:
        """True if the step adds the array to another one that it depends on, as integrators do."""
        return self.array.new in self._context.velocities()

    def array_of(self, atom: int) -> StateArray | None:
        """Return the array of the training state whose old or new value an atom is."""
        node = self.forms.atoms[atom].node
        return self._context.arrays.get(node) if node is not None else None

    def state_of(self, atom: int) -> State | None:
        """Return the state whose new value an atom is or, below a product of matrices or a loop, holds."""
        array = self.array_of(atom)
        if array is None or atom != self.forms.leaf(array.new) or array.is_unchanged:
            return None
        return State(array, self.forms.leaf(array.old), atom, self.forms.definition(array.new))

    def with_scalar_states(self, states: Iterable[State]) -> Update:
        """Return the same update in which some states with one element count as scalar inputs."""
        left = [state for state in self.states if state not in states]
        return Update(self.forms, self.array, left, self._context, tolerance=self.tolerance)

    # -- hyperparameters -------------------------------------------------------------------------------------------------------

    def read(self, form: Sum, *, tolerance: float | None = None) -> Hyperparameter:
        """Return the hyper-parameter of a coefficient: its number, or `COMPUTED`."""
        if not any(form.values()):
            return constant(0.0)
        if not is_constant(form):
            return COMPUTED
        return constant(form.get(ONE, 0.0), self.tolerance if tolerance is None else tolerance)

    def round(self, value: float) -> float:
        """Return the shortest decimal within the tolerance of the update."""
        return shortest(value, self.tolerance)

    def decay_of(self, rate: Sum, kept: Sum | None = None) -> Hyperparameter:
        """Return the decoupled weight decay: the factor of the weight is `1 - rate * decay`."""
        kept = self.kept if kept is None else kept
        marker = ((self.forms.zero, 1.0),)
        has_zero = any(self.forms.zero in dict(monomial) for monomial in kept)
        extra = {m: v for m, v in added(kept, {ONE: -1.0}).items() if self.forms.zero not in dict(m) and abs(v) > 1e-14}
        if not extra:
            zero = has_zero or any(value == 0.0 and monomial != ONE for monomial, value in kept.items())
            return constant(0.0) if zero or marker in kept else ABSENT
        factors = {monomial: -value for monomial, value in extra.items()}
        ratio = self.forms.multiply(factors, self.forms.power(rate, -1.0)) if len(rate) == 1 and len(factors) == 1 else None
        if ratio is None or not is_constant(ratio):
            return COMPUTED
        rounding = 6e-8 / abs(next(iter(extra.values()))) if is_constant(rate) else 0.0
        return constant(ratio.get(ONE, 0.0), max(self.tolerance, min(rounding, 0.006)))

    def is_plain(self) -> bool:
        """Return True if the new value is linear in the weight, with a scalar factor, apart from gradients."""
        return bool(self.kept) and self.are_scalar(self.kept)

    def is_step(self) -> bool:
        """Return True if a term is added to the weight, which a scalar factor keeps or decays."""
        scalars = all(self._dependence.are_scalars(atom) for monomial in self.kept for atom, _ in monomial)
        if not self.kept or not scalars or not self.rest:
            return False
        return LEAST_KEPT <= self.kept[ONE] <= 1.0 if ONE in self.kept else len(self.kept) == 1 and bool(self.states)


_BOUNDS = opcodes_that_are("choice")

LEAST_KEPT = 0.5
"""The least factor of the weight: no weight decay keeps less."""


def split(form: Sum, atom: int) -> tuple[Sum, Sum]:
    """Return the factor of an atom in a sum, and the terms without the atom as a factor of exponent 1."""
    factor: Sum = {}
    rest: Sum = {}
    for monomial, value in form.items():
        if (atom, 1.0) in monomial:
            factor[tuple([power for power in monomial if power[0] != atom])] = value
        else:
            rest[monomial] = value
    return factor, rest


def quotient(forms: NormalForms, form: Sum, divisor: Sum) -> Sum | None:
    """Return `form / divisor` if the result is one monomial, else None."""
    (a, left), (b, right) = forms.factored(form), forms.factored(divisor)
    if b == 0.0:
        return None
    return {product(left, inverse(right)): a / b}


def expanded(update: Update, form: Sum) -> Sum:
    """Expand the terms of a sum that are sums themselves."""
    total: Sum = {}
    for monomial, value in form.items():
        atom = update.forms.only_factor(monomial)
        total = added(total, scaled(atom.parts[0], value) if atom is not None and atom.op == "sum" else {monomial: value})
    return total

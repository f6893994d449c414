"""Steps that several rules share: Adam's `rate * m' / (sqrt(v') + epsilon)` with its bias corrections, and `rate * g /
root(v')`, or an average of such steps, of AdaGrad and RMSProp.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from hlo_inspect.optimizer.algebra.hyperparameter import ABSENT, Hyperparameter
from hlo_inspect.optimizer.algebra.moments import (
    Average,
    Root,
    exact_decay,
    find_root,
    gradient_average,
    l2_in,
    l2_of,
    square_average,
    take_corrections,
)
from hlo_inspect.optimizer.algebra.normal_form import Monomial, Sum, key_of, scaled
from hlo_inspect.optimizer.algebra.update import Claim, State, Update, split
from hlo_inspect.optimizer.step.state_arrays import StateArray


@dataclass(frozen=True, slots=True)
class AdamStep:
    """One term of a new value: `-rate * first' / root(second')`. `bases` are those of the corrections of the two moments."""

    first: State
    second: State
    root: Root
    rate: Sum
    bases: tuple[Hyperparameter | None, Hyperparameter | None]


def find_adam_step(update: Update, rest: Sum | None = None) -> AdamStep | None:
    """The step as a single term with two states, each explained; the moments themselves are left to the caller."""
    if rest is None and not update.is_plain():
        return None
    rest = update.rest if rest is None else rest
    if len(rest) != 1:
        return None
    ((monomial, value),) = rest.items()
    states = update.used(rest)
    if len(states) != 2:
        return None
    for first, second in (states, reversed(states)):
        if dict(monomial).get(first.new) == 1.0:
            factors = tuple(factor for factor in monomial if factor[0] != first.new)
            root = find_root(update, factors, second.new)
            if root is not None:
                return _with_rate(update, first, second, root, value)
    return None


def _with_rate(update: Update, first: State, second: State, root: Root, value: float) -> AdamStep | None:
    inner, _ = take_corrections(update, root.correction)  # other scalars are corrections that are handed in
    outer, factors = take_corrections(update, root.rest)
    if not all(update.is_scalar(atom) for atom, _ in factors):
        return None
    ones = [base for base, exponent in outer if exponent == -1.0]
    roots = [base for base, exponent in outer if exponent == 0.5] + [base for base, exponent in inner if exponent == -0.5]
    if len(ones) + len(roots) != len(outer) + len(inner) or len(ones) > 1 or len(roots) > 1:
        return None
    rate: dict[Monomial, float] = {factors: -value * root.scale}
    return AdamStep(first, second, root, rate, (ones[0] if ones else None, roots[0] if roots else None))


def adam_claim(update: Update, step: AdamStep, first: Average, second: Average) -> Claim:
    """The claim of a rule with Adam's two moments."""
    return Claim(
        step.rate,
        first.rest,
        {
            "learning_rate": update.read(step.rate),
            "beta1": exact_decay(first.decay, step.bases[0]),
            "beta2": exact_decay(second.decay, step.bases[1]),
            "epsilon": update.read(step.root.epsilons) if step.root.epsilons else ABSENT,
            "weight_decay": update.decay_of(step.rate),
            "l2": l2_of(update, first),
        },
        {"first_moment": first.state.array, "second_moment": second.state.array},
    )


SecondMoment = Callable[[Update, State, Average], Average | None]
"""What a rule takes for the second moment: the update, the state below the root, the first moment."""


def squares_of(update: Update, state: State, first: Average) -> Average | None:
    """Adam's second moment: an average of the squares of what the first one adds up."""
    return square_average(update, state, first.rest)


def averages_of(update: Update, step: AdamStep | None, second: SecondMoment = squares_of) -> tuple[Average, Average] | None:
    """Both moments of a step, where the first one is an average of gradients."""
    first = gradient_average(update, step.first) if step is not None else None
    found = second(update, step.second, first) if step is not None and first is not None else None
    return (first, found) if first is not None and found is not None else None


def claim_like_adam(update: Update, second: SecondMoment = squares_of) -> Claim | None:
    """The claim of a rule that differs from Adam in the second moment alone."""
    step = find_adam_step(update)
    found = averages_of(update, step, second)
    return adam_claim(update, step, *found) if step is not None and found is not None else None


def other_state(update: Update, values: list[int], but: list[State]) -> State | None:
    """The state whose new value is among atoms, other than some."""
    found = [state for state in update.states if state.new in values and state not in but]
    return found[0] if len(found) == 1 else None


@dataclass(frozen=True, slots=True)
class ScaledGradient:
    """A gradient over the root of a second moment; `momentum` is the state that adds such steps up, with its decay."""

    second: State
    root: Root
    gradient: Sum
    rate: Sum
    momentum: State | None = None
    decay: Hyperparameter = ABSENT
    nesterov: Hyperparameter = ABSENT
    average: State | None = None

    def claim(self, update: Update, hyperparameters: dict[str, Hyperparameter]) -> Claim:
        roles: dict[str, StateArray] = {"second_moment": self.second.array}
        if self.momentum is not None:
            roles["first_moment"] = self.momentum.array
        common = {
            "learning_rate": update.read(self.rate),
            "epsilon": update.read(self.root.epsilons) if self.root.epsilons else ABSENT,
            "momentum": self.decay,
            "nesterov": self.nesterov,
            "weight_decay": update.decay_of(self.rate),
            "l2": l2_in(update, self.gradient),
        }
        extra = [self.average.array] if self.average is not None else []
        return Claim(self.rate, self.gradient, common | hyperparameters, roles, extra)


def find_scaled_gradient(update: Update) -> ScaledGradient | None:
    """The step of an update that is explained by one second moment, at most one average below the root, and a momentum."""
    if not update.is_plain() or not update.rest:
        return None
    return _scaled_gradient(update, update.rest) or _with_momentum(update)


def _with_momentum(update: Update) -> ScaledGradient | None:
    """A state that adds up steps, with Nesterov's look ahead or without."""
    for state in update.used(update.rest):
        factor, beside = split(update.rest, state.new)
        found = update.recursion(state) if len(factor) == 1 and update.are_scalar(factor) else None
        inner = _scaled_gradient(update, found[1]) if found is not None else None
        if found is None or inner is None:
            continue
        step = update.forms.multiply(factor, update.forms.power(found[0], -1.0)) if beside else factor
        if beside and key_of(beside) != key_of(update.forms.multiply(step, found[1])):
            continue
        rate = update.forms.multiply(inner.rate, step)
        nesterov = Hyperparameter(float(bool(beside)), "constant")
        return replace(inner, rate=rate, momentum=state, decay=update.read(found[0]), nesterov=nesterov)
    return None


def _scaled_gradient(update: Update, form: Sum) -> ScaledGradient | None:
    """A form `-rate * gradient / root(second)`."""
    states = update.used(form)
    for second in states:
        others = [state for state in states if state is not second]
        parts = [_term(update, monomial, second, others) for monomial in form]
        if len(others) > 1 or any(part is None for part in parts):
            continue
        roots = [part[0] for part in parts if part is not None]
        scalars = [part[1] for part in parts if part is not None]
        if any(root != roots[0] or one != scalars[0] for root, one in zip(roots, scalars, strict=True)):
            continue
        gradient = {part[2]: value for part, value in zip(parts, form.values(), strict=True) if part is not None}
        if not update.is_gradient(gradient) or update.used(gradient):
            continue
        return _take_rate(update, second, roots[0], scalars[0], gradient, others[0] if others else None)
    return None


def _take_rate(
    update: Update, second: State, root: Root, scalars: Monomial, gradient: Sum, average: State | None
) -> ScaledGradient | None:
    """Takes the common factor of the terms as the rate."""
    values = {round(value, 12) for value in gradient.values()}
    factor, _ = split(gradient, update.weight)
    content = (
        values.pop() if len(values) == 1 else None if not factor else next(v for m, v in gradient.items() if m not in factor)
    )
    if content is None or take_corrections(update, root.correction)[1]:
        return None
    rate: Sum = {scalars: -content * root.scale}
    return ScaledGradient(second, root, scaled(gradient, 1 / content), rate, average=average)


def _term(update: Update, monomial: Monomial, second: State, others: list[State]) -> tuple[Root, Monomial, Monomial] | None:
    """The root, the scalar factors and the gradient of one term."""
    opened = update.open_safe_root(monomial, second.new)
    root = find_root(update, opened, second.new, others[0].new if others else None)
    if root is None:
        return None
    scalars, gradient = update.split_scalars(root.rest)
    bare = Root(root.epsilon, root.inner, root.correction, root.scale, ())
    return (bare, scalars, gradient) if gradient else None

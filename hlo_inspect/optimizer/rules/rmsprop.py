"""A gradient over the root of its squares: RMSProp, AdaGrad and Adadelta.

RMSProp (Hinton, lecture 6e of "Neural Networks for Machine Learning", 2012), centered (Graves 2013, arXiv:1308.0850) or not,
with momentum or without:

* `v' = b2 * v + (1 - b2) * g ** 2`
* centered: `a' = b2 * a + (1 - b2) * g`, `variance = v' - a' ** 2`; else `variance = v'`
* `step = g / sqrt(variance + epsilon)` or `g / (sqrt(variance) + epsilon)`
* `w' = w - rate * step`, or `m' = momentum * m + step`, `w' = w - rate * m'`

State: v, with it a and m. Reads rate, b2, epsilon, momentum, decay, l2. The rate may be part of m', v' corrected as in Adam.

AdaGrad (Duchi, Hazan and Singer 2011) adds up the squares, `v' = v + g ** 2`. State: v. Reads rate, epsilon, decay, l2. The
step may be defined as 0 for a v' of 0.

Adadelta (Zeiler 2012, arXiv:1212.5701) has the root of the squares of its steps instead of a rate:

* `u = g * sqrt(d + epsilon) / sqrt(v' + epsilon)`
* `d' = b2 * d + (1 - b2) * u ** 2`
* `w' = w - rate * u`

State: v and d. Reads rate, b2, epsilon, decay, l2.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from hlo_inspect.optimizer.algebra.hyperparameter import ABSENT, Hyperparameter
from hlo_inspect.optimizer.algebra.moments import (
    Momentum,
    Root,
    exact_decay,
    find_momentum,
    find_root,
    gradient_average,
    l2_in,
    square_average,
    take_corrections,
)
from hlo_inspect.optimizer.algebra.normal_form import Atom, Monomial, Sum, key_of, product, scaled
from hlo_inspect.optimizer.algebra.update import Claim, State, Update, split
from hlo_inspect.optimizer.step.state_arrays import StateArray


def match_rmsprop(update: Update) -> Claim | None:
    step = _find_scaled_gradient(update)
    if step is None:
        return None
    second = square_average(update, step.second, step.gradient)
    if second is None or second.decay.value == 1.0:
        return None
    if step.average is not None:
        mean = gradient_average(update, step.average)
        if mean is None or mean.decay != second.decay or not update.same_direction(mean.rest, step.gradient):
            return None
    bases, _ = take_corrections(update, step.root.correction)
    return step.claim(update, {"beta2": exact_decay(second.decay, bases[0][0] if bases else None)})


def match_adagrad(update: Update) -> Claim | None:
    step = _find_scaled_gradient(update)
    if step is None or step.average is not None or step.momentum is not None or step.root.correction:
        return None
    second = square_average(update, step.second, step.gradient)
    if second is None or second.decay.value != 1.0:
        return None
    return step.claim(update, {})


@dataclass(frozen=True, slots=True)
class _ScaledGradient:
    """A gradient over the root of a second moment; `momentum` adds such steps up."""

    second: State
    root: Root
    gradient: Sum
    rate: Sum
    momentum: Momentum | None = None
    average: State | None = None

    def claim(self, update: Update, hyperparameters: dict[str, Hyperparameter]) -> Claim:
        roles: dict[str, StateArray] = {"second_moment": self.second.array}
        if self.momentum is not None:
            roles["first_moment"] = self.momentum.state.array
        common = {
            "learning_rate": update.read(self.rate),
            "epsilon": update.read(self.root.epsilons) if self.root.epsilons else ABSENT,
            "momentum": update.read(self.momentum.decay) if self.momentum is not None else ABSENT,
            "nesterov": self.momentum.nesterov if self.momentum is not None else ABSENT,
            "weight_decay": update.decay_of(self.rate),
            "l2": l2_in(update, self.gradient),
        }
        extra = [self.average.array] if self.average is not None else []
        return Claim(self.rate, self.gradient, common | hyperparameters, roles, extra)


def _find_scaled_gradient(update: Update) -> _ScaledGradient | None:
    """Return a step with one second moment, at most one average below the root, and perhaps a momentum."""
    if not update.is_plain() or not update.rest:
        return None
    return _match_scaled_gradient(update, update.rest) or _match_momentum(update)


def _match_momentum(update: Update) -> _ScaledGradient | None:
    """Return the step of a state that adds up steps, with Nesterov's look ahead or without."""
    for state in update.used(update.rest):
        momentum = find_momentum(update, update.rest, state)
        inner = _match_scaled_gradient(update, momentum.step) if momentum is not None else None
        if momentum is not None and inner is not None:
            return replace(inner, rate=update.forms.multiply(inner.rate, momentum.factor), momentum=momentum)
    return None


def _match_scaled_gradient(update: Update, form: Sum) -> _ScaledGradient | None:
    """Match a form `-rate * gradient / root(second)`."""
    states = update.used(form)
    for second in states:
        others = [state for state in states if state is not second]
        parts = [_term(update, monomial, second, others) for monomial in form]
        if len(others) > 1 or any(part is None for part in parts):
            continue
        roots = [part[0] for part in parts if part is not None]
        scalars = [part[1] for part in parts if part is not None]
        if any(root != roots[0] or factors != scalars[0] for root, factors in zip(roots, scalars, strict=True)):
            continue
        gradient = {part[2]: value for part, value in zip(parts, form.values(), strict=True) if part is not None}
        if not update.is_gradient(gradient) or update.used(gradient):
            continue
        return _take_rate(update, second, roots[0], scalars[0], gradient, others[0] if others else None)
    return None


def _take_rate(
    update: Update, second: State, root: Root, scalars: Monomial, gradient: Sum, average: State | None
) -> _ScaledGradient | None:
    """Return the step with the common factor of the terms as the rate."""
    values = {round(value, 12) for value in gradient.values()}
    factor, _ = split(gradient, update.weight)
    content = (
        values.pop() if len(values) == 1 else None if not factor else next(v for m, v in gradient.items() if m not in factor)
    )
    if content is None or take_corrections(update, root.correction)[1]:
        return None
    rate: Sum = {scalars: -content * root.scale}
    return _ScaledGradient(second, root, scaled(gradient, 1 / content), rate, average=average)


def _term(update: Update, monomial: Monomial, second: State, others: list[State]) -> tuple[Root, Monomial, Monomial] | None:
    """Return the root, the scalar factors and the gradient of one term."""
    opened = _open_safe_root(update, monomial, second.new)
    root = find_root(update, opened, second.new, others[0].new if others else None)
    if root is None:
        return None
    scalars, gradient = update.split_scalars(root.rest)
    bare = Root(root.epsilon, root.inner, root.correction, root.scale, ())
    return (bare, scalars, gradient) if gradient else None


def _open_safe_root(update: Update, monomial: Monomial, moment: int) -> Monomial:
    """Replace `select(moment > 0, x, 0)` in a product by `x`, if `x` is one product."""
    opened = monomial
    for atom, exponent in monomial:
        inner = _safe_operand(update, update.forms.atoms[atom], moment) if exponent == 1.0 else None
        if inner is not None:
            opened = product(product(opened, ((atom, -1.0),)), inner)
    return opened


def _safe_operand(update: Update, choice: Atom, moment: int) -> Monomial | None:
    """Return `x` of `select(moment > 0, x, 0)`."""
    if choice.op != "select" or len(choice.parts[1]) != 1 or any(choice.parts[2].values()):
        return None
    ((inner, value),) = choice.parts[1].items()
    compared = [update.forms.atoms[atom] for condition in choice.parts[0] for atom, _ in condition]
    if value != 1.0 or len(compared) != 1 or (compared[0].op, compared[0].attribute) != ("compare", "GT"):
        return None
    left, right = compared[0].parts
    return inner if left == {((moment, 1.0),): 1.0} and not any(right.values()) else None


def match_adadelta(update: Update) -> Claim | None:
    states = update.used(update.rest)
    if len(update.rest) != 1 or len(states) != 2 or not update.is_plain():
        return None
    ((monomial, value),) = update.rest.items()
    for second, steps in (states, reversed(states)):
        root = find_root(update, monomial, second.new)
        above = [(a, e) for a, e in monomial if update.holds(a, steps.old) and e == 0.5]
        if root is None or root.correction or len(above) != 1:
            continue
        rest = tuple(factor for factor in root.rest if factor not in above)
        scalars, others = update.split_scalars(rest)
        gradient: Sum = {others: 1.0}
        average = square_average(update, second, gradient) if update.is_gradient(gradient) else None
        unit = tuple(factor for factor in monomial if factor not in scalars)
        if average is None or not _averages_steps(update, steps, above[0][0], unit, root.inner):
            continue
        rate: Sum = {scalars: -value * root.scale}
        hyperparameters = {
            "learning_rate": update.read(rate),
            "beta2": average.decay,
            "epsilon": update.read(root.inner),
            "weight_decay": update.decay_of(rate),
            "l2": l2_in(update, gradient),
        }
        roles = {"second_moment": second.array, "second_moment_of_steps": steps.array}
        return Claim(rate, gradient, hyperparameters, roles)
    return None


def _averages_steps(update: Update, state: State, below: int, unit: Monomial, epsilon: Sum) -> bool:
    """Return True if a state averages the squares of the step, and its root has the same epsilon."""
    atom = update.forms.atoms[below]
    old, inner = split(atom.parts[0], state.old) if atom.op == "sum" else ({}, {})
    decay, rest = split(state.form, state.old)
    if (
        not decay
        or not rest
        or not update.are_scalar(decay)
        or len(old) != 1
        or not update.are_scalar(old)
        or key_of(inner) != key_of(epsilon)
    ):
        return False
    content, monomial = update.direction(rest)
    return content > 0 and monomial == tuple((a, 2 * e) for a, e in unit)

"""The step `rate * g / root(v')`, or an average of such steps: what AdaGrad and RMSProp share."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hlo_inspect.analysis.optimizer.moments import Root, find_root
from hlo_inspect.analysis.optimizer.normal import Monomial, Sum, key_of, scaled
from hlo_inspect.analysis.optimizer.readings import ABSENT, Reading
from hlo_inspect.analysis.optimizer.sites import Site
from hlo_inspect.analysis.optimizer.update import Claim, State, Update, split


@dataclass(frozen=True, slots=True)
class Scaled:
    """A gradient over the root of a second moment; `momentum` is the state that adds such steps up, with its decay."""

    second: State
    root: Root
    gradient: Sum
    rate: Sum
    momentum: State | None = None
    decay: Reading = ABSENT
    nesterov: Reading = ABSENT
    average: State | None = None

    def claim(self, update: Update, rule: str, readings: dict[str, Reading]) -> Claim:
        roles: dict[str, Site] = {"second_moment": self.second.site}
        if self.momentum is not None:
            roles["first_moment"] = self.momentum.site
        common = {
            "learning_rate": update.read(self.rate),
            "epsilon": update.read(self.root.epsilons) if self.root.epsilons else ABSENT,
            "momentum": self.decay,
            "nesterov": self.nesterov,
            "weight_decay": update.decay_of(self.rate),
        }
        extra = [self.average.site] if self.average is not None else []
        return Claim(rule, self.rate, self.gradient, common | readings, roles, extra)


def find_scaled(update: Update) -> Scaled | None:
    """The step of an update that is explained by one second moment, at most one average below the root, and a momentum."""
    if not update.is_plain() or not update.rest:
        return None
    return _scaled(update, update.rest) or _with_momentum(update)


def _with_momentum(update: Update) -> Scaled | None:
    """A state that adds up steps, with Nesterov's look ahead or without."""
    for state in update.used(update.rest):
        factor, beside = split(update.rest, state.new)
        found = update.recursion(state) if len(factor) == 1 and update.are_scalar(factor) else None
        inner = _scaled(update, found[1]) if found is not None else None
        if found is None or inner is None:
            continue
        step = update.forms.multiply(factor, update.forms.power(found[0], -1.0)) if beside else factor
        if beside and key_of(beside) != key_of(update.forms.multiply(step, found[1])):
            continue
        rate = update.forms.multiply(inner.rate, step)
        nesterov = Reading(float(bool(beside)), "constant")
        return replace(inner, rate=rate, momentum=state, decay=update.read(found[0]), nesterov=nesterov)
    return None


def _scaled(update: Update, form: Sum) -> Scaled | None:
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
        return _with_rate(update, second, roots[0], scalars[0], gradient, others[0] if others else None)
    return None


def _with_rate(
    update: Update, second: State, root: Root, scalars: Monomial, gradient: Sum, average: State | None
) -> Scaled | None:
    """Takes the common factor of the terms as the rate."""
    values = {round(value, 12) for value in gradient.values()}
    factor, _ = split(gradient, update.weight)
    content = (
        values.pop() if len(values) == 1 else None if not factor else next(v for m, v in gradient.items() if m not in factor)
    )
    if content is None or root.correction:
        return None
    rate: Sum = {scalars: -content * root.scale}
    return Scaled(second, root, scaled(gradient, 1 / content), rate, average=average)


def _term(update: Update, monomial: Monomial, second: State, others: list[State]) -> tuple[Root, Monomial, Monomial] | None:
    """The root, the explained factors and the gradient of one term."""
    opened = update.open_safe_root(monomial, second.new)
    root = find_root(update, opened, second.new, others[0].new if others else None)
    if root is None:
        return None
    scalars = tuple(factor for factor in root.rest if update.is_scalar(factor[0]))
    gradient = tuple(factor for factor in root.rest if not update.is_scalar(factor[0]))
    bare = Root(root.epsilon, root.inner, root.correction, root.scale, ())
    return (bare, scalars, gradient) if gradient else None

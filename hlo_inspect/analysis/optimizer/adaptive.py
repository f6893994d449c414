"""The step `rate * m' / (sqrt(v') + epsilon)` with its bias corrections, which several rules share."""

from __future__ import annotations

from dataclasses import dataclass

from hlo_inspect.analysis.optimizer.moments import (
    Average,
    Root,
    better,
    find_root,
    gradient_average,
    l2_of,
    square_average,
    take_corrections,
)
from hlo_inspect.analysis.optimizer.normal import Monomial, Sum
from hlo_inspect.analysis.optimizer.readings import ABSENT, Reading
from hlo_inspect.analysis.optimizer.update import Claim, State, Update


@dataclass(frozen=True, slots=True)
class Step:
    """One term of a new value: `-rate * first' / root(second')`. `bases` are those of the corrections of the two moments."""

    first: State
    second: State
    root: Root
    rate: Sum
    bases: tuple[Reading | None, Reading | None]


def find_step(update: Update, rest: Sum | None = None) -> Step | None:
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


def _with_rate(update: Update, first: State, second: State, root: Root, value: float) -> Step | None:
    inner, left = take_corrections(update, root.correction)
    outer, factors = take_corrections(update, root.rest)
    if left or not all(update.is_scalar(atom) for atom, _ in factors):
        return None
    ones = [base for base, exponent in outer if exponent == -1.0]
    roots = [base for base, exponent in outer if exponent == 0.5] + [base for base, exponent in inner if exponent == -0.5]
    if len(ones) + len(roots) != len(outer) + len(inner) or len(ones) > 1 or len(roots) > 1:
        return None
    rate: dict[Monomial, float] = {factors: -value * root.scale}
    return Step(first, second, root, rate, (ones[0] if ones else None, roots[0] if roots else None))


def adam_claim(update: Update, step: Step, first: Average, second: Average) -> Claim:
    """The claim of a rule with Adam's two moments; the rule's name is filled in by the rule."""
    return Claim(
        "",
        step.rate,
        first.rest,
        {
            "learning_rate": update.read(step.rate),
            "beta1": better(first.decay, step.bases[0]),
            "beta2": better(second.decay, step.bases[1]),
            "epsilon": update.read(step.root.epsilons) if step.root.epsilons else ABSENT,
            "weight_decay": update.decay_of(step.rate),
            "l2": l2_of(update, first),
        },
        {"first_moment": first.state.site, "second_moment": second.state.site},
    )


def find_adam(update: Update) -> Claim | None:
    """Adam's update, coupled or decoupled decay or none."""
    step = find_step(update)
    if step is None:
        return None
    first = gradient_average(update, step.first)
    second = square_average(update, step.second, first.rest) if first is not None else None
    if first is None or second is None or not step.rate:
        return None
    return adam_claim(update, step, first, second)


def claim_with(update: Update, rule: str, step: Step, first: Average, second: Average) -> Claim:
    """Adam's claim under another name."""
    claim = adam_claim(update, step, first, second)
    claim.rule = rule
    return claim


def find_first(update: Update) -> tuple[Step, Average] | None:
    """The step of an update and its first moment, where that is an average of gradients."""
    step = find_step(update)
    first = gradient_average(update, step.first) if step is not None else None
    return (step, first) if step is not None and first is not None else None


def state_in(update: Update, values: list[int], but: list[State]) -> State | None:
    """The state whose new value is among atoms, other than some."""
    found = [state for state in update.states if state.new in values and state not in but]
    return found[0] if len(found) == 1 else None

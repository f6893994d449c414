"""NAdam (Dozat 2016): Adam with Nesterov's momentum.

    w' = w - rate * (b1 * m' / (1 - b1 ** (t + 1)) + (1 - b1) * g / (1 - b1 ** t)) / (sqrt(v' / (1 - b2 ** t)) + epsilon)

NAdamW has the decay of the weights beside the step, as AdamW has it (Loshchilov and Hutter 2019, arXiv:1711.05101).

State: Adam's m, v and t. Reads rate, b1, b2, epsilon, l2 or decay.
"""

from __future__ import annotations

from hlo_inspect.analysis.optimizer.toolkit import (
    AdamStep,
    Claim,
    Hyperparameter,
    OptimizerRule,
    Root,
    State,
    Sum,
    Update,
    adam_claim,
    close,
    find_root,
    gradient_average,
    scaled,
    square_average,
    take_corrections,
)


def match(update: Update) -> Claim | None:
    states = update.used(update.rest)
    if len(states) != 2 or len(update.rest) < 2 or not update.is_plain():
        return None
    for first, second in (states, reversed(states)):
        claim = _with(update, first, second)
        if claim is not None:
            return claim
    return None


def _with(update: Update, first: State, second: State) -> Claim | None:
    ahead = [monomial for monomial in update.rest if dict(monomial).get(first.new) == 1.0]
    average = gradient_average(update, first)
    root = find_root(update, ahead[0], second.new) if len(ahead) == 1 else None
    if average is None or root is None or average.decay.value is None:
        return None
    momentum = tuple(factor for factor in root.rest if factor[0] != first.new)
    outer, scalars = take_corrections(update, momentum)
    beside = _beside(update, {m: v for m, v in update.rest.items() if m not in ahead}, second, root)
    inner, left = take_corrections(update, root.correction)
    squares = square_average(update, second, average.rest)
    if squares is None or beside is None or left or not all(update.is_scalar(atom) for atom, _ in scalars):
        return None
    if any(exponent != -1.0 for _, exponent in outer) or any(exponent != -0.5 for _, exponent in inner):
        return None
    rate: Sum = {scalars: -update.rest[ahead[0]] * root.scale / average.decay.value}
    if not _fits(update, beside, update.forms.multiply(scaled(rate, -1.0 / root.scale), average.rest)):
        return None
    step = AdamStep(first, second, root, rate, (outer[0][0] if outer else None, inner[0][0] if inner else None))
    return adam_claim(update, step, average, squares)


def _beside(update: Update, terms: Sum, second: State, root: Root) -> tuple[list[tuple[Hyperparameter, float]], Sum] | None:
    """The other terms without the root that they share and their corrections."""
    found: Sum = {}
    shared: list[tuple[Hyperparameter, float]] = []
    for monomial, value in terms.items():
        other = find_root(update, monomial, second.new)
        if other is None or (other.epsilon, other.inner, other.correction) != (root.epsilon, root.inner, root.correction):
            return None
        shared, rest = take_corrections(update, other.rest)
        found[rest] = value
    return (shared, found) if all(exponent == -1.0 for _, exponent in shared) else None


def _fits(update: Update, beside: tuple[list[tuple[Hyperparameter, float]], Sum], expected: Sum) -> bool:
    """Whether the gradient beside the moment has the factor that goes with it."""
    (a, left), (b, right) = update.forms.factored(beside[1]), update.forms.factored(expected)
    return left == right and close(a, b, max(update.tolerance * 2, 1e-4))


RULE = OptimizerRule(
    name="nadam",
    title="NAdam",
    paper="Dozat 2016; with decay as in Loshchilov and Hutter 2019, arXiv:1711.05101",
    hyperparameters=("learning_rate", "beta1", "beta2", "epsilon", "weight_decay", "l2"),
    state=("first_moment", "second_moment"),
    match=match,
    with_decay="nadamw",
)

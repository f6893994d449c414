"""AMSGrad (Reddi, Kale and Kumar 2018, arXiv:1904.09237): Adam with the largest second moment so far below the step.

    largest' = max(largest, v' / (1 - b2 ** t))   or   max(largest, v'), corrected below the step
    w' = w - rate * m' / (1 - b1 ** t) / (sqrt(largest') + epsilon)

State: Adam's m, v and t, and the largest v. Reads rate, b1, b2, epsilon, decay, l2.
"""

from __future__ import annotations

from hlo_inspect.optimizer.algebra.toolkit import (
    Average,
    Claim,
    OptimizerRule,
    State,
    Sum,
    Update,
    adam_claim,
    averages_of,
    exact_decay,
    find_adam_step,
    other_state,
    square_average,
    take_corrections,
)


def match(update: Update) -> Claim | None:
    step = find_adam_step(update)
    found = averages_of(update, step, _largest_of)
    if step is None or found is None:
        return None
    claim = adam_claim(update, step, *found)
    claim.extra.append(step.second.array)
    return claim


def _largest_of(update: Update, state: State, first: Average) -> Average | None:
    """The second moment of which a state keeps the largest; its decay may show in its correction alone."""
    if len(state.form) != 1:
        return None
    ((monomial, value),) = state.form.items()
    atom = update.forms.only_factor(monomial)
    if atom is None or atom.op != "maximum" or value != 1.0:
        return None
    old: Sum = {((state.old, 1.0),): 1.0}
    others = [part for part in atom.parts if part != old]
    if len(others) != 1 or len(others[0]) != 1:
        return None
    ((inner, factor),) = others[0].items()
    second = other_state(update, [a for a, e in inner if e == 1.0], [state, first.state])
    if second is None or factor != 1.0:
        return None
    bases, left = take_corrections(update, tuple((a, e) for a, e in inner if a != second.new))
    average = square_average(update, second, first.rest)
    if average is None or left or len(bases) > 1 or any(exponent != -1.0 for _, exponent in bases):
        return None
    return Average(average.state, exact_decay(average.decay, bases[0][0] if bases else None), average.rest)


RULE = OptimizerRule(
    name="amsgrad",
    title="AMSGrad",
    paper="Reddi, Kale and Kumar 2018, arXiv:1904.09237",
    hyperparameters=("learning_rate", "beta1", "beta2", "epsilon", "weight_decay", "l2"),
    state=("first_moment", "second_moment"),
    match=match,
)

"""RAdam (Liu et al. 2020, arXiv:1908.03265).

    rho_inf = 2 / (1 - b2) - 1,   rho = rho_inf - 2 * t * b2 ** t / (1 - b2 ** t)
    r = sqrt((rho - 4) * (rho - 2) * rho_inf / ((rho_inf - 4) * (rho_inf - 2) * rho))
    w' = w - rate * (r * m^ / (sqrt(v^) + epsilon) if rho >= threshold else m^),   m^ and v^ corrected as in Adam

State: Adam's m, v and t. Reads rate, b1, b2, epsilon, decay, l2. The rectification `r` is recognised by its values.
"""

from __future__ import annotations

import itertools
import math

from hlo_inspect.optimizer.algebra.toolkit import (
    AdamStep,
    Claim,
    OptimizerRule,
    Sum,
    Update,
    adam_claim,
    averages_of,
    close,
    exact_decay,
    find_adam_step,
    product,
    quotient,
    take_corrections,
    value_of_form,
)

COUNTS = (51.0, 401.0)
MAX_HANDED_IN = 4


def match(update: Update) -> Claim | None:
    if len(update.rest) != 1 or not update.is_plain():
        return None
    ((monomial, value),) = update.rest.items()
    choices = [
        atom for atom, e in monomial if e == 1.0 and update.forms.atoms[atom].op == "select" and not update.is_scalar(atom)
    ]
    if len(choices) != 1:
        return None
    condition, rectified, plain = update.forms.atoms[choices[0]].parts
    outer: Sum = {tuple(factor for factor in monomial if factor[0] != choices[0]): value}
    step = find_adam_step(update, update.forms.multiply(outer, rectified)) if len(rectified) == 1 else None
    rate = _plain_rate(update, step, update.forms.multiply(outer, plain)) if step is not None and len(plain) == 1 else None
    moments = averages_of(update, step)
    if step is None or rate is None or moments is None or not update.are_scalar(condition):
        return None
    first, second = moments
    b2 = exact_decay(second.decay, step.bases[1]).value or (step.bases[1].value if step.bases[1] is not None else None)
    if b2 is None or not _is_rectified(update, step.rate, rate, b2):
        return None
    return adam_claim(update, AdamStep(step.first, step.second, step.root, rate, step.bases), first, second)


def _plain_rate(update: Update, step: AdamStep, term: Sum) -> Sum | None:
    """The rate of the step without the second moment."""
    ((monomial, value),) = term.items()
    if dict(monomial).get(step.first.new) != 1.0:
        return None
    bases, scalars = take_corrections(update, product(monomial, ((step.first.new, -1.0),)))
    if [base for base, _ in bases] != [base for base in step.bases[:1] if base is not None]:
        return None
    return {scalars: -value} if all(update.is_scalar(atom) for atom, _ in scalars) else None


def _is_rectified(update: Update, rectified: Sum, rate: Sum, b2: float) -> bool:
    """Whether the two rates differ by `r`. Numbers in it may be handed in."""
    forms = update.forms
    ratio = quotient(forms, rectified, rate)
    leaves = forms.leaves(ratio) if ratio is not None else frozenset()
    powers = [forms.atoms[atom] for atom in forms.atoms_below(ratio or {}) if forms.atoms[atom].op == "power"]
    counters = {leaf for power in powers for leaf in forms.leaves(power.parts[1])} or leaves
    if ratio is None or len(counters) != 1 or len(leaves) > MAX_HANDED_IN + 1:
        return False
    (counter,) = counters
    handed = [forms.atoms[leaf].node for leaf in leaves - counters]
    limit = 2 / (1 - b2) - 1
    numbers = (limit, 2.0, 4.0, (limit - 4) * (limit - 2))
    ahead = forms.atoms[counter].op != "value"  # the new value of a counter is the number of the step
    return any(
        all(_is_ratio(update, ratio, dict(zip(handed, chosen, strict=True)), t - ahead, _r(t, b2)) for t in COUNTS)
        for chosen in itertools.product(numbers, repeat=len(handed))
    )


def _r(t: float, b2: float) -> float:
    """The rectification of the step with the number t."""
    limit = 2 / (1 - b2) - 1
    rho = limit - 2 * t * b2**t / (1 - b2**t)
    return math.sqrt(max(0.0, (rho - 4) * (rho - 2) * limit / ((limit - 4) * (limit - 2) * rho)))


def _is_ratio(update: Update, form: Sum, handed: dict[int | None, float], count: float, r: float) -> bool:
    found = value_of_form(update.forms, form, lambda node: handed.get(node, count))
    return found is not None and r > 0.0 and close(found, r, 1e-3)


RULE = OptimizerRule(
    name="radam",
    title="RAdam",
    paper="Liu et al. 2020, arXiv:1908.03265",
    hyperparameters=("learning_rate", "beta1", "beta2", "epsilon", "weight_decay", "l2"),
    state=("first_moment", "second_moment"),
    match=match,
)

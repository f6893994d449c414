"""Averages of weights: which arrays follow the new weights, and whether a step is one of averaged SGD.

    x' = x + mu * (w' - x)

An average alone belongs to no optimizer: many steps keep one for evaluation. It is ASGD's where the weights decay by a multiple
of the rate, the rate falls as a power of the steps, and `mu` changes from step to step.
"""

from __future__ import annotations

from collections.abc import Iterable

from hlo_inspect.optimizer.algebra.normal_form import (
    ONE,
    NormalForms,
    Sum,
    added,
    close,
    inverse,
    is_constant,
    key_of,
    product,
    split_zero,
)
from hlo_inspect.optimizer.algebra.update import Update, WeightAverage, split
from hlo_inspect.optimizer.step.state_arrays import StateArray

MAX_TERMS = 4  # of an average


def weight_averages(forms: NormalForms, arrays: Iterable[StateArray]) -> dict[int, list[WeightAverage]]:
    """The averages of new values, by the atoms of these."""
    found: dict[int, list[WeightAverage]] = {}
    for array in arrays:
        form = forms.definition(array.new)
        if array.shape.elements == 1 or not 2 <= len(form) <= MAX_TERMS:
            continue
        for atom in {atom for monomial in form for atom, _ in monomial if forms.atoms[atom].op == "value"}:
            share, rest = split(form, atom)
            kept, others = split(rest, forms.leaf(array.old))
            if share and kept and not others and key_of(split_zero(added(kept, share))) == key_of({ONE: 1.0}):
                found.setdefault(atom, []).append(WeightAverage(array, share))
    return found


def averaged_by(update: Update, rate: Sum) -> StateArray | None:
    """The average that ASGD keeps of a weight with a step of this rate, `None` where the step is not ASGD's."""
    decay = {monomial: -value for monomial, value in added(update.kept, {ONE: -1.0}).items() if value}
    if is_constant(rate) or len(rate) != 1 or not decay:
        return None
    ((factors, value),) = rate.items()
    if not all(set(factors) <= set(monomial) for monomial in decay):
        return None
    decays = {product(monomial, inverse(factors)): number / value for monomial, number in decay.items()}
    if not any(_is_schedule(update, form, decays) for form in (rate, *update.returned_scalars)):
        return None
    return next((one.array for one in update.averages if not is_constant(one.share) and update.are_scalar(one.share)), None)


def _is_schedule(update: Update, form: Sum, decays: Sum) -> bool:
    """Whether a rate is `c * (1 + decay * c * t) ** -alpha`; numbers that are handed in are not compared."""
    if len(form) != 1:
        return False
    ((monomial, rate),) = form.items()
    for atom, exponent in monomial:
        found = update.forms.atoms[atom]
        if found.op != "sum" or not -1.0 <= exponent < 0.0 or not update.is_scalar(atom):
            continue
        steps = dict(found.parts[0])
        start = steps.pop(ONE, 0.0)
        if start <= 0.0 or len(steps) != 1:
            continue
        ((step, slope),) = steps.items()
        if len(step) > 1 or len(monomial) > 1 or not is_constant(decays):
            return True
        return close(slope / start, decays[ONE] * rate, 0.05)  # which is off by what the first step is
    return False

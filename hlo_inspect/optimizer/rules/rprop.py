"""Rprop (Riedmiller and Braun 1993): a step size for each element, which grows while the sign of the gradient stays.

* `turn = sign(g * last)`
* `size' = size * (1.2 if turn > 0, 0.5 if turn < 0, else 1)`, between two limits
* `last' = 0 if turn < 0, else g`
* `w' = w - size' * sign(last')`

optax keeps the last step instead of the last gradient: `step' = 0 if turn < 0, else size' * sign(g)`. The weight goes down by
the new step or, in some versions, by the old one.

State: the sizes and the last gradient or step. Reads nothing: there is no rate.
"""

from __future__ import annotations

from hlo_inspect.optimizer.algebra.normal_form import ONE, Monomial, Sum, is_constant, product
from hlo_inspect.optimizer.algebra.norms import clipped_value
from hlo_inspect.optimizer.algebra.update import Claim, State, Update


def match(update: Update) -> Claim | None:
    if len(update.rest) != 1 or not update.is_plain():
        return None
    ((monomial, value),) = update.rest.items()
    return _match_by_gradient(update, monomial, value) or _match_by_step(update, monomial, value)


def _match_by_step(update: Update, monomial: Monomial, value: float) -> Claim | None:
    """Return the claim if the last step is kept."""
    if value != -1.0 or len(monomial) != 1 or monomial[0][1] != 1.0:
        return None
    for last in update.states:
        turned = update.forms.only_atom(last.form)
        if turned is None or turned.op != "select" or len(turned.parts[2]) != 1 or any(turned.parts[1].values()):
            continue
        zeroed = update.forms.function("select", (*turned.parts[:2], {((last.old, 1.0),): 1.0}), turned.attribute)
        steps = ({((last.new, 1.0),): 1.0}, last.form, zeroed)
        ((inner, coefficient),) = turned.parts[2].items()
        factors = [update.forms.atoms[atom] for atom, exponent in inner if exponent == 1.0]
        signs = [factor for factor in factors if factor.op == "sign"]
        sizes = [state for state in update.states if dict(inner).get(state.new) == 1.0]
        if len(signs) != 1 or len(sizes) != 1 or len(inner) != 2 or coefficient != 1.0 or {monomial: 1.0} not in steps:
            continue
        gradient = signs[0].parts[0]
        is_turn = update.is_gradient(gradient) and _depends_on_turn(update, turned.parts[0], last, gradient)
        if is_turn and _grows(update, sizes[0], last, gradient):
            return Claim({ONE: 1.0}, gradient, {}, {"step_size": sizes[0].array, "last_gradient": last.array})
    return None


def _match_by_gradient(update: Update, monomial: Monomial, value: float) -> Claim | None:
    """Return the claim if the last gradient is kept."""
    signs = [atom for atom, exponent in monomial if exponent == 1.0 and update.forms.atoms[atom].op == "sign"]
    sizes = [state for state in update.states if dict(monomial).get(state.new) == 1.0]
    if len(signs) != 1 or len(sizes) != 1 or len(monomial) != 2 or value != -1.0:
        return None
    for last in update.states:
        gradient = _gradient_of_last(update, last)
        kept = update.forms.atoms[signs[0]].parts[0]
        is_kept = kept in ({((last.new, 1.0),): 1.0}, last.form)
        if gradient and is_kept and last is not sizes[0] and _grows(update, sizes[0], last, gradient):
            roles = {"step_size": sizes[0].array, "last_gradient": last.array}
            return Claim({ONE: 1.0}, gradient, {}, roles)
    return None


def _gradient_of_last(update: Update, last: State) -> Sum:
    """Return the gradient of a state that is 0 if its sign has changed."""
    atoms = [update.forms.atoms[monomial[0][0]] for monomial in last.form if len(monomial) == 1]
    if len(atoms) != 1 or atoms[0].op != "select":
        return {}
    condition, *branches = atoms[0].parts
    others = [part for part in branches if not is_constant(part)]
    is_gradient = len(others) == 1 and update.is_gradient(others[0]) and not update.used(others[0])
    return others[0] if is_gradient and _depends_on_turn(update, condition, last, others[0]) else {}


def _depends_on_turn(update: Update, condition: Sum, last: State, gradient: Sum) -> bool:
    """Return True if a condition depends on the sign of `g * last`, or on a choice by it, as in PyTorch.

    Its parts are comparisons and choices of that sign and of scalars.
    """
    looked_at = update.forms.multiply(gradient, {((last.old, 1.0),): 1.0})
    signs = (looked_at, update.forms.function("sign", (looked_at,)))
    atoms = [update.forms.atoms[atom] for monomial in condition for atom, _ in monomial]
    if len(atoms) != 1 or atoms[0].op != "compare":
        return False
    unread = list(atoms[0].parts)
    seen: set[int] = set()
    is_seen = False
    while unread:
        part = unread.pop()
        if part in signs:
            is_seen = True
            continue
        for atom in {atom for monomial in part for atom, _ in monomial if not update.is_scalar(atom)} - seen:
            seen.add(atom)
            if len(part) != 1 or update.forms.atoms[atom].op not in {"compare", "select"}:
                return False
            unread += update.forms.atoms[atom].parts
    return is_seen


def _grows(update: Update, size: State, last: State, gradient: Sum) -> bool:
    """Return True if a step size is multiplied by a choice of numbers, within limits."""
    choice = update.forms.only_atom(size.form)
    if choice is not None and choice.op == "select" and choice.parts[1] == {((size.old, 1.0),): 1.0}:
        grown = next(iter(choice.parts[2]), ONE) if _depends_on_turn(update, choice.parts[0], last, gradient) else ONE
    else:
        grown = next(iter(size.form)) if len(size.form) == 1 else ONE
    inner = clipped_value(update, grown[0][0]) if len(grown) == 1 else {}
    if len(inner) != 1:
        return False
    ((monomial, _),) = inner.items()
    factors = [update.forms.atoms[atom] for atom, _ in product(monomial, ((size.old, -1.0),))]
    if dict(monomial).get(size.old) != 1.0 or len(factors) != 1 or factors[0].op != "select":
        return False
    return _depends_on_turn(update, factors[0].parts[0], last, gradient)

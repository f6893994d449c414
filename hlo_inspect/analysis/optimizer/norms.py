"""Norms of tensors in expressions: `sqrt(sum(x ** 2))`, over all of a tensor or over several of them."""

from __future__ import annotations

from collections.abc import Iterable

from hlo_inspect.analysis.optimizer.normal import ONE, Monomial, Sum
from hlo_inspect.analysis.optimizer.update import Update


def squares_in(update: Update, form: Sum) -> list[Sum] | None:
    """The forms whose squares a norm `sqrt(a + b + ...)` adds up, `None` where it is no norm."""
    if len(form) != 1:
        return None
    ((monomial, _),) = form.items()
    if len(monomial) != 1:
        return None
    ((atom, exponent),) = monomial
    if exponent == 1.0:
        if update.forms.atoms[atom].op == "abs":
            return [update.forms.power(update.forms.atoms[atom].parts[0], 2.0)]
        inner = unguarded(update, atom)
        return squares_in(update, inner) if inner is not None else None
    if exponent != 0.5:
        return None
    found = update.forms.atoms[atom]
    terms = list(found.parts[0]) if found.op == "sum" else [((atom, 1.0),)]
    summed = [update.reductions.summed(term[0][0]) if len(term) == 1 and term[0][1] == 1.0 else None for term in terms]
    return None if any(one is None for one in summed) else [one for one in summed if one is not None]


def unguarded(update: Update, atom: int) -> Sum | None:
    """The value of which an atom is the safe form: `select(n <= least, least, n)` or `max(n, least)`."""
    found = update.forms.atoms[atom]
    if found.op == "select" and set(found.parts[1]) <= {ONE}:
        return found.parts[2]
    if found.op == "maximum":
        others = [part for part in found.parts if not set(part) <= {ONE}]
        return others[0] if len(others) == 1 else None
    return None


def is_norm_of(update: Update, form: Sum, direction: Monomial) -> bool:
    """Whether a form is a number times the norm of one tensor, given by its direction."""
    squares = squares_in(update, form)
    return squares is not None and len(squares) == 1 and is_square_of(update, squares[0], direction)


def is_square_of(update: Update, form: Sum, direction: Monomial) -> bool:
    """Whether a form is a number times the square of a direction, or of its safe form."""
    _, monomial = update.forms.factored(form)
    if len(monomial) == 1 and monomial[0][1] == 2.0:
        inner = unguarded(update, monomial[0][0])
        monomial = update.forms.factored(update.forms.power(inner, 2.0))[1] if inner is not None else monomial
    return monomial == tuple((atom, 2 * exponent) for atom, exponent in direction)


def ratio_of_norms(update: Update, form: Sum) -> tuple[float, Sum, Sum] | None:
    """A form `k * a / b` with two norms: `k`, and the norms."""
    if len(form) != 1:
        return None
    ((monomial, value),) = form.items()
    above = [(atom, exponent) for atom, exponent in monomial if exponent > 0]
    below = [(atom, -exponent) for atom, exponent in monomial if exponent < 0]
    if len(above) != 1 or len(below) != 1:
        return None
    return value, {tuple(above): 1.0}, {tuple(below): 1.0}


def trust_factor(update: Update, monomials: Iterable[Monomial]) -> int | None:
    """The factor that terms share and that chooses between 1 and a ratio of norms."""
    shared: set[int] | None = None
    for monomial in monomials:
        here = {atom for atom, exponent in monomial if exponent == 1.0 and _is_trust(update, atom)}
        shared = here if shared is None else shared & here
    return min(shared) if shared else None


def _is_trust(update: Update, atom: int) -> bool:
    found = update.forms.atoms[atom]
    return found.op == "select" and found.parts[1] == {ONE: 1.0} and ratio_of_norms(update, found.parts[2]) is not None


def is_trust_ratio(update: Update, atom: int, step: Sum) -> float | None:
    """The coefficient `k` of a trust ratio `k * norm(w) / norm(step)`, `None` where the norms are of something else."""
    found = ratio_of_norms(update, update.forms.atoms[atom].parts[2])
    if found is None:
        return None
    value, above, below = found
    weight: Monomial = ((update.weight, 1.0),)
    if is_norm_of(update, above, weight) and is_norm_of(update, below, update.forms.factored(step)[1]):
        return value
    return None

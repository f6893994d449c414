"""Norms of tensors in expressions: `sqrt(sum(x ** 2))`, over all of a tensor or over several of them.

Clips are searched in the form that a rule takes as its gradient.

By norm: `norm < limit ? g : g * limit / norm`, `g * min(1, limit / (norm + epsilon))`, `g * limit / max(norm, limit)`. The
limit is what the norm is compared with: a factor of 1 is simplified away. By value: `clamp(-limit, g, limit)`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import islice
from typing import Literal, NamedTuple

from hlo_inspect.optimizer.algebra.normal_form import (
    ONE,
    Atom,
    Monomial,
    Sum,
    inverse,
    is_constant,
    key_of,
    only_term,
    product,
    scaled,
)
from hlo_inspect.optimizer.algebra.update import State, Update, split


def squares_in(update: Update, form: Sum) -> list[Sum] | None:
    """Return the forms whose squares a norm `sqrt(a + b + ...)` adds up; None if the form is no norm."""
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
    radicand = update.forms.atoms[atom]
    terms = list(radicand.parts[0]) if radicand.op == "sum" else [((atom, 1.0),)]
    summed = [update.reductions.summed(term[0][0]) if len(term) == 1 and term[0][1] == 1.0 else None for term in terms]
    return None if any(squares is None for squares in summed) else [squares for squares in summed if squares is not None]


def unguarded(update: Update, atom: int) -> Sum | None:
    """Return `n` if an atom is the safe form of a value: `select(n <= least, least, n)` or `max(n, least)`."""
    guard = update.forms.atoms[atom]
    if guard.op == "select" and set(guard.parts[1]) <= {ONE}:
        return guard.parts[2]
    if guard.op == "maximum":
        others = [part for part in guard.parts if not set(part) <= {ONE}]
        return others[0] if len(others) == 1 else None
    return None


def is_norm_of(update: Update, form: Sum, direction: Monomial) -> bool:
    """Return True if a form is a number times the norm of one tensor, given by its direction."""
    squares = squares_in(update, form)
    return squares is not None and len(squares) == 1 and is_square_of(update, squares[0], direction)


def is_square_of(update: Update, form: Sum, direction: Monomial) -> bool:
    """Return True if a form is a number times the square of a direction, or of its safe form."""
    _, monomial = update.forms.factored(form)
    if len(monomial) == 1 and monomial[0][1] == 2.0:
        inner = unguarded(update, monomial[0][0]) or _decayed(update, monomial[0][0])
        monomial = update.forms.factored(update.forms.power(inner, 2.0))[1] if inner is not None else monomial
    return monomial == tuple((atom, 2 * exponent) for atom, exponent in direction)


def _decayed(update: Update, atom: int) -> Sum | None:
    """Return the weight if an atom is a scalar times the weight, which then decays before the step."""
    whole = update.forms.atoms[atom]
    factor, rest = split(whole.parts[0], update.weight) if whole.op == "sum" else ({}, {})
    return {((update.weight, 1.0),): 1.0} if factor and not rest and update.are_scalar(factor) else None


class TrustRatio(NamedTuple):
    """A ratio `coefficient * above / below` inside a safe choice between the ratio and 1; `below` is a sum."""

    coefficient: float
    above: Sum
    below: Sum


def trust_ratio_of(update: Update, atom: int) -> TrustRatio | None:
    """Return the ratio of an atom that chooses, perhaps twice, between 1 and a ratio of norms."""
    for _ in range(MAX_CHOICES):
        choice = update.forms.atoms[atom]
        ratios = [part for part in choice.parts[1:] if key_of(part) != key_of({ONE: 1.0})] if choice.op == "select" else []
        if len(ratios) != 1 or len(ratios[0]) != 1:
            return None
        ((monomial, value),) = ratios[0].items()
        above = [(number, exponent) for number, exponent in monomial if exponent > 0]
        below = [(number, -exponent) for number, exponent in monomial if exponent < 0]
        if len(above) != 1:
            return None
        if below:
            return _ratio(update, value, above, below) if len(below) == 1 else None
        atom = above[0][0]
    return None


def _ratio(update: Update, value: float, above: list[tuple[int, float]], below: list[tuple[int, float]]) -> TrustRatio:
    atom = update.forms.atoms[below[0][0]]
    divisor = atom.parts[0] if atom.op == "sum" and below[0][1] == 1.0 else {tuple(below): 1.0}
    return TrustRatio(value, {tuple(above): 1.0}, divisor)


def trust_factor(update: Update, monomials: Iterable[Monomial]) -> int | None:
    """Return the common factor of terms that chooses between 1 and a ratio of norms."""
    shared: set[int] | None = None
    for monomial in monomials:
        ratios = {atom for atom, exponent in monomial if exponent == 1.0 and trust_ratio_of(update, atom) is not None}
        shared = ratios if shared is None else shared & ratios
    return min(shared) if shared else None


def is_trust_ratio(update: Update, atom: int, step: Sum) -> float | None:
    """Return the coefficient `k` of a trust ratio `k * norm(w) / norm(step)`; None for norms of other values."""
    ratio = trust_ratio_of(update, atom)
    if ratio is None or not is_norm_of(update, ratio.above, ((update.weight, 1.0),)):
        return None
    return ratio.coefficient if is_norm_of(update, ratio.below, update.forms.factored(step)[1]) else None


MAX_CHOICES = 3  # between a trust ratio and 1
CHECKED_TERMS = 2  # of a norm over many tensors


class Clip(NamedTuple):
    """A limit on gradients, by norm or by value; `limit` is None if it is computed.

    `is_global`: the norm adds up the squares of several arrays.
    """

    kind: Literal["norm", "value"]
    limit: float | None
    is_global: bool = False


def find_clip(update: Update, gradient: Sum) -> Clip | None:
    """Return the clip that all terms of a gradient have; None if there is none."""
    try:
        clips = {_clip_of_term(update, monomial) for monomial in gradient if update.weight not in dict(monomial)}
    except ArithmeticError:
        return None  # a limit of 0 or infinity clips nothing
    return clips.pop() if len(clips) == 1 else None


def _clip_of_term(update: Update, monomial: tuple[tuple[int, float], ...]) -> Clip | None:
    clips = [clip for atom, exponent in monomial if (clip := clip_of(update, atom, exponent)) is not None]
    return clips[0] if clips else None


def clip_of(update: Update, atom: int, exponent: float) -> Clip | None:
    """Return a factor of a gradient as a clip; None if it is no clip."""
    factor = update.forms.atoms[atom]
    if factor.op == "sum" and exponent == 1.0:
        return find_clip(update, factor.parts[0])
    if factor.op == "select" and exponent == 1.0:
        return _clip_by_choice(update, factor)
    if factor.op == "minimum" and exponent == 1.0:
        return _clip_by_factor(update, factor) or _clip_by_value(update, factor)
    if factor.op == "maximum":
        return _clip_by_divisor(update, factor) if exponent == -1.0 else _clip_by_value(update, factor)
    if factor.op == "clamp" and exponent == 1.0:
        low, _, high = factor.parts
        return _symmetric_clip(low, high)
    return None


def unknown_bounds(update: Update, gradient: Sum) -> list[int]:
    """Return the factors of a gradient that bound it and are no known clip: one number, or the choice of a multiple.

    A minimum or choice of constants and counters is of the learning rate.
    """
    factors = {factor for monomial in gradient for factor in monomial if not update.is_scalar(factor[0])}
    bounds = {(atom, exponent) for atom, exponent in factors if update.is_bound(atom) or _chooses_multiple(update, atom)}
    return sorted(atom for atom, exponent in bounds if clip_of(update, atom, exponent) is None)


def _chooses_multiple(update: Update, atom: int) -> bool:
    """Return True for `condition ? g : g * factor`, which bounds parts of an array by numbers of their own."""
    choice = update.forms.atoms[atom]
    if choice.op != "select" or any(len(part) != 1 for part in choice.parts[1:]):
        return False
    left, right = (set(only_term(part)[0]) for part in choice.parts[1:])
    return bool(left & right) and (left < right or right < left)


def _bare_root(update: Update, form: Sum) -> Sum:
    """Return the root `sqrt(x)` if a form is its safe form: `x > 0 ? sqrt(x > 0 ? x : 1) : x`."""
    monomial, value = only_term(form)
    atom = update.forms.only_factor(monomial)
    if atom is None or atom.op != "select" or len(atom.parts[1]) != 1:
        return form
    condition, root, squares = atom.parts
    ((inner, factor),) = root.items()
    safe = update.forms.atoms[inner[0][0]] if len(inner) == 1 and inner[0][1] == 0.5 and factor == 1.0 else None
    is_safe = safe is not None and safe.op == "select" and key_of(safe.parts[1]) == key_of(squares)
    if not is_safe or safe is None or key_of(safe.parts[0]) != key_of(condition):
        return form
    return scaled(update.forms.power(squares, 0.5), value)


def is_norm(update: Update, form: Sum) -> bool:
    """Return True if a form is the root of a sum of sums of squares of opaque values. Only the first few terms are checked."""
    form = _bare_root(update, form)
    if len(form) != 1:
        return False
    ((monomial, _),) = form.items()
    if len(monomial) != 1 or monomial[0][1] != 0.5:
        return False
    atom = update.forms.atoms[monomial[0][0]]
    terms: Iterable[Monomial] = atom.parts[0] if atom.op == "sum" else [((monomial[0][0], 1.0),)]
    return all(_is_sum_of_squares(update, term) for term in islice(terms, CHECKED_TERMS))


def _is_sum_of_squares(update: Update, term: tuple[tuple[int, float], ...], stages: int = 4) -> bool:
    """Return True if a term of a norm is a sum of squares, or the square of an array.

    The sum over a gradient that does not depend on this weight is a scalar, as in a loss that is a sum of terms.
    """
    scalars, arrays = update.split_scalars(term)
    atoms = arrays or scalars
    if not atoms or all(exponent % 2 == 0 for _, exponent in atoms):
        return bool(atoms)
    if len(atoms) != 1 or atoms[0][1] != 1.0 or not stages:
        return False
    joined = update.forms.atoms[atoms[0][0]]
    summed = update.reductions.summed(atoms[0][0])
    parts = joined.parts if joined.op == "concatenate" else (summed,) if summed is not None else ()
    inner = [term for part in parts[:CHECKED_TERMS] for term in islice(part, CHECKED_TERMS)]
    return bool(inner) and all(_is_sum_of_squares(update, term, stages - 1) for term in inner)


def _clip_by_choice(update: Update, select: Atom) -> Clip | None:
    """Match `norm < limit ? g : g * limit / norm`, of a gradient or of a factor."""
    condition, then, other = select.parts
    atoms = [update.forms.atoms[a] for monomial in condition for a, _ in monomial]
    if len(atoms) != 1 or atoms[0].op != "compare":
        return None
    left, right = atoms[0].parts
    if atoms[0].attribute in {"GT", "GE"}:
        left, right, then, other = (left, right, other, then) if is_constant(right) else (right, left, then, other)
    elif is_constant(left):
        left, right, then, other = right, left, other, then
    if not is_constant(right):
        return Clip("norm", None) if _is_scaled_by_norms(update, then, other) else None
    if not is_norm(update, left):
        return None
    limit = right.get(ONE, 0.0)
    clipped = update.forms.multiply(then, scaled(update.forms.power(left, -1.0), limit))
    return _norm_clip(update, left, limit) if key_of(clipped) == key_of(other) else None


def _norm_clip(update: Update, norm: Sum, limit: float) -> Clip:
    """Return the clip by a norm, which is global if its root adds up the sums of several arrays."""
    atom = update.forms.only_factor(tuple((number, 1.0) for number, _ in only_term(_bare_root(update, norm))[0]))
    is_sum = atom is not None and atom.op == "sum" and len(atom.parts[0]) > 1
    return Clip("norm", update.round(limit), is_sum)


def _is_scaled_by_norms(update: Update, then: Sum, other: Sum) -> bool:
    """Return True if one form is the other form times a power of norms, as when each unit has its own limit."""
    if len(then) != 1 or len(other) != 1:
        return False
    (left,), (right,) = then, other
    ratio = product(right, inverse(left))
    return bool(ratio) and bool(left) and all(_is_safe_norm(update, atom, abs(exponent)) for atom, exponent in ratio)


def _is_safe_norm(update: Update, atom: int, exponent: float) -> bool:
    """Return True if a factor is a norm, or the maximum of a norm and a number, repeated or not."""
    form: Sum = {((atom, exponent),): 1.0}
    for _ in range(4):
        if is_norm(update, form):
            return True
        monomial, _ = only_term(form)
        factor = update.forms.only_factor(monomial)
        inner = factor.parts[0] if factor is not None and factor.op == "broadcast" else None
        inner = unguarded(update, monomial[0][0]) if factor is not None and inner is None else inner
        if inner is None or len(inner) != 1:
            return False
        form = inner
    return False


def _clip_by_factor(update: Update, minimum: Atom) -> Clip | None:
    """Match `min(1, limit / (norm + epsilon))`, or a number times this; the limit and epsilon may be inputs."""
    ratios = [part for part in minimum.parts if not is_constant(part)]
    number = _unclipped_number(minimum)
    if len(ratios) != 1 or len(ratios[0]) != 1 or number <= 0.0:
        return None
    ((whole, limit),) = ratios[0].items()
    scalars, monomial = update.split_scalars(whole)
    if not monomial or any(exponent > 0 for _, exponent in monomial):
        return None
    clip = _clip_with_limit(update, update.forms.power({monomial: 1.0}, -1.0), limit / number)
    return Clip("norm", None) if clip is not None and scalars else clip


def _unclipped_number(minimum: Atom) -> float:
    """Return the smallest constant of a minimum, its value if no norm is over its limit; 0 without constants."""
    return min((part.get(ONE, 0.0) for part in minimum.parts if is_constant(part)), default=0.0)


def unclipped_factor(update: Update, monomial: Monomial) -> float:
    """Return the product of the clips among the factors of a gradient if no norm is over its limit."""
    atoms = [(update.forms.atoms[atom], exponent) for atom, exponent in monomial]
    return math.prod(
        _unclipped_number(a) for a, exponent in atoms if a.op == "minimum" and exponent == 1.0 and _clip_by_factor(update, a)
    )


def _clip_by_divisor(update: Update, maximum: Atom) -> Clip | None:
    """Match `max(norm, limit)` or `max(1, norm / limit)` below the gradient."""
    constants = [part for part in maximum.parts if is_constant(part)]
    others = [part for part in maximum.parts if not is_constant(part)]
    if len(constants) != 1 or len(others) != 1 or not is_norm(update, others[0]):
        return None
    ((_, factor),) = others[0].items()
    return _norm_clip(update, others[0], constants[0].get(ONE, 0.0) / factor)


def _clip_with_limit(update: Update, divisor: Sum, limit: float) -> Clip | None:
    """Return the limit over a norm, to which a small number may have been added."""
    ((monomial, factor),) = divisor.items()
    inner = update.forms.atoms[monomial[0][0]]
    if len(monomial) == 1 and monomial[0][1] == 1.0 and inner.op == "sum":
        norms = {m: v for m, v in inner.parts[0].items() if not update.are_scalar({m: v})}
        if len(norms) != 1 or not is_norm(update, norms):
            return None
        factor *= next(iter(norms.values()))
        divisor = norms
    elif len(monomial) == 1 and inner.op == "maximum":
        divisor = unguarded(update, monomial[0][0]) or {}
        if len(divisor) != 1 or not is_norm(update, divisor):
            return None
        factor *= next(iter(divisor.values()))
    elif not is_norm(update, divisor):
        return None
    return _norm_clip(update, divisor, limit / factor)


def unclipped(update: Update, form: Sum) -> Sum:
    """Return a form as it is if no norm is over its limit."""
    monomial, value = only_term(form)
    for atom, exponent in monomial:
        factor = update.forms.atoms[atom]
        clip = _clip_by_choice(update, factor) if factor.op == "select" and exponent == 1.0 else None
        if clip is not None:
            scalars: Sum = {product(monomial, ((atom, -1.0),)): value}
            return update.forms.multiply(scalars, _chosen_below(update, factor))
    return form


def _chosen_below(update: Update, select: Atom) -> Sum:
    """Return the branch of a choice that is not divided by the compared norm."""
    compared = {atom for monomial in select.parts[0] for atom, _ in monomial}
    norms = {
        atom for number in compared for part in update.forms.atoms[number].parts for monomial in part for atom, _ in monomial
    }
    branches = select.parts[1:]
    return next((part for part in branches if not any(atom in norms for monomial in part for atom, _ in monomial)), branches[0])


def clipped_value(update: Update, atom: int) -> Sum:
    """Return the value that an atom keeps between two limits, an empty form if it is something else."""
    bound = update.forms.atoms[atom]
    if bound.op == "clamp":
        return bound.parts[1]
    for part in bound.parts if bound.op in {"minimum", "maximum"} else ():
        monomial, value = only_term(part)
        inner = update.forms.only_factor(monomial) if value == 1.0 else None
        if inner is None or {inner.op, bound.op} != {"minimum", "maximum"}:
            continue
        limits = [part_form for part_form in (*bound.parts, *inner.parts) if update.are_scalar(part_form)]
        others = [part_form for part_form in inner.parts if not update.are_scalar(part_form)]
        if len(limits) == 2 and len(others) == 1:
            return others[0]
    return {}


def _clip_by_value(update: Update, bound: Atom) -> Clip | None:
    """Match `min(max(g, -limit), limit)`, in either order."""
    constants = [part for part in bound.parts if is_constant(part)]
    others = [part for part in bound.parts if not is_constant(part)]
    if len(constants) != 1 or len(others) != 1 or len(others[0]) != 1:
        return None
    ((monomial, _),) = others[0].items()
    inner = update.forms.atoms[monomial[0][0]] if len(monomial) == 1 else None
    if inner is None or {inner.op, bound.op} != {"minimum", "maximum"}:
        return None
    limits = [part for part in inner.parts if is_constant(part)]
    return _symmetric_clip(limits[0], constants[0]) if len(limits) == 1 else None


def _symmetric_clip(low: Sum, high: Sum) -> Clip | None:
    if not is_constant(low) or not is_constant(high):
        return None
    left, right = low.get(ONE, 0.0), high.get(ONE, 0.0)
    return Clip("value", abs(right)) if abs(left + right) <= 1e-6 * abs(right) else None


def is_norm_of_clip(update: Update, state: State) -> bool:
    """Return True if a state is only the norm by which gradients are clipped.

    The norm may add to the value of the step before. A norm that divides a step is a state of the optimizer.
    """
    if state.array.shape.elements != 1:
        return False
    forms = (update.form, *(other.form for other in update.states if other is not state))
    holding = {atom for form in forms for monomial in form for atom, _ in monomial if update.holds(atom, state.new)}
    if not all(map(update.is_bound, holding)):
        return False
    power = next(iter(state.form)) if len(state.form) == 1 else ONE
    atom = update.forms.atoms[power[0][0]] if len(power) == 1 and power[0][1] == 0.5 else None
    if atom is None or atom.op != "sum":
        return is_norm(update, state.form)
    return is_norm(update, update.forms.power(split(atom.parts[0], state.old)[1], 0.5))

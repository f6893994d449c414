"""Plain gradients: forms that a backward pass can end with, and the rate that multiplies them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from hlo_inspect.optimizer.algebra.normal_form import ONE, Monomial, Sum, key_of, product
from hlo_inspect.optimizer.algebra.norms import clip_of, unclipped_factor
from hlo_inspect.optimizer.algebra.update import Update


def plain_rate(update: Update, form: Sum) -> Sum | None:
    """Return the factor that all terms of a gradient share.

    For `acc + (g - acc) / n`, the average of several gradients, return the factor of `acc`.
    """
    if not is_plain_gradient(update, form):
        return None
    factors = {
        monomial: {update.split_scalars(monomial)[0]: -value * unclipped_factor(update, monomial)}
        for monomial, value in form.items()
    }
    kept = [monomial for monomial in form if _is_accumulator(update, monomial, form) or _is_turned(update, monomial)]
    if update.is_normalized:  # the other terms have other numbers
        kept = [monomial for monomial in form if update.weight not in dict(monomial)]
    rates = [factors[monomial] for monomial in kept or form]
    return rates[0] if all(factor == rates[0] for factor in rates) else None


def _is_accumulator(update: Update, monomial: Monomial, form: Sum) -> bool:
    """Return True if a term is an array other than the weight, and if the other terms hold it too."""
    gradient = update.split_scalars(monomial)[1]
    if len(form) != 2 or len(gradient) != 1 or update.forms.atoms[gradient[0][0]].op != "input":
        return False
    others = {other: value for other, value in form.items() if other != monomial}
    return gradient[0][0] in update.forms.atoms_below(others)


def _is_turned(update: Update, monomial: Monomial) -> bool:
    """Return True if a term is transposed in `a - a.T`, with the numbers of `a` in it."""
    atom = update.forms.only_factor(update.split_scalars(monomial)[1])
    return atom is not None and atom.op == "transpose"


def is_plain_gradient(update: Update, form: Sum) -> bool:
    """Return True if a backward pass can end with each term of a form."""
    terms = [update.split_scalars(monomial)[1] for monomial in form]
    return update.is_gradient(form) and all(is_backward(update, term) for term in terms)


def is_backward(update: Update, monomial: Monomial, depth: int = 4) -> bool:
    """Return True if a backward pass can end with a product.

    It holds opaque values and functions of activations, in sums, choices and outer products; each may be clipped. It has no
    sign, and no root or divisor that depends on the gradient, such as its norm.
    """
    if update.is_normalized:  # norms of the weight are repeated
        monomial = _replace_repeated(update, monomial)
    bare = [(atom, exponent) for atom, exponent in monomial if clip_of(update, atom, exponent) is None]
    if len(bare) < len(monomial) and not bare:
        return True
    whole = [atom for atom, exponent in bare if exponent >= 1.0 and exponent % 1.0 == 0.0 and not update.is_bound(atom)]
    others = [(atom, exponent) for atom, exponent in bare if atom not in whole]
    parts_of_gradient = [atom for atom in whole if atom != update.weight or not update.is_normalized]
    if not whole or not depth or any(_is_made_of(update, *other, parts_of_gradient) for other in others):
        return False
    for atom in whole:
        factor = update.forms.atoms[atom]
        if factor.node is None and update.forms.has_single_leaf({((atom, 1.0),): 1.0}, update.weight):
            return False  # a function of the weight alone scales the gradient
        parts = factor.parts[1:] if factor.op == "select" else factor.parts if factor.op in {"sum", "broadcast"} else ()
        terms = [update.split_scalars(term)[1] for part in parts for term, value in part.items() if value != 0.0]
        if factor.op == "sign" or not all(
            is_backward(update, term, depth - 1) for term in terms if term or factor.op == "select"
        ):
            return False
    return True


def _replace_repeated(update: Update, monomial: Monomial) -> Monomial:
    """Replace products that are repeated along a dimension by the products themselves."""
    opened: Monomial = ONE
    for atom, exponent in monomial:
        inner = update.forms.atoms[atom]
        is_repeated = inner.op == "broadcast" and len(inner.parts[0]) == 1
        factors = next(iter(inner.parts[0])) if is_repeated else ((atom, 1.0),)
        opened = product(opened, tuple((number, power * exponent) for number, power in factors))
    return opened


def _is_made_of(update: Update, atom: int, exponent: float, gradient: list[int]) -> bool:
    """Return True if a factor is a function of the gradient or the weight, or of a sum over either.

    Statistics of a batch are not: they share values with only some terms of a gradient that is a sum. Nor is the norm of the
    weight in a loss of `w / stop_gradient(norm(w))`: it divides the gradient.
    """
    terms = [[_names(update, leaves) for leaves in _leaves_by_term(update, part_atom)] for part_atom in gradient]
    level = set(update.forms.leaves({((atom, 1.0),): 1.0}))
    seen: set[Hashable] = set()
    for _ in range(4):
        seen |= _names(update, level)
        if any(all(seen & leaves for leaves in of_one) for of_one in terms):
            return True
        summed = [form for leaf in level if (form := update.reductions.summed(leaf)) is not None]
        if exponent > 0.0 and not update.is_normalized and any(update.weight in update.forms.leaves(form) for form in summed):
            return True  # a norm of the weight
        below = [form for leaf in level for form in _operands(update, leaf)]
        level = {leaf for form in below for leaf in update.forms.leaves(form)}
        if any(update.forms.atoms[leaf].op == "value" for leaf in level):
            return True  # the new value of a state
    return update.weight in level and not update.is_normalized


def _leaves_by_term(update: Update, atom: int) -> list[frozenset[int]]:
    """Return the leaves of each term of a sum, or of a single atom."""
    whole = update.forms.atoms[atom]
    forms: list[Sum] = [{term: 1.0} for term in whole.parts[0]] if whole.op == "sum" else [{((atom, 1.0),): 1.0}]
    return [update.forms.leaves(form) for form in forms]


def _names(update: Update, leaves: Iterable[int]) -> set[Hashable]:
    """Return names of leaves. Products are equal if their factors are, for they may be computed twice."""
    factors_by_leaf = [(leaf, update.reductions.factors(leaf)) for leaf in leaves]
    return {leaf if factors is None else tuple(sorted(map(str, map(key_of, factors)))) for leaf, factors in factors_by_leaf}


def _operands(update: Update, leaf: int) -> tuple[Sum, ...]:
    """Return the operands that a leaf adds up or multiplies."""
    summed = update.reductions.summed(leaf)
    return (summed,) if summed is not None else update.reductions.factors(leaf) or ()

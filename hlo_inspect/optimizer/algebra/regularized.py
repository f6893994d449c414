"""The gradient of a regularized loss, `g + l2 * w`, restored after the normal form expanded it.

Sums that hold the weight are multiplied out, so that `w' = w - rate * (g + l2 * w) / sqrt(v')` has the weight in two of its
terms. One of these has a factor that is no scalar. If a state adds the square or the size of `g + l2 * w`, that sum is known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from hlo_inspect.optimizer.algebra.normal_form import Monomial, NormalForms, Sum, add_to, added, close, inverse, product


def regularized_gradient(forms: NormalForms, states: Iterable[Sum], find: Callable[[Sum], bool]) -> Sum | None:
    """Return the only sum below states, in a power or function, that `find` recognizes as a regularized gradient."""
    inner = {atom for form in states for atom in forms.atoms_below(form)}
    gradients = {}
    for atom in sorted(inner):
        for part in forms.atoms[atom].parts:
            if len(part) > 1 and find(part):
                gradients[forms.factored(part)[1]] = part
    return next(iter(gradients.values())) if len(gradients) == 1 else None


def factor_out_gradient(forms: NormalForms, form: Sum, weight: int, gradient: Sum) -> Sum:
    """Factor `gradient` out of the terms of a sum, also below the powers in it."""
    inner: Sum = {}
    for monomial, value in form.items():
        add_to(inner, _factor_powers(forms, monomial, value, weight, gradient))
    return _factor_out_of_sum(forms, inner, weight, gradient)


def _factor_powers(forms: NormalForms, monomial: Monomial, value: float, weight: int, gradient: Sum) -> Sum:
    """Factor the gradient out of the sums that are factors of a term."""
    for atom, exponent in monomial:
        if forms.atoms[atom].op == "sum":
            (part,) = forms.atoms[atom].parts
            whole = _factor_out_of_sum(forms, part, weight, gradient)
            if whole != part:
                rest: Sum = {product(monomial, ((atom, -exponent),)): value}
                return forms.multiply(rest, forms.power(whole, exponent))
    return {monomial: value}


def _factor_out_of_sum(forms: NormalForms, form: Sum, weight: int, gradient: Sum) -> Sum:
    content, whole = forms.factored(gradient)
    ((first, value), *others) = sorted(gradient.items(), key=lambda term: weight in dict(term[0]))
    atoms_of_first = {atom for atom, _ in first}
    total = dict(form)
    for monomial, coefficient in form.items():
        if not atoms_of_first.issubset(atom for atom, _ in monomial):
            continue
        factor, scale = product(monomial, inverse(first)), coefficient / value
        if not factor and len(form) == len(gradient):
            continue  # the gradient itself
        terms = {product(other, factor): scale * number for other, number in others}
        if all(_has(total, term, number, weight) for term, number in terms.items()):
            total = {term: left for term, left in added(total, terms, -1.0).items() if term != monomial}
            add_to(total, {product(whole, factor): scale * content})
    return total


def _has(form: Sum, term: Monomial, number: float, weight: int) -> bool:
    """Return True if a sum has a term with that coefficient.

    The weight may have any coefficient, since most of it is kept.
    """
    value = form.get(term)
    return value is not None and (close(value, number) or term == ((weight, 1.0),))

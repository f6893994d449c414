"""NAdam (Dozat 2016): Adam with Nesterov's momentum.

* `w' = w - rate * step / (sqrt(v' / (1 - b2 ** t)) + epsilon)`
* `step = b1 * m' / (1 - b1 ** (t + 1)) + (1 - b1) * g / (1 - b1 ** t)`

With a schedule of the momentum u, as Keras and PyTorch have it, `P' = P * u` is kept:

* `step = u_next * m' / (1 - P' * u_next) + (1 - u) * g / (1 - P')`

or the factors of m' and g are inputs. NAdamW has the decay of the weights beside the step, as AdamW has it (Loshchilov and
Hutter 2019, arXiv:1711.05101).

State: Adam's m, v and t, and P. Reads rate, b1, b2, epsilon, l2 or decay.
"""

from __future__ import annotations

from hlo_inspect.optimizer.algebra.hyperparameter import Hyperparameter
from hlo_inspect.optimizer.algebra.moments import (
    AdamStep,
    Average,
    Root,
    adam_claim,
    find_root,
    gradient_average,
    square_average,
    take_corrections,
)
from hlo_inspect.optimizer.algebra.normal_form import ONE, Monomial, Sum, added, close, only_term, product, scaled, split_zero
from hlo_inspect.optimizer.algebra.update import Claim, State, Update, expanded, quotient, split


def match(update: Update) -> Claim | None:
    states = update.used(update.rest)
    if len(states) != 2 or len(update.rest) < 2 or not update.is_plain():
        return None
    for first, second in (states, reversed(states)):
        claim = _match_moments(update, first, second)
        if claim is not None:
            return claim
    return None


def _match_moments(update: Update, first: State, second: State) -> Claim | None:
    ahead = [monomial for monomial in update.rest if dict(monomial).get(first.new) == 1.0]
    average = gradient_average(update, first)
    root = find_root(update, ahead[0], second.new) if len(ahead) == 1 else None
    if average is None or root is None:
        return None
    scheduled = _match_scheduled(update, ahead[0], root, second, average)
    if scheduled is not None or average.decay.value is None:
        return scheduled
    momentum = tuple(factor for factor in root.rest if factor[0] != first.new)
    outer, scalars = take_corrections(update, momentum)
    gradient_terms = _other_terms(update, {m: v for m, v in update.rest.items() if m not in ahead}, second, root)
    inner, left = take_corrections(update, root.correction)
    squares = square_average(update, second, average.rest)
    if squares is None or gradient_terms is None or left or not all(update.is_scalar(atom) for atom, _ in scalars):
        return None
    if any(exponent != -1.0 for _, exponent in outer) or any(exponent != -0.5 for _, exponent in inner):
        return None
    rate: Sum = {scalars: -update.rest[ahead[0]] * root.scale / average.decay.value}
    if not _fits(update, gradient_terms, update.forms.multiply(scaled(rate, -1.0 / root.scale), average.rest)):
        return None
    step = AdamStep(first, second, root, rate, (outer[0][0] if outer else None, inner[0][0] if inner else None))
    return adam_claim(update, step, average, squares)


def _other_terms(
    update: Update, terms: Sum, second: State, root: Root
) -> tuple[list[tuple[Hyperparameter, float]], Sum] | None:
    """Return the other terms without their common root and their corrections."""
    gradient_terms: Sum = {}
    shared: list[tuple[Hyperparameter, float]] = []
    for monomial, value in terms.items():
        other = find_root(update, monomial, second.new)
        if other is None or (other.epsilon, other.inner, other.correction) != (root.epsilon, root.inner, root.correction):
            return None
        shared, rest = take_corrections(update, other.rest)
        gradient_terms[rest] = value
    return (shared, gradient_terms) if all(exponent == -1.0 for _, exponent in shared) else None


def _fits(update: Update, gradient_terms: tuple[list[tuple[Hyperparameter, float]], Sum], expected: Sum) -> bool:
    """Return True if the factor of the gradient fits the factor of the moment."""
    (a, left), (b, right) = update.forms.factored(gradient_terms[1]), update.forms.factored(expected)
    return left == right and close(a, b, max(update.tolerance * 2, 1e-4))


# -- momentum with a schedule -------------------------------------------------------------------------------------------


def _match_scheduled(update: Update, ahead: Monomial, root: Root, second: State, average: Average) -> Claim | None:
    """Return the claim if the momentum changes with the steps."""
    gradient_terms: Sum = {}
    for monomial, value in update.rest.items():
        other = find_root(update, monomial, second.new) if monomial != ahead else None
        if other is not None and (other.epsilon, other.inner, other.correction) == (root.epsilon, root.inner, root.correction):
            gradient_terms[other.rest] = value * other.scale
    squares = square_average(update, second, average.rest)
    decay, _ = split(average.state.form, average.state.old)
    share = added({ONE: 1.0}, decay, -1.0)
    factor = quotient(update.forms, gradient_terms, average.rest) if len(gradient_terms) == len(update.rest) - 1 else None
    if squares is None or factor is None or not update.are_scalar(factor) or not split_zero(share):
        return None
    momentum: Sum = {product(root.rest, ((average.state.new, -1.0),)): update.rest[ahead] * root.scale}
    rate = _rate(update, momentum, update.forms.multiply(factor, share))
    if rate is None:
        return None
    bases, _ = take_corrections(update, root.correction)
    return adam_claim(
        update,
        AdamStep(average.state, second, root, scaled(rate, -1.0), (None, bases[0][0] if bases else None)),
        average,
        squares,
    )


def _rate(update: Update, momentum: Sum, gradient: Sum) -> Sum | None:
    """Return the rate by the factors of the first moment and of the gradient."""
    ((left, a),), ((right, b),) = momentum.items(), gradient.items()
    if len(left) == len(right) == 1 and left != right and _is_scalar_input(update, left) and _is_scalar_input(update, right):
        return momentum
    for atom, exponent in right:
        kept = _kept_product(update, atom) if exponent == -1.0 else None
        ahead = _next_momentum(update, left, kept) if kept is not None else None
        if kept is None or ahead is None:
            continue
        divisor, coming = ahead
        first = update.forms.multiply({product(left, ((divisor, 1.0),)): a}, update.forms.power(coming, -1.0))
        for now in _factors_of(update, kept):
            rest = update.forms.power(added({ONE: 1.0}, now, -1.0), -1.0)
            other = update.forms.multiply({product(right, ((atom, 1.0),)): b}, rest)
            if set(first) == set(other) and all(close(first[monomial], other[monomial], 1e-4) for monomial in first):
                return first
    return None


def _is_scalar_input(update: Update, monomial: Monomial) -> bool:
    return all(update.forms.atoms[atom].op == "input" and update.is_scalar(atom) for atom, _ in monomial)


def _kept_product(update: Update, atom: int) -> int | None:
    """Return the new value of a scalar P if an atom is `1 - P`."""
    record = update.forms.atoms[atom]
    terms = {m: v for m, v in record.parts[0].items() if m != ONE} if record.op == "sum" else {}
    monomial, value = only_term(terms)
    is_kept = len(monomial) == 1 and monomial[0][1] == 1.0 and update.forms.atoms[monomial[0][0]].op == "value"
    return monomial[0][0] if is_kept and close(record.parts[0].get(ONE, 0.0), -value) else None


def _next_momentum(update: Update, factors: Monomial, kept: int) -> tuple[int, Sum] | None:
    """Return the atom `1 - P' * u` among divisors, and u."""
    for atom, exponent in factors:
        record = update.forms.atoms[atom]
        terms = {m: v for m, v in record.parts[0].items() if m != ONE} if exponent == -1.0 and record.op == "sum" else {}
        constant_term = record.parts[0].get(ONE, 0.0) if terms else 0.0
        if constant_term and all(dict(monomial).get(kept) == 1.0 for monomial in terms):
            return atom, {product(monomial, ((kept, -1.0),)): -value / constant_term for monomial, value in terms.items()}
    return None


def _factors_of(update: Update, kept: int) -> list[Sum]:
    """Return possible factors of a kept product in each step: all but one of the factors of its new value."""
    node = update.forms.atoms[kept].node
    form = update.forms.definition(node) if node is not None else {}
    factors: list[Sum] = []
    for old in {atom for monomial in form for atom, _ in monomial if update.forms.atoms[atom].op == "input"}:
        factor, rest = split(form, old)
        if not rest:
            factors.append(expanded(update, factor))
    return factors

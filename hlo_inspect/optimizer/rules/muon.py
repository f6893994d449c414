"""The Newton-Schulz iteration that makes a matrix nearly orthogonal, as in Muon.

One step with A = X X^T is `X' = a X + (b A + c A A) X`, an odd polynomial of the singular values. The steps are unrolled, or in
a loop. A transposition makes no other expression here, so X X and X X^T of a square matrix are not distinguished.

Muon (Jordan et al. 2024, https://kellerjordan.github.io/posts/muon/): momentum, made nearly orthogonal.

* `m' = momentum * m + g`, or an average with `(1 - momentum) * g`
* `M = m'`, or with Nesterov's look ahead `g + momentum * m'`; each with its bias correction, if it has one
* `X = M / (norm(M) + epsilon)`, then several times `X = a X + (b X X^T + c (X X^T)^2) X`
* `w' = w - rate * (scale * X + decay * w)`

State: m. Reads momentum; rate and decay if they are written as in the last line. The scale depends on the shape of the weight:
`sqrt(max(1, rows / columns))`, or `0.2 * sqrt(max(rows, columns))` of Liu et al. 2025, arXiv:2502.16982. Else the rate is read
with the scale in it, and a decay is not read. The coefficients can be any of the signs +, -, +; optax keeps them in an array
that is a parameter.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from hlo_inspect.optimizer.algebra.hyperparameter import ABSENT, COMPUTED, Hyperparameter
from hlo_inspect.optimizer.algebra.moments import gradient_average
from hlo_inspect.optimizer.algebra.normal_form import (
    ONE,
    Monomial,
    Sum,
    close,
    inverse,
    is_constant,
    product,
    scaled,
    split_zero,
)
from hlo_inspect.optimizer.algebra.norms import is_norm_of
from hlo_inspect.optimizer.algebra.update import Claim, State, Update, split

LEAST_STEPS = 2
MAX_STEPS = 30
MAX_TERMS = 64  # a factor for each step, and the momentum's


@dataclass(frozen=True, slots=True)
class Iteration:
    """A form that is `factor` times the result of `steps` steps from `matrix` divided by its norm."""

    factor: Sum
    steps: int
    matrix: Sum


@dataclass(frozen=True, slots=True)
class _Step:
    """A form that is `factor * X'`, with X = `before`."""

    factor: Sum
    before: Sum
    times: int = 1


def find_iteration(update: Update, form: Sum) -> Iteration | None:
    """Return the iteration if a form is a multiple of its result."""
    factor: Sum | None = None
    form = split_zero(form)
    steps = 0
    while steps < MAX_STEPS:
        step = _find_step(update, form) or _find_loop(update, form)
        if step is None:
            matrix = _normalised(update, form)
            return Iteration(factor, steps, matrix) if factor is not None and matrix is not None else None
        if factor is None:
            factor = step.factor
        elif step.factor != {ONE: 1.0}:
            return None
        form = step.before
        steps += step.times
    return None


def _find_loop(update: Update, form: Sum) -> _Step | None:
    """Return the steps of a loop. Its body has one step, or several if it is unrolled in part. The trip count is not read."""
    for atom, _ in next(iter(form), ONE) if len(form) == 1 else ():
        loop = update.reductions.carried_atom(atom) if update.forms.atoms[atom].op == "opaque" else None
        factor, _ = split(form, atom)
        if loop is None or not update.are_scalar(factor):
            continue
        new = split_zero(loop.new)
        for _ in range(MAX_STEPS):
            step = _find_step(update, new)
            if step is None or step.factor != {ONE: 1.0}:
                break
            if step.before == {((loop.old, 1.0),): 1.0}:
                return _Step(factor, split_zero(loop.initial), LEAST_STEPS)
            new = step.before
    return None


def _find_step(update: Update, form: Sum) -> _Step | None:
    """Return the step that a form is a multiple of: its term with the product of matrices, and the other terms."""
    if len(form) > MAX_TERMS:
        return None
    for monomial, value in form.items():
        for atom, exponent in monomial:
            if exponent != 1.0 or update.forms.atoms[atom].op != "opaque":
                continue
            rest = {other: coefficient for other, coefficient in form.items() if other != monomial}
            factor: Sum = {product(monomial, ((atom, -1.0),)): value}
            before = _previous_matrix(update, atom, factor, rest) if rest and update.are_scalar(factor) else None
            if before is not None:
                return _Step(factor, before)
    return None


def _previous_matrix(update: Update, atom: int, factor: Sum, rest: Sum) -> Sum | None:
    """Return X, if the product `atom` is `(b A + c A A) X` and `rest` is `factor * a * X`."""
    factors = update.reductions.factors(atom)
    if factors is None or _size(update, atom) != update.array.shape.elements:
        return None
    for polynomial, matrix in (factors, factors[::-1]):
        linear = _ratio(update, rest, matrix)
        if linear is None:
            continue
        others = _polynomial(update, polynomial, matrix)
        if others is not None and _alternate(update.forms.multiply(linear, update.forms.power(factor, -1.0)), *others):
            return matrix
    return None


def _alternate(linear: Sum, cubic: Sum, quintic: Sum) -> bool:
    """Return True if the coefficients have the signs +, -, +, as far as they are numbers."""
    expected = ((linear, 1.0), (cubic, -1.0), (quintic, 1.0))
    return all(form.get(ONE, 0.0) * sign > 0 for form, sign in expected if is_constant(form))


def _polynomial(update: Update, form: Sum, matrix: Sum) -> tuple[Sum, Sum] | None:
    """Return the coefficients b and c of `b A + c A A` with A the product of a matrix with itself."""
    products = [(m, [atom for atom, e in m if e == 1.0 and update.forms.atoms[atom].op == "opaque"]) for m in form]
    if len(products) != 2 or any(len(atoms) != 1 for _, atoms in products):
        return None
    for (first, (gram,)), (second, (square,)) in (products, products[::-1]):
        inner, outer = _self_product(update, gram, matrix), _self_product(update, square, {((gram, 1.0),): 1.0})
        cubic: Sum = {product(first, ((gram, -1.0),)): form[first]}
        quintic: Sum = {product(second, ((square, -1.0),)): form[second]}
        fits = inner == {ONE: 1.0} and outer is not None and _are_coefficients(update, cubic, quintic)
        if fits and outer is not None and _is_gram(update, gram) and _size(update, gram) == _size(update, square):
            return cubic, update.forms.multiply(quintic, outer)
    return None


def _self_product(update: Update, atom: int, matrix: Sum) -> Sum | None:
    """Return the factor `k` of a leaf that is `k` times the product of a matrix with itself."""
    factors = update.reductions.factors(atom)
    ratios = [_ratio(update, factor, matrix) for factor in factors or ()]
    factors_of_matrix = [ratio for ratio in ratios if ratio is not None]
    return update.forms.multiply(factors_of_matrix[0], factors_of_matrix[1]) if len(factors_of_matrix) == 2 else None


def _is_gram(update: Update, atom: int) -> bool:
    """Return True if the size of a leaf is that of X X^T or X^T X, for a weight that is one matrix."""
    sides = [side for side in update.array.shape.dimensions if side is not None and side != 1]
    return len(sides) != 2 or _size(update, atom) in {side * side for side in sides}


def _size(update: Update, atom: int) -> int:
    node = update.forms.atoms[atom].node
    return update.forms.graph.sizes[node] if node is not None else 0


def _normalised(update: Update, form: Sum) -> Sum | None:
    """Return the matrix that is divided by its norm: `matrix / (norm + epsilon)`."""
    if not form:
        return None
    shared = set(next(iter(form))).intersection(*form)
    for atom, exponent in shared:
        divisor = update.forms.atoms[atom]
        if exponent != -1.0:
            continue
        matrix = {product(monomial, ((atom, 1.0),)): value for monomial, value in form.items()}
        direction = update.forms.factored(matrix)[1]
        norm: Sum = {((atom, 1.0),): 1.0}
        if divisor.op == "sum":
            norm = {m: v for m, v in divisor.parts[0].items() if m != ONE}
        if is_norm_of(update, norm, direction):
            return matrix
    return None


# -- coefficients -------------------------------------------------------------------------------------------------------


def _ratio(update: Update, left: Sum, right: Sum) -> Sum | None:
    """Return the coefficient `k` of `left = k * right`."""
    by_left, by_right = (_terms_by_matrix(update, form) for form in (left, right))
    if by_left is None or by_right is None or by_left.keys() != by_right.keys() or not by_left:
        return None
    ratio: Sum | None = None
    for key, (monomial, value) in by_left.items():
        other, divisor = by_right[key]
        quotient: Sum = {product(monomial, inverse(other)): value / divisor}
        if ratio is None:
            ratio = quotient
        elif ratio.keys() != quotient.keys() or not close(*ratio.values(), *quotient.values()):
            return None
    return ratio


def _terms_by_matrix(update: Update, form: Sum) -> dict[Monomial, tuple[Monomial, float]] | None:
    """Return terms by their factors other than coefficients; None if two terms share these factors."""
    terms: dict[Monomial, tuple[Monomial, float]] = {}
    for monomial, value in form.items():
        key = tuple((atom, exponent) for atom, exponent in monomial if not _is_coefficient(update, atom))
        if key in terms or not value:
            return None
        terms[key] = monomial, value
    return terms


def _are_coefficients(update: Update, *forms: Sum) -> bool:
    return all(_is_coefficient(update, atom) for form in forms for monomial in form for atom, _ in monomial)


def _is_coefficient(update: Update, atom: int) -> bool:
    """Return True if an atom is a scalar, or an element of a small input: optax keeps the coefficients so.

    If no other element is used, the input itself replaces that element.
    """
    if update.is_scalar(atom):
        return True
    record = update.forms.atoms[atom]
    if record.op == "slice" and len(record.parts[0]) == 1:
        ((monomial, value),) = record.parts[0].items()
        if not _is_of_one_element(record.attribute) or value != 1.0 or len(monomial) != 1 or monomial[0][1] != 1.0:
            return False
        atom = monomial[0][0]
    state_atoms = {update.weight, *(state.old for state in update.states)}
    is_input = update.forms.atoms[atom].op == "input" and atom not in state_atoms
    return is_input and 0 < _size(update, atom) < (update.array.shape.elements or 0)


def _is_of_one_element(parts: object) -> bool:
    """Return True for the attribute of a slice that takes one element. A damaged slice has other attributes."""
    if not parts or not isinstance(parts, tuple) or not all(isinstance(part, tuple) and len(part) == 3 for part in parts):
        return False
    return bool(math.prod(limit - start for start, limit, _ in parts) == 1)


def match(update: Update) -> Claim | None:
    if len(update.used(update.rest)) > 1 or not update.is_plain():
        return None
    iteration = find_iteration(update, update.rest)
    state = _state_in(update, iteration.matrix) if iteration is not None else None
    average = gradient_average(update, state) if state is not None else None
    if iteration is None or state is None or average is None or iteration.steps < LEAST_STEPS:
        return None
    factor, others = split(iteration.matrix, state.new)
    if not factor or not update.are_scalar(factor) or (others and not update.same_direction(others, average.rest)):
        return None
    rate, decay = scaled(iteration.factor, -1.0), update.decay_of(iteration.factor)
    decay = COMPUTED if decay.status != "absent" and decay.value != 0.0 else decay
    shared = _shared_factor(update)
    if shared is not None:
        rate, decay = shared[0], update.read(shared[1])
    hyperparameters = {
        "learning_rate": update.read(rate),
        "momentum": average.decay,
        "nesterov": Hyperparameter(float(bool(others)), "constant"),
        "weight_decay": decay if decay is not None else ABSENT,
    }
    return Claim(rate, average.rest, hyperparameters, {"first_moment": state.array})


def _state_in(update: Update, form: Sum) -> State | None:
    """Return the only state whose new value a form holds, even if only below a loop."""
    states = [state for monomial in form for atom, _ in monomial if (state := update.state_of(atom)) is not None]
    return states[0] if len({state.new for state in states}) == 1 else None


def _shared_factor(update: Update) -> tuple[Sum, Sum] | None:
    """Return the rate and the decay of `w + -rate * (step + decay * w)`, as in the text."""
    graph, own = update.forms.graph, update.array.old
    if graph.ops[update.array.new] != "add" or own not in graph.args[update.array.new]:
        return None
    (step,) = [arg for arg in graph.args[update.array.new] if arg != own] or [own]
    if graph.ops[step] != "multiply":
        return None
    for factor, total in (graph.args[step], graph.args[step][::-1]):
        terms = graph.args[total] if graph.ops[total] == "add" else ()
        for term in terms:
            others = [arg for arg in graph.args[term] if arg != own] if graph.ops[term] == "multiply" else []
            if len(others) == 1 and own in graph.args[term]:
                rate, decay = scaled(update.forms.form(factor), -1.0), update.forms.form(others[0])
                return (rate, decay) if update.are_scalar(rate) and update.are_scalar(decay) else None
    return None

"""Stochastic gradient descent, with momentum (Polyak 1964) or Nesterov's momentum (Sutskever et al. 2013).

    plain      w' = w - rate * (g + decay * w)
    momentum   m' = momentum * m + g + l2 * w            w' = w - rate * m'
    Nesterov   w' = w - rate * (g + l2 * w + momentum * m')

State: nothing, or m. Reads rate, momentum, decay or l2. The rate may be part of the momentum instead: `m' = momentum * m -
rate * g` and `w' = w + m'`. Where the gradient was multiplied by a constant before the rate (1 / accumulated steps), XLA
folds the two, and the rate that is read is their product.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from hlo_inspect.analysis.optimizer.toolkit import (
    ABSENT,
    COMPUTED,
    LEAST_KEPT,
    ONE,
    Average,
    Claim,
    Hyperparameter,
    Monomial,
    OptimizerRule,
    State,
    Sum,
    Update,
    added,
    clip_of,
    constant,
    gradient_average,
    is_constant,
    key_of,
    scaled,
    split,
)


def match(update: Update) -> Claim | None:
    if not update.is_plain():
        return None
    states = update.used(update.rest)
    if not states:
        return _plain(update)
    return _momentum(update, states[0]) if len(states) == 1 else None


def _plain(update: Update) -> Claim | None:
    rate = _linear(update, update.rest)
    if rate is None or not LEAST_KEPT <= update.kept.get(ONE, 0.0) <= 1.0:
        return None
    hyperparameters = {"learning_rate": update.read(rate), "weight_decay": update.decay_of(rate)}
    return Claim(rate, update.rest, hyperparameters)


def _linear(update: Update, form: Sum) -> Sum | None:
    """The factor that all terms of a gradient share; of `acc + (g - acc) / n`, the average of several, that of `acc`."""
    if not _is_gradient(update, form):
        return None
    factors = {monomial: {update.split_scalars(monomial)[0]: -value} for monomial, value in form.items()}
    kept = [monomial for monomial in form if _is_accumulator(update, monomial, form)]
    found = [factors[monomial] for monomial in kept or form]
    return found[0] if all(factor == found[0] for factor in found) else None


def _is_accumulator(update: Update, monomial: Monomial, form: Sum) -> bool:
    """Whether a term is an array beside the weight that the other terms hold too."""
    gradient = update.split_scalars(monomial)[1]
    if len(form) != 2 or len(gradient) != 1 or update.forms.atoms[gradient[0][0]].op != "input":
        return False
    others = {other: value for other, value in form.items() if other != monomial}
    return gradient[0][0] in update.forms.atoms_below(others)


def _is_gradient(update: Update, form: Sum) -> bool:
    """Whether each term of a form is what a backward pass can end with."""
    terms = [update.split_scalars(monomial)[1] for monomial in form]
    return update.is_gradient(form) and all(_is_backward(update, term) for term in terms)


def _is_backward(update: Update, monomial: Monomial, depth: int = 4) -> bool:
    """Whether a product can be what a backward pass ends with: opaque things and functions of activations, in sums, choices and
    outer products; each may be clipped. No sign, and no root or divisor that is made of the gradient, a norm of it.
    """
    bare = [(atom, exponent) for atom, exponent in monomial if clip_of(update, atom, exponent) is None]
    if len(bare) < len(monomial) and not bare:
        return True
    whole = [atom for atom, exponent in bare if exponent >= 1.0 and exponent % 1.0 == 0.0]
    others = [atom for atom, exponent in bare if atom not in whole]
    if not whole or not depth or any(_is_made_of(update, atom, whole) for atom in others):
        return False
    for atom in whole:
        found = update.forms.atoms[atom]
        if found.node is None and update.forms.leaves({((atom, 1.0),): 1.0}) == {update.weight}:
            return False  # a function of the weight alone scales the gradient
        parts = found.parts[1:] if found.op == "select" else found.parts if found.op in {"sum", "broadcast"} else ()
        terms = [update.split_scalars(term)[1] for part in parts for term, value in part.items() if value != 0.0]
        if found.op == "sign" or not all(
            _is_backward(update, term, depth - 1) for term in terms if term or found.op == "select"
        ):
            return False
    return True


def _is_made_of(update: Update, atom: int, gradient: list[int]) -> bool:
    """Whether a factor is a function of the gradient, or of a sum over it; statistics of a batch are not: of a gradient that is
    a sum these share values with some terms alone.
    """
    terms = [[_names(update, leaves) for leaves in _leaves_by_term(update, one)] for one in gradient]
    level = set(update.forms.leaves({((atom, 1.0),): 1.0}))
    seen: set[Hashable] = set()
    for _ in range(4):
        seen |= _names(update, level)
        if any(all(seen & leaves for leaves in of_one) for of_one in terms):
            return True
        below = [form for leaf in level for form in _operands(update, leaf)]
        level = {leaf for form in below for leaf in update.forms.leaves(form)}
        if any(update.forms.atoms[leaf].op == "value" for leaf in level):
            return True  # the new value of a state
    return update.weight in level


def _leaves_by_term(update: Update, atom: int) -> list[frozenset[int]]:
    """The leaves of each term of a sum, or of the one term that an atom is."""
    found = update.forms.atoms[atom]
    forms: list[Sum] = [{term: 1.0} for term in found.parts[0]] if found.op == "sum" else [{((atom, 1.0),): 1.0}]
    return [update.forms.leaves(form) for form in forms]


def _names(update: Update, leaves: Iterable[int]) -> set[Hashable]:
    """What tells leaves apart: products are equal where their factors are, for they may be computed twice."""
    found = [(leaf, update.reductions.factors(leaf)) for leaf in leaves]
    return {leaf if factors is None else tuple(sorted(map(str, map(key_of, factors)))) for leaf, factors in found}


def _operands(update: Update, leaf: int) -> tuple[Sum, ...]:
    """What a leaf adds up, or multiplies."""
    summed = update.reductions.summed(leaf)
    return (summed,) if summed is not None else update.reductions.factors(leaf) or ()


def _momentum(update: Update, state: State) -> Claim | None:
    average = gradient_average(update, state)
    if average is None or (average.decay.value or 0.0) >= 1.0:
        return None  # a velocity that never decays: the symplectic Euler method
    inner = _scale(update, average)
    factor, rest = split(update.rest, state.new)
    if len(factor) != 1 or not update.are_scalar(factor):
        return None
    nesterov = bool(update.used(rest) or update.is_gradient(rest)) or bool(rest)
    kept = update.kept
    if nesterov:
        looked_ahead = _nesterov(update, average, factor)
        if looked_ahead is None:
            return None
        factor, kept = looked_ahead
    ((monomial, value),) = factor.items()
    rate: Sum = {monomial: -value}
    if value > 0 and is_constant(factor) and inner is not None:
        rate = scaled(inner, value)
    elif inner is None and (value > 0 or not _is_sum_of_gradients(update, average)):
        return None
    hyperparameters = {
        "learning_rate": update.read(rate),
        "momentum": average.decay,
        "weight_decay": update.decay_of(rate, kept),
        "l2": _l2(update, average),
        "nesterov": Hyperparameter(float(nesterov), "constant"),
    }
    return Claim(rate, average.rest, hyperparameters, {"first_moment": state.array})


def _nesterov(update: Update, average: Average, factor: Sum) -> tuple[Sum, Sum] | None:
    """The factor `c` of `w' = kept * w + c * (g + momentum * m')`, and what then keeps the weight."""
    decay, _ = split(average.state.form, average.state.old)
    step = update.forms.multiply(factor, update.forms.power(decay, -1.0))
    left = added(update.form, update.forms.multiply(step, average.rest), -1.0)
    left = added(left, update.forms.multiply(factor, {((average.state.new, 1.0),): 1.0}), -1.0)
    scale = max(abs(value) for value in update.form.values())
    left = {monomial: value for monomial, value in left.items() if abs(value) > 1e-6 * scale * 1e-3}
    kept, others = split(left, update.weight)
    return (step, kept) if not others and kept else None


def _scale(update: Update, average: Average) -> Sum | None:
    _, gradient = split(average.rest, update.weight)
    return _linear(update, gradient) if gradient else None


def _is_sum_of_gradients(update: Update, average: Average) -> bool:
    """Whether terms with several factors are gradients: of a standardized weight, which they hold, multiplied with a sum."""
    factor, gradient = split(average.rest, update.weight)
    return all(_is_backward(update, term) for term in factor if not update.are_scalar({term: 1.0})) and _is_gradient(
        update, gradient
    )


def _l2(update: Update, average: Average) -> Hyperparameter:
    factor, rest = split(average.rest, update.weight)
    factor = {monomial: value for monomial, value in factor.items() if update.are_scalar({monomial: 1.0})}
    if not factor:
        return ABSENT
    values = set(rest.values())
    if not is_constant(factor) or len(values) != 1:
        return COMPUTED
    return constant(factor[ONE] / values.pop(), max(update.tolerance, 1e-6))


RULE = OptimizerRule(
    name="sgd",
    title="SGD",
    paper="Polyak 1964 (momentum), Sutskever et al. 2013 (Nesterov's)",
    hyperparameters=("learning_rate", "momentum", "nesterov", "weight_decay", "l2"),
    state=("first_moment",),
    match=match,
)

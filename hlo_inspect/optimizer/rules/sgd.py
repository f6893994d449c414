"""Stochastic gradient descent: plain, with momentum (Polyak 1964) or Nesterov's momentum (Sutskever et al. 2013), and averaged.

    plain      w' = w - rate * (g + decay * w)
    momentum   m' = momentum * m + g + l2 * w            w' = w - rate * m'
    Nesterov   w' = w - rate * (g + l2 * w + momentum * m')

State: nothing, or m. Reads rate, momentum, decay or l2. The rate may be part of the momentum instead: `m' = momentum * m -
rate * g` and `w' = w + m'`. Where the gradient was multiplied by a constant before the rate (1 / accumulated steps), XLA
folds the two, and the rate that is read is their product.

Averaged SGD (Polyak and Juditsky 1992), with the schedule of Bottou 2010 that PyTorch has:

    w' = (1 - decay * eta) * w - eta * g
    x' = x + mu * (w' - x)
    eta' = rate / (1 + decay * rate * t) ** alpha      mu' = 1 / max(1, t - t0)

State: x, the average; eta and mu may be kept, handed in or computed in the step. Reads decay. An average alone belongs to no
optimizer: many steps keep one for evaluation. It is ASGD's where the weights decay by a multiple of the rate, the rate falls as
a power of the steps, and `mu` changes from step to step.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from hlo_inspect.optimizer.algebra.hyperparameter import Hyperparameter
from hlo_inspect.optimizer.algebra.moments import Average, gradient_average, l2_in
from hlo_inspect.optimizer.algebra.normal_form import (
    ONE,
    Monomial,
    Sum,
    added,
    close,
    inverse,
    is_constant,
    key_of,
    product,
    scaled,
)
from hlo_inspect.optimizer.algebra.norms import clip_of, unclipped_factor
from hlo_inspect.optimizer.algebra.update import LEAST_KEPT, Claim, OptimizerRule, State, Update, split
from hlo_inspect.optimizer.step.state_arrays import StateArray


def _match_sgd(update: Update) -> Claim | None:
    if not update.is_plain():
        return None
    states = update.used(update.rest)
    if not states:
        return _plain(update)
    return _momentum(update, states[0]) if len(states) == 1 else None


def _plain(update: Update) -> Claim | None:
    rate = _plain_rate(update, update.rest)
    if rate is None or not LEAST_KEPT <= update.kept.get(ONE, 0.0) <= 1.0 or _averaged_by(update, rate) is not None:
        return None
    hyperparameters = {"learning_rate": update.read(rate), "weight_decay": update.decay_of(rate)}
    return Claim(rate, update.rest, hyperparameters)


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
        "l2": l2_in(update, average.rest),
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
    return _plain_rate(update, gradient) if gradient else None


def _is_sum_of_gradients(update: Update, average: Average) -> bool:
    """Whether terms with several factors are gradients: of a standardized weight, which they hold, multiplied with a sum."""
    factor, gradient = split(average.rest, update.weight)
    return all(_is_backward(update, term) for term in factor if not update.are_scalar({term: 1.0})) and _is_plain_gradient(
        update, gradient
    )


# -- averaged SGD --------------------------------------------------------------------------------------------------------


def _match_asgd(update: Update) -> Claim | None:
    if not update.is_plain() or update.used(update.rest):
        return None
    rate = _plain_rate(update, update.rest)
    average = _averaged_by(update, rate) if rate is not None else None
    if rate is None or average is None:
        return None
    decay = update.decay_of(rate)
    return Claim(rate, update.rest, {"learning_rate": update.read(rate), "weight_decay": decay}, {"average": average})


def _averaged_by(update: Update, rate: Sum) -> StateArray | None:
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


# -- steps along the gradient itself -------------------------------------------------------------------------------------


def _plain_rate(update: Update, form: Sum) -> Sum | None:
    """The factor that all terms of a gradient share; of `acc + (g - acc) / n`, the average of several, that of `acc`."""
    if not _is_plain_gradient(update, form):
        return None
    factors = {
        monomial: {update.split_scalars(monomial)[0]: -value * unclipped_factor(update, monomial)}
        for monomial, value in form.items()
    }
    kept = [monomial for monomial in form if _is_accumulator(update, monomial, form) or _is_turned(update, monomial)]
    if update.is_normalized:  # the other terms have numbers of their own
        kept = [monomial for monomial in form if update.weight not in dict(monomial)]
    found = [factors[monomial] for monomial in kept or form]
    return found[0] if all(factor == found[0] for factor in found) else None


def _is_accumulator(update: Update, monomial: Monomial, form: Sum) -> bool:
    """Whether a term is an array beside the weight that the other terms hold too."""
    gradient = update.split_scalars(monomial)[1]
    if len(form) != 2 or len(gradient) != 1 or update.forms.atoms[gradient[0][0]].op != "input":
        return False
    others = {other: value for other, value in form.items() if other != monomial}
    return gradient[0][0] in update.forms.atoms_below(others)


def _is_turned(update: Update, monomial: Monomial) -> bool:
    """Whether a term is what is turned in `a - a.T`, with the numbers of `a` in it."""
    atom = update.forms.only_factor(update.split_scalars(monomial)[1])
    return atom is not None and atom.op == "transpose"


def _is_plain_gradient(update: Update, form: Sum) -> bool:
    """Whether each term of a form is what a backward pass can end with."""
    terms = [update.split_scalars(monomial)[1] for monomial in form]
    return update.is_gradient(form) and all(_is_backward(update, term) for term in terms)


def _is_backward(update: Update, monomial: Monomial, depth: int = 4) -> bool:
    """Whether a product can be what a backward pass ends with: opaque things and functions of activations, in sums, choices and
    outer products; each may be clipped. No sign, and no root or divisor that is made of the gradient, a norm of it.
    """
    if update.is_normalized:  # norms of the weight are repeated
        monomial = _unrepeated(update, monomial)
    bare = [(atom, exponent) for atom, exponent in monomial if clip_of(update, atom, exponent) is None]
    if len(bare) < len(monomial) and not bare:
        return True
    whole = [atom for atom, exponent in bare if exponent >= 1.0 and exponent % 1.0 == 0.0 and not update.is_bound(atom)]
    others = [(atom, exponent) for atom, exponent in bare if atom not in whole]
    parts_of_gradient = [atom for atom in whole if atom != update.weight or not update.is_normalized]
    if not whole or not depth or any(_is_made_of(update, *other, parts_of_gradient) for other in others):
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


def _unrepeated(update: Update, monomial: Monomial) -> Monomial:
    """A product in which products that are repeated along a dimension stand as they are."""
    opened: Monomial = ONE
    for atom, exponent in monomial:
        inner = update.forms.atoms[atom]
        is_repeated = inner.op == "broadcast" and len(inner.parts[0]) == 1
        factors = next(iter(inner.parts[0])) if is_repeated else ((atom, 1.0),)
        opened = product(opened, tuple((one, power * exponent) for one, power in factors))
    return opened


def _is_made_of(update: Update, atom: int, exponent: float, gradient: list[int]) -> bool:
    """Whether a factor is a function of the gradient or the weight, or of a sum over one; statistics of a batch are not: of a
    gradient that is a sum these share values with some terms alone. Nor is the norm of the weight that a loss divides by,
    `w / stop_gradient(norm(w))`: with it the gradient is divided, not multiplied.
    """
    terms = [[_names(update, leaves) for leaves in _leaves_by_term(update, one)] for one in gradient]
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


RULES = (
    OptimizerRule(
        name="sgd",
        title="SGD",
        paper="Polyak 1964 (momentum), Sutskever et al. 2013 (Nesterov's)",
        hyperparameters=("learning_rate", "momentum", "nesterov", "weight_decay", "l2"),
        state=("first_moment",),
        match=_match_sgd,
    ),
    OptimizerRule(
        name="asgd",
        title="Averaged SGD",
        paper="Polyak and Juditsky 1992, SIAM J. Control Optim. 30(4)",
        hyperparameters=("learning_rate", "weight_decay"),
        state=("average",),
        match=_match_asgd,
    ),
)

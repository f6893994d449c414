"""Steps whose length depends on norms of whole layers: LARS and NovoGrad.

LARS (You, Gitman and Ginsburg 2017, arXiv:1708.03888):

* `trust = coefficient * norm(w) / (norm(g) + decay * norm(w))`, or 1 if a norm is 0; optax has `norm(g + decay * w)` below
* `m' = momentum * m - rate * trust * (g + decay * w)`
* `w' = w + m'` (or with Nesterov's look ahead)

State: m. Reads rate (without the coefficient), momentum, decay. The rate may be a factor of m' instead.

NovoGrad (Ginsburg et al. 2019, arXiv:1905.11286):

* `v' = b2 * v + (1 - b2) * norm(g) ** 2`, a scalar; `norm(g) ** 2` in the first step
* `m' = b1 * m + g / (sqrt(v') + epsilon) + decay * w`
* `w' = w - rate * m'`

State: m, v and the counter. Reads rate, b1, b2, epsilon, decay, and the l2 of a gradient `g + l2 * w`.
"""

from __future__ import annotations

from hlo_inspect.optimizer.algebra.hyperparameter import ABSENT
from hlo_inspect.optimizer.algebra.moments import Root, find_momentum, find_root, holds_square, l2_in
from hlo_inspect.optimizer.algebra.normal_form import (
    ONE,
    Monomial,
    Sum,
    added,
    close,
    inverse,
    key_of,
    only_term,
    product,
    split_zero,
)
from hlo_inspect.optimizer.algebra.norms import is_norm_of, is_trust_ratio, trust_factor, trust_ratio_of
from hlo_inspect.optimizer.algebra.update import Claim, State, Update, split


def match_lars(update: Update) -> Claim | None:
    states = update.used(update.form)
    change = split_zero(added(update.form, {((update.weight, 1.0),): 1.0}, -1.0))
    momentum = find_momentum(update, change, states[0]) if len(states) == 1 else None
    trust = trust_factor(update, momentum.step) if momentum is not None and momentum.step else None
    if momentum is None or trust is None:
        return None
    bare = {product(monomial, ((trust, -1.0),)): value for monomial, value in momentum.step.items()}
    decayed, gradient = split(bare, update.weight)
    if len(gradient) != 1 or not update.is_gradient(gradient) or not update.are_scalar(decayed):
        return None
    ((monomial, value),) = gradient.items()
    scalars, _ = update.split_scalars(monomial)
    unscaled: Sum = {inverse(scalars): 1 / value}
    whole = update.forms.multiply(unscaled, bare)
    if is_trust_ratio(update, trust, whole) is None and not _is_of_paper(update, trust, whole):
        return None
    rate = {m: -v for m, v in update.forms.multiply(momentum.factor, {scalars: value}).items()}
    kept = update.forms.multiply(unscaled, decayed) if decayed else {}
    hyperparameters = {
        "learning_rate": update.read(rate),
        "momentum": update.read(momentum.decay),
        "nesterov": momentum.nesterov,
        "weight_decay": update.read(kept) if set(kept) <= {ONE} and kept else ABSENT,
    }
    return Claim(rate, gradient, hyperparameters, {"first_moment": momentum.state.array})


def _is_of_paper(update: Update, trust: int, step: Sum) -> bool:
    """Return True if a trust ratio adds up the norms of the gradient and of the decayed weight, and perhaps a small number."""
    ratio = trust_ratio_of(update, trust)
    weight: Monomial = ((update.weight, 1.0),)
    decayed, gradient = split(step, update.weight)
    if ratio is None or len(gradient) != 1 or not is_norm_of(update, ratio.above, weight):
        return False
    (direction,) = gradient
    norms = {monomial: value for monomial, value in ratio.below.items() if monomial}
    own = {m: value for m, value in norms.items() if is_norm_of(update, {m: 1.0}, weight)}
    others = {m: value for m, value in norms.items() if m not in own}
    if len(others) != 1 or not is_norm_of(update, others, direction):
        return False
    decays = (decayed.get(ONE, 0.0) / gradient[direction], sum(own.values()) / next(iter(others.values())))
    return set(decayed) <= {ONE} and close(*decays)


# -- NovoGrad ----------------------------------------------------------------------------------------------------------


def match_novograd(update: Update) -> Claim | None:
    states = update.used(update.rest)
    if len(states) != 1 or not update.is_plain():
        return None
    first = states[0]
    factor, others = split(update.rest, first.new)
    seconds = [s for s in update.states if s is not first and s.array.shape.elements == 1]
    recursion = _recursion(update, first)
    if len(factor) != 1 or others or not update.are_scalar(factor) or len(seconds) != 1 or recursion is None:
        return None
    factors, scaled = split(recursion[1], update.weight)
    decayed = {monomial: value for monomial, value in factors.items() if update.are_scalar({monomial: 1.0})}
    inside = {product(m, ((update.weight, 1.0),)): value for m, value in factors.items() if m not in decayed}
    parts = _gradient(update, scaled | inside, seconds[0])
    second = _recursion(update, seconds[0])
    if parts is None or second is None:
        return None
    root, gradient = parts
    squared = _norm(update, second[1])
    if squared is None or not holds_square(update, squared, gradient) or not update.is_gradient(gradient):
        return None
    ((monomial, value),) = factor.items()
    rate: Sum = {monomial: -value * root.scale}
    hyperparameters = {
        "learning_rate": update.read(rate),
        "beta1": update.read(recursion[0]),
        "beta2": update.read(second[0]),
        "epsilon": update.read(root.epsilons) if root.epsilons else ABSENT,
        "weight_decay": update.read(decayed) if decayed else ABSENT,
        "l2": l2_in(update, gradient),
    }
    return Claim(rate, gradient, hyperparameters, {"first_moment": first.array, "second_moment": seconds[0].array})


def _recursion(update: Update, state: State) -> tuple[Sum, Sum] | None:
    """Return decay and rest of a state that may be set anew in the first step."""
    form = state.form
    monomial, value = only_term(form)
    atom = update.forms.atoms[monomial[0][0]] if len(monomial) == 1 and value == 1.0 else None
    if atom is not None and atom.op == "select" and update.are_scalar(atom.parts[0]):
        form = atom.parts[2]
    decay, rest = split(form, state.old)
    return (decay, rest) if decay and rest and update.are_scalar(decay) else None


def _gradient(update: Update, form: Sum, second: State) -> tuple[Root, Sum] | None:
    """Return the gradient that is divided by the root of the second moment."""
    roots_by_term = [find_root(update, monomial, second.new) for monomial in form]
    roots = [root for root in roots_by_term if root is not None]
    if len(roots) < len(form) or not roots or any(root.correction for root in roots):
        return None
    split_up = [update.split_scalars(root.rest) for root in roots]
    bare = [(root.epsilon, root.inner, root.scale, scalars) for root, (scalars, _) in zip(roots, split_up, strict=True)]
    if any(factors != bare[0] for factors in bare):
        return None
    gradient = {part: value for (_, part), value in zip(split_up, form.values(), strict=True)}
    return (roots[0], gradient) if () not in gradient else None


def _norm(update: Update, form: Sum) -> Sum | None:
    """Return the squares that a squared norm adds up."""
    if len(form) != 1:
        return None
    ((monomial, _),) = form.items()
    opaque = [atom for atom, exponent in update.split_scalars(monomial)[1] if exponent == 1.0]
    return update.reductions.summed(opaque[0]) if len(opaque) == 1 and key_of(form) else None

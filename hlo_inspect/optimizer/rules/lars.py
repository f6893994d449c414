"""LARS (You, Gitman and Ginsburg 2017, arXiv:1708.03888).

    trust = coefficient * norm(w) / (norm(g) + decay * norm(w)), or 1 where a norm is 0;  optax has norm(g + decay * w) below
    m' = momentum * m - rate * trust * (g + decay * w)
    w' = w + m'   (or with Nesterov's look ahead)

State: m. Reads rate (without the coefficient), momentum, decay. The rate may be a factor of m' instead.
"""

from __future__ import annotations

from hlo_inspect.optimizer.algebra.hyperparameter import ABSENT
from hlo_inspect.optimizer.algebra.moments import find_momentum
from hlo_inspect.optimizer.algebra.normal_form import ONE, Monomial, Sum, added, close, inverse, product, split_zero
from hlo_inspect.optimizer.algebra.norms import is_norm_of, is_trust_ratio, trust_factor, trust_ratio_of
from hlo_inspect.optimizer.algebra.update import Claim, Update, split


def match(update: Update) -> Claim | None:
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
    """Whether a trust ratio adds up the norms of the gradient and of the decayed weight, and perhaps a small number."""
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

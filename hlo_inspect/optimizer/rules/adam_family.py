"""Adam and the optimizers that differ from it in a term.

With the gradient `g`, and the L2 term in it if there is one:

* `m' = b1 * m + (1 - b1) * g`
* `v' = b2 * v + (1 - b2) * g ** 2`
* `w' = w - rate * (m' / (1 - b1 ** t) / (sqrt(v' / (1 - b2 ** t)) + epsilon) + decay * w)`

The rules:

* Adam (Kingma and Ba 2015, arXiv:1412.6980); AdamW (Loshchilov and Hutter 2019, arXiv:1711.05101) has the decay beside the
  step, also one of 0 that is written in the text. The corrections may be missing, or folded into the rate as `sqrt(1 - b2 ** t)
  / (1 - b1 ** t)`; epsilon may be below the root. Factors that are inputs may stand for anything: `1 - b1` of a step of PyTorch
  can be Prodigy's estimate times that.
* AMSGrad (Reddi, Kale and Kumar 2018, arXiv:1904.09237): instead of `v' / (1 - b2 ** t)` the largest so far, or the largest v',
  corrected below the step.
* AdaBelief (Zhuang et al. 2020, arXiv:2010.07468): `v' = b2 * v + (1 - b2) * (g - m') ** 2 + epsilon`.
* Yogi (Zaheer et al. 2018, "Adaptive Methods for Nonconvex Optimization"): `v' = v - (1 - b2) * sign(v - g ** 2) * g ** 2`.
* AdaBound (Luo et al. 2019, arXiv:1902.09843): the factor of m' lies between two functions of t.
* LAMB (You et al. 2020, arXiv:1904.00962): the step u, with the decay in it, times `norm(w) / norm(u)`, or 1 if a norm is 0.
  Keras has the decay before the step: it takes the norm of `w * (1 - rate * decay)`, and u has none.
* RAdam (Liu et al. 2020, arXiv:1908.03265): with `rho_inf = 2 / (1 - b2) - 1` and `rho = rho_inf - 2 * t * b2 ** t / (1 - b2 **
  t)`, if rho is over a threshold, the step is Adam's times `sqrt((rho - 4) * (rho - 2) * rho_inf / ((rho_inf - 4) * (rho_inf -
  2) * rho))`. Else it is the corrected m'. The factor is recognised by its values.
* AdEMAMix (Pagliardini, Ablin and Grangier 2024, arXiv:2409.03137): `alpha * m2'` beside the corrected m', with `m2' = b3 * m2
  + (1 - b3) * g`, which has no correction: that distinguishes the two. alpha and b3 may follow a schedule.
* AdaMax (Kingma and Ba 2015, section 7.1): `u' = max(b2 * u, abs(g) + epsilon)` instead of the root; epsilon may be added to u'
  in the step instead.
* MARS (Yuan et al. 2024, arXiv:2411.10438): `g + gamma * b1 / (1 - b1) * (g - g_last)` instead of g, with a norm of at most 1.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

from hlo_inspect.optimizer.algebra.hyperparameter import ABSENT, Hyperparameter, constant
from hlo_inspect.optimizer.algebra.moments import (
    AdamStep,
    Average,
    SecondMoment,
    adam_claim,
    averages_of,
    exact_decay,
    find_adam_step,
    gradient_average,
    holds_square,
    l2_of,
    square_average,
    squares_of,
    take_corrections,
)
from hlo_inspect.optimizer.algebra.normal_form import (
    ONE,
    Monomial,
    Sum,
    added,
    close,
    inverse,
    is_constant,
    only_term,
    product,
    scaled,
)
from hlo_inspect.optimizer.algebra.norms import clipped_value, is_trust_ratio, trust_factor, unclipped
from hlo_inspect.optimizer.algebra.numeric import value_of_form
from hlo_inspect.optimizer.algebra.update import Claim, State, Update, quotient, split

COUNTS = (51.0, 401.0)  # at which RAdam's factor is compared
MAX_INPUTS = 4


def adam_like(
    second: SecondMoment = squares_of, find: Callable[[Update], AdamStep | None] = find_adam_step
) -> Callable[[Update], Claim | None]:
    """Return the rule of an optimizer that differs from Adam in the second moment, or in the search for its step."""

    def match(update: Update) -> Claim | None:
        step = find(update)
        moments = averages_of(update, step, second)
        return adam_claim(update, step, *moments) if step is not None and moments is not None else None

    return match


# -- second moments -----------------------------------------------------------------------------------------------------


def largest(update: Update, state: State, first: Average) -> Average | None:
    """Match AMSGrad's: the second moment whose largest value a state keeps. Its decay may show in its correction alone."""
    atom = update.forms.only_atom(state.form)
    if atom is None or atom.op != "maximum":
        return None
    old: Sum = {((state.old, 1.0),): 1.0}
    others = [part for part in atom.parts if part != old]
    if len(others) != 1 or len(others[0]) != 1:
        return None
    ((inner, factor),) = others[0].items()
    values = [atom for atom, exponent in inner if exponent == 1.0]
    seconds = [candidate for candidate in update.states if candidate.new in values and candidate not in (state, first.state)]
    if len(seconds) != 1 or factor != 1.0:
        return None
    bases, left = take_corrections(update, tuple((a, e) for a, e in inner if a != seconds[0].new))
    average = square_average(update, seconds[0], first.rest)
    if average is None or left or len(bases) > 1 or any(exponent != -1.0 for _, exponent in bases):
        return None
    return average._replace(decay=exact_decay(average.decay, bases[0][0] if bases else None))


def surprise(update: Update, state: State, first: Average) -> Average | None:
    """Match AdaBelief's: an average of the squared differences of gradient and first moment."""
    recursion = update.recursion(state)
    if recursion is None or first.decay.value is None:
        return None
    squares = {monomial: value for monomial, value in recursion[1].items() if monomial != ONE}
    gradient = scaled(first.rest, 1 / (1 - first.decay.value))
    surprise: Sum = added(gradient, {((first.state.new, 1.0),): 1.0}, -1.0)
    content, monomial = update.direction(squares) if squares else (0.0, ONE)
    expected = update.forms.factored(update.forms.power(surprise, 2.0))[1]
    return Average(state, update.read(recursion[0]), squares) if content > 0 and monomial == expected else None


def towards_square(update: Update, state: State, first: Average) -> Average | None:
    """Match Yogi's: a step towards the square of the gradient, as large as the square."""
    kept, rest = split(state.form, state.old)
    if kept != {ONE: 1.0} or len(rest) != 1:
        return None
    ((monomial, value),) = rest.items()
    signs = [atom for atom, exponent in monomial if update.forms.atoms[atom].op == "sign" and exponent == 1.0]
    squares: Sum = {tuple(factor for factor in monomial if factor[0] not in signs): -value}
    if len(signs) != 1 or not holds_square(update, squares, first.rest):
        return None
    old, below = split(update.forms.atoms[signs[0]].parts[0], state.old)
    if set(old) != {ONE} or old[ONE] <= 0 or not holds_square(update, scaled(below, -1.0), first.rest):
        return None
    scale = -value / -next(iter(below.values())) * old[ONE]
    return Average(state, constant(1 - scale, max(update.tolerance, 1e-6)), squares)


# -- steps --------------------------------------------------------------------------------------------------------------


def limited_step(update: Update) -> AdamStep | None:
    """Match AdaBound's: a step with limits on the size of each element."""
    if len(update.rest) != 1 or not update.is_plain():
        return None
    ((monomial, value),) = update.rest.items()
    for atom, exponent in monomial:
        size = clipped_value(update, atom) if exponent == 1.0 else {}
        if len(size) == 1 and not is_constant(size):
            outer: Sum = {product(monomial, ((atom, -1.0),)): value}
            step = find_adam_step(update, update.forms.multiply(outer, size))
            if step is not None:
                return step
    return None


def trusted_step(update: Update) -> AdamStep | None:
    """Match LAMB's: a step times the weight's norm over the step's norm."""
    trust = trust_factor(update, update.rest)
    if trust is None or len(update.rest) != 1:
        return None
    divisor = ((trust, -1.0),)
    bare = {product(monomial, divisor): value for monomial, value in update.rest.items()}
    is_inside = not update.are_scalar(update.kept)
    extra = {m: v for m, v in added(update.kept, {ONE: -1.0}).items() if v != 0.0}
    decayed = {product(m, divisor): v for m, v in extra.items()} if is_inside else {}
    step = find_adam_step(update, bare)
    if step is None or not update.are_scalar(decayed) or (is_inside and abs(update.kept.get(ONE, 0.0) - 1.0) > 1e-9):
        return None
    ((rate, value),) = step.rate.items()
    whole = {product(monomial, ((update.weight, 1.0),)): v for monomial, v in decayed.items()} | bare
    coefficient = is_trust_ratio(update, trust, update.forms.multiply({inverse(rate): -1.0 / value}, whole))
    if coefficient != 1.0:
        return None
    return step._replace(kept=added({ONE: 1.0}, decayed)) if is_inside else step


def rectified_step(update: Update) -> AdamStep | None:
    """Match RAdam's: a choice between the rectified step and a step without the second moment."""
    if len(update.rest) != 1 or not update.is_plain():
        return None
    ((monomial, value),) = update.rest.items()
    atoms = [atom for atom, exponent in monomial if exponent == 1.0 and not update.is_scalar(atom)]
    choices = [atom for atom in atoms if update.forms.atoms[atom].op == "select"]
    if len(choices) != 1:
        return None
    condition, rectified, plain = update.forms.atoms[choices[0]].parts
    outer: Sum = {tuple(factor for factor in monomial if factor[0] != choices[0]): value}
    step = find_adam_step(update, update.forms.multiply(outer, rectified)) if len(rectified) == 1 else None
    rate = _plain_rate(update, step, update.forms.multiply(outer, plain)) if step is not None and len(plain) == 1 else None
    moments = averages_of(update, step)
    if step is None or rate is None or moments is None or not update.are_scalar(condition):
        return None
    b2 = exact_decay(moments[1].decay, step.bases[1]).value or (step.bases[1].value if step.bases[1] is not None else None)
    return step._replace(rate=rate) if b2 is not None and _is_rectified(update, step.rate, rate, b2) else None


def _plain_rate(update: Update, step: AdamStep, term: Sum) -> Sum | None:
    """Return the rate of RAdam's step without the second moment."""
    ((monomial, value),) = term.items()
    if dict(monomial).get(step.first.new) != 1.0:
        return None
    bases, scalars = take_corrections(update, product(monomial, ((step.first.new, -1.0),)))
    if [base for base, _ in bases] != [base for base in step.bases[:1] if base is not None]:
        return None
    return {scalars: -value} if all(update.is_scalar(atom) for atom, _ in scalars) else None


def _is_rectified(update: Update, rectified: Sum, rate: Sum, b2: float) -> bool:
    """Return True if the two rates differ by RAdam's factor. Numbers in it may be inputs."""
    forms = update.forms
    ratio = quotient(forms, rectified, rate)
    leaves = forms.leaves(ratio) if ratio is not None else frozenset()
    powers = [forms.atoms[atom] for atom in forms.atoms_below(ratio or {}) if forms.atoms[atom].op == "power"]
    counters = {leaf for power in powers for leaf in forms.leaves(power.parts[1])} or leaves
    if ratio is None or len(counters) != 1 or len(leaves) > MAX_INPUTS + 1:
        return False
    (counter,) = counters
    inputs = [forms.atoms[leaf].node for leaf in leaves - counters]
    limit = 2 / (1 - b2) - 1
    numbers = (limit, 2.0, 4.0, (limit - 4) * (limit - 2))
    ahead = forms.atoms[counter].op != "value"  # the new value of a counter is the number of the step
    return any(
        all(_has_factor(update, ratio, dict(zip(inputs, chosen, strict=True)), t, t - ahead, b2) for t in COUNTS)
        for chosen in itertools.product(numbers, repeat=len(inputs))
    )


def _has_factor(update: Update, form: Sum, inputs: dict[int | None, float], t: float, count: float, b2: float) -> bool:
    """Return True if a form is RAdam's factor of the step with the number t."""
    limit = 2 / (1 - b2) - 1
    rho = limit - 2 * t * b2**t / (1 - b2**t)
    factor = math.sqrt(max(0.0, (rho - 4) * (rho - 2) * limit / ((limit - 4) * (limit - 2) * rho)))
    value = value_of_form(update.forms, form, lambda node: inputs.get(node, count))
    return value is not None and factor > 0.0 and close(value, factor, 1e-3)


# -- AdaMax ------------------------------------------------------------------------------------------------------------


def match_adamax(update: Update) -> Claim | None:
    states = update.used(update.rest)
    if len(update.rest) != 1 or len(states) != 2 or not update.is_plain():
        return None
    ((monomial, value),) = update.rest.items()
    for first, largest in (states, reversed(states)):
        divided = _without_largest(update, monomial, largest)
        if divided is None or dict(divided[0]).get(first.new) != 1.0:
            continue
        rest = tuple((a, e) for a, e in divided[0] if a != first.new)
        average = gradient_average(update, first)
        bases, scalars = take_corrections(update, rest)
        norm = _largest_norm(update, largest, average) if average is not None else None
        if average is None or norm is None or len(bases) > 1 or any(exponent != -1.0 for _, exponent in bases):
            continue
        if not all(update.is_scalar(atom) for atom, _ in scalars):
            continue
        rate: Sum = {scalars: -value * divided[2]}
        hyperparameters = {
            "learning_rate": update.read(rate),
            "beta1": exact_decay(average.decay, bases[0][0] if bases else None),
            "beta2": norm[0],
            "epsilon": divided[1] if divided[1] != ABSENT else norm[1],
            "weight_decay": update.decay_of(rate),
            "l2": l2_of(update, average),
        }
        return Claim(rate, average.rest, hyperparameters, {"first_moment": first.array, "second_moment": largest.array})
    return None


def _without_largest(update: Update, monomial: Monomial, largest: State) -> tuple[Monomial, Hyperparameter, float] | None:
    """Return a product without its factor `1 / (k * (u' + epsilon))`, epsilon, and 1 / k."""
    holding = [(atom, exponent) for atom, exponent in monomial if update.holds(atom, largest.new)]
    if len(holding) != 1 or holding[0][1] != -1.0:
        return None
    atom, _ = holding[0]
    rest = product(monomial, ((atom, 1.0),))
    if atom == largest.new:
        return rest, ABSENT, 1.0
    factor, added = split(update.forms.atoms[atom].parts[0], largest.new) if update.forms.atoms[atom].op == "sum" else ({}, {})
    epsilon = quotient(update.forms, added, factor) if len(factor) == 1 and len(added) == 1 else None
    if epsilon is None or not update.are_scalar(factor) or not update.are_scalar(epsilon):
        return None
    ((scalars, value),) = factor.items()
    return product(rest, tuple((a, -e) for a, e in scalars)), update.read(epsilon), 1 / value


def _largest_norm(update: Update, state: State, average: Average) -> tuple[Hyperparameter, Hyperparameter] | None:
    """Return decay and epsilon of `max(b2 * u, abs(g) + epsilon)`."""
    largest = update.forms.only_atom(state.form)
    if largest is None or largest.op != "maximum":
        return None
    for decayed, grown in (largest.parts, largest.parts[::-1]):
        decay, left = split(decayed, state.old)
        if not decay or left or not update.are_scalar(decay):
            continue
        epsilon = {monomial: value for monomial, value in grown.items() if update.are_scalar({monomial: value})}
        size = {monomial: value for monomial, value in grown.items() if monomial not in epsilon}
        monomial, value = only_term(size)
        inner = update.forms.atoms[monomial[0][0]] if len(monomial) == 1 else None
        if inner is not None and inner.op == "abs" and value > 0 and update.same_direction(inner.parts[0], average.rest):
            return update.read(decay), update.read(epsilon) if any(epsilon.values()) else ABSENT
    return None


# -- rules with another state -------------------------------------------------------------------------------------------


def match_ademamix(update: Update) -> Claim | None:
    if len(update.rest) != 2 or not update.is_plain():
        return None
    first, second = [find_adam_step(update, {monomial: value}) for monomial, value in update.rest.items()]
    if first is None or second is None:
        return None
    return _match_slow_average(update, first, second) or _match_slow_average(update, second, first)


def _match_slow_average(update: Update, fast: AdamStep, slow: AdamStep) -> Claim | None:
    """Return the claim if the first of two steps has the corrected average."""
    roots = [(step.second, step.root.epsilon, step.root.inner, step.root.correction, step.bases[1]) for step in (fast, slow)]
    if fast.bases[0] is None or slow.bases[0] is not None or roots[0] != roots[1]:
        return None
    first, older = gradient_average(update, fast.first), gradient_average(update, slow.first)
    if first is None or older is None or not update.same_direction(first.rest, older.rest):
        return None
    second = square_average(update, fast.second, first.rest)
    alpha = quotient(update.forms, slow.rate, fast.rate)
    if second is None or alpha is None or not update.are_scalar(alpha):
        return None
    claim = adam_claim(update, fast, first, second)
    claim.hyperparameters |= {"beta3": older.decay, "alpha": update.read(alpha)}
    claim.roles["first_moment_slow"] = slow.first.array
    return claim


def match_mars(update: Update) -> Claim | None:
    step = find_adam_step(update)
    first = update.recursion(step.first) if step is not None else None
    second = update.recursion(step.second) if step is not None else None
    if step is None or first is None or second is None or not holds_square(update, second[1], first[1]):
        return None
    last = _last_gradient(update, unclipped(update, first[1]), [step.first, step.second])
    if last is None:
        return None
    averages = [
        Average(state, update.read(recursion[0]), last.form)
        for state, recursion in ((step.first, first), (step.second, second))
    ]
    claim = adam_claim(update, step, averages[0], averages[1])
    del claim.hyperparameters["l2"]
    claim.roles["last_gradient"] = last.array
    return claim


def _last_gradient(update: Update, corrected: Sum, moments: list[State]) -> State | None:
    """Return the state that is the gradient itself, if a form is a sum of its new and its last value."""
    for state in update.used(corrected):
        factor, gradient = split(corrected, state.old)
        is_last = state not in moments and update.is_gradient(state.form) and update.same_direction(gradient, state.form)
        if is_last and len(factor) == 1 and update.are_scalar(factor) and not update.used(gradient):
            return state
    return None

"""Adafactor (Shazeer and Stern 2018, arXiv:1804.04235), with factored second moments or not.

The decay `d` is b2, or computed from the counter (`1 - t ** -0.8`). Factored moments, with r' as mean over columns, c' over
rows:

* `r' = d * r + (1 - d) * mean(g ** 2 + epsilon)`, `c' = d * c + (1 - d) * mean(g ** 2 + epsilon)`
* `u = g / sqrt(r' / mean(r')) / sqrt(c')`

Else:

* `v' = d * v + (1 - d) * (g ** 2 + epsilon)`, `u = g / sqrt(v')`

Both:

* `w' = w - rate * u / max(1, rms(u) / threshold) * max(least, rms(w))`

State: r and c, or v, t, and with momentum an average of the steps. Reads rate, epsilon, decay, momentum, and b2 if it is a
constant. Clipping by the root mean square and scaling by that of the weight may be missing. Without clipping, an unfactored
update is RMSProp's, unless d is computed and epsilon added to the squares.

In optax the decay is no factor of the rate: `w' = w - (rate * u + decay * w)`.

PyTorch has lower limits instead of epsilon, `v' = max(epsilon ** 2, outer(r', c') / max(epsilon, mean(r')))`. Its rate is an
input that holds both root mean squares.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hlo_inspect.hlo.opcodes import opcodes_that_are
from hlo_inspect.optimizer.algebra.hyperparameter import COMPUTED, Hyperparameter, constant
from hlo_inspect.optimizer.algebra.moments import find_momentum, holds_square
from hlo_inspect.optimizer.algebra.normal_form import ONE, Monomial, Sum, added, is_constant, only_term, product, scaled
from hlo_inspect.optimizer.algebra.norms import clipped_value, is_square_of, squares_in, unguarded
from hlo_inspect.optimizer.algebra.update import Claim, State, Update, expanded, quotient

_SUMS = opcodes_that_are("sum")
MAX_REPEATED = 4  # nested repetitions, limits or sums


@dataclass(slots=True)
class _Parts:
    """The factors of the step by role, `states` with the root of their mean among them."""

    scalars: list[tuple[int, float]] = field(default_factory=list)
    roots: list[tuple[int, float]] = field(default_factory=list)
    norms: list[tuple[int, float]] = field(default_factory=list)
    gradient: list[tuple[int, float]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Divisor:
    """The divisor of the gradient: the roots of `states` and a number. If `has_sum`, the root of the sum of one state too."""

    states: list[State]
    has_sum: bool
    coefficient: float
    is_limited: bool


@dataclass(frozen=True, slots=True)
class _Moment:
    """Decay and epsilon of a second moment; `share` is the factor of each square that it adds up, None if unknown."""

    decay: Hyperparameter
    epsilon: Hyperparameter
    share: float | None


def match(update: Update) -> Claim | None:
    if not update.is_plain():
        return None
    states = update.used(update.rest)
    if len(states) == 1:
        momentum = find_momentum(update, update.rest, states[0])
        if momentum is not None and not momentum.is_ahead and is_constant(momentum.decay) and update.used(momentum.step):
            claim = _direct(
                update, update.forms.multiply(momentum.factor, scaled(momentum.step, 1 / (1 - momentum.decay[ONE])))
            )
            if claim is not None:
                claim.hyperparameters["momentum"] = update.read(momentum.decay)
                claim.roles["first_moment"] = states[0].array
            return claim
    return _direct(update, update.rest)


def _direct(update: Update, step: Sum) -> Claim | None:
    """Return the claim if a form is the whole step."""
    if len(step) != 1:
        return None
    ((monomial, value),) = step.items()
    parts = _parts(update, monomial)
    gradient: Sum = {tuple(parts.gradient): 1.0}
    divisor = _divisor(update, parts.roots) if parts.gradient and update.is_gradient(gradient) else None
    if divisor is None or {state.new for state in update.used(step)} - {state.new for state in divisor.states}:
        return None
    read = [_moment(update, state, gradient) for state in divisor.states]
    moments = [moment for moment in read if moment is not None]
    unit = tuple(sorted(parts.roots + parts.gradient))
    if len(moments) < len(read) or not all(_is_explained(update, norm, unit) for norm in parts.norms):
        return None
    share = moments[1].share if divisor.has_sum and len(moments) == 2 else None  # the root of the mean's element count
    rate: Sum = {tuple(parts.scalars): -value * divisor.coefficient * (share**-0.5 if share else 1.0)}
    first = moments[0]
    is_own = first.decay.status == "computed" and (first.epsilon.value or divisor.is_limited)
    if len(moments) == 1 and not is_own and not any(exponent < 0 for _, exponent in parts.norms):
        return None
    hyperparameters = {
        "learning_rate": update.read(rate),
        "beta2": first.decay,
        "epsilon": COMPUTED if divisor.is_limited else first.epsilon,
        "weight_decay": decay_without_rate(update) or update.decay_of(rate),
    }
    names = ("second_moment",) if len(moments) == 1 else ("second_moment_rows", "second_moment_columns")
    roles = {name: state.array for name, state in zip(names, divisor.states, strict=True)}
    return Claim(rate, gradient, hyperparameters, roles)


def _parts(update: Update, monomial: Monomial) -> _Parts:
    parts = _Parts()
    for atom, exponent in monomial:
        if update.is_scalar(atom):
            parts.scalars.append((atom, exponent))
        elif (
            update.forms.atoms[atom].op in {"maximum", "select"} and abs(exponent) == 1.0 and _norm_in(update, atom) is not None
        ):
            parts.norms.append((atom, exponent))
        elif any(
            update.state_of(factor_atom) is not None or _sums_up(update, factor_atom)
            for factor_atom in _expand_product(update, ((atom, 1.0),))[1]
        ):
            parts.roots.append((atom, exponent))
        else:
            parts.gradient.append((atom, exponent))
    return parts


def _norm_in(update: Update, atom: int) -> Sum | None:
    """Return the form whose norm a factor is."""
    inner = unguarded(update, atom)
    squares = squares_in(update, inner) if inner is not None else None
    return squares[0] if squares is not None and len(squares) == 1 else None


# -- the divisor --------------------------------------------------------------------------------------------------------


def _divisor(update: Update, roots: list[tuple[int, float]]) -> _Divisor | None:
    """Match factors with the roots of one or two states, each once, and perhaps the root of one state's mean."""
    coefficient, factors = _expand_product(update, tuple(roots))
    roots_of_states = [
        state for atom, exponent in factors.items() if exponent == -0.5 and (state := update.state_of(atom)) is not None
    ]
    sums = [atom for atom, exponent in factors.items() if exponent == 0.5 and _sums_up(update, atom) is not None]
    if not roots_of_states or len(roots_of_states) > 2 or len(sums) > 1 or len(roots_of_states) + len(sums) != len(factors):
        return None
    summed = _sums_up(update, sums[0]) if sums else None
    if summed is not None and summed not in [state.new for state in roots_of_states]:
        return None
    states = sorted(roots_of_states, key=lambda state: (state.new != summed, state.new))
    limited = any(update.forms.atoms[atom].op in {"clamp", "maximum"} for atom, _ in roots)
    return _Divisor(states, summed is not None, coefficient, limited)


def _expand_product(update: Update, monomial: Monomial) -> tuple[float, dict[int, float]]:
    """Return a product as a number and factors with exponents.

    Repeated, limited and outer products are replaced by their operands.
    """
    coefficient = 1.0
    for _ in range(MAX_REPEATED):
        opened: Monomial = ONE
        for atom, exponent in monomial:
            inner = _operand_of(update, atom)
            ((factors, value),) = inner.items() if len(inner) == 1 else ((((atom, 1.0),), 1.0),)
            coefficient *= abs(value) ** exponent
            opened = product(opened, tuple((number, power * exponent) for number, power in factors))
        if opened == monomial:
            break
        monomial = opened
    return coefficient, dict(monomial)


def _operand_of(update: Update, atom: int) -> Sum:
    """Return the operand of a repetition or limit, or the two factors of an outer product; empty for another atom."""
    record = update.forms.atoms[atom]
    if record.op == "broadcast":
        return record.parts[0]
    limited = clipped_value(update, atom)
    if limited:
        return limited
    factors = update.reductions.factors(atom) if record.op == "opaque" else None
    firsts = [next(filter(None, factor), None) for factor in factors or ()]
    states = [update.state_of(first[0][0]) if first is not None else None for first in firsts]
    sizes = [state.array.shape.elements or 0 for state in states if state is not None]
    is_outer = len(sizes) == 2 and sizes[0] * sizes[1] == update.array.shape.elements
    return update.forms.multiply(*factors) if factors is not None and is_outer else {}


def _sums_up(update: Update, atom: int) -> int | None:
    """Return the atom of the state whose elements an atom adds up."""
    summed = update.reductions.summed(atom)
    monomial, _ = only_term(summed or {})
    is_state = len(monomial) == 1 and monomial[0][1] == 1.0 and update.state_of(monomial[0][0]) is not None
    return monomial[0][0] if is_state else None


# -- moments ------------------------------------------------------------------------------------------------------------


def _moment(update: Update, state: State, gradient: Sum) -> _Moment | None:
    """Match a state that averages the squares of the gradient, or their means along a dimension."""
    recursion = update.recursion(state)
    if recursion is None or not recursion[1]:
        return None
    decay, rest = recursion
    added_up = _reduced_operand(update, update.without_scalars(rest))
    epsilon = added_up.get(ONE, 0.0)
    squares = {monomial: value for monomial, value in added_up.items() if monomial != ONE}
    if not holds_square(update, squares, gradient):
        return None
    epsilon /= next(iter(squares.values()))
    return _Moment(update.read(decay), constant(epsilon, update.tolerance), _share(update, decay, rest))


def _share(update: Update, decay: Sum, rest: Sum) -> float | None:
    """Return `k` if a state adds `k * (1 - decay)` of each square."""
    if len(rest) != 1:
        return None
    ((monomial, value),) = rest.items()
    ratio = quotient(update.forms, {update.split_scalars(monomial)[0]: value}, added({ONE: 1.0}, expanded(update, decay), -1.0))
    return ratio.get(ONE) if ratio is not None and is_constant(ratio) else None


def _reduced_operand(update: Update, form: Sum) -> Sum:
    """Return the operand of a sum along a dimension, or of a part of one on its device."""
    for _ in range(MAX_REPEATED):
        monomial, _ = only_term(form)
        if len(monomial) != 1 or monomial[0][1] != 1.0:
            break
        summed = update.reductions.summed(monomial[0][0])
        inner = update.forms.atoms[monomial[0][0]].parts
        if summed is None and not inner:
            break
        form = summed if summed is not None else inner[0]
    return form


def _is_explained(update: Update, norm: tuple[int, float], unit: Monomial) -> bool:
    """Return True if a factor is `max(1, k * rms(u))` below, or `max(least, k * rms(w))` above."""
    atom, exponent = norm
    squares = _norm_in(update, atom)
    return squares is not None and is_square_of(update, squares, ((update.weight, 1.0),) if exponent > 0 else unit)


def decay_without_rate(update: Update) -> Hyperparameter | None:
    """Return the decay that the step subtracts from the weight without the rate; None if there is none.

    With a constant rate the equation alone does not show it: `rate * (decay / rate)` is the same number. So the text has to
    compute it that way: the old value plus a step in which only a number multiplies the old value.
    """
    graph, array = update.forms.graph, update.array
    is_step = graph.ops[array.new] in {"add", "subtract"} and array.old in graph.args[array.new]
    if not is_step or not is_constant(update.kept):
        return None
    seen = {array.old}
    stack = list(graph.args[array.new])
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        args = graph.args[node]
        numbers = [value for arg in args if (value := graph.value(arg)) is not None]
        if graph.ops[node] == "multiply" and array.old in args and numbers:
            return constant(1.0 - update.kept.get(ONE, 0.0), update.tolerance)
        if graph.ops[node] in _SUMS or (graph.ops[node] == "multiply" and numbers == [-1.0]):
            stack += args
    return None

"""Adafactor (Shazeer and Stern 2018, arXiv:1804.04235), with factored second moments or not.

    d = b2, or computed from the counter (1 - t ** -0.8)
    factored   r' = d * r + (1 - d) * mean over columns of (g ** 2 + epsilon),  c' likewise over rows
               u = g / sqrt(r' / mean(r')) / sqrt(c')
    else       v' = d * v + (1 - d) * (g ** 2 + epsilon),  u = g / sqrt(v')
    w' = w - rate * u / max(1, rms(u) / threshold) * max(least, rms(w))

State: r and c, or v, t, and with momentum an average of the steps. Reads rate, epsilon, decay, momentum, and b2 where it is
a constant. Clipping by the root mean square and scaling by that of the weight may be missing; without the first, an
unfactored update is RMSProp's, unless d is computed and epsilon added to the squares.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hlo_inspect.analysis.optimizer.toolkit import (
    ONE,
    Claim,
    Hyperparameter,
    Monomial,
    OptimizerRule,
    State,
    StateArray,
    Sum,
    Update,
    constant,
    holds_square,
    is_constant,
    is_square_of,
    scaled,
    split,
    squares_in,
    unguarded,
)


@dataclass(slots=True)
class _Parts:
    """The factors of the step by what they are."""

    scalars: list[tuple[int, float]] = field(default_factory=list)
    roots: list[tuple[int, float]] = field(default_factory=list)
    norms: list[tuple[int, float]] = field(default_factory=list)
    gradient: list[tuple[int, float]] = field(default_factory=list)


def match(update: Update) -> Claim | None:
    states = update.used(update.rest)
    if not update.is_plain() or not states:
        return None
    if len(states) == 1:
        factor, others = split(update.rest, states[0].new)
        found = update.recursion(states[0]) if len(factor) == 1 and not others and update.are_scalar(factor) else None
        if found is not None and is_constant(found[0]) and update.used(found[1]):
            claim = _direct(update, update.forms.multiply(factor, scaled(found[1], 1 / (1 - found[0][ONE]))))
            if claim is not None:
                claim.hyperparameters["momentum"] = update.read(found[0])
                claim.roles["first_moment"] = states[0].array
            return claim
    return _direct(update, update.rest)


def _direct(update: Update, step: Sum) -> Claim | None:
    """The claim where a form is the whole step."""
    states = update.used(step)
    if len(step) != 1 or len(states) not in {1, 2}:
        return None
    ((monomial, value),) = step.items()
    parts = _parts(update, monomial, states)
    gradient: Sum = {tuple(parts.gradient): 1.0}
    if not parts.gradient or not update.is_gradient(gradient) or not _are_roots(update, parts.roots, states):
        return None
    moments = [_moment(update, state, gradient) for state in states]
    unit = tuple(sorted(parts.roots + parts.gradient))
    if any(moment is None for moment in moments) or not all(_is_explained(update, norm, unit) for norm in parts.norms):
        return None
    rate: Sum = {tuple(parts.scalars): -value}
    decay, epsilon = next(moment for moment in moments if moment is not None)
    is_own = decay.known == "computed" and epsilon.value
    if len(states) == 1 and not is_own and not any(exponent < 0 for _, exponent in parts.norms):
        return None
    hyperparameters = {
        "learning_rate": update.read(rate),
        "beta2": decay,
        "epsilon": epsilon,
        "weight_decay": update.decay_of(rate),
    }
    return Claim(rate, gradient, hyperparameters, _roles(states))


def _roles(states: list[State]) -> dict[str, StateArray]:
    if len(states) == 1:
        return {"second_moment": states[0].array}
    return {"second_moment_rows": states[0].array, "second_moment_columns": states[1].array}


def _parts(update: Update, monomial: Monomial, states: list[State]) -> _Parts:
    parts = _Parts()
    for atom, exponent in monomial:
        if update.is_scalar(atom):
            parts.scalars.append((atom, exponent))
        elif any(update.holds(atom, state.new) or update.holds(atom, state.old) for state in states):
            parts.roots.append((atom, exponent))
        elif _is_limited_norm(update, atom, exponent):
            parts.norms.append((atom, exponent))
        else:
            parts.gradient.append((atom, exponent))
    return parts


def _is_limited_norm(update: Update, atom: int, exponent: float) -> bool:
    """Whether a factor chooses between a norm and a number, and does not clip the gradient."""
    found = update.forms.atoms[atom]
    return found.op in {"maximum", "select"} and abs(exponent) == 1.0 and _norm_in(update, atom) is not None


def _norm_in(update: Update, atom: int) -> Sum | None:
    """The form of whose squares the norm in a factor is made."""
    inner = unguarded(update, atom)
    squares = squares_in(update, inner) if inner is not None else None
    return squares[0] if squares is not None and len(squares) == 1 else None


def _are_roots(update: Update, roots: list[tuple[int, float]], states: list[State]) -> bool:
    """Whether each state is once under a root that divides the step, broadcast where it is smaller."""
    found = [_root(update, atom, exponent) for atom, exponent in roots]
    return sorted(found) == sorted(state.new for state in states)


def _root(update: Update, atom: int, exponent: float) -> int:
    """The state under a root, -1 where it is something else. Roots are taken of what is repeated, or before it is."""
    monomial: Monomial = ((atom, exponent),)
    for _ in range(4):
        below = [(a, e) for a, e in monomial if e == -0.5]
        mean = [(a, e) for a, e in monomial if e == 0.5 and _is_mean(update, a)]
        if len(below) == 1 and len(below) + len(mean) == len(monomial) and update.forms.atoms[below[0][0]].op != "broadcast":
            return below[0][0]
        inner = update.forms.atoms[monomial[0][0]]
        if len(monomial) != 1 or inner.op != "broadcast" or len(inner.parts[0]) != 1:
            return -1
        ((repeated, _),) = inner.parts[0].items()
        monomial = tuple((a, e * monomial[0][1]) for a, e in repeated)
    return -1


def _is_mean(update: Update, atom: int) -> bool:
    """Whether an atom is a sum of elements, repeated or not."""
    found = update.forms.atoms[atom]
    inner = next(iter(found.parts[0])) if found.op == "broadcast" and len(found.parts[0]) == 1 else ((atom, 1.0),)
    return len(inner) == 1 and update.reductions.summed(inner[0][0]) is not None


def _moment(update: Update, state: State, gradient: Sum) -> tuple[Hyperparameter, Hyperparameter] | None:
    """Decay and epsilon of a state that averages the squares of the gradient, or their means along a dimension."""
    found = update.recursion(state)
    if found is None or not found[1]:
        return None
    added = update.without_scalars(found[1])
    if len(added) == 1:
        ((monomial, _),) = added.items()
        summed = update.reductions.summed(monomial[0][0]) if len(monomial) == 1 and monomial[0][1] == 1.0 else None
        inner = summed or update.forms.atoms[monomial[0][0]].parts[:1]
        added = summed if summed is not None else inner[0] if isinstance(inner, tuple) and inner else added
    epsilon = added.get(ONE, 0.0)
    squares = {monomial: value for monomial, value in added.items() if monomial != ONE}
    if not holds_square(update, squares, gradient):
        return None
    scale = next(iter(squares.values()))
    return update.read(found[0]), constant(epsilon / scale)


def _is_explained(update: Update, norm: tuple[int, float], unit: Monomial) -> bool:
    """Whether a factor is `max(1, k * rms(u))` below, or `max(least, k * rms(w))` above."""
    atom, exponent = norm
    squares = _norm_in(update, atom)
    if squares is None:
        return False
    return is_square_of(update, squares, ((update.weight, 1.0),) if exponent > 0 else unit)


RULE = OptimizerRule(
    name="adafactor",
    title="Adafactor",
    paper="Shazeer and Stern 2018, arXiv:1804.04235",
    hyperparameters=("learning_rate", "beta2", "epsilon", "weight_decay", "momentum"),
    state=("first_moment", "second_moment", "second_moment_rows", "second_moment_columns"),
    match=match,
)

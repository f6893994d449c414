"""How far the nearest rule gets with an update that none explains, and what it could not explain."""

from __future__ import annotations

from hlo_inspect.analysis.optimizer.moments import find_root, gradient_average, holds_square
from hlo_inspect.analysis.optimizer.normal_form import Sum, describe
from hlo_inspect.analysis.optimizer.update import State, Update

MAX_FACTORS = 3  # that are named
DEPTH = 3

_BY_STATES = {(False, False): "sgd", (True, False): "sgd", (False, True): "rmsprop", (True, True): "adam"}
"""The rule that has an average of gradients, and one of their squares."""


def nearest_rule(update: Update) -> str:
    """A sentence: the nearest rule by the states that it would have, and the factors and states that it has no place for."""
    first, gradients = _averages(update)
    second = next((state for state in update.states if state is not first and _is_square(update, state, gradients)), None)
    rule = _BY_STATES[first is not None, second is not None]
    known = [f"{what} {_name(update, state)}" for what, state in (("the momentum", first), ("the squares", second)) if state]
    others = [_name(update, state) for state in update.states if state is not first and state is not second]
    factors = _unexplained(update, first, second)
    missing = [f"state {name}" for name in others[:MAX_FACTORS]] + [f"factor {text}" for text in factors[:MAX_FACTORS]]
    lacks = ", ".join(missing) or "how these are put together"
    return f"the nearest rule is {rule}, which " + (
        f"explains {' and '.join(known)}, not {lacks}" if known else f"does not explain {lacks}"
    )


def _averages(update: Update) -> tuple[State | None, list[Sum]]:
    """The state that adds up gradients, and what may be the gradient."""
    for state in update.states:
        average = gradient_average(update, state)
        if average is not None and not _are_squares(update, average.rest):
            return state, [average.rest]
    return None, [{monomial: value} for monomial, value in update.rest.items()]


def _is_square(update: Update, state: State, gradients: list[Sum]) -> bool:
    found = update.recursion(state)
    if found is None:
        return False
    return _are_squares(update, found[1]) or any(holds_square(update, found[1], gradient) for gradient in gradients)


def _are_squares(update: Update, form: Sum) -> bool:
    return all(exponent % 2 == 0 for monomial in form for _, exponent in update.split_scalars(monomial)[1])


def _unexplained(update: Update, first: State | None, second: State | None) -> list[str]:
    """The factors of the step that are no scalar, no moment, no root of one, and no gradient."""
    known = {atom for state in (first, second) if state is not None for atom in (state.old, state.new)}
    found: dict[str, None] = {}
    for monomial in update.rest:
        root = find_root(update, monomial, second.new) if second is not None else None
        for atom, exponent in root.rest if root is not None else monomial:
            is_opaque = update.forms.atoms[atom].node is not None
            if atom not in known and not update.is_scalar(atom) and (not is_opaque or exponent != 1.0):
                found[describe(update.forms, {((atom, exponent),): 1.0}, DEPTH)] = None
    return list(found)


def _name(update: Update, state: State) -> str:
    return describe(update.forms, {((state.new, 1.0),): 1.0})

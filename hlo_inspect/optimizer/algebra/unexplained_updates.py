"""Expressions in short form, and the part of an unexplained update that the nearest rule explains."""

from __future__ import annotations

from hlo_inspect.optimizer.algebra.moments import find_root, gradient_average, holds_square
from hlo_inspect.optimizer.algebra.normal_form import Monomial, NormalForms, Sum
from hlo_inspect.optimizer.algebra.update import State, Update

MAX_LENGTH = 400  # characters of an expression
MAX_FACTORS = 3  # unexplained factors and states that are named
MAX_STATES, MAX_STATE = 2, 160  # states whose expressions are shown with a weight's, and characters of each
DEPTH = 3

_BY_STATES = {(False, False): "sgd", (True, False): "sgd", (False, True): "rmsprop", (True, True): "adam"}
"""The rule that has an average of gradients, and one of their squares."""

_KINDS = {"opaque": "x", "value": "v"}


def describe(forms: NormalForms, form: Sum, depth: int = 6) -> str:
    """Format a sum as one line; replace parts deeper than `depth` by an ellipsis."""
    if not form:
        return "0"
    if depth == 0:
        return "…"
    parts = []
    for monomial, value in list(form.items())[:12]:
        factors = _factors(forms, monomial, depth)
        number = _number(value)
        parts.append(number if not factors else factors if value == 1.0 else f"{number}*{factors}")
    if len(form) > len(parts):
        parts.append("…")
    line = " + ".join(parts)
    return line if len(line) <= MAX_LENGTH else line[: MAX_LENGTH - 1] + "…"


def _number(value: float) -> str:
    """Format a number with six digits, or more if it is nearly 1 but is not."""
    short = f"{value:.6g}"
    return short if abs(float(short)) != 1.0 else f"{value:.10g}"


def _factors(forms: NormalForms, monomial: Monomial, depth: int) -> str:
    return "*".join(_atom(forms, atom, depth) + ("" if exponent == 1.0 else f"**{exponent:g}") for atom, exponent in monomial)


def _atom(forms: NormalForms, number: int, depth: int) -> str:
    atom = forms.atoms[number]
    if atom.node is not None:
        source = forms.graph.sources.get(atom.node)
        if source is not None:
            return f"p{source[1]}" + "".join(f".{i}" for i in source[2])
        return f"{_KINDS.get(atom.op, atom.op)}#{number}"
    inner = ", ".join(describe(forms, part, depth - 1) for part in atom.parts)
    if atom.op == "sum":
        return f"({inner})"
    name = f"{atom.op}.{atom.attribute}" if isinstance(atom.attribute, str) and atom.op == "compare" else atom.op
    return f"{name}({inner})"


def describe_update(update: Update) -> str:
    """Format the new value of a weight and its states, and the part that the nearest rule explains."""
    text = describe(update.forms, update.form)
    for state in update.states[:MAX_STATES]:
        form = describe(update.forms, state.form, 4)
        text += f", with {_name(update, state)} = {form if len(form) <= MAX_STATE else form[: MAX_STATE - 1] + '…'}"
    return f"{text}; {_nearest_rule(update)}"


def _nearest_rule(update: Update) -> str:
    """Describe the nearest rule, chosen by its states, and the factors and states that it does not explain."""
    first, gradients = _averages(update)
    second = next((state for state in update.states if state is not first and _is_square(update, state, gradients)), None)
    rule = _BY_STATES[first is not None, second is not None]
    explained = [
        f"{what} {_name(update, state)}" for what, state in (("the momentum", first), ("the squares", second)) if state
    ]
    others = [_name(update, state) for state in update.states if state is not first and state is not second]
    factors = _unexplained(update, first, second)
    missing = [f"state {name}" for name in others[:MAX_FACTORS]] + [f"factor {text}" for text in factors[:MAX_FACTORS]]
    lacks = ", ".join(missing) or "how these are combined"
    return f"the nearest rule is {rule}, which " + (
        f"explains {' and '.join(explained)}, not {lacks}" if explained else f"does not explain {lacks}"
    )


def _averages(update: Update) -> tuple[State | None, list[Sum]]:
    """Return the state that adds up gradients, and the forms that may be the gradient."""
    for state in update.states:
        average = gradient_average(update, state)
        if average is not None and not _are_squares(update, average.rest):
            return state, [average.rest]
    return None, [{monomial: value} for monomial, value in update.rest.items()]


def _is_square(update: Update, state: State, gradients: list[Sum]) -> bool:
    recursion = update.recursion(state)
    if recursion is None:
        return False
    return _are_squares(update, recursion[1]) or any(holds_square(update, recursion[1], gradient) for gradient in gradients)


def _are_squares(update: Update, form: Sum) -> bool:
    return all(exponent % 2 == 0 for monomial in form for _, exponent in update.split_scalars(monomial)[1])


def _unexplained(update: Update, first: State | None, second: State | None) -> list[str]:
    """Return the factors of the step that are no scalar, no moment, no root of a moment, and no gradient."""
    moments = {atom for state in (first, second) if state is not None for atom in (state.old, state.new)}
    texts: dict[str, None] = {}
    for monomial in update.rest:
        root = find_root(update, monomial, second.new) if second is not None else None
        for atom, exponent in root.rest if root is not None else monomial:
            is_opaque = update.forms.atoms[atom].node is not None
            if atom not in moments and not update.is_scalar(atom) and (not is_opaque or exponent != 1.0):
                texts[describe(update.forms, {((atom, exponent),): 1.0}, DEPTH)] = None
    return list(texts)


def _name(update: Update, state: State) -> str:
    return describe(update.forms, {((state.new, 1.0),): 1.0})

"""Operations element by element, on numbers."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable

_COMPARISONS: dict[object, Callable[[float, float], bool]] = {
    "LT": operator.lt,
    "LE": operator.le,
    "GT": operator.gt,
    "GE": operator.ge,
    "EQ": operator.eq,
    "NE": operator.ne,
}
_FUNCTIONS: dict[str, Callable[..., float]] = {
    "abs": abs,
    "add": operator.add,
    "and": lambda a, b: float(bool(a) and bool(b)),
    "ceil": math.ceil,
    "clamp": lambda low, x, high: min(max(low, x), high),
    "cosine": math.cos,
    "divide": operator.truediv,
    "exponential": math.exp,
    "exponential-minus-one": math.expm1,
    "floor": math.floor,
    "integer-divide": lambda a, b: math.trunc(a / b),
    "is-finite": math.isfinite,
    "log": math.log,
    "log-plus-one": math.log1p,
    "logistic": lambda x: 1 / (1 + math.exp(-x)),
    "maximum": max,
    "minimum": min,
    "multiply": operator.mul,
    "negate": operator.neg,
    "not": lambda x: float(not x),
    "or": lambda a, b: float(bool(a) or bool(b)),
    "power": lambda a, b: a**b,
    "remainder": math.fmod,
    "rsqrt": lambda x: x**-0.5,
    "select": lambda c, a, b: a if c else b,
    "sign": lambda x: float((x > 0) - (x < 0)),
    "sine": math.sin,
    "sqrt": lambda x: x**0.5,
    "cbrt": math.cbrt,
    "subtract": operator.sub,
    "tanh": math.tanh,
    "truncate": math.trunc,
}
_MOVING = frozenset({"broadcast", "slice", "dynamic-slice", "pad", "reverse", "all-to-all", "collective-permute"})


def apply(op: str, attribute: object, values: list[float]) -> float | None:
    """An operation on numbers; `None` where it is not known, or not defined there."""
    if op in _MOVING:
        return values[0]
    function = _FUNCTIONS.get(op) if op != "compare" else _COMPARISONS.get(attribute)
    if function is None:
        return None
    try:
        result = function(*values)
    except (ArithmeticError, ValueError, TypeError):
        return None
    return None if isinstance(result, complex) else float(result)

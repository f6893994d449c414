"""What operations do with the values of their operands: which change none, which work element by element, and on numbers."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable

from hlo_inspect.graph.frames import UNCHANGED
from hlo_inspect.hlo import opcodes
from hlo_inspect.hlo.values.attributes import BackendConfig

ELEMENTWISE = opcodes.ELEMENTWISE - UNCHANGED - {"bitcast-convert"}

SOME_VALUES = frozenset(
    {
        "all-to-all",
        "collective-broadcast",
        "collective-permute",
        "dynamic-slice",
        "gather",
        "pad",
        "reverse",
        "slice",
    }
)
"""The result holds some of the values of the first operand, elsewhere."""

IN_PLACE = frozenset({"dynamic-update-slice", "scatter"})
"""The result is the first operand in which parts are written: the second operand, of a scatter the third."""

CONCATENATING_TARGETS = frozenset({"ConcatBitcast"})
"""Custom calls that concatenate their operands."""

BUFFER_TARGET = "AllocateBuffer"
"""A custom call whose result holds nothing yet."""

HANDED_ON = frozenset({"get-tuple-element", "parameter", "tuple"})
"""What is written between a value and its use in another computation."""

DEVICE_NUMBERS = frozenset({"partition-id", "replica-id"})

GEMM_TARGETS = ("__cublas$gemm", "__cublas$lt$matmul", "__triton$gemm")
"""Custom calls that compute alpha * A * B + beta * C."""

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
_MOVING = frozenset({"broadcast", "slice", "dynamic-slice", "pad", "reverse", "transpose", "all-to-all", "collective-permute"})


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


def gemm_factors(config: BackendConfig | None) -> tuple[float, float] | None:
    """Alpha and beta of a product of matrices, `None` where they cannot be read, or where more is done than that."""
    if config is None or not config.fields:
        return None
    fields = config.member("gemm_backend_config") or config.fields
    values = [fields.get(key, default) for key, default in (("alpha_real", 1), ("beta", 0), ("alpha_imag", 0))]
    if not all(isinstance(value, int | float) for value in values) or values[2] != 0:
        return None
    return None if fields.get("epilogue", "DEFAULT") != "DEFAULT" else (float(values[0]), float(values[1]))

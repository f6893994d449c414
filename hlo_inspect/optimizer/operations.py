"""Operations by their effect on values: opcodes that change no value, elementwise opcodes, and functions on numbers.

Also the numbers of constants, and if they were rounded to 16 bits.
"""

from __future__ import annotations

import math
import operator
import re
import struct
from collections.abc import Callable

from hlo_inspect.graph.frames import UNCHANGED
from hlo_inspect.hlo import opcodes
from hlo_inspect.hlo.values.attributes import BackendConfig
from hlo_inspect.lazy_pattern import lazy_pattern

ELEMENTWISE = opcodes.ELEMENTWISE - UNCHANGED - {"bitcast-convert"}

SOME_VALUES = opcodes.opcodes_that_give("part")
"""The result holds some values of the first operand at other positions."""

IN_PLACE = opcodes.opcodes_that_are("update")
"""The result is the first operand with parts overwritten: by the second operand, for a scatter by the third."""

CONCATENATING_TARGETS = frozenset({"ConcatBitcast"})
"""Custom calls that concatenate their operands."""

BUFFER_TARGET = "AllocateBuffer"
"""A custom call whose result is uninitialized."""

HANDED_ON = (opcodes.NAMING - {"bitcast"}) | {"parameter"}
"""Opcodes between a value and its use in another computation."""

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
_MOVING = (SOME_VALUES - {"collective-broadcast", "gather"}) | {"broadcast", "transpose"}


def apply(op: str, attribute: object, values: list[float]) -> float | None:
    """Apply an operation to numbers; return None if it is unknown, or undefined for them."""
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
    """Return alpha and beta of a product of matrices, None if they cannot be read, or if the call computes more."""
    if config is None or not config.fields:
        return None
    fields = config.member("gemm_backend_config") or config.fields
    values = [fields.get(key, default) for key, default in (("alpha_real", 1), ("beta", 0), ("alpha_imag", 0))]
    if not all(isinstance(value, int | float) for value in values) or values[2] != 0:
        return None
    return None if fields.get("epilogue", "DEFAULT") != "DEFAULT" else (float(values[0]), float(values[1]))


MAX_LITERAL = 4096  # characters of an array in which all elements may be equal
_EXACT_TYPES = frozenset({"f32", "f64", "f16", "s32", "s64", "u32", "u64", "pred", "s16", "u16", "s8", "u8"})
"""Types whose constants are close to the number in the program; other types (bf16, float8) round them."""

_NUMBER = lazy_pattern(r"[+-]?(?:\d{1,40}(?:\.\d{0,60})?|\.\d{1,60})(?:[eE][+-]?\d{1,4})?|-?inf|-?nan", re.ASCII)
_WORDS = {"true": 1.0, "false": 0.0}


def constant_value(literal: str) -> float | None:
    """Return the value of a scalar, or of an array whose elements are all equal; None if they differ or are not printed."""
    text = literal.strip()
    if text.startswith("{"):
        if len(text) > MAX_LITERAL:
            return None
        elements = set(_elements(text))
        if len(elements) != 1:
            return None
        (text,) = elements
    return _number(text)


def constant_values(literal: str) -> list[float] | None:
    """Return the values of an array, row-major; None if one is not printed."""
    if len(literal) > MAX_LITERAL:
        return None
    values = [_number(element) for element in _elements(literal)]
    numbers = [value for value in values if value is not None]
    return numbers if len(numbers) == len(values) else None


def _elements(text: str) -> list[str]:
    return text.replace("{", " ").replace("}", " ").replace(",", " ").split()


def _number(text: str) -> float | None:
    if text in _WORDS:
        return _WORDS[text]
    return float(text) if _NUMBER.fullmatch(text) else None


def written_value(value: float, dtype: str) -> float:
    """Return the number that the author of the program wrote for a constant.

    XLA prints f16 with five digits: return the shortest decimal that rounds to the same f16. Whole numbers and powers of two
    are printed with all digits, so they stay.
    """
    if dtype != "f16" or not math.isfinite(value):
        return value
    try:
        half = _half(value)
    except OverflowError:
        return value
    if half.is_integer() or abs(math.frexp(half)[0]) == 0.5:
        return half
    return next((short for digits in range(1, 5) if _half(short := float(f"{half:.{digits}g}")) == half), value)


def _half(value: float) -> float:
    """Round a number to f16."""
    (half,) = struct.unpack("<e", struct.pack("<e", value))
    return float(half)


def is_rounded(value: float, dtype: str) -> bool:
    """Return True if a constant was rounded to 16 bits: its type says so, or XLA widened it and its digits show it.

    A power of two does not count: it is rather a number of elements, or its reciprocal.
    """
    if dtype not in _EXACT_TYPES:
        return True
    if dtype != "f32" or not math.isfinite(value) or float(f"{value:.4g}") == value:
        return False
    try:
        (bits,) = struct.unpack("<I", struct.pack("<f", value))
    except OverflowError:
        return False
    return int(bits) & 0x1FFF == 0 and int(bits) & 0x7FFFFF != 0

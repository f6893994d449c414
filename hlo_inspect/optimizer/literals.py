"""The numbers of constants: their values, and whether they were rounded to 16 bits."""

from __future__ import annotations

import math
import re
import struct

from hlo_inspect.lazy_pattern import lazy_pattern

MAX_LITERAL = 4096  # characters of an array in which all elements may be equal
_EXACT_TYPES = frozenset({"f32", "f64", "f16", "s32", "s64", "u32", "u64", "pred", "s16", "u16", "s8", "u8"})
"""Types whose constants are close to the number in the program; those of other types (bf16, float8) are rounded."""

_NUMBER = lazy_pattern(r"[+-]?(?:\d{1,40}(?:\.\d{0,60})?|\.\d{1,60})(?:[eE][+-]?\d{1,4})?|-?inf|-?nan", re.ASCII)
_WORDS = {"true": 1.0, "false": 0.0}


def constant_value(literal: str) -> float | None:
    """The value of a scalar, or of an array whose elements are all equal; `None` where they differ or are not printed."""
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
    """The values of an array, row-major; `None` where one is not printed."""
    if len(literal) > MAX_LITERAL:
        return None
    values = [_number(element) for element in _elements(literal)]
    known = [value for value in values if value is not None]
    return known if len(known) == len(values) else None


def _elements(text: str) -> list[str]:
    return text.replace("{", " ").replace("}", " ").replace(",", " ").split()


def _number(text: str) -> float | None:
    if text in _WORDS:
        return _WORDS[text]
    return float(text) if _NUMBER.fullmatch(text) else None


def written_value(value: float, dtype: str) -> float:
    """The number that somebody wrote for a constant: for one of f16, which XLA prints with five digits, the shortest decimal
    that is rounded to it. A whole number, which is printed with all of its digits, is that number, and so is a power of two.
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
    """A number rounded to f16."""
    (half,) = struct.unpack("<e", struct.pack("<e", value))
    return float(half)


def is_rounded(value: float, dtype: str) -> bool:
    """Whether a constant was rounded to 16 bits: its type says so, or XLA widened it afterwards and its digits show it. A power
    of two is rather a number of elements, or one over it.
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

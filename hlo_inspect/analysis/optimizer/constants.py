"""The number that a constant spells."""

from __future__ import annotations

import math
import re
import struct

from hlo_inspect.analysis.optimizer.opcodes import WIDE
from hlo_inspect.analysis.optimizer.text import Statement

_NUMBER = re.compile(r"[+-]?(?:\d{1,40}(?:\.\d{0,60})?|\.\d{1,60})(?:[eE][+-]?\d{1,4})?|-?inf|-?nan", re.ASCII)
_WORDS = {"true": 1.0, "false": 0.0}
MAX_LITERAL = 4096  # characters of an array in which all elements may be equal


def constant_value(statement: Statement) -> float | None:
    """The value of a scalar, or of an array whose elements are all equal; `None` where there are several or none."""
    text = statement.literal.strip()
    if text.startswith("{"):
        if len(text) > MAX_LITERAL:
            return None
        elements = set(text.replace("{", " ").replace("}", " ").replace(",", " ").split())
        if len(elements) != 1:
            return None
        (text,) = elements
    if text in _WORDS:
        return _WORDS[text]
    return float(text) if _NUMBER.fullmatch(text) else None


def is_rounded(value: float, dtype: str) -> bool:
    """Whether a constant was rounded to 16 bits: its type says so, or XLA widened it afterwards and it shows in its digits."""
    if dtype not in WIDE:
        return True
    if dtype != "f32" or not math.isfinite(value) or float(f"{value:.4g}") == value:
        return False
    try:
        (bits,) = struct.unpack("<I", struct.pack("<f", value))
    except OverflowError:
        return False
    return int(bits) & 0x1FFF == 0

"""The number that a constant spells."""

from __future__ import annotations

import re

from hlo_inspect.analysis.optimizer.text import Statement

_NUMBER = re.compile(r"[+-]?(?:\d{1,40}(?:\.\d{0,60})?|\.\d{1,60})(?:[eE][+-]?\d{1,4})?|-?inf|-?nan", re.ASCII)
_WORDS = {"true": 1.0, "false": 0.0}
MAX_LITERAL = 4096  # characters of an array in which all elements may be equal


def constant_value(statement: Statement) -> float | None:
    """The value of a scalar, or of an array whose elements are all equal; `None` where it is not printed or there are several."""
    text = statement.literal.strip()
    if text.startswith("{"):
        if len(text) > MAX_LITERAL:
            return None
        elements = {part for part in text.replace("{", " ").replace("}", " ").replace(",", " ").split()}
        if len(elements) != 1:
            return None
        (text,) = elements
    if text in _WORDS:
        return _WORDS[text]
    return float(text) if _NUMBER.fullmatch(text) else None

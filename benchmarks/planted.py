"""A second version of a dump with changed opcodes, spread evenly over the text."""

from __future__ import annotations

import re

_EXCHANGED = {"add": "subtract", "multiply": "maximum", "subtract": "add", "maximum": "minimum", "minimum": "maximum"}
_OPERAND = r"(?:\w+\[[\d,]*\](?:\{[^{}]*\})? )?%?[\w.\-]+"  # with its shape, if a printer repeats it
_ELEMENTWISE = re.compile(rf" ({'|'.join(_EXCHANGED)})(?=\({_OPERAND}, {_OPERAND}\))", re.ASCII)


def changed_text(text: str, changes: int) -> str:
    """Return the text with `changes` opcodes of elementwise instructions exchanged, or all if there are fewer."""
    matches = list(_ELEMENTWISE.finditer(text))
    step = max(1, len(matches) // changes)
    pieces, end = [], 0
    for match in matches[::step][:changes]:
        pieces += [text[end : match.start(1)], _EXCHANGED[match[1]]]
        end = match.end(1)
    return "".join([*pieces, text[end:]])

"""Fusions as XLA's printers write them: what they call stands right behind the operands."""

from __future__ import annotations

import re

from hlo_inspect.lazy_pattern import lazy_pattern

_PRINTED = lazy_pattern(
    r"""[^"'()/]*+(?:(?:/\*index=\d++\*/|\([^"'()/]*+\))[^"'()/]*+)*+\)"""
    r"(?:, kind=(k[A-Za-z]++))?+, calls=%?([A-Za-z_][\w.\-]*+)(?=, (?!device_ids=)[a-z]|$)",
    re.ASCII,
)
"""Operands with the comments that printers write among them, and tuple shapes and tiles, but no string: it may hold what looks
like the end of them. Behind what is called the next attribute follows, or nothing.
"""


def printed_fusion(tail: str) -> tuple[str | None, str] | None:
    """The kind of a fusion, and what it calls, by its text behind the opening parenthesis; `None` where this is not written as
    usual. An `async-start` has no kind.
    """
    found = _PRINTED.match(tail)
    return None if found is None else (found[1], found[2])

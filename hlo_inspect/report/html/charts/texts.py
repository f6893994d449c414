"""Texts of figures. Plotly reads tags and entities in them: what comes from a dump is escaped here, and nowhere else."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hlo_inspect.errors import printable
from hlo_inspect.report.model import Unit, Value
from hlo_inspect.report.units import format_bounded

_LONGEST = 160
_ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "$": "&#36;", "%": "&#37;"})
"""Beside tags and entities Plotly knows formulas between dollars and, in templates, names after percent signs."""


def plain(text: Value) -> str:
    """A text that Plotly shows as it is: on one line, cut where it is longer than anybody reads."""
    return short(printable("" if text is None else str(text)), _LONGEST).translate(_ENTITIES)


def short(text: str, longest: int) -> str:
    """A text of so many characters, without its middle where it is longer: beginnings and ends of names differ."""
    if len(text) <= longest:
        return text
    begin = (longest - 1) // 2
    return f"{text[:begin]}…{text[len(text) - (longest - 1 - begin) :]}"


def label(text: Value, longest: int = 28) -> str:
    """The same for an axis or a mark, which have little room."""
    return plain(short(printable("" if text is None else str(text)), longest))


def amount(value: Value, unit: Unit, at_least: Value = None) -> str:
    """A value with its unit; where it is unknown what it is at least."""
    return plain(format_bounded(value, at_least, unit))


def lines(*parts: str) -> str:
    """Lines of a hover text, each of them escaped; without those that are empty."""
    return "<br>".join(filter(None, parts))


def in_words(parts: Iterable[tuple[Value, str]], most: int = 12) -> str:
    """The figures of a picture for who cannot see it, for the text of an element: not escaped for Plotly."""
    found: Sequence[tuple[Value, str]] = list(parts)
    words = "; ".join(f"{printable(str(name))}: {value}" for name, value in found[:most])
    return f"{words}; {len(found) - most:,} more in the table" if len(found) > most else words

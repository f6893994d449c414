"""Texts of figures. Plotly reads tags and entities in them: what comes from a dump is escaped here, and nowhere else."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hlo_inspect.errors import printable
from hlo_inspect.report.model import Value

LONGEST = 160
"""Characters of a text in a picture; the table has the whole."""

_LINE = 52
"""Characters of a line beside the mouse, which is no wider than a telephone."""

_ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "$": "&#36;", "%": "&#37;"})
"""Beside tags and entities Plotly knows formulas between dollars and, in templates, names after percent signs."""


def plain(text: Value, longest: int = LONGEST) -> str:
    """A text that Plotly shows letter by letter: on one line, without its middle where it is longer."""
    return short("" if text is None else str(text), longest).translate(_ENTITIES)


def short(text: str, longest: int) -> str:
    """A text of at most so many characters, with control characters escaped. Names differ at their beginnings and ends."""
    shown = printable(text)
    if len(shown) <= longest:
        return shown
    begin = (longest - 1) // 2
    return f"{shown[:begin]}…{shown[len(shown) - (longest - 1 - begin) :]}"


def hover(title: Value, *parts: Value) -> str:
    """The text beside the mouse: a title, and lines below it, without those that are empty; long ones go on in the next."""
    return "<br>".join([f"<b>{_wrapped(title)}</b>", *(_wrapped(part) for part in parts if part)])


def _wrapped(text: Value) -> str:
    shown = short("" if text is None else str(text), LONGEST)
    return "<br>".join(plain(shown[at : at + _LINE]) for at in range(0, max(1, len(shown)), _LINE))


def counted(count: str, what: str) -> str:
    """A count with its noun, as "1 run" and "2 runs"."""
    return f"{count} {what}" if count == "1" else f"{count} {what}s"


def not_shown(unknown: int, what: str) -> str:
    """A sentence on what has no mark since its figure is not known; empty where that is nothing."""
    return f" Not shown: {unknown:,} {what}." if unknown else ""


def role_words(role: Value) -> str:
    """The role of a parameter or an array as it is said: "first moment"."""
    return str(role).replace("_", " ")


def in_words(parts: Iterable[tuple[Value, str]], most: int = 12) -> str:
    """The figures of a picture for readers who cannot see it. It is no text of a figure: its writer escapes it."""
    found: Sequence[tuple[Value, str]] = list(parts)
    words = "; ".join(f"{short(str(name), LONGEST)}: {value}" for name, value in found[:most])
    return f"{words}; {len(found) - most:,} more in the table" if len(found) > most else words

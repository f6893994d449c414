"""Markdown of generated pages, which code hosts and the site read in the same way."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

NOTE = "<!-- `python -m docs.pages` writes this page. -->"
"""First line of a page that is generated as a whole."""


def make_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table. Cells are Markdown; a pipe outside of code is escaped, and one inside of code is not allowed."""
    lines = [_row(header), _row(["---"] * len(header))]
    return "\n".join([*lines, *map(_row, rows)]) + "\n"


def _row(cells: Sequence[str]) -> str:
    for cell in cells:
        if "|" in cell.replace("\\|", ""):
            raise ValueError(f"a cell with a pipe: {cell}")
    return f"| {' | '.join(cells)} |"


def with_part(text: str, name: str, part: str) -> str:
    """Return the text with `part` between the marks of that name. Raise ValueError if the text lacks the marks."""
    begin, end = f"<!-- generated: {name} -->\n", f"<!-- end: {name} -->\n"
    before, found_begin, rest = text.partition(begin)
    _, found_end, after = rest.partition(end)
    if not (found_begin and found_end):
        raise ValueError(f"the marks {begin.strip()} and {end.strip()} are missing")
    return f"{before}{begin}\n{part.strip()}\n\n{end}{after}"

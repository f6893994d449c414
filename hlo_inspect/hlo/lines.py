"""Rows that were read together, with their heads."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from hlo_inspect.hlo.instruction import Head
from hlo_inspect.hlo.rows import Row


class Lines:
    """Consecutive instructions of one computation.

    `texts` are the rows' heads as text, `first` is the line of the first row, `text` holds all of their attributes.
    """

    def __init__(self, rows: Sequence[Row], texts: list[str], heads: list[Head], first: int, text: str) -> None:
        self.rows = rows
        self.texts = texts
        self.heads = heads
        self.first = first
        self.text = text

    @cached_property
    def definitions(self) -> dict[str, Head]:
        """The head of each name; of a name that is defined twice the last."""
        return {row[1]: head for row, head in zip(self.rows, self.heads, strict=True)}

"""Rows that were read together, with their heads."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from hlo_inspect.hlo.instruction import Head
from hlo_inspect.hlo.rows import Row


class Lines:
    """Consecutive instructions of one computation.

    `texts` are the rows' heads as text, `first` is the line of the first row; the rows stand in `source[start:end]`.
    """

    def __init__(
        self, rows: Sequence[Row], texts: list[str], heads: list[Head], first: int, source: str, start: int, end: int
    ) -> None:
        self.rows = rows
        self.texts = texts
        self.heads = heads
        self.first = first
        self._place = (source, start, end)

    @property
    def text(self) -> str:
        """Text in which all of the rows' attributes stand."""
        source, start, end = self._place
        return source[start:end]

    @cached_property
    def definitions(self) -> dict[str, Head]:
        """The head of each name; of a name that is defined twice the last."""
        return {row[1]: head for row, head in zip(self.rows, self.heads, strict=True)}

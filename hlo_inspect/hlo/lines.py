"""Rows that were read together, with their heads."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import islice

from hlo_inspect.hlo.heads import Heads
from hlo_inspect.hlo.instruction import Head
from hlo_inspect.hlo.rows import DEFINITION, Row

MAX_DEFINITIONS = 1 << 20


class Lines:
    """Consecutive instructions of one computation. `texts` are the rows' heads, all of them in `table` from then on, `opcodes`
    has one for each, `first` is the line of the first row.
    """

    def __init__(self, rows: Sequence[Row], texts: Sequence[str], table: Heads, first: int) -> None:
        self.rows = rows
        self.texts = texts
        self.first = first
        self._table = table
        self.opcodes = list(map(table.opcodes.__getitem__, texts))

    def head(self, index: int) -> Head:
        return self._table[self.texts[index]]

    @cached_property
    def tails(self) -> list[str]:
        """What follows the opening parenthesis in each row."""
        return [row[3] for row in self.rows]

    @property
    def text(self) -> str:
        """Text in which all of the rows' attributes stand."""
        return "\n".join(self.tails)

    @cached_property
    def names(self) -> list[str]:
        """The name that each row defines."""
        return [row[1] for row in self.rows]

    @property
    def definitions(self) -> dict[str, Head]:
        """The head of each name; of a name that is defined twice the last."""
        return dict(zip(self.names, map(self._table.__getitem__, self.texts), strict=True))


class Part:
    """The definitions in lines of which only some are read."""

    def __init__(self, text: str, table: Heads) -> None:
        self._text = text
        self._table = table

    @cached_property
    def _heads(self) -> dict[str, str]:
        return dict(DEFINITION.findall(self._text))

    def get(self, name: str) -> Head | None:
        text = self._heads.get(name)
        return None if text is None else self._table[text]


class Reach:
    """The definitions of one computation so far: all of them where its lines are read, else those of its last part."""

    def __init__(self) -> None:
        self._read: dict[str, Head] = {}
        self._part: Part | None = None

    def add(self, lines: Lines | Part) -> None:
        if isinstance(lines, Part):
            self._part = lines
            return
        self._read.update(lines.definitions)
        if len(self._read) > MAX_DEFINITIONS:  # the first ones go, many at once: taking one after the other is quadratic
            self._read = dict(islice(self._read.items(), len(self._read) - MAX_DEFINITIONS // 2, None))

    def get(self, name: str) -> Head | None:
        found = self._read.get(name)
        return self._part.get(name) if found is None and self._part is not None else found

"""Rows that were read together, with their heads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

from hlo_inspect.hlo.heads import Heads
from hlo_inspect.hlo.instruction import Definitions, Head
from hlo_inspect.hlo.rows import DEFINITION, Row

MAX_SINGLE = 1 << 15


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

    @property
    def text(self) -> str:
        """Text in which all of the rows' attributes stand."""
        return "\n".join([row[3] for row in self.rows])

    @cached_property
    def definitions(self) -> dict[str, Head]:
        """The head of each name; of a name that is defined twice the last."""
        return {row[1]: self._table[row[2]] for row in self.rows}


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
    """The definitions in a computation that what comes after them may refer to: those of the last lines, and of single ones."""

    def __init__(self) -> None:
        self._single: dict[str, Head] = {}
        self._last: Lines | Part | None = None

    def add(self, lines: Lines | Part) -> None:
        if isinstance(lines, Part) or len(lines.rows) > 1:
            self._last = lines
            return
        self._single.update(lines.definitions)
        while len(self._single) > MAX_SINGLE:
            self._single.pop(next(iter(self._single)))

    def __iter__(self) -> Iterator[Definitions]:
        yield self._single
        if self._last is not None:
            yield self._last if isinstance(self._last, Part) else self._last.definitions

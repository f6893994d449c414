"""Whole computations as printers write them, many at a time.

What a text must not have (open comments, unclosed brackets, a second instruction on a line) is counted once over all of
them. Where the counts do not come out right, the computations are read one after the other.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Sequence, Set
from itertools import compress, count

from hlo_inspect.hlo import rows
from hlo_inspect.hlo.rows import Row

MIN_CHARS = 1 << 14
MAX_CHARS = 1 << 17


Block = tuple[str, bool, int, int, int]
"""A computation of a region: its name, whether it is the entry, the number of its first row, the number behind its last one,
and its first line, counted from 0 at the line where the region starts.
"""


class Region:
    """Consecutive computations in `text[start:end]` of some text.

    `items` are their rows and, with nothing but their last part, their first lines; `names`, `texts` (the heads) and `tails`
    are their columns; `roots` the numbers of the rows marked ROOT.
    """

    names: Sequence[str]
    texts: Sequence[str]
    tails: Sequence[str]

    def __init__(self, items: list[Row], extent: tuple[int, int]) -> None:
        self.items = items
        self.start, self.end = extent
        flags, self.names, self.texts, self.tails = zip(*items, strict=True)
        self.roots = list(compress(count(), flags))
        numbers = [number for number, name in enumerate(self.names) if not name]
        firsts = ((number, rows.START.fullmatch(self.tails[number])) for number in numbers)
        self._firsts = [(match[2], bool(match[1]), number) for number, match in firsts if match is not None]
        self._starts = [start for _, _, start in self._firsts]
        self._ends = [*self._starts[1:], len(items)]

    @property
    def lines(self) -> int:
        """How many lines it has."""
        return len(self.items) + 2 * len(self._starts) - 1

    @property
    def is_regular(self) -> bool:
        """Whether each computation has one row that is marked ROOT."""
        if len(self.roots) != len(self._starts):
            return False
        return all(start < root < end for start, root, end in zip(self._starts, self.roots, self._ends, strict=True))

    @property
    def has_entry(self) -> bool:
        return any(is_entry for _, is_entry, _ in self._firsts)

    def __len__(self) -> int:
        return len(self._starts)

    def blocks(self) -> list[Block]:
        """Its computations."""
        found = []
        line = 0
        for (name, is_entry, start), behind in zip(self._firsts, self._ends, strict=True):
            found.append((name, is_entry, start + 1, behind, line))
            line += behind - start + 2
        return found

    def holding(self, heads: set[str]) -> set[int]:
        """The computations, by number, that hold one of these heads."""
        if heads.isdisjoint(self.texts):
            return set()
        return {bisect(self._starts, row) - 1 for row in compress(count(), map(heads.__contains__, self.texts))}

    def text_of(self, wanted: Set[str], opcodes: Sequence[str]) -> str:
        """The tails of the rows with these opcodes, where `opcodes` has one for each row."""
        return "\n".join(compress(self.tails, map(wanted.__contains__, opcodes))) if wanted else ""


def find_region(text: str, start: int, limit: int) -> Region | None:
    """The computations from `start`, the beginning of a line, that end before `limit`, at least one; `None` where one of them
    is not as printers write it.
    """
    close = text.rfind("\n}", start, limit)
    if close < 0:
        close = text.find("\n}", limit)
    closer = rows.CLOSER.match(text, close + 1) if close >= 0 else None
    first_end = text.find("\n", start)
    if closer is None or first_end > close:
        return None
    items: list[Row] = [("", "", "", text[start:first_end]), *rows.ITEM.findall(text, first_end, close)]
    region = Region(items, (start, closer.end()))
    if len(region) != region.names.count(""):
        return None
    marks = rows.find_marks(text, start, region.end)
    is_plain = (
        marks is not None
        and marks.count(b"\n") == region.lines
        and marks.count(b"{\n") == len(region)
        and text.count(" = ", start, close) == len(items) - len(region)
    )
    return region if is_plain else None

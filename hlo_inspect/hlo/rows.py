"""The text of rows, as it is kept until somebody asks what a row says.

All rows of a computation stand in columns; what depends on their heads alone is worked out once for all computations that have
the same. The scalars that loops count with are packed: a large module has many loops, and what counts in them is alike but for
names.
"""

from __future__ import annotations

import marshal
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence, Set
from functools import cached_property
from itertools import compress, count
from typing import NamedTuple, TypeVar

from hlo_inspect.hlo.head_table import Head, HeadTable
from hlo_inspect.hlo.shapes import Shape
from hlo_inspect.hlo.tokens import Row
from hlo_inspect.lazy_pattern import lazy_pattern

_MAX_COLUMNS = 1 << 14
_MAX_SHARED_ROWS = 1 << 7
"""A text may have any number of computations that differ, and long ones are rarely the same."""

_MAX_PACKED_FORMS = 1 << 16

_MARKED_NAMES = lazy_pattern(r"%([\w.\-]++)", re.ASCII)

T = TypeVar("T")


def extended(kept: Sequence[T], more: Iterable[T]) -> list[T]:
    """`kept` with more, in the same list where it is a list already: most computations have nothing, and no list."""
    if isinstance(kept, list):
        kept.extend(more)
        return kept
    return [*kept, *more]


class HeadColumn:
    """The heads of some rows of one computation, one below the other, and which of these are `marked` ROOT, by index.

    `is_special` says that of one of the rows more may have to be kept than its opcode, `holds_scalar` that one of them holds an
    integer scalar. `root` is the head of the row that is marked, where one is, and `calling` are the rows that can name a
    computation.
    """

    def __init__(self, heads: Sequence[Head] = (), marked: Set[int] = frozenset()) -> None:
        self.heads: Sequence[Head] = tuple(heads)
        self.marked = marked
        self.texts: Sequence[str] = tuple([head.text for head in heads])
        self.opcodes: Sequence[str] = tuple([head.opcode for head in heads])
        self.calling: Sequence[int] = tuple([index for index, head in enumerate(heads) if head.may_call])
        self.is_special = any(head.is_special for head in heads)
        self.root = self.heads[min(marked)] if len(marked) == 1 else None
        self.holds_scalar = any(head.holds_scalar for head in heads)

    @cached_property
    def shapes(self) -> Sequence[Shape | None]:
        """`None` where one is left out, or of an element type that XLA does not have."""
        return [head.shape for head in self.heads]

    def followed_by(self, more: HeadColumn) -> HeadColumn:
        """These heads and more of the computation. Lists of a column that was made so go on in the new one, which keeps time
        linear: what was continued is not used any more.
        """
        both, length = HeadColumn(), len(self.heads)
        marked = self.marked if isinstance(self.marked, set) else set(self.marked)
        marked.update([length + index for index in more.marked])
        both.marked = marked
        both.heads = extended(self.heads, more.heads)
        both.texts = extended(self.texts, more.texts)
        both.opcodes = extended(self.opcodes, more.opcodes)
        both.calling = extended(self.calling, [length + index for index in more.calling])
        both.is_special = self.is_special or more.is_special
        both.holds_scalar = self.holds_scalar or more.holds_scalar
        both.root = both.heads[min(marked)] if len(marked) == 1 else None
        return both


class ColumnTable:
    """The heads of a module's rows by columns; those of short computations are kept."""

    def __init__(self, heads: HeadTable) -> None:
        self._heads = heads
        self._known: dict[tuple[Sequence[str], Sequence[str]], HeadColumn] = {}

    def column(self, texts: Sequence[str], marks: Sequence[str]) -> HeadColumn:
        """The heads of some rows, each of which is marked by `ROOT ` or by nothing; `ShapeError` where one is no head."""
        known = self._known.get((texts, marks))
        if known is None:
            known = HeadColumn(list(map(self._heads.__getitem__, texts)), frozenset(compress(count(), marks)))
            if len(texts) <= _MAX_SHARED_ROWS and len(self._known) < _MAX_COLUMNS:
                self._known[known.texts, marks] = known
        return known


class Rows:
    """Rows by columns: `names`, heads, `tails` (the text behind the opening parenthesis) and the `lines` on which they stand.
    A row that is asked for is made of these.
    """

    __slots__ = ("column", "lines", "names", "tails")

    def __init__(self, names: Sequence[str], column: HeadColumn, tails: Sequence[str], lines: Sequence[int]) -> None:
        self.names = names
        self.column = column
        self.tails = tails
        self.lines = lines

    @property
    def heads(self) -> Sequence[str]:
        """`shape opcode` of each."""
        return self.column.texts

    @property
    def opcodes(self) -> Sequence[str]:
        return self.column.opcodes

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, index: int) -> Row:
        return "ROOT " if index in self.column.marked else "", self.names[index], self.heads[index], self.tails[index]

    def __iter__(self) -> Iterator[Row]:
        marks = [""] * len(self)
        for index in self.column.marked:
            marks[index] = "ROOT "
        return zip(marks, self.names, self.heads, self.tails, strict=True)

    def followed_by(self, more: Rows) -> Rows:
        """These rows and more of the computation."""
        if not self:
            return more
        lines: Sequence[int]
        if isinstance(self.lines, range) and isinstance(more.lines, range) and self.lines.stop == more.lines.start:
            lines = range(self.lines.start, more.lines.stop)
        else:
            lines = extended(self.lines, more.lines)
        names, tails = extended(self.names, more.names), extended(self.tails, more.tails)
        return Rows(names, self.column.followed_by(more.column), tails, lines)


NO_ROWS = Rows((), HeadColumn(), (), range(0))


class PackedRows(NamedTuple):
    """Rows of one computation: their form, which is what they are with numbers for names and lines counted from that of the
    computation, and the names.
    """

    form: bytes
    names: str

    def rows(self, first: int) -> Iterator[tuple[Row, int]]:
        """The rows with their lines, of a computation at line `first`."""
        names = self.names.split(" ")
        for root, number, head, (operand, *pieces), marked, line in marshal.loads(self.form):  # noqa: S302 - of `packed`
            tail = operand + "".join([f"%{names[one]}{piece}" for one, piece in zip(marked, pieces, strict=True)])
            yield (root, names[number], head, tail), first + line


def packed(rows: Iterable[tuple[Row, int]], first: int, forms: dict[bytes, bytes]) -> PackedRows:
    """Rows with their lines, of a computation at line `first`. `forms` are those of the module."""
    numbers: defaultdict[str, int] = defaultdict(count().__next__)
    nameless = []
    for (root, name, head, tail), line in rows:
        pieces = _MARKED_NAMES.split(tail)
        nameless.append((root, numbers[name], head, pieces[::2], [numbers[one] for one in pieces[1::2]], line - first))
    form = marshal.dumps(nameless, 2)  # later versions write the same in several ways
    if len(forms) < _MAX_PACKED_FORMS:
        form = forms.setdefault(form, form)
    return PackedRows(form, " ".join(numbers))

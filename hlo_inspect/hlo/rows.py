"""The text of rows, as it is kept until somebody asks what a row says.

All rows of a computation stand in columns; what depends on their heads alone is worked out once for all computations that have
the same. The scalars that loops count with are packed: a large module has many loops, and what counts in them is alike but for
names.
"""

from __future__ import annotations

import marshal
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import chain, compress, count
from typing import NamedTuple

from hlo_inspect.hlo.opcodes import CALLING_OPCODES, TABLE, opcodes_that_call
from hlo_inspect.hlo.tokens import Row
from hlo_inspect.hlo.values.shapes import ArrayShape, Shape, ShapeError, ShapeTable, UnknownTypeError, distinct_arrays
from hlo_inspect.lazy_pattern import lazy_pattern

_MAX_HEADS = 1 << 17
"""A text may have any number of heads, though that of a compiler has some thousands."""

_SCALAR = lazy_pattern(r"[su]\d{1,2}|pred", re.ASCII)
_HOLDING = {TABLE[name].base for name in opcodes_that_call("run", "custom", "fused")}
_MAY_HOLD_WANTED = frozenset(opcode.name for opcode in TABLE.values() if opcode.base in _HOLDING)


class Head(NamedTuple):
    """A head and what it is to the reader.

    `shape`: `None` where it is left out, or of an element type that XLA does not have.
    `problem`: code and message where XLA has no such opcode, element type or layout.
    `is_wanted`: the opcode is one to keep.
    `may_be_kept`: another one that can run a computation of its own or, as a custom call, be wanted for its target.
    `holds_scalar`: the shape is an integer or truth value without dimensions, or a tuple that holds one.
    `may_call`: an instruction of the opcode can name a computation, as one of an unknown opcode may.
    """

    opcode: str
    shape: Shape | None
    problem: tuple[str, str] | None = None
    is_wanted: bool = False
    may_be_kept: bool = False
    holds_scalar: bool = False
    may_call: bool = False
    text: str = ""

    @property
    def is_special(self) -> bool:
        """Whether more may have to be kept of its row than the opcode."""
        return self.is_wanted or self.may_be_kept or self.problem is not None


class HeadTable(dict[str, Head]):
    """`shape opcode` -> `Head`, parsed once for each text of a module; `ShapeError` where the shape makes no sense."""

    def __init__(self, shapes: ShapeTable | None = None, wanted: frozenset[str] = frozenset()) -> None:
        super().__init__()
        self._shapes = shapes or ShapeTable()
        self._wanted = wanted

    def __missing__(self, text: str) -> Head:
        shape_text, _, opcode = text.rpartition(" ")
        try:
            shape = self._shapes.parse(shape_text) if shape_text else None
        except UnknownTypeError:
            shape = None
        has_odd_layout = holds_scalar = False
        for array in (shape,) if isinstance(shape, ArrayShape) else distinct_arrays(shape):
            has_odd_layout |= array.layout is not None and len(array.layout.minor_to_major) != len(array.dimensions)
            holds_scalar |= not array.dimensions and _SCALAR.fullmatch(array.dtype) is not None
        problem = None
        if opcode not in TABLE:
            problem = ("HI004", f"unknown opcode {opcode!r}")
        elif shape is None and shape_text:
            problem = ("HI006", f"unknown element type in {shape_text[:60]}")
        elif has_odd_layout:
            problem = ("HI013", f"a layout that does not number each dimension in {shape_text[:60]}")
        is_wanted = opcode in self._wanted
        may_be_kept = not is_wanted and bool(self._wanted) and opcode in _MAY_HOLD_WANTED
        may_call = opcode in CALLING_OPCODES or opcode not in TABLE
        head = Head(sys.intern(opcode), shape, problem, is_wanted, may_be_kept, holds_scalar, may_call, text)
        if len(self) < _MAX_HEADS:
            self[text] = head
        return head

    def find(self, text: str) -> Head | None:
        """The head of a text; `None` where it is no head."""
        try:
            return self[text]
        except ShapeError:
            return None


_MAX_COLUMNS = 1 << 14
_MAX_SHARED_ROWS = 1 << 7
"""A text may have any number of computations that differ, and long ones are rarely the same."""

_MAX_PACKED_FORMS = 1 << 16

_MARKED_NAMES = lazy_pattern(r"%([\w.\-]++)", re.ASCII)


class HeadColumn:
    """The heads of some rows of one computation, one below the other, and which of these are `marked` ROOT, by index.

    `is_special` says that of one of the rows more may have to be kept than its opcode, `holds_scalar` that one of them holds an
    integer scalar. `root` is the head of the row that is marked, where one is, and `calling` are the rows that can name a
    computation.
    """

    def __init__(self, heads: Sequence[Head] = (), marked: frozenset[int] = frozenset()) -> None:
        self.heads = tuple(heads)
        self.marked = marked
        self.texts = tuple([head.text for head in heads])
        self.opcodes = tuple([head.opcode for head in heads])
        self.calling = tuple([index for index, head in enumerate(heads) if head.may_call])
        self.is_special = any(head.is_special for head in heads)
        self.root = self.heads[min(marked)] if len(marked) == 1 else None
        self.holds_scalar = any(head.holds_scalar for head in heads)

    @cached_property
    def shapes(self) -> Sequence[Shape | None]:
        """`None` where one is left out, or of an element type that XLA does not have."""
        return [head.shape for head in self.heads]


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

    def joined(self, parts: Sequence[Rows]) -> Rows:
        """The rows of a computation that was read in several parts."""
        if len(parts) == 1:
            return parts[0]
        names, heads, tails, marks = (
            tuple(chain.from_iterable(columns))
            for columns in zip(*((part.names, part.heads, part.tails, part.marks) for part in parts), strict=True)
        )
        lines = [line for part in parts for line in part.lines]
        between = range(lines[0], lines[-1] + 1)
        return Rows(names, self.column(heads, marks), tails, between if lines == [*between] else lines)


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

    @property
    def marks(self) -> Sequence[str]:
        """`"ROOT "` or nothing."""
        marks = [""] * len(self)
        for index in self.column.marked:
            marks[index] = "ROOT "
        return marks

    def __iter__(self) -> Iterator[Row]:
        return zip(self.marks, self.names, self.heads, self.tails, strict=True)


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

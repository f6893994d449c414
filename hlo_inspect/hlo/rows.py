"""Rows as text, parsed when they are read.

The rows of a computation are stored by column. Computations with equal heads share the columns that depend on heads only. The
scalars of loops are packed: a large module has many loops, which differ mostly in names.
"""

from __future__ import annotations

import marshal
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import chain, compress, count
from typing import TYPE_CHECKING, NamedTuple

from hlo_inspect.hlo.collective_kinds import is_named_as_collective, may_start_unknown
from hlo_inspect.hlo.opcodes import CALLING_OPCODES, LITERAL_OPCODES, STARTING_COLLECTIVES, TABLE, opcodes_that_call
from hlo_inspect.hlo.tokens import Row
from hlo_inspect.hlo.values.shape_text import ShapeError, ShapeTable, UnknownTypeError
from hlo_inspect.hlo.values.shapes import ArrayShape, Shape, distinct_arrays
from hlo_inspect.lazy_pattern import lazy_pattern

if TYPE_CHECKING:
    from hlo_inspect.hlo.columns import Extent

_MAX_HEADS = 1 << 17
"""Bound on distinct heads, since a text may have any number; a compiler prints some thousands."""

_SCALAR = lazy_pattern(r"[su]\d{1,2}|pred", re.ASCII)
_HOLDING = {TABLE[name].base for name in opcodes_that_call("run", "custom", "fused")}
_MAY_HOLD_WANTED = frozenset(opcode.name for opcode in TABLE.values() if opcode.base in _HOLDING)


class Head(NamedTuple):
    """A head, parsed.

    `shape`: None if the text leaves it out or its element type is unknown.
    `problem`: code and message of an unknown opcode, element type or layout.
    `is_wanted`: instructions of this opcode are kept.
    `may_be_kept`: they are kept if they have a wanted custom-call target or call a computation with kept instructions. An
    unknown opcode is kept if it names devices.
    `holds_scalar`: the shape is an integer or Boolean scalar, or a tuple with such a scalar.
    `may_call`: the opcode can name a computation, or is unknown.
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
        """True if more than the opcode of its row may have to be kept."""
        return self.is_wanted or self.may_be_kept or self.problem is not None


class HeadTable(dict[str, Head]):
    """`shape opcode` -> `Head`. A module parses each text once. Raises ShapeError for a wrong shape.

    `unknown_opcodes` are those of its heads that `opcodes` lacks.
    """

    def __init__(self, shapes: ShapeTable | None = None, wanted: frozenset[str] = frozenset()) -> None:
        super().__init__()
        self._shapes = shapes or ShapeTable()
        self._wanted = wanted
        self._wants_collectives = wanted >= STARTING_COLLECTIVES
        self.unknown_opcodes: set[str] = set()

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
            self.unknown_opcodes.add(opcode)
        elif shape is None and shape_text:
            problem = ("HI006", f"unknown element type in {shape_text[:60]}")
        elif has_odd_layout:
            problem = ("HI013", f"the layout and the dimensions differ in number in {shape_text[:60]}")
        is_wanted = opcode in self._wanted or (self._wants_collectives and is_named_as_collective(opcode))
        may_be_kept = not is_wanted and bool(self._wanted) and opcode in _MAY_HOLD_WANTED
        may_be_kept |= not is_wanted and self._wants_collectives and may_start_unknown(opcode)
        may_call = opcode in CALLING_OPCODES or opcode not in TABLE
        head = Head(sys.intern(opcode), shape, problem, is_wanted, may_be_kept, holds_scalar, may_call, text)
        if len(self) < _MAX_HEADS:
            self[text] = head
        return head

    def column(self, texts: Sequence[str], marks: Sequence[str]) -> HeadColumn:
        """Return the heads of rows; `marks` has `"ROOT "` or `""` for each. Raise ShapeError for a wrong shape."""
        return HeadColumn(list(map(self.__getitem__, texts)), frozenset(compress(count(), marks)))

    def find(self, text: str) -> Head | None:
        """Return the head of a text, or None if its shape is wrong."""
        try:
            return self[text]
        except ShapeError:
            return None


_MAX_PACKED_FORMS = 1 << 16

_MARKED_NAMES = lazy_pattern(r"%([\w.\-]++)", re.ASCII)


class HeadColumn:
    """The heads of rows of one computation.

    `marked`: indices of the rows marked ROOT. `root`: the head of the marked row, if exactly one is marked. `is_special` and
    `holds_scalar`: True if they are True for any head. `calling`: indices of the rows that can name a computation.
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
        """The shapes of the heads; None if left out or of an unknown element type."""
        return [head.shape for head in self.heads]

    @cached_property
    def literals(self) -> Sequence[int]:
        """Indices of the rows whose parentheses hold no operands."""
        return [index for index, opcode in enumerate(self.opcodes) if opcode in LITERAL_OPCODES]

    @cached_property
    def shapeless(self) -> Sequence[int]:
        """Indices of the rows whose shape the text leaves out."""
        return [index for index, head in enumerate(self.heads) if head.shape is None and head.text.startswith(" ")]


class Rows:
    """Rows by column; indexing builds a row.

    The columns are `names`, `heads`, `tails` (the text after the opening parenthesis) and `lines` (line numbers). `extent` are
    the rows in `Columns`, if the native reader read them.
    """

    __slots__ = ("column", "extent", "lines", "names", "tails")

    def __init__(
        self,
        names: Sequence[str],
        column: HeadColumn,
        tails: Sequence[str],
        lines: Sequence[int],
        extent: Extent | None = None,
    ) -> None:
        self.names = names
        self.column = column
        self.tails = tails
        self.lines = lines
        self.extent = extent

    @classmethod
    def of_extent(cls, extent: Extent, column: HeadColumn, line: int) -> Rows:
        """Return the rows of an extent, the first of them on `line`."""
        lines = range(line, line + extent.last - extent.first)
        return cls(extent.names(), column, extent.tails(), lines, extent)

    @property
    def heads(self) -> Sequence[str]:
        """The texts `shape opcode`."""
        return self.column.texts

    @property
    def opcodes(self) -> Sequence[str]:
        return self.column.opcodes

    def __len__(self) -> int:
        return len(self.lines)  # which is mostly a range

    def __getitem__(self, index: int) -> Row:
        return "ROOT " if index in self.column.marked else "", self.names[index], self.heads[index], self.tails[index]

    @property
    def marks(self) -> Sequence[str]:
        """`"ROOT "` or `""` for each row."""
        marks = [""] * len(self)
        for index in self.column.marked:
            marks[index] = "ROOT "
        return marks

    def __iter__(self) -> Iterator[Row]:
        return zip(self.marks, self.names, self.heads, self.tails, strict=True)


def join_rows(parts: Sequence[Rows]) -> Rows:
    """Join the rows of a computation that was read in parts."""
    if len(parts) == 1:
        return parts[0]
    names, tails, heads, marks = (
        tuple(chain.from_iterable(columns))
        for columns in zip(*((part.names, part.tails, part.column.heads, part.marks) for part in parts), strict=True)
    )
    lines = [line for part in parts for line in part.lines]
    between = range(lines[0], lines[-1] + 1)
    column = HeadColumn(heads, frozenset(compress(count(), marks)))
    return Rows(names, column, tails, between if lines == [*between] else lines)


NO_ROWS = Rows((), HeadColumn(), (), range(0))


class PackedRows(NamedTuple):
    """Packed rows of one computation.

    `form`: the rows, with numbers for names and lines relative to the computation's line. `names`: the names, separated by
    blanks.
    """

    form: bytes
    names: str

    def rows(self, first: int) -> Iterator[tuple[Row, int]]:
        """Yield the rows and their lines. `first` is the line of the computation."""
        names = self.names.split(" ")
        for root, number, head, (operand, *pieces), marked, line in marshal.loads(self.form):  # noqa: S302 - from `packed`
            tail = operand + "".join([f"%{names[mark]}{piece}" for mark, piece in zip(marked, pieces, strict=True)])
            yield (root, names[number], head, tail), first + line


def packed(rows: Iterable[tuple[Row, int]], first: int, forms: dict[bytes, bytes]) -> PackedRows:
    """Pack rows with their lines. `first` is the line of the computation; `forms` are the module's forms."""
    numbers: defaultdict[str, int] = defaultdict(count().__next__)
    nameless = []
    for (root, name, head, tail), line in rows:
        pieces = _MARKED_NAMES.split(tail)
        nameless.append((root, numbers[name], head, pieces[::2], [numbers[operand] for operand in pieces[1::2]], line - first))
    form = marshal.dumps(nameless, 2)  # later versions write equal rows in several ways
    if len(forms) < _MAX_PACKED_FORMS:
        form = forms.setdefault(form, form)
    return PackedRows(form, " ".join(numbers))

"""What of a computation is kept as text: instructions until somebody asks for them, and the scalars that loops count with,
packed, since a large module has many loops, and what counts in them is alike but for names.
"""

from __future__ import annotations

import marshal
import re
from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from itertools import count
from typing import NamedTuple, overload

from hlo_inspect.hlo.heads import Head
from hlo_inspect.hlo.instruction import EnclosingComputation, Instruction
from hlo_inspect.hlo.shapes import Shape
from hlo_inspect.hlo.tokens import Row
from hlo_inspect.lazy_pattern import lazy_pattern

MAX_FORMS = 1 << 16

_MARKED_NAMES = lazy_pattern(r"%([\w.\-]++)", re.ASCII)


class KeptRow(NamedTuple):
    """A row that nobody has asked for yet. Its tail is `text` and then `metadata`, one text for all rows that have the same."""

    is_root: bool
    name: str
    opcode: str
    head: Head
    text: str
    metadata: str
    line: int

    @property
    def shape(self) -> Shape | None:
        return self.head.shape


class KeptInstructions(Sequence[Instruction]):
    """The kept instructions of one computation, in the order of the text. An instruction is made when it is first asked for,
    and takes the place of its row in `kept`.
    """

    __slots__ = ("_enclosing", "_kept")

    def __init__(self, enclosing: Callable[[], EnclosingComputation], kept: list[Instruction | KeptRow]) -> None:
        self._enclosing = enclosing
        self._kept = kept

    def __len__(self) -> int:
        return len(self._kept)

    @overload
    def __getitem__(self, index: int) -> Instruction: ...
    @overload
    def __getitem__(self, index: slice) -> list[Instruction]: ...
    def __getitem__(self, index: int | slice) -> Instruction | list[Instruction]:
        if isinstance(index, slice):
            return [self._at(one) for one in range(*index.indices(len(self)))]
        return self._at(index)

    def _at(self, index: int) -> Instruction:
        kept = self._kept[index]
        if isinstance(kept, KeptRow):
            row = "ROOT " if kept.is_root else "", kept.name, "", kept.text + kept.metadata
            kept = self._kept[index] = Instruction(self._enclosing(), row, kept.head, kept.line)
        return kept

    def with_opcodes(self, opcodes: Container[str]) -> list[Instruction]:
        """Those of some opcodes; no others are made."""
        return [self._at(index) for index, kept in enumerate(self._kept) if kept.opcode in opcodes]

    def indexes(self) -> dict[tuple[int, str], int]:
        """The index of each by line and name."""
        return {(kept.line, kept.name): index for index, kept in enumerate(self._kept)}


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
    if len(forms) < MAX_FORMS:
        form = forms.setdefault(form, form)
    return PackedRows(form, " ".join(numbers))

"""What of a computation is kept as text: instructions until somebody asks for them, and the scalars that loops count with,
packed, since a large module has many loops, and what counts in them is alike but for names.
"""

from __future__ import annotations

import marshal
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Set
from itertools import count
from typing import NamedTuple

from hlo_inspect.hlo.attribute_forms import printed_fusion
from hlo_inspect.hlo.heads import Head
from hlo_inspect.hlo.instruction import EnclosingComputation, Instruction
from hlo_inspect.hlo.shapes import Shape
from hlo_inspect.hlo.tokens import Row
from hlo_inspect.lazy_pattern import lazy_pattern

MAX_FORMS = 1 << 16

_CALLING_BY_ONE_ATTRIBUTE = frozenset({"fusion", "async-start"})
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

    def may_call(self, callees: Set[str]) -> bool:
        """Whether it may call one of some computations. That it calls none is known of what is printed as most fusions are."""
        printed = printed_fusion(self.text) if self.opcode in _CALLING_BY_ONE_ATTRIBUTE else None
        return printed is None or printed[1] in callees

    def instruction(self, computation: EnclosingComputation) -> Instruction:
        row = "ROOT " if self.is_root else "", self.name, self.head.text, self.text + self.metadata
        return Instruction(computation, row, self.head, self.line)


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

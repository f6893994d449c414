"""The text of a computation, taken apart only where somebody follows it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from hlo_inspect.analysis.listing import Listing
from hlo_inspect.analysis.optimizer.opcodes import ELEMENTWISE
from hlo_inspect.hlo import scan
from hlo_inspect.hlo.instruction import head_of, operands_end, parse_operands
from hlo_inspect.hlo.module import Computation
from hlo_inspect.hlo.opcodes import LITERAL_OPCODES
from hlo_inspect.hlo.rows import Row
from hlo_inspect.hlo.shape_text import ShapeError
from hlo_inspect.hlo.shapes import ArrayShape

Use = tuple[str, tuple[int, ...]]
"""An operand: the name of an instruction and an index into its tuple."""

_NAMED = re.compile(r"[\s(]?%([A-Za-z_][\w.\-]*+)(?=,|$)", re.ASCII)  # behind its shape, if that is printed
_ODD = re.compile(r"[\"'#]|//|=[^\d]|null")
_WORD = r"([\w.\-]++)"


class Statement:
    """One instruction: opcode, shape and operands; `tail` is its text from behind the opening parenthesis.

    `names` are those of its operands where they are plainly spelled.
    """

    __slots__ = ("is_elementwise", "opcode", "operands", "shape", "tail")

    def __init__(self, row: Row, names: Sequence[str] | None = None) -> None:
        try:
            head = head_of(row[2])
            self.opcode, self.shape = head.opcode, head.shape
        except ShapeError:
            self.opcode, self.shape = row[2].rpartition(" ")[2], None
        self.tail = row[3]
        self.is_elementwise = self.opcode in ELEMENTWISE
        self.operands: tuple[Use, ...] = ()
        if names is not None:
            self.operands = tuple([(name, ()) for name in names])
        elif self.opcode not in LITERAL_OPCODES:
            self.operands = _uncommon_operands(row[3])

    @property
    def literal(self) -> str:
        """What stands between the parentheses, empty where they are not closed."""
        try:
            return self.tail[: operands_end(self.tail)]
        except scan.ScanError:
            return ""

    @property
    def parameter_number(self) -> int | None:
        """The number that a parameter has between its parentheses."""
        return small_number(self.tail.partition(")")[0].strip())

    @property
    def dtype(self) -> str:
        return self.shape.dtype if isinstance(self.shape, ArrayShape) else ""

    @property
    def size(self) -> int:
        """Elements, 0 where that is unknown."""
        return (self.shape.elements or 0) if isinstance(self.shape, ArrayShape) else 0

    def attribute(self, name: str) -> str:
        """The text of an attribute, empty where there is none."""
        if f"{name}=" not in self.tail:
            return ""
        try:
            for key, value in scan.attributes(self.tail, operands_end(self.tail) + 1):
                if key == name:
                    return value
        except scan.ScanError:
            return ""
        return ""

    def word(self, name: str) -> str:
        """An attribute that is one word (a computation, a number), by the quick way."""
        match = _word(name).search(self.tail)
        return match[1] if match else ""


@cache
def _word(name: str) -> re.Pattern[str]:
    return re.compile(rf", {name}=%?{_WORD}", re.ASCII)


def _uncommon_operands(tail: str) -> tuple[Use, ...]:
    """Names and tuple indices, however they are spelled; an operand without a name is called the empty string. What stands
    for operands that were left out (`...(+2)`) is none.
    """
    try:
        text = tail[: operands_end(tail)]
        if "%" in text:
            names = _NAMED.findall(text)
            if len(names) == text.count("%") and not _ODD.search(text):
                return tuple([(name, ()) for name in names])
        return tuple((operand.name or "", operand.path) for operand in parse_operands(tail)[1])
    except scan.ScanError:
        return ()


class Body:
    """The instructions of a computation by name, and the name of its root."""

    def __init__(self, computation: Computation, listing: Listing | None = None) -> None:
        self.name = computation.name
        self.statements: dict[str, Statement] = {}
        self._listing = listing or Listing(computation)
        rows = self._listing.rows
        self._indices = {row[1]: index for index, row in enumerate(rows)}
        marked = [row[1] for row in rows if row[0]]
        self.root = marked[-1] if marked else rows[-1][1] if rows else ""

    def statement(self, name: str) -> Statement | None:
        """The instruction of that name, `None` where the computation has none."""
        found = self.statements.get(name)
        if found is None:
            index = self._indices.get(name)
            if index is not None:
                found = self.statements[name] = Statement(self._listing.rows[index], self._listing.operands(index))
        return found

    def line(self, name: str) -> int | None:
        """The line on which an instruction stands."""
        index = self._indices.get(name)
        return self._listing.lines[index] if index is not None else None


def small_number(text: str) -> int | None:
    """A number of at most nine digits."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None

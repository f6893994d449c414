"""The heads of a module's rows, `shape opcode`: each is parsed once and classified by what it means to the reader."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from hlo_inspect.hlo.opcodes import TABLE
from hlo_inspect.hlo.shape_text import ShapeError, ShapeTable, UnknownTypeError
from hlo_inspect.hlo.shapes import ArrayShape, Shape, distinct_arrays

_MAX_HEADS = 1 << 17
_SCALAR = re.compile(r"[su]\d{1,2}|pred", re.ASCII)
_MAY_HOLD_WANTED = frozenset(
    opcode.name for opcode in TABLE.values() if opcode.base in {"async", "call", "custom-call", "fusion"}
)


class Head(NamedTuple):
    """A head and what it is to the reader.

    `shape`: `None` where it is left out, or of an element type that XLA does not have.
    `problem`: code and message where XLA has no such opcode, element type or layout.
    `is_wanted`: the opcode is one to keep.
    `may_be_kept`: another one that can run a computation of its own or, as a custom call, be wanted for its target.
    `holds_scalar`: the shape is an integer or truth value without dimensions, or a tuple that holds one.
    """

    opcode: str
    shape: Shape | None
    problem: tuple[str, str] | None = None
    is_wanted: bool = False
    may_be_kept: bool = False
    holds_scalar: bool = False

    @property
    def is_special(self) -> bool:
        """Whether more may have to be kept of its rows than the opcode."""
        return self.is_wanted or self.may_be_kept or self.problem is not None


class HeadTable(dict[str, Head]):
    """`shape opcode` -> `Head`, parsed once for each text of a module; `ShapeError` where the shape makes no sense.

    `opcodes` has the opcode of each text that was learnt, which is all that most rows are read for. The first line of a
    computation has an empty head, whose opcode is empty too.
    """

    def __init__(self, shapes: ShapeTable | None = None, wanted: frozenset[str] = frozenset()) -> None:
        super().__init__({"": Head("", None)})
        self.opcodes = {"": ""}
        self._shapes = shapes or ShapeTable()
        self._wanted = wanted

    def __missing__(self, text: str) -> Head:
        shape_text, _, opcode = text.rpartition(" ")
        try:
            shape = self._shapes.parse(shape_text) if shape_text else None
        except UnknownTypeError:
            shape = None
        arrays = [shape] if isinstance(shape, ArrayShape) else distinct_arrays(shape)
        problem = None
        if opcode not in TABLE:
            problem = ("HI004", f"unknown opcode {opcode!r}")
        elif shape is None and shape_text:
            problem = ("HI006", f"unknown element type in {shape_text[:60]}")
        elif any(array.layout is not None and len(array.layout.minor_to_major) != len(array.dimensions) for array in arrays):
            problem = ("HI013", f"a layout that does not number each dimension in {shape_text[:60]}")
        is_wanted = opcode in self._wanted
        may_be_kept = not is_wanted and bool(self._wanted) and opcode in _MAY_HOLD_WANTED
        holds_scalar = any(not array.dimensions and _SCALAR.fullmatch(array.dtype) for array in arrays)
        head = Head(sys.intern(opcode), shape, problem, is_wanted, may_be_kept, holds_scalar)
        if len(self) < _MAX_HEADS:
            self[text] = head
        return head

    def learn(self, texts: Iterable[str]) -> set[str] | None:
        """Makes sure that all `texts` are known. The distinct ones; `None` where one is no head."""
        distinct = set(texts)
        if len(self.opcodes) + len(distinct) > _MAX_HEADS:
            self.clear()
            self[""], self.opcodes = Head("", None), {"": ""}
        for text in distinct - self.opcodes.keys():
            try:
                self.opcodes[text] = self[text].opcode
            except ShapeError:
                return None
        return distinct

    def opcodes_of(self, texts: Sequence[str]) -> list[str]:
        """The opcodes of heads that are known."""
        return list(map(self.opcodes.__getitem__, texts))

"""The heads of a module's rows, `shape opcode`: each is parsed once and classified by what it means to the reader."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from typing import NamedTuple

from hlo_inspect.hlo.opcodes import TABLE
from hlo_inspect.hlo.shape_text import ShapeError, ShapeTable, UnknownTypeError
from hlo_inspect.hlo.shapes import ArrayShape, Shape, distinct_arrays
from hlo_inspect.hlo.tokens import Row
from hlo_inspect.lazy_pattern import lazy_pattern

_MAX_HEADS = 1 << 17
_SCALAR = lazy_pattern(r"[su]\d{1,2}|pred", re.ASCII)
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


class HeadTable(dict[str, Head]):
    """`shape opcode` -> `Head`, parsed once for each text of a module; `ShapeError` where the shape makes no sense.

    `special` are those that were met of whose rows more may have to be kept than the opcode, `scalars` those that hold one. The
    first line of a computation has an empty head, whose opcode is empty too.
    """

    def __init__(self, shapes: ShapeTable | None = None, wanted: frozenset[str] = frozenset()) -> None:
        super().__init__({"": Head("", None)})
        self.special: set[str] = set()
        self.scalars: set[str] = set()
        self._opcodes = {"": ""}  # all that most rows are read for
        self._texts: dict[str, str] = {}
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
        head = Head(sys.intern(opcode), shape, problem, is_wanted, may_be_kept, holds_scalar)
        if len(self) < _MAX_HEADS:
            self[text] = head
            if is_wanted or may_be_kept or problem is not None:
                self.special.add(text)
            if holds_scalar:
                self.scalars.add(text)
        return head

    def with_shared_heads(self, rows: Sequence[Row]) -> list[Row]:
        """The rows, in which heads of one text are one string: they are a fifth of what rows hold, and few are distinct."""
        share = self._texts.setdefault
        if len(self._texts) > _MAX_HEADS:
            self._texts.clear()
        return [(root, name, share(head, head), tail) for root, name, head, tail in rows]

    def opcodes_of(self, texts: Sequence[str]) -> list[str] | None:
        """The opcodes of heads; `None` where one of them is no head."""
        try:
            return list(map(self._opcodes.__getitem__, texts))
        except KeyError:
            pass
        if len(self._opcodes) + len(texts) > _MAX_HEADS:
            self._forget()
        for text in set(texts) - self._opcodes.keys():
            try:
                self._opcodes[text] = self[text].opcode
            except ShapeError:
                return None
        return list(map(self._opcodes.__getitem__, texts))

    def _forget(self) -> None:
        """Makes room: a text may have any number of heads, though that of a compiler has some thousands."""
        self.clear()
        self.special.clear()
        self.scalars.clear()
        self[""], self._opcodes = Head("", None), {"": ""}

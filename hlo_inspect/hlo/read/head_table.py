"""The heads of a module's rows, `shape opcode`: each is parsed once and classified by what it means to the reader."""

from __future__ import annotations

import re
import sys
from typing import NamedTuple

from hlo_inspect.hlo.opcodes import CALLING_OPCODES, TABLE
from hlo_inspect.hlo.values.shape_text import ShapeError, ShapeTable, UnknownTypeError
from hlo_inspect.hlo.values.shapes import ArrayShape, Shape, distinct_arrays
from hlo_inspect.lazy_pattern import lazy_pattern

_MAX_HEADS = 1 << 17
"""A text may have any number of heads, though that of a compiler has some thousands."""

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

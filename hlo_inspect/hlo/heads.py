"""The heads of a module's lines, `shape opcode`: each is parsed once and sorted by what it means for the reader."""

from __future__ import annotations

import re

from hlo_inspect.hlo import opcodes
from hlo_inspect.hlo.instruction import Head, HeadTable
from hlo_inspect.hlo.shapes import Shape, TupleShape, array_leaves

_CALLING = frozenset({"async", "call", "custom-call", "fusion"})  # without asynchronous suffixes
_MAX_HEADS = 1 << 17
_SCALAR = re.compile(r"[su]\d{1,2}|pred", re.ASCII)


class Heads(dict[str, Head]):
    """`shape opcode` -> Head, parsed once for each text.

    `unreadable` are texts that are no head at all, `unknown` those with an opcode, element type or layout that XLA refuses,
    `wanted` those with a wanted opcode, `calling` those with another one that can run a computation of its own (or, as a custom
    call, be wanted for its target), `special` all but the first of these, `parameters` those of parameters, `scalar` those of
    integer scalars and of tuples that hold some. The head of nothing, which stands for the first line of a computation, has no
    opcode.
    """

    def __init__(self, wanted_opcodes: frozenset[str], table: HeadTable | None = None) -> None:
        super().__init__({"": Head("", None)})
        self._table = HeadTable() if table is None else table
        self.opcodes = Opcodes(self)
        self.unreadable: set[str] = set()
        self.unknown: dict[str, tuple[str, str]] = {}
        self.wanted: set[str] = set()
        self.calling: set[str] = set()
        self.special: set[str] = set()
        self.parameters: set[str] = set()
        self.scalar: set[str] = set()
        self._wanted_opcodes = wanted_opcodes

    def __missing__(self, text: str) -> Head:
        head = self._table[text]
        if text in self._table.unreadable:
            self.unreadable.add(text)
            return head
        shape_text = text.rpartition(" ")[0]
        if head.shape is None and shape_text:
            self.unknown[text] = ("HI006", f"unknown element type in {shape_text[:60]}")
        elif not has_fitting_layouts(head.shape):
            self.unknown[text] = ("HI013", f"a layout that does not number each dimension in {shape_text[:60]}")
        if not opcodes.is_known(head.opcode):
            self.unknown[text] = ("HI004", f"unknown opcode {head.opcode!r}")
        if head.opcode in self._wanted_opcodes:
            self.wanted.add(text)
        elif self._wanted_opcodes and opcodes.base_opcode(head.opcode) in _CALLING:
            self.calling.add(text)
        if text in self.wanted or text in self.calling or text in self.unknown:
            self.special.add(text)
        if head.opcode == "parameter":
            self.parameters.add(text)
        if holds_scalar(head.shape):
            self.scalar.add(text)
        if len(self) < _MAX_HEADS:
            self[text] = head
        return head


class Opcodes(dict[str, str]):
    """The opcode of each of the `heads`, which is all that most rows are read for."""

    def __init__(self, heads: Heads) -> None:
        super().__init__()
        self._heads = heads

    def __missing__(self, text: str) -> str:
        opcode = self._heads[text].opcode
        if text in self._heads:
            self[text] = opcode
        return opcode


def has_fitting_layouts(shape: Shape | None) -> bool:
    """Whether each array's layout, where it has one, numbers as many dimensions as there are."""
    return all(
        leaf.layout is None or len(leaf.layout.minor_to_major) == len(leaf.dimensions) for _, leaf in array_leaves(shape)
    )


def holds_scalar(shape: Shape | None) -> bool:
    """Whether a shape is an integer or truth value without dimensions, or a tuple with one in it."""
    if isinstance(shape, TupleShape):
        return any(map(holds_scalar, shape.elements))
    return shape is not None and not shape.dimensions and _SCALAR.fullmatch(shape.dtype) is not None

"""A row as the rules of costs read it, the sizes of shapes, and the computations that a row calls.

Raise UnknownCostError if the text lacks the input of a rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from hlo_inspect.analysis.cost.figures import NOT_MOVED, CostGap, MissingAttributeError, UnknownCostError
from hlo_inspect.graph.view import View
from hlo_inspect.hlo import tokens
from hlo_inspect.hlo.instruction import Instruction
from hlo_inspect.hlo.opcodes import OPCODES, TABLE, opcodes_that_call
from hlo_inspect.hlo.values.attributes import IntegersAttribute, MalformedValue, WindowDimension
from hlo_inspect.hlo.values.shapes import ArrayShape, Shape, TupleShape, subshape

DYNAMIC_DIMENSION_BYTES = 4
"""Bytes of the size of a dynamic dimension, an s32, which the CPU and GPU backends keep beside the array."""

Counted = Literal["running", "fused", "applied"]
"""The role of a computation in a count: it runs itself, is fused into one kernel, or is applied to elements."""

APPLYING = frozenset(name for name in opcodes_that_call("applied") & OPCODES if not TABLE[name].collective) - {"sort"}
"""Opcodes whose cost is the cost of the computation that they apply.

XLA does not count the computation of a sort or a collective.
"""

RUNNERS = frozenset(
    opcode for opcode in opcodes_that_call("run", "body", "condition", "branch") if not TABLE[opcode].is_wrapper
)
"""Opcodes that run other computations and do nothing else."""

_WRAPPED = {opcode.name: opcode.base for opcode in TABLE.values() if opcode.is_wrapper and opcode.half == "start"}
CALLERS = RUNNERS | APPLYING | {"fusion"}
"""Opcodes that call computations which add to their cost."""


def _callee_roles(runners: Counted) -> dict[str, Counted]:
    """Map opcodes and their short spellings to the role of their callees; callees of `RUNNERS` have the role `runners`."""
    counted: dict[str, Counted] = dict.fromkeys(APPLYING, "applied")
    counted |= dict.fromkeys(RUNNERS, runners) | {"fusion": "fused"}
    return counted | {spelled: counted[opcode] for spelled, opcode in _WRAPPED.items() if opcode in counted}


_COUNTED: dict[Counted, dict[str, Counted]] = {
    "running": _callee_roles("running"),
    "fused": _callee_roles("applied"),
    "applied": _callee_roles("applied"),
}


class Operation:
    """A row of a view.

    A short spelling `X-start` of an asynchronous operation stands for the `X` that it wraps, with the opcode and shape of `X`.
    """

    __slots__ = ("index", "opcode", "view")

    def __init__(self, view: View, index: int) -> None:
        self.view = view
        self.index = index
        self.opcode = wrapped(view.opcodes[index])
        if view.whole_operands(index) is None:
            self.instruction  # noqa: B018 - its operands may not be closed

    @property
    def instruction(self) -> Instruction:
        """The instruction. Raise UnknownCostError if its operands are not closed."""
        try:
            return self.view.instruction(self.index)
        except tokens.ScanError as error:
            raise UnknownCostError(error.message) from None

    @property
    def shape(self) -> Shape:
        shape = self.view.shapes[self.index]
        if shape is not None and self.opcode != self.view.opcodes[self.index]:
            shape = subshape(shape, (1,))
        if shape is None:
            raise UnknownCostError("the shape cannot be read")
        return shape

    @property
    def array(self) -> ArrayShape:
        """The shape of the result, or of its first array."""
        return first_array(self.shape)

    @property
    def operand_count(self) -> int:
        """The number of operands. Raise UnknownCostError if the text leaves some out."""
        if self.view.omits_operands(self.index):
            raise UnknownCostError("the text leaves out its operands")
        return len(self.view.operand_rows(self.index))

    def operand_shape(self, number: int) -> Shape:
        """Return the shape of an operand: from its definition, else as printed.

        Raise UnknownCostError if it is unknown.
        """
        if number >= len(self.view.operand_rows(self.index)):
            raise UnknownCostError(f"operand {number} is missing")
        shape = self.view.operand_shape(self.index, number)
        if shape is None:
            operand = self.view.operand(self.index, number)
            name = (operand.name if operand is not None else None) or "(without a name)"
            raise UnknownCostError(f"the shape of operand {name} is unknown")
        return shape

    def operand_array(self, number: int) -> ArrayShape:
        """Return the shape of an operand, or of its first array."""
        return first_array(self.operand_shape(number))

    def operand_shapes(self) -> Sequence[Shape]:
        shapes = self.view.operand_shapes(self.index) if self.view.whole_operands(self.index) is not None else [None]
        defined = [shape for shape in shapes if shape is not None]
        if len(defined) == len(shapes):  # as most
            return defined
        return [self.operand_shape(number) for number in range(self.operand_count)]

    def integers(self, attribute: IntegersAttribute) -> tuple[int, ...]:
        """Return the numbers of a list `{0,1}`; empty if the attribute is missing, as printers leave out empty lists."""
        return self.instruction.attr(attribute) or ()

    def require(self, attribute: str) -> None:
        """Raise UnknownCostError if an attribute that every instruction of the opcode has is missing or invalid."""
        value = self.instruction.value(attribute)
        if value is None:
            raise MissingAttributeError(attribute)
        if isinstance(value, MalformedValue):
            raise UnknownCostError(f"its {attribute} cannot be read")

    @property
    def window(self) -> tuple[WindowDimension, ...]:
        """The dimensions of the window; empty if the attribute is missing, as for scalars."""
        if isinstance(self.instruction.value("window"), MalformedValue):
            raise UnknownCostError("its window cannot be read")
        return self.instruction.attr("window") or ()

    @property
    def custom_call_target(self) -> str:
        return self.instruction.attr("custom_call_target") or ""


def row_gap(view: View, index: int, error: UnknownCostError) -> CostGap:
    """Return the gap that an error leaves at a row."""
    return error.gap or CostGap(view.lines[index], f"{view.rows[index][1]}: {error.reason}")


# -- computations that a row calls --------------------------------------------------------------------------------------------


def callees(view: View, row: int, caller: Counted) -> list[tuple[Counted, str]]:
    """Return the computations whose cost adds to that of a row, with their roles; `caller` is the role of its own computation.

    Computations that run inside a fused or applied computation touch no memory of their own: they count as applied.
    """
    counted = _COUNTED[caller].get(view.opcodes[row])
    return [(counted, name) for name in _called(view, row)] if counted is not None else []


def _called(view: View, row: int) -> list[str]:
    try:
        return view.called_names(row)
    except tokens.ScanError as error:
        raise UnknownCostError(error.message) from None


def callee_names(view: View, row: int) -> list[str]:
    """Return the names of the computations that a row runs or fuses. Raise UnknownCostError if it names none."""
    called = _called(view, row)
    if not called:
        raise UnknownCostError("it does not name the computation that it calls")
    return called


def wrapped(opcode: str) -> str:
    """Return the `X` of a short spelling `X-start`; any other opcode unchanged."""
    return _WRAPPED.get(opcode, opcode)


# -- sizes --------------------------------------------------------------------------------------------------------------------


def first_array(shape: Shape) -> ArrayShape:
    while isinstance(shape, TupleShape):
        if not shape.elements:
            raise UnknownCostError("an empty tuple is given instead of an array")
        shape = shape.elements[0]
    return shape


def elements(shape: Shape | None) -> int:
    """Return the elements of an array (`ShapeUtil::ElementsIn`), a bounded dimension counted with its bound."""
    count = shape.elements if isinstance(shape, ArrayShape) else None
    if count is None:
        raise UnknownCostError(f"{'a shape that cannot be read' if shape is None else shape} has no known number of elements")
    return count


TUPLE_ENTRY_BYTES = 4


def dimension(shape: ArrayShape, index: int) -> int:
    size = shape.dimensions[index] if 0 <= index < len(shape.dimensions) else None
    if size is None:
        raise UnknownCostError(f"dimension {index} of {shape} is unknown")
    return size


def shape_size(shape: Shape | None) -> int:
    """Return the bytes of a shape, as `HloCostAnalysis::GetShapeSize` with the sizes of the CPU client.

    A tuple counts with its table of pointers only, 4 bytes an element as since jaxlib 0.11 (8 before).
    """
    if isinstance(shape, TupleShape):
        return TUPLE_ENTRY_BYTES * len(shape.elements)
    size = shape.bytes if shape is not None else None
    if shape is None or size is None:
        raise UnknownCostError(f"{shape} has no known size")
    return size + DYNAMIC_DIMENSION_BYTES * len(shape.dimensions) if shape.dynamic else size


@dataclass(slots=True)
class Traffic:
    """Bytes that are read and written.

    `spaces` holds those outside the default memory, by the memory space of the layout, and those that are `NOT_MOVED`.
    """

    bytes: int = 0
    spaces: dict[int, int] = field(default_factory=dict)

    def add(self, size: int, shape: Shape | None) -> None:
        """Add bytes of an array, or of a tuple's table of pointers."""
        self.bytes += size
        space = shape.memory_space if isinstance(shape, ArrayShape) else NOT_MOVED
        if space and size:
            self.spaces[space] = self.spaces.get(space, 0) + size

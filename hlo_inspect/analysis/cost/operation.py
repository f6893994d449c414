"""An instruction as the rules see it, and the computations that it calls.

What a rule needs and the text does not tell raises `UnknownCostError`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Literal, Protocol

from hlo_inspect.analysis.cost.model import UnknownCostError
from hlo_inspect.hlo import dtypes, scan
from hlo_inspect.hlo.instruction import Instruction
from hlo_inspect.hlo.opcodes import OPCODES
from hlo_inspect.hlo.shapes import ArrayShape, Shape, TupleShape, subshape

DYNAMIC_DIMENSION_BYTES = 4
"""The CPU and GPU backends keep the size of each dimension, an s32, beside an array that has a dynamic one."""

_INTEGER = re.compile(r"\d{1,18}", re.ASCII)
_START = "-start"

Role = Literal["running", "fused", "applied"]
"""A computation runs itself, is fused into one kernel, or is applied to elements."""

CALLERS: dict[str, tuple[Role, tuple[str, ...]]] = {
    "fusion": ("fused", ("calls",)),
    "call": ("running", ("to_apply",)),
    "async-start": ("running", ("calls",)),
    "while": ("running", ("body", "condition")),
    "conditional": ("running", ("true_computation", "false_computation", "branch_computations")),
    "map": ("applied", ("to_apply",)),
    "reduce": ("applied", ("to_apply",)),
    "scan": ("applied", ("to_apply",)),
    "scatter": ("applied", ("to_apply",)),
    "reduce-window": ("applied", ("to_apply",)),
    "select-and-scatter": ("applied", ("select", "scatter")),
}
"""Opcodes that call computations which add to their cost: in which role, by which attributes."""

RUNNERS = frozenset(opcode for opcode, (role, _) in CALLERS.items() if role == "running")
"""Opcodes that run other computations and do nothing else."""


class Shapes(Protocol):
    """What knows the shapes that instructions are defined with, by name."""

    @property
    def shapes(self) -> Mapping[str, Shape | None]: ...


class Operation:
    """One instruction with what its operands are.

    A short spelling `X-start` of an asynchronous operation stands for the `X` that it wraps: `opcode` and `shape` are that
    one's. `uses` are the operands as they are spelled, `definitions` those of the same computation.
    """

    __slots__ = ("_attributes", "_callees", "definitions", "instruction", "opcode", "uses")

    def __init__(self, instruction: Instruction, uses: Sequence[str], definitions: Shapes) -> None:
        self.instruction = instruction
        self.uses = uses
        self.definitions = definitions
        self.opcode = wrapped(instruction.opcode)
        self._attributes: dict[str, str] | None = None
        self._callees: dict[str, tuple[str, ...]] | None = None

    @property
    def shape(self) -> Shape:
        shape = self.instruction.shape
        if shape is not None and self.opcode != self.instruction.opcode:
            shape = subshape(shape, (1,))
        if shape is None:
            raise UnknownCostError("the shape cannot be read")
        return shape

    @property
    def array(self) -> ArrayShape:
        """The shape of the result, or of its first array."""
        return first_array(self.shape)

    @property
    def attributes(self) -> dict[str, str]:
        if self._attributes is None:
            self._attributes = self.instruction.attributes
        return self._attributes

    @property
    def callees(self) -> dict[str, tuple[str, ...]]:
        """The names of the computations that each attribute calls."""
        if self._callees is None:
            self._callees = self.instruction.callees(self.attributes)
        return self._callees

    def operand_shape(self, index: int) -> Shape:
        """The shape of an operand: that of its definition, else the one that is printed."""
        if index >= len(self.uses):
            raise UnknownCostError(f"operand {index} is missing")
        name, *path = self.uses[index].split("#")
        defined = self.definitions.shapes.get(name)
        if defined is not None:
            shape = subshape(defined, map(int, path))
        else:
            shape = self.instruction.computation.values.shapes.get(self.instruction.operands[index].shape)
        if shape is None:
            raise UnknownCostError(f"the shape of operand {name or '(without a name)'} is not known")
        return shape

    def operand_array(self, index: int) -> ArrayShape:
        """The shape of an operand, or of its first array."""
        return first_array(self.operand_shape(index))

    def operand_shapes(self) -> list[Shape]:
        return [self.operand_shape(index) for index in range(len(self.uses))]

    def integers(self, attribute: str) -> tuple[int, ...]:
        """The numbers of a list `{0,1}`; none where the attribute is missing, as printers leave out empty lists."""
        return tuple(map(int, _INTEGER.findall(self.attributes.get(attribute, ""))))

    def integer(self, attribute: str, default: int) -> int:
        numbers = self.integers(attribute)
        return numbers[0] if numbers else default

    @property
    def custom_call_target(self) -> str:
        return scan.unquote(self.attributes.get("custom_call_target", ""))


def callees(op: Operation, caller: Role) -> list[tuple[Role, str]]:
    """The computations that an operation calls and the role in which they count.

    What runs inside of a fused or applied computation touches no memory of its own: it counts as applied.
    """
    if op.opcode not in CALLERS:
        return []
    role, attributes = CALLERS[op.opcode]
    if role == "running" and caller != "running":
        role = "applied"
    called = op.callees
    return [(role, name) for attribute in attributes for name in called.get(attribute, ())]


def wrapped(opcode: str) -> str:
    """The `X` of a short spelling `X-start`; any other opcode as it is."""
    if opcode.endswith(_START) and opcode not in OPCODES:
        return opcode.removesuffix(_START)
    return opcode


def first_array(shape: Shape) -> ArrayShape:
    while isinstance(shape, TupleShape):
        if not shape.elements:
            raise UnknownCostError("an empty tuple stands where an array is needed")
        shape = shape.elements[0]
    return shape


def elements(shape: Shape | None) -> int:
    """Elements of an array (`ShapeUtil::ElementsIn`), a bounded dimension counted with its bound."""
    count = shape.elements if isinstance(shape, ArrayShape) else None
    if count is None:
        raise UnknownCostError(f"{'a shape that cannot be read' if shape is None else shape} has no known number of elements")
    return count


def dimension(shape: ArrayShape, index: int) -> int:
    size = shape.dimensions[index] if index < len(shape.dimensions) else None
    if size is None:
        raise UnknownCostError(f"dimension {index} of {shape} is not known")
    return size


def shape_size(shape: Shape | None) -> int:
    """`HloCostAnalysis::GetShapeSize` with the sizes of the CPU client: of a tuple only its table of pointers counts."""
    if isinstance(shape, TupleShape):
        return dtypes.POINTER_BYTES * len(shape.elements)
    size = shape.bytes if shape is not None else None
    if shape is None or size is None:
        raise UnknownCostError(f"{shape} has no known size")
    return size + DYNAMIC_DIMENSION_BYTES * len(shape.dimensions) if shape.dynamic else size


def leaf_size(shape: Shape) -> int:
    """The sizes of all leaves of a shape, without the tables of its tuples."""
    if isinstance(shape, TupleShape):
        return sum(map(leaf_size, shape.elements))
    return shape_size(shape)

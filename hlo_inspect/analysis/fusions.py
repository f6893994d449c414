"""Fusions: kind, root, fused instructions, bytes of operands and results."""

from __future__ import annotations

from collections import Counter
from itertools import chain
from typing import NamedTuple

from hlo_inspect.analysis.op_names import Origin, origin_of
from hlo_inspect.hlo.header import StackFrames
from hlo_inspect.hlo.instruction import Instruction
from hlo_inspect.hlo.module import Computation, Module
from hlo_inspect.hlo.shapes import TupleShape, total

OPCODES = frozenset({"fusion", "custom-call"})
"""What has to be kept of a module, with the shapes of the operands."""


class Fusion(NamedTuple):
    """One fusion instruction. `callee` is `None` where the text does not hold the fused computation. `is_multi_output`: its
    root is a tuple, as `HloInstruction::IsMultiOutputFusion` has it.
    """

    instruction: Instruction
    kind: str
    callee: Computation | None
    is_multi_output: bool
    operand_bytes: int | None
    result_bytes: int | None
    frames: StackFrames

    @property
    def origin(self) -> Origin:
        return origin_of(self.instruction, self.frames)

    @property
    def instructions(self) -> int | None:
        """How many instructions the fused computation has."""
        return len(self.callee.opcodes) if self.callee else None

    @property
    def moved(self) -> int:
        """Bytes of operands and results; one that is not known counts nothing."""
        return (self.operand_bytes or 0) + (self.result_bytes or 0)

    @property
    def outputs(self) -> int:
        shape = self.instruction.shape
        return 0 if shape is None else shape.arrays

    @property
    def root_opcode(self) -> str | None:
        return self.callee.root_opcode if self.callee else None


def find_fusions(module: Module) -> list[Fusion]:
    """Every fusion instruction of `module`, in the order of the text."""
    found = []
    for instruction in module.with_opcodes(frozenset({"fusion"})):
        kind, name = instruction.attr("kind"), instruction.callee("calls")
        callee = module.computations.get(name) if name is not None else None
        root = callee.root_opcode if callee is not None else None
        is_multi_output = root == "tuple" if root is not None else isinstance(instruction.shape, TupleShape)
        sizes = operand_bytes(instruction), result_bytes(instruction)
        found.append(Fusion(instruction, kind or "", callee, is_multi_output, *sizes, module.frames))
    return found


def fused_opcodes(fusions: list[Fusion]) -> Counter[str]:
    """Instructions of each opcode inside of fused computations, each computation once."""
    callees = {f.callee.name: f.callee for f in fusions if f.callee is not None}
    return Counter(chain.from_iterable(callee.opcodes for callee in callees.values()))


class CustomCall(NamedTuple):
    """One custom-call instruction and the name of what it calls."""

    instruction: Instruction
    target: str
    operand_bytes: int | None
    result_bytes: int | None


def find_custom_calls(module: Module) -> list[CustomCall]:
    """Every custom call of `module`, in the order of the text."""
    return [
        CustomCall(
            i,
            i.attr("custom_call_target") or "",
            operand_bytes(i),
            result_bytes(i),
        )
        for i in module.with_opcodes(frozenset({"custom-call"}))
    ]


def operand_bytes(instruction: Instruction) -> int | None:
    """Bytes of the arrays of all operands; an operand that is used twice counts twice."""
    return total([None if shape is None else shape.array_bytes for shape in instruction.operand_shapes])


def result_bytes(instruction: Instruction) -> int | None:
    """Bytes of the arrays of the result."""
    return None if instruction.shape is None else instruction.shape.array_bytes

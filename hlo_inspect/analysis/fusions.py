"""Fusions: kind, root, fused instructions, bytes of operands and results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from hlo_inspect.analysis.op_names import Origin, origin_of
from hlo_inspect.hlo.attribute_forms import printed_fusion
from hlo_inspect.hlo.instruction import Instruction
from hlo_inspect.hlo.module import Computation, Module
from hlo_inspect.hlo.rows import KeptRow
from hlo_inspect.hlo.shapes import TupleShape, total
from hlo_inspect.hlo.values import Metadata

OPCODES = frozenset({"fusion", "custom-call"})
"""What has to be kept of a module, with the shapes of the operands."""

_FUSION = frozenset({"fusion"})


class Fusion(NamedTuple):
    """One fusion instruction of a module. What is not a field is looked up each time."""

    instruction: Instruction
    kind: str
    module: Module

    @property
    def origin(self) -> Origin:
        return origin_of(self.instruction, self.module.frames)

    @property
    def callee(self) -> Computation | None:
        """The fused computation; `None` where the text does not hold it."""
        name = self.instruction.callee("calls")
        return self.module.computations.get(name) if name is not None else None

    @property
    def is_multi_output(self) -> bool:
        """Whether the root is a tuple, as `HloInstruction::IsMultiOutputFusion` has it. Only then the result is one."""
        return isinstance(self.instruction.shape, TupleShape) and _gives_tuple(self.callee)

    @property
    def operand_bytes(self) -> int | None:
        return operand_bytes(self.instruction)

    @property
    def result_bytes(self) -> int | None:
        return result_bytes(self.instruction)

    @property
    def outputs(self) -> int:
        shape = self.instruction.shape
        return 0 if shape is None else shape.arrays


def find_fusions(module: Module) -> list[Fusion]:
    """Every fusion instruction of `module`, in the order of the text."""
    return [Fusion(i, i.attr("kind") or "", module) for i in module.with_opcodes(_FUSION)]


def metadata_of_fusions(module: Module) -> Iterator[Metadata]:
    """The metadata that fusions have, with repetitions. Rows of one metadata are made an instruction once."""
    known: set[str] = set()
    for computation in module.holding:
        for index, kept in enumerate(computation.kept):
            if kept.opcode != "fusion":
                continue
            if isinstance(kept, KeptRow) and '"' not in kept.text:  # else the text may be cut within a string
                if kept.metadata in known or not (kept.metadata or "metadata" in kept.text):
                    continue
                if kept.metadata:
                    known.add(kept.metadata)
            metadata = computation.instruction(index).attr("metadata")
            if metadata is not None:
                yield metadata


class FusionKind(NamedTuple):
    """How many fusions of a kind there are, and how many of these are multi-output."""

    kind: str
    members: int
    multi_output: int


def fusion_kinds(module: Module) -> list[FusionKind]:
    """The kinds of fusions, in the order of the text. What is printed as most fusions are is made no instruction for it."""
    kinds: Counter[str] = Counter()
    multi_output: Counter[str] = Counter()
    for computation in module.holding:
        for index, kept in enumerate(computation.kept):
            if kept.opcode == "fusion":
                kind, callee = _kind_and_callee(computation, index)
                kinds[kind] += 1
                multi_output[kind] += isinstance(kept.shape, TupleShape) and _gives_tuple(module.computations.get(callee))
    return [FusionKind(kind, members, multi_output[kind]) for kind, members in kinds.items()]


def _kind_and_callee(computation: Computation, index: int) -> tuple[str, str]:
    """Of a fusion that was kept."""
    kept = computation.kept[index]
    kind, callee = (isinstance(kept, KeptRow) and printed_fusion(kept.text)) or (None, "")
    if kind:
        return kind, callee
    fusion = computation.instruction(index)
    return fusion.attr("kind") or "", fusion.callee("calls") or ""


def _gives_tuple(callee: Computation | None) -> bool:
    """Whether the root of a fused computation is a tuple, as far as is known."""
    return callee is None or callee.root_opcode in (None, "tuple")


def custom_call_targets(module: Module) -> Counter[str]:
    """How many custom calls of each target there are, in the order of the text."""
    return Counter([call.attr("custom_call_target") or "" for call in module.with_opcodes(frozenset({"custom-call"}))])


def operand_bytes(instruction: Instruction) -> int | None:
    """Bytes of the arrays of all operands; an operand that is used twice counts twice. `None` where the operands were not read,
    too.
    """
    shapes = instruction.operand_shapes
    return None if shapes is None else total([None if shape is None else shape.array_bytes for shape in shapes])


def result_bytes(instruction: Instruction) -> int | None:
    """Bytes of the arrays of the result."""
    return None if instruction.shape is None else instruction.shape.array_bytes

"""Which unit of the hardware does an instruction's work, as hardware profiles name it: `matmul.bf16`, `vector.f32`.

Matrix multiplications run on the matrix unit in the wider type of their operands, everything else on the vector unit in the
type of the result, comparisons in that of what they compare. Integers narrower than 32 bits and predicates take the vector
unit's 32-bit lanes.
"""

from __future__ import annotations

from functools import lru_cache

from hlo_inspect.analysis.cost.model import Part, UnknownCostError, Work
from hlo_inspect.analysis.cost.operation import Operation, first_array
from hlo_inspect.hlo import dtypes

COMPARING = frozenset({"compare", "is-finite"})
"""Opcodes whose result says nothing of the type in which they compute."""

_FLOATS = {"f64": "f64", "f32": "f32", "bf16": "bf16", "f16": "f16"}
_MATMUL = _FLOATS | {"s32": "s32", "u32": "s32", "s8": "s8", "u8": "s8", "s4": "s4", "u4": "s4"}
_VECTOR = _FLOATS | dict.fromkeys(["pred", *(f"{sign}{bits}" for sign in "su" for bits in (1, 2, 4, 8, 16, 32))], "s32")


def part_of(op: Operation, work: Work) -> Part:
    """Where an instruction's work belongs."""
    try:
        if work.matmul_flops:
            return Part(op.opcode, matmul_unit(op.operand_array(0).dtype, op.operand_array(1).dtype))
        shape = op.operand_shape(0) if op.opcode in COMPARING else op.shape
        return elementwise_part(op.opcode, first_array(shape).dtype)
    except UnknownCostError:
        return Part(op.opcode)


@lru_cache(maxsize=1024)
def elementwise_part(opcode: str, dtype: str) -> Part:
    name = _name(_VECTOR, dtype)
    return Part(opcode, f"vector.{name}") if name else Part(opcode)


def matmul_unit(lhs: str, rhs: str) -> str:
    """The unit that multiplies matrices of two types."""
    wider = max(lhs, rhs, key=lambda dtype: dtypes.BITS.get(dtype, 0))
    name = _name(_MATMUL, wider)
    return f"matmul.{name}" if name else ""


def _name(names: dict[str, str], dtype: str) -> str:
    """A type as profiles call it; nothing for one that they have no figure for."""
    if dtype.startswith("f8"):
        return "f8"
    return names.get(dtype, "")

"""Matrix multiplications of libraries: cuBLAS, cuBLASLt and what AMD's libraries run under the same names, block-scaled dots,
oneDNN and TransformerEngine.

Two FLOPs for each multiply-add, as `HloCostAnalysis::GetDotFlops`; alpha, beta and epilogues are not counted, as in
`GpuHloCostAnalysis::HandleCustomCall`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from hlo_inspect.analysis.cost.custom_calls.call_cost import CallCost, Rule, config_of, matmul_cost, whole
from hlo_inspect.analysis.cost.figures import UnknownCostError
from hlo_inspect.analysis.cost.operation import Operation, dimension, elements
from hlo_inspect.analysis.cost.work import dot_flops
from hlo_inspect.hlo.values.shapes import ArrayShape


def _gemm(op: Operation) -> CallCost:
    """The dot that `GemmBackendConfig` describes; texts of 2023 have it without an object round it."""
    config = config_of(op)
    return matmul_cost(op, _dot(op, config.member("gemm_backend_config") or config.fields))


def _grouped_gemm(op: Operation) -> CallCost:
    """`lhs[m,k]`, `rhs[g,k,n]`: each row is multiplied by the matrix of its group; rows beyond the last group count."""
    gemm = config_of(op).member("grouped_gemm_backend_config").get("gemm_backend_config")
    return matmul_cost(op, _dot(op, gemm if isinstance(gemm, dict) else {}), at_full_lengths=True)


def _dot(op: Operation, gemm: Mapping[str, Any]) -> int:
    numbers = gemm.get("dot_dimension_numbers")
    contracting = numbers.get("lhs_contracting_dimensions") if isinstance(numbers, dict) else None
    if not isinstance(contracting, list) or not all(_is_dimension(one) for one in contracting):
        raise UnknownCostError("its backend_config does not state what it contracts (lhs_contracting_dimensions)")
    return dot_flops(op.operand_array(0), elements(op.array), tuple(map(int, contracting)))


def _is_dimension(number: object) -> bool:
    """Whether JSON holds the number of a dimension, as a number or as a string."""
    return str(number).isdecimal() and len(str(number)) < 4


def _block_scaled_dot(op: Operation) -> CallCost:
    """Operands `lhs`, `rhs` and their scales; the last dimension of both is contracted (`block_scaling_rewriter.h`)."""
    lhs = op.operand_array(0)
    return matmul_cost(op, dot_flops(lhs, elements(op.array), _last_of(lhs, 1)), "shapes")


def _onednn(op: Operation) -> CallCost:
    """The last dimension of the first operand is contracted, the one before when that is transposed."""
    transposed = config_of(op).member("onednn_matmul_config").get("transpose_a") is True
    lhs = op.operand_array(0)
    return matmul_cost(op, dot_flops(lhs, elements(op.array), _last_of(lhs, 1 + transposed)))


def _last_of(lhs: ArrayShape, back: int) -> tuple[int]:
    if len(lhs.dimensions) < back:
        raise UnknownCostError("its first operand is no matrix")
    return (len(lhs.dimensions) - back,)


def _te_gemm(op: Operation) -> CallCost:
    """TransformerEngine's `GemmPrimitive`: `lhs_axis_boundary` splits the dimensions of `lhs` into rows and what is contracted,
    which comes first where `lhs_transposed`.
    """
    fields = config_of(op)
    config = fields.member("config") or fields.fields
    lhs = op.operand_array(0)
    boundary = whole(config, "lhs_axis_boundary")
    if not 0 <= boundary <= len(lhs.dimensions):
        raise UnknownCostError(f"lhs_axis_boundary in its backend_config is {boundary}, of {len(lhs.dimensions)} dimensions")
    transposed = config.get("lhs_transposed") is True
    contracting = range(boundary) if transposed else range(boundary, len(lhs.dimensions))
    return matmul_cost(op, dot_flops(lhs, elements(op.array), tuple(contracting)))


def _te_grouped_gemm(op: Operation) -> CallCost:
    """`lhs[m,k]`, `rhs[g,k,n]`, from which each row of `lhs` is taken once: an upper bound where groups do not fill `m`. Data
    that is flattened to one dimension does not tell.
    """
    lhs, result = op.operand_array(0), op.array
    if len(lhs.dimensions) < 2 or len(result.dimensions) < 2:
        raise UnknownCostError("its operands are flattened to one dimension")
    rows = math.prod(dimension(result, i) for i in range(len(result.dimensions) - 1))
    if not rows or elements(lhs) % rows:
        raise UnknownCostError("the rows of its first operand are not those of its result")
    return matmul_cost(op, 2 * elements(result) * (elements(lhs) // rows), "shapes", at_full_lengths=True)


RULES: dict[str, Rule] = {
    "__cublas$gemm": _gemm,
    "__cublas$lt$matmul": _gemm,
    "__cublas$lt$matmul$f8": _gemm,
    "__cublas$lt$matmul$mx": _gemm,
    "__cublas$lt$groupedMatmul": _grouped_gemm,
    "__op$block_scaled_dot": _block_scaled_dot,
    "__cudnn$blockScaledDot": _block_scaled_dot,
    "__onednn$matmul": _onednn,
    "te_gemm_ffi": _te_gemm,
    "te_gemm_v2_ffi": _te_gemm,
    "te_grouped_gemm_ffi": _te_grouped_gemm,
    "te_grouped_gemm_v2_ffi": _te_grouped_gemm,
}

"""Routines of libraries: linear algebra and sorting, convolutions and normalizations, matrix multiplications.

Factorizations and solvers come from LAPACK, cuSOLVER, hipSOLVER and TPUs. Counts are leading terms of LAPACK Working Note 41,
appendix, for real matrices; complex matrices take four times these counts. Cholesky and triangular solves count as XLA counts
those opcodes (`HandleCholesky`, `HandleTriangularSolve`). Eigenvalues and singular values are found by iteration, which has no
count.

Matrix multiplications come from cuBLAS, cuBLASLt, AMD's libraries under the same names, oneDNN and TransformerEngine, and from
block-scaled dots. Each multiply-add is two FLOPs, as in `HloCostAnalysis::GetDotFlops`. Alpha, beta and epilogues are not
counted, as in `GpuHloCostAnalysis::HandleCustomCall`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from hlo_inspect.analysis.cost.custom_calls.call_cost import CallCost, Rule, config_of, matmul_cost, matrices, plain_cost, whole
from hlo_inspect.analysis.cost.figures import UnknownCostError
from hlo_inspect.analysis.cost.operation import Operation, dimension, elements
from hlo_inspect.analysis.cost.work import convolution_flops, dot_flops
from hlo_inspect.hlo.values.shapes import ArrayShape
from hlo_inspect.lazy_pattern import lazy_pattern

_LIBRARY = lazy_pattern(r"(?:lapack|blas|cusolver|cublas|hipsolver|hipblas)_([a-z]+?)(?:_batched)?(?:_ffi)?", re.ASCII)
_TYPED = lazy_pattern(r"[sdcz]", re.ASCII)
_COMPLEX = 4


def _sizes(shape: ArrayShape) -> tuple[int, int, int]:
    """Return the number of matrices, and the rows and columns of each; a complex matrix counts as four."""
    rank = len(shape.dimensions)
    batch = math.prod(dimension(shape, i) for i in range(rank - 2))
    return batch * (_COMPLEX if shape.dtype.startswith("c") else 1), dimension(shape, rank - 2), dimension(shape, rank - 1)


def _third(count: int) -> int:
    """Return a third, rounded to the nearest whole number."""
    return (count + 1) // 3


def _cholesky(op: Operation) -> int:
    batch, rows, columns = _sizes(matrices(op, 1)[0])
    return batch * rows * columns * columns // 3


def _lu(op: Operation) -> int:
    """Count m·n² - n³/3, for m rows and n columns of a matrix that is not wider than high."""
    batch, *sides = _sizes(matrices(op, 1)[0])
    m, n = max(sides), min(sides)
    return _third(batch * (3 * m * n * n - n**3))


def _qr(op: Operation) -> int:
    """Count 2·m·n² - 2/3·n³; Q from n reflectors takes the same."""
    batch, *sides = _sizes(matrices(op, 1)[0])
    m, n = max(sides), min(sides)
    return _third(batch * (6 * m * n * n - 2 * n**3))


def _apply_q(op: Operation) -> int:
    """Count 2·n·k·(2·m - k): k reflectors applied to a matrix of m rows and n columns, from the left."""
    reflectors, matrix = matrices(op, 2)
    _, _, k = _sizes(reflectors)
    batch, m, n = _sizes(matrix)
    return batch * 2 * n * k * max(0, 2 * m - k)


def _triangular_solve(op: Operation) -> int:
    """Count two FLOPs for each element of the right-hand sides and row of the triangle."""
    triangle, sides = matrices(op, 2)
    scale, _, columns = _sizes(triangle)
    return 2 * columns * elements(sides) * (_COMPLEX if scale and triangle.dtype.startswith("c") else 1)


def _to_bands(op: Operation, factor: int) -> int:
    """Count `factor`/3·n³: 10/3·n³ to a Hessenberg matrix, 4/3·n³ to a tridiagonal one."""
    batch, _, n = _sizes(matrices(op, 1)[0])
    return _third(batch * factor * n**3)


def _rank_k_update(op: Operation) -> int:
    """Count A·Aᵀ of n rows and k columns, one triangle of it."""
    batch, n, k = _sizes(matrices(op, 1)[0])
    return batch * n * (n + 1) * k


_ROUTINES: dict[str, tuple[Callable[[Operation], int], bool]] = {
    "potrf": (_cholesky, True),
    "getrf": (_lu, False),
    "geqrf": (_qr, False),
    "geqp3": (_qr, False),
    "orgqr": (_qr, False),
    "ungqr": (_qr, False),
    "ormqr": (_apply_q, False),
    "unmqr": (_apply_q, False),
    "trsm": (_triangular_solve, True),
    "gehrd": (partial(_to_bands, factor=10), False),
    "sytrd": (partial(_to_bands, factor=4), False),
    "hetrd": (partial(_to_bands, factor=4), False),
    "syrk": (_rank_k_update, False),
}
"""The FLOPs of a routine by its name, and True if XLA counts the same."""


def _routine(op: Operation, name: str) -> CallCost:
    flops, is_as_xla = _ROUTINES[name]
    return plain_cost(op, flops(op), "shapes" if is_as_xla else "leading term")


def _on_tpu(op: Operation, name: str) -> CallCost:
    """Return the cost of a TPU's routine, which works in blocks, partly by matrix multiplications."""
    return _routine(op, name)._replace(has_matmuls_known=False)


def library_rule(target: str) -> Rule | None:
    """Return the rule of a routine, such as `lapack_spotrf_ffi`, `cusolver_potrf_ffi`, `blas_dtrsm`; None for other targets."""
    match = _LIBRARY.fullmatch(target)
    if match is None:
        return None
    name = match[1]
    if name not in _ROUTINES and _TYPED.match(name):
        name = name[1:]
    return partial(_routine, name=name) if name in _ROUTINES else None


def _sort(op: Operation) -> CallCost:
    """Count n·ceil(log2 n) for the n elements of the first operand (`HloCostAnalysis::HandleSort`)."""
    count = elements(op.operand_array(0))
    return plain_cost(op, count * max(0, count - 1).bit_length())


def _scan(op: Operation) -> CallCost:
    """Count one operation an element."""
    return plain_cost(op, elements(op.operand_array(0)))


_COMPARING = (
    "TopK",
    "__gpu$TopK",
    "PartialReduce",
    "ApproxTopK",
    "xla.gpu.ext.cub_sort_unassigned_scratch_size",
    "cu_lu_pivots_to_permutation",
    "cu_threefry2x32_ffi",
    "cu_threefry2x32",
    "hip_lu_pivots_to_permutation",
    "hip_threefry2x32_ffi",
    "PadToStatic",
    "SliceToDynamic",
    "__cudnn$convReorderFilter",
    "__cudnn$convReorderFilterAndBias",
)
"""Targets that compare, move or compute integers, which is no FLOP (`HloCostAnalysis::HandleTopK`)."""


# -- convolutions and normalizations of cuDNN and oneDNN ----------------------------------------------------------------------


_NORM_FORWARD = 7
"""FLOPs an element: its share of mean and variance (4), times the reciprocal deviation, times the scale, plus the bias."""
_NORM_BACKWARD = 13
"""FLOPs an element: the normalized value (2), two means of the scaled gradient (4), the gradient of the input (4).

The element's share in the gradients of scale and bias adds 3.
"""


def _forward(op: Operation) -> CallCost:
    return matmul_cost(op, convolution_flops(op, op.operand_array(0), op.operand_array(1), op.array))


def _input_gradient(op: Operation) -> CallCost:
    """Count the gradient of the input, from the output's gradient and the kernel, with the labels of the forward."""
    return matmul_cost(op, convolution_flops(op, op.array, op.operand_array(1), op.operand_array(0)))


def _kernel_gradient(op: Operation) -> CallCost:
    """Count the gradient of the kernel, from the input and the output's gradient, with the labels of the forward."""
    return matmul_cost(op, convolution_flops(op, op.operand_array(0), op.array, op.operand_array(1)))


def _norm(op: Operation) -> CallCost:
    """Return the cost of elementwise work and reductions over the first operand.

    `kind` of `CudnnNormBackendConfig` is LAYER_FWD_INFER (0), LAYER_FWD_TRAIN (1) or LAYER_BWD (2).
    """
    kind = str(config_of(op).member("cudnn_norm_backend_config").get("kind", "LAYER_FWD_INFER"))
    flops_per_element = {"LAYER_BWD": _NORM_BACKWARD, "2": _NORM_BACKWARD}.get(kind, _NORM_FORWARD)
    if kind not in {"LAYER_FWD_INFER", "LAYER_FWD_TRAIN", "LAYER_BWD", "0", "1", "2"}:
        raise UnknownCostError(f"kind in its backend_config is {kind[:40]}, an unknown value")
    return plain_cost(op, flops_per_element * elements(op.operand_array(0)), "leading term")


# -- matrix multiplications ---------------------------------------------------------------------------------------------------


def _gemm(op: Operation) -> CallCost:
    """Return the cost of the dot in `GemmBackendConfig`; texts of 2023 have it without an object around it."""
    config = config_of(op)
    return matmul_cost(op, _dot(op, config.member("gemm_backend_config") or config.fields))


def _grouped_gemm(op: Operation) -> CallCost:
    """Return the cost of `lhs[m,k]`, `rhs[g,k,n]`: each row is multiplied by the matrix of its group.

    Rows beyond the last group count.
    """
    gemm = config_of(op).member("grouped_gemm_backend_config").get("gemm_backend_config")
    return matmul_cost(op, _dot(op, gemm if isinstance(gemm, dict) else {}), at_full_lengths=True)


def _dot(op: Operation, gemm: Mapping[str, Any]) -> int:
    numbers = gemm.get("dot_dimension_numbers")
    contracting = numbers.get("lhs_contracting_dimensions") if isinstance(numbers, dict) else None
    if not isinstance(contracting, list) or not all(_is_dimension(number) for number in contracting):
        raise UnknownCostError("its backend_config does not state lhs_contracting_dimensions")
    return dot_flops(op.operand_array(0), elements(op.array), tuple(map(int, contracting)))


def _is_dimension(number: object) -> bool:
    """Return True for the number of a dimension, in JSON a number or a string."""
    return str(number).isdecimal() and len(str(number)) < 4


def _block_scaled_dot(op: Operation) -> CallCost:
    """Count operands `lhs`, `rhs` with their scales; the last dimension of both is contracted (`block_scaling_rewriter.h`)."""
    lhs = op.operand_array(0)
    return matmul_cost(op, dot_flops(lhs, elements(op.array), _last_of(lhs, 1)), "shapes")


def _onednn(op: Operation) -> CallCost:
    """Return the cost of a product over the last dimension of the first operand, or its second last if it is transposed."""
    transposed = config_of(op).member("onednn_matmul_config").get("transpose_a") is True
    lhs = op.operand_array(0)
    return matmul_cost(op, dot_flops(lhs, elements(op.array), _last_of(lhs, 1 + transposed)))


def _last_of(lhs: ArrayShape, back: int) -> tuple[int]:
    if len(lhs.dimensions) < back:
        raise UnknownCostError("its first operand is no matrix")
    return (len(lhs.dimensions) - back,)


def _te_gemm(op: Operation) -> CallCost:
    """Return the cost of TransformerEngine's `GemmPrimitive`.

    `lhs_axis_boundary` splits the dimensions of `lhs` into rows and contracted ones, which come first if `lhs_transposed`.
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
    """Return the cost of `lhs[m,k]`, `rhs[g,k,n]`, with each row of `lhs` counted once.

    It is an upper bound if groups do not fill `m`. Raise UnknownCostError for data that is flattened to one dimension.
    """
    lhs, result = op.operand_array(0), op.array
    if len(lhs.dimensions) < 2 or len(result.dimensions) < 2:
        raise UnknownCostError("its operands are flattened to one dimension")
    rows = math.prod(dimension(result, i) for i in range(len(result.dimensions) - 1))
    if not rows or elements(lhs) % rows:
        raise UnknownCostError("its first operand and its result differ in rows")
    return matmul_cost(op, 2 * elements(result) * (elements(lhs) // rows), "shapes", at_full_lengths=True)


RULES: dict[str, Rule] = dict.fromkeys(_COMPARING, partial(plain_cost, flops=0))
RULES |= {
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
    "__cudnn$convForward": _forward,
    "__cudnn$convForwardGraph": _forward,
    "__cudnn$convBiasActivationForward": _forward,
    "__cudnn$convBackwardInput": _input_gradient,
    "__cudnn$convBackwardFilter": _kernel_gradient,
    "__cudnn$norm": _norm,
    "__onednn$convolution": _forward,
    "__cublas$triangularSolve": partial(_routine, name="trsm"),
    "Cholesky": partial(_on_tpu, name="potrf"),
    "LuDecomposition": partial(_on_tpu, name="getrf"),
    "Qr": partial(_on_tpu, name="geqrf"),
    "ProductOfElementaryHouseholderReflectors": partial(_on_tpu, name="orgqr"),
    "xla.gpu.ext.cub_sort_keys": _sort,
    "xla.gpu.ext.cub_sort_pairs": _sort,
    "xla.gpu.ext.cub_scan": _scan,
}

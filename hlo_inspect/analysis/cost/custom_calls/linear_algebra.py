"""Factorizations and solvers of LAPACK, cuSOLVER, hipSOLVER and of TPUs, and what sorts.

Counts are leading terms of LAPACK Working Note 41, appendix, for real matrices; a complex one takes four times as many.
Cholesky and triangular solves count as XLA counts those opcodes (`HandleCholesky`, `HandleTriangularSolve`). Eigenvalues and
singular values are found by iteration, which has no count.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from functools import partial

from hlo_inspect.analysis.cost.custom_calls.call_cost import CallCost, Rule, matrices, plain_cost
from hlo_inspect.analysis.cost.operation import Operation, dimension, elements
from hlo_inspect.hlo.values.shapes import ArrayShape
from hlo_inspect.lazy_pattern import lazy_pattern

_LIBRARY = lazy_pattern(r"(?:lapack|blas|cusolver|cublas|hipsolver|hipblas)_([a-z]+?)(?:_batched)?(?:_ffi)?", re.ASCII)
_TYPED = lazy_pattern(r"[sdcz]", re.ASCII)
_COMPLEX = 4


def _sizes(shape: ArrayShape) -> tuple[int, int, int]:
    """Matrices, and the rows and columns of one."""
    rank = len(shape.dimensions)
    batch = math.prod(dimension(shape, i) for i in range(rank - 2))
    return batch * (_COMPLEX if shape.dtype.startswith("c") else 1), dimension(shape, rank - 2), dimension(shape, rank - 1)


def _third(count: int) -> int:
    """A third, rounded to the nearest whole number."""
    return (count + 1) // 3


def _cholesky(op: Operation) -> int:
    batch, rows, columns = _sizes(matrices(op, 1)[0])
    return batch * rows * columns * columns // 3


def _lu(op: Operation) -> int:
    """m·n² - n³/3, of the m rows and n columns of a matrix that is not wider than high."""
    batch, *sides = _sizes(matrices(op, 1)[0])
    m, n = max(sides), min(sides)
    return _third(batch * (3 * m * n * n - n**3))


def _qr(op: Operation) -> int:
    """2·m·n² - 2/3·n³; to make Q from n reflectors takes as many."""
    batch, *sides = _sizes(matrices(op, 1)[0])
    m, n = max(sides), min(sides)
    return _third(batch * (6 * m * n * n - 2 * n**3))


def _apply_q(op: Operation) -> int:
    """2·n·k·(2·m - k): k reflectors applied to a matrix of m rows and n columns, from the left."""
    reflectors, matrix = matrices(op, 2)
    _, _, k = _sizes(reflectors)
    batch, m, n = _sizes(matrix)
    return batch * 2 * n * k * max(0, 2 * m - k)


def _triangular_solve(op: Operation) -> int:
    """Two FLOPs for each element of the right-hand sides and row of the triangle."""
    triangle, sides = matrices(op, 2)
    scale, _, columns = _sizes(triangle)
    return 2 * columns * elements(sides) * (_COMPLEX if scale and triangle.dtype.startswith("c") else 1)


def _to_bands(op: Operation, factor: int) -> int:
    """`factor`/3·n³: 10/3·n³ to a Hessenberg matrix, 4/3·n³ to a tridiagonal one."""
    batch, _, n = _sizes(matrices(op, 1)[0])
    return _third(batch * factor * n**3)


def _rank_k_update(op: Operation) -> int:
    """A·Aᵀ of n rows and k columns, one triangle of it."""
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
"""The FLOPs of a routine by its name, and whether XLA counts it as this does."""


def _routine(op: Operation, name: str) -> CallCost:
    flops, is_as_xla = _ROUTINES[name]
    return plain_cost(op, flops(op), "shapes" if is_as_xla else "leading term")


def _on_tpu(op: Operation, name: str) -> CallCost:
    """What a TPU runs in its place works in blocks, by matrix multiplications as well."""
    return _routine(op, name)._replace(has_matmuls_known=False)


def library_rule(target: str) -> Rule | None:
    """The rule of a routine: `lapack_spotrf_ffi`, `cusolver_potrf_ffi`, `blas_dtrsm`."""
    match = _LIBRARY.fullmatch(target)
    if match is None:
        return None
    name = match[1]
    if name not in _ROUTINES and _TYPED.match(name):
        name = name[1:]
    return partial(_routine, name=name) if name in _ROUTINES else None


def _comparing(op: Operation) -> CallCost:
    """`HloCostAnalysis::HandleTopK`: comparisons are no FLOPs."""
    return plain_cost(op, 0)


def _sort(op: Operation) -> CallCost:
    """`HloCostAnalysis::HandleSort`: n·ceil(log2 n) for the n elements of its first operand."""
    count = elements(op.operand_array(0))
    return plain_cost(op, count * max(0, count - 1).bit_length())


def _scan(op: Operation) -> CallCost:
    """One operation an element."""
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
)
"""What compares, moves or computes integers."""

RULES: dict[str, Rule] = dict.fromkeys(_COMPARING, _comparing)
RULES |= {
    "__cublas$triangularSolve": partial(_routine, name="trsm"),
    "Cholesky": partial(_on_tpu, name="potrf"),
    "LuDecomposition": partial(_on_tpu, name="getrf"),
    "Qr": partial(_on_tpu, name="geqrf"),
    "ProductOfElementaryHouseholderReflectors": partial(_on_tpu, name="orgqr"),
    "xla.gpu.ext.cub_sort_keys": _sort,
    "xla.gpu.ext.cub_sort_pairs": _sort,
    "xla.gpu.ext.cub_scan": _scan,
}

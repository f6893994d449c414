"""The work of an instruction and the unit that does it, except for fusions, custom calls and runs of other computations."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from functools import lru_cache

from hlo_inspect.analysis.cost.figures import CUSTOM_CALL, SHARED, WORK, TallyKey, UnknownCostError, Work
from hlo_inspect.analysis.cost.operation import CALLERS, Operation, dimension, elements, first_array
from hlo_inspect.hlo.opcodes import OPCODES, PRODUCTS, TABLE, CalleeAttribute, opcodes_that_are
from hlo_inspect.hlo.values.attributes import IntegerAttribute, WindowDimension
from hlo_inspect.hlo.values.shapes import BITS, ArrayShape, TupleShape, array_leaves
from hlo_inspect.lazy_pattern import lazy_pattern

Applied = Callable[[Operation, CalleeAttribute], Work]
"""Function that returns the work of one run of the computation that an attribute names."""

ELEMENTWISE: dict[str, int] = {
    **dict.fromkeys(opcodes_that_are("flop"), WORK.index("flops")),
    **dict.fromkeys(opcodes_that_are("transcendental"), WORK.index("transcendentals")),
}
"""The figure that an opcode increases by 1 for each element of its result, for any element type.

A transcendental is no FLOP (`HloCostAnalysis::HandleElementwiseOp`).
"""

MAX_KERNEL = 1 << 17
"""Limit of positions of a kernel along one dimension.

A larger kernel is not counted, so that no text keeps the program busy.
"""

_GROUP_COUNTS: tuple[IntegerAttribute, ...] = ("feature_group_count", "batch_group_count")

_NO_WORK = Work()


def work_of(op: Operation, applied: Applied) -> Work:
    """Return the work by the opcode's rule; an opcode without one moves data and computes nothing."""
    column = ELEMENTWISE.get(op.opcode)
    if column is not None:
        return Work(**{WORK[column]: elements(op.shape)})
    applying = _APPLYING.get(op.opcode)
    if applying is not None:
        return applying(op, applied)
    rule = _RULES.get(op.opcode)
    if rule is not None:
        return rule(op)
    if op.opcode not in TABLE:
        raise UnknownCostError(f"there is no rule for the opcode {op.opcode}")
    return _NO_WORK


# -- computations applied to elements -----------------------------------------------------------------------------------------


def mapped(op: Operation, applied: Applied) -> Work:
    """Count one application per element of the result (`HloCostAnalysis::HandleMap`)."""
    return applied(op, "to_apply").times(elements(op.shape))


def reduced(op: Operation, applied: Applied) -> Work:
    """Count one application per element that vanishes, for any number of arrays (`HloCostAnalysis::HandleReduce`).

    An array without elements costs nothing; XLA's count of it is below 0.
    """
    return applied(op, "to_apply").times(max(elements(op.operand_shape(0)) - elements(op.array), 0))


def scanned(op: Operation, applied: Applied) -> Work:
    """Count one application per element of the second operand (`HloCostAnalysis::HandleScan`)."""
    return applied(op, "to_apply").times(elements(op.operand_shape(1)))


def scattered(op: Operation, applied: Applied) -> Work:
    """Count one application per element of the first update (`HloCostAnalysis::HandleScatter`)."""
    return applied(op, "to_apply").times(elements(op.operand_shape(op.operand_count // 2 + 1)))


def reduce_window(op: Operation, applied: Applied) -> Work:
    """Count n - 1 applications for a window of n elements (`HloCostAnalysis::HandleReduceWindow`).

    A window that spans one whole dimension from every position counts as a reduce and a broadcast.
    """
    _require_window(op)
    dimensions = op.window
    outputs = elements(op.array)
    count = (math.prod([d.size for d in dimensions]) - 1) * outputs
    spanned = _spanned_dimension(op, dimensions)
    if spanned:
        count = outputs // spanned + spanned - 1
    return applied(op, "to_apply").times(max(count, 0))


def _require_window(op: Operation) -> None:
    if op.array.dimensions:
        op.require("window")


def _spanned_dimension(op: Operation, dimensions: tuple[WindowDimension, ...]) -> int:
    """Return the size of the only dimension that the window reduces, pads and spans as a whole; 0 if there is none."""
    reducing = [i for i, d in enumerate(dimensions) if d.size != 1]
    padded = [i for i, d in enumerate(dimensions) if d.pad_low or d.pad_high]
    if len(reducing) != 1 or reducing != padded or isinstance(op.shape, TupleShape):
        return 0
    step, size = dimensions[reducing[0]], dimension(op.array, reducing[0])
    spans = step.pad_low == step.pad_high == size - 1 and step.size == 2 * step.pad_low + 1
    return size if spans else 0


def select_and_scatter(op: Operation, applied: Applied) -> Work:
    """Count n - 1 selects and one scatter for each source element (`HloCostAnalysis::HandleSelectAndScatter`)."""
    _require_window(op)
    sources = elements(op.operand_shape(1))
    size = math.prod([d.size for d in op.window])
    return applied(op, "select").times(sources * (size - 1)).plus(applied(op, "scatter").times(sources))


# -- formulas -----------------------------------------------------------------------------------------------------------------


def sort(op: Operation) -> Work:
    """Count n · ⌈log2 n⌉, for any cost of the comparison (`HloCostAnalysis::HandleSort`)."""
    count = elements(op.operand_shape(0))
    return Work(count * (count - 1).bit_length()) if count else Work()


def fft(op: Operation) -> Work:
    """Count four multiply-adds per element and the product of ⌊log2⌋ of the lengths (`HloCostAnalysis::HandleFft`)."""
    op.require("fft_length")
    return Work(8 * math.prod([max(n.bit_length() - 1, 0) for n in op.integers("fft_length")]) * elements(op.operand_array(0)))


def triangular_solve(op: Operation) -> Work:
    """Count n multiply-adds per element of the right-hand side (`HloCostAnalysis::HandleTriangularSolve`)."""
    return Work(2 * _last_dimension(op) * elements(op.operand_shape(1)))


def cholesky(op: Operation) -> Work:
    """Count n³ / 3 for each matrix (`HloCostAnalysis::HandleCholesky`)."""
    return Work(_last_dimension(op) * elements(op.operand_shape(0)) // 3)


def _last_dimension(op: Operation) -> int:
    matrix = op.operand_array(0)
    if not matrix.dimensions:
        raise UnknownCostError("a scalar is given instead of a matrix")
    return dimension(matrix, len(matrix.dimensions) - 1)


def random(op: Operation) -> Work:
    """Count a transcendental per element of every result (`HloCostAnalysis::HandleRng`, `HandleRngBitGenerator`)."""
    return Work(transcendentals=_all_elements(op))


def all_reduce(op: Operation) -> Work:
    """Count an operation per element of every result, as if between two replicas (`HloCostAnalysis::HandleAllReduce`)."""
    return Work(_all_elements(op))


def _all_elements(op: Operation) -> int:
    return sum(elements(leaf) for _, leaf in array_leaves(op.shape))


# -- dots and convolutions: two FLOPs for each multiply-add --------------------------------------------------------------------


def dot_flops(lhs: ArrayShape, result_elements: int, contracting: tuple[int, ...]) -> int:
    """Return two FLOPs per element of the result and contracted element (`HloCostAnalysis::GetDotFlops`)."""
    return 2 * result_elements * math.prod([dimension(lhs, i) for i in contracting])


def dot(op: Operation) -> Work:
    """Count a dot (`HloCostAnalysis::HandleDot`, `HandleScaledDot`).

    Each contracted dimension is in both operands and not in the result, each batch dimension in all three. If the ranks allow
    no contracted dimension, there is none, even without an attribute that says so.
    """
    ranks = [len(shape.dimensions) for shape in (op.operand_array(0), op.operand_array(1), op.array)]
    if ranks[0] + ranks[1] > ranks[2] + 1:
        op.require("lhs_contracting_dims")
    return matmul(dot_flops(op.operand_array(0), elements(op.shape), op.integers("lhs_contracting_dims")))


def ragged_dot(op: Operation) -> Work:
    """Count a dot whose result lacks one leading dimension per group dimension (`HloCostAnalysis::HandleRaggedDot`).

    The i-th group dimension removes dimension i of the remaining ones, as in XLA.
    """
    op.require("lhs_contracting_dims")
    left = [dimension(op.array, i) for i in range(len(op.array.dimensions))]
    for i in range(len(op.integers("rhs_group_dims"))):
        if i >= len(left):
            raise UnknownCostError("more group dimensions than the result has")
        del left[i]
    return matmul(dot_flops(op.operand_array(0), math.prod(left), op.integers("lhs_contracting_dims")))


def ragged_dot_of_step(op: Operation, _: Applied) -> Work:
    """Count two FLOPs for each element of the first operand and each one of the second that it meets.

    The groups divide the ragged dimension, be it one of rows, contracted or of a batch: no element meets a second group. XLA
    counts one row of a ragged dimension of rows.
    """
    op.require("rhs_contracting_dims")
    rhs = op.operand_array(1)
    met = {*op.integers("rhs_contracting_dims"), *op.integers("rhs_batch_dims"), *op.integers("rhs_group_dims")}
    others = [dimension(rhs, i) for i in range(len(rhs.dimensions)) if i not in met]
    return matmul(2 * elements(op.operand_array(0)) * math.prod(others))


def scan_of_step(op: Operation, applied: Applied) -> Work:
    """Count one application for each slice of the scanned operands."""
    (scanned_dimension,) = op.integers("dimensions")[:1] or (0,)
    return applied(op, "to_apply").times(dimension(op.operand_array(0), scanned_dimension))


OF_STEP: Mapping[str, Callable[[Operation, Applied], Work]] = {"ragged-dot": ragged_dot_of_step, "scan": scan_of_step}
"""Work in a step, for opcodes of which XLA's cost analysis counts a part."""


def convolution(op: Operation) -> Work:
    """Count a convolution (`HloCostAnalysis::HandleConvolution`)."""
    return matmul(convolution_flops(op, op.operand_array(0), op.operand_array(1), op.array))


def matmul(flops: int) -> Work:
    return Work(flops, 0, flops)


def convolution_flops(op: Operation, lhs: ArrayShape, rhs: ArrayShape, result: ArrayShape) -> int:
    """Return two FLOPs per pair of kernel and input that meets no padding or hole (`HloCostAnalysis::GetConvolutionFlops`)."""
    op.require("dim_labels")
    labels = op.instruction.attr("dim_labels")
    groups = [1 if (count := op.instruction.attr(name)) is None else count for name in _GROUP_COUNTS]
    if labels is None or min(groups) < 1:
        raise UnknownCostError("dim_labels or group counts are missing or make no sense")
    if len(labels.kernel) > 2:
        op.require("window")
    positions = 1
    for i, step in enumerate(op.window):
        sizes = (
            _labelled(lhs, labels.input, str(i)),
            _labelled(rhs, labels.kernel, str(i)),
            _labelled(result, labels.output, str(i)),
        )
        positions *= valid_positions(*sizes, step)
    input_features = _labelled(lhs, labels.input, "f") // groups[0]
    batch = _labelled(lhs, labels.input, "b") // groups[1]
    return 2 * input_features * _labelled(result, labels.output, "f") * batch * positions


def _labelled(shape: ArrayShape, labels: str, label: str) -> int:
    index = labels.find(label)
    if index < 0:
        raise UnknownCostError(f"dim_labels do not name dimension {label}")
    return dimension(shape, index)


def valid_positions(inputs: int, kernel: int, outputs: int, step: WindowDimension) -> int:
    """Count pairs of a kernel position k and an output o that meet an input element.

    Pairs count if u = o·stride - pad_low + k·window_dilation is a multiple of the base dilation and `0 <= u / base_dilation <
    inputs`. For each k, the matching o lie at a fixed distance within an interval. Raise UnknownCostError if the window is too
    large or invalid.
    """
    if kernel > MAX_KERNEL or step.stride < 1 or step.base_dilation < 1:
        raise UnknownCostError("its window is too large or makes no sense")
    shared = math.gcd(step.stride, step.base_dilation)
    period = step.base_dilation // shared
    inverse = pow(step.stride // shared, -1, period) if period > 1 else 0
    count = 0
    for k in range(kernel):
        offset = step.pad_low - k * step.window_dilation  # u = o·stride - offset
        if offset % shared:
            continue
        first = max(0, -(-offset // step.stride))
        last = min(outputs - 1, ((inputs - 1) * step.base_dilation + offset) // step.stride)
        first += (offset // shared * inverse - first) % period
        count += max(0, (last - first) // period + 1)
    return count


_RULES: dict[str, Callable[[Operation], Work]] = {
    "dot": dot,
    "scaled-dot": dot,
    "ragged-dot": ragged_dot,
    "convolution": convolution,
    "sort": sort,
    "fft": fft,
    "triangular-solve": triangular_solve,
    "cholesky": cholesky,
    "rng": random,
    "rng-bit-generator": random,
    "all-reduce": all_reduce,
    "all-reduce-start": all_reduce,
    "cross-replica-sum": all_reduce,
}

_APPLYING: dict[str, Callable[[Operation, Applied], Work]] = {
    "map": mapped,
    "reduce": reduced,
    "scan": scanned,
    "scatter": scattered,
    "reduce-window": reduce_window,
    "select-and-scatter": select_and_scatter,
}

WORKLESS = OPCODES - set(ELEMENTWISE) - set(_RULES) - CALLERS - {CUSTOM_CALL}
"""Opcodes that compute nothing: they move data, or do not even that."""
BY_SHAPES = WORKLESS | set(ELEMENTWISE) | {opcode for opcode, rule in _RULES.items() if rule in (all_reduce, random)}
"""Opcodes whose work, if any, follows from the shapes of results and operands."""


# -- units --------------------------------------------------------------------------------------------------------------------

# Named as in hardware profiles: `matmul.bf16`, `vector.f32`. Matrix multiplications run on the matrix unit in the wider type of
# their operands, everything else on the vector unit in the type of the result, comparisons in that of their operands.
# Integers narrower than 32 bits and predicates take the vector unit's 32-bit lanes. No profile states rates of complex types:
# they are made of those of their parts.

COMPARING = frozenset({"compare", "is-finite"})
"""Opcodes whose result does not show the type in which they compute."""

_FLOATS = {"f64": "f64", "f32": "f32", "bf16": "bf16", "f16": "f16"}
_COMPLEX = {"c64": "c64", "c128": "c128"}
_MATMUL = _FLOATS | _COMPLEX | {"s32": "s32", "u32": "s32", "s8": "s8", "u8": "s8", "s4": "s4", "u4": "s4"}
_VECTOR = (
    _FLOATS | _COMPLEX | dict.fromkeys(["pred", *(f"{sign}{bits}" for sign in "su" for bits in (1, 2, 4, 8, 16, 32))], "s32")
)


def tally_key(op: Operation, work: Work) -> TallyKey:
    """Return the key of the sum that an instruction's work belongs to."""
    try:
        if work.matmul_flops:
            unit = matmul_unit(op.operand_array(0).dtype, op.operand_array(1).dtype)
            return TallyKey(op.opcode, _unit_at_precision(unit, op), operand_types(op))
        if op.opcode == "reduce-window" and _windows_overlap(op):
            return TallyKey(op.opcode, SHARED)
        shape = op.operand_shape(0) if op.opcode in COMPARING else op.shape
        return elementwise_key(op.opcode, first_array(shape).dtype)
    except UnknownCostError:
        return TallyKey(op.opcode)


def gap_key(op: Operation) -> TallyKey:
    """Return the key of the sum that the unknown work of an instruction would belong to."""
    try:
        return TallyKey(op.opcode, operands=operand_types(op) if op.opcode in PRODUCTS else "")
    except UnknownCostError:
        return TallyKey(op.opcode)


def operand_types(op: Operation) -> str:
    """Return the types of the two operands of a product: `bf16`, or `bf16,f32` in either order."""
    return ",".join(sorted({op.operand_array(0).dtype, op.operand_array(1).dtype}))


def _windows_overlap(op: Operation) -> bool:
    """Return True if elements are in several windows, as in a running sum."""
    return any(d.size > d.stride and size != 1 for d, size in zip(op.window, op.array.dimensions, strict=False))


@lru_cache(maxsize=1024)
def elementwise_key(opcode: str, dtype: str) -> TallyKey:
    if opcode == "fft":  # its FLOPs are real operations
        dtype = {"c64": "f32", "c128": "f64"}.get(dtype, dtype)
    name = _name(_VECTOR, dtype)
    return TallyKey(opcode, f"vector.{name}") if name else TallyKey(opcode)


def matmul_unit(lhs: str, rhs: str) -> str:
    """Return the unit that multiplies matrices of two types."""
    name = _name(_MATMUL, max(lhs, rhs, key=lambda dtype: BITS.get(dtype, 0)))
    return f"matmul.{name}" if name else ""


HIGHEST = "matmul.f32.highest"
"""The unit of f32 products in full precision, which no matrix unit computes in one pass."""

_ALGORITHM = lazy_pattern(r"(?:ALG_)?DOT_(?:ANY_)?([A-Z0-9]+)_", re.ASCII | re.IGNORECASE)
_GIVEN_PRECISION = lazy_pattern(r'"algorithm":"([A-Z0-9_]+)"', re.ASCII)


def _unit_at_precision(unit: str, op: Operation) -> str:
    """Return the unit of an f32 product by its `algorithm`, else by its `operand_precision`.

    XLA may round each operand unless its precision is the highest (`IsTf32Allowed` in xla/service/gpu/matmul_utils.cc). Library
    calls have both in their `backend_config`.
    """
    if unit != "matmul.f32":
        return unit
    config = op.instruction.attr("backend_config")
    text = config.text if config is not None and op.opcode == CUSTOM_CALL else ""
    stated = _GIVEN_PRECISION.search(text)
    algorithm = _ALGORITHM.match(op.instruction.attr("algorithm") or (stated[1] if stated else ""))
    if algorithm is not None:
        dtype = algorithm[1].lower()
        return HIGHEST if dtype == "f32" else f"matmul.{dtype}"
    return HIGHEST if "highest" in (op.instruction.attr("operand_precision") or text).lower() else unit


def _name(names: dict[str, str], dtype: str) -> str:
    """Return a type as profiles call it; empty if they have no figure for it."""
    return "f8" if dtype.startswith("f8") else names.get(dtype, "")

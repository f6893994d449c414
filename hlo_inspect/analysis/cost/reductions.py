"""Work of operations that apply a computation to elements, and of those that XLA has a formula for."""

from __future__ import annotations

import math
from collections.abc import Callable

from hlo_inspect.analysis.cost.contraction import WindowDimension, window
from hlo_inspect.analysis.cost.model import UnknownCostError, Work
from hlo_inspect.analysis.cost.operation import Operation, dimension, elements
from hlo_inspect.hlo.shapes import TupleShape, array_leaves

Applied = Callable[[Operation, str], Work]
"""The work of one run of the computation that an attribute names."""


def mapped(op: Operation, applied: Applied) -> Work:
    """`HloCostAnalysis::HandleMap`: once per element of the result."""
    return applied(op, "to_apply").times(elements(op.shape))


def reduced(op: Operation, applied: Applied) -> Work:
    """`HloCostAnalysis::HandleReduce`: once per element that vanishes, however many arrays are reduced together."""
    return applied(op, "to_apply").times(elements(op.operand_shape(0)) - elements(op.array))


def scanned(op: Operation, applied: Applied) -> Work:
    """`HloCostAnalysis::HandleScan`: once per element of the second operand."""
    return applied(op, "to_apply").times(elements(op.operand_shape(1)))


def scattered(op: Operation, applied: Applied) -> Work:
    """`HloCostAnalysis::HandleScatter`: once per element of the first update."""
    first_update = len(op.uses) // 2 + 1
    return applied(op, "to_apply").times(elements(op.operand_shape(first_update)))


def reduce_window(op: Operation, applied: Applied) -> Work:
    """`HloCostAnalysis::HandleReduceWindow`: a window of n elements takes n - 1 applications.

    A window that spans one whole dimension from every position is taken for a reduce and a broadcast.
    """
    dimensions = window(op.attributes.get("window", ""))
    outputs = elements(op.array)
    count = (math.prod([d.size for d in dimensions]) - 1) * outputs
    spanned = _spanned_dimension(op, dimensions)
    if spanned:
        count = outputs // spanned + spanned - 1
    return applied(op, "to_apply").times(count)


def _spanned_dimension(op: Operation, dimensions: list[WindowDimension]) -> int:
    """The size of the only dimension that is reduced, padded and spanned as a whole; 0 if there is none."""
    reducing = [i for i, d in enumerate(dimensions) if d.size != 1]
    padded = [i for i, d in enumerate(dimensions) if d.pad_low or d.pad_high]
    if len(reducing) != 1 or reducing != padded or isinstance(op.shape, TupleShape):
        return 0
    step, size = dimensions[reducing[0]], dimension(op.array, reducing[0])
    spans = step.pad_low == step.pad_high == size - 1 and step.size == 2 * step.pad_low + 1
    return size if spans else 0


def select_and_scatter(op: Operation, applied: Applied) -> Work:
    """`HloCostAnalysis::HandleSelectAndScatter`: for each source element n - 1 selects and one scatter."""
    sources = elements(op.operand_shape(1))
    size = math.prod([d.size for d in window(op.attributes.get("window", ""))])
    return applied(op, "select").times(sources * (size - 1)).plus(applied(op, "scatter").times(sources))


def sort(op: Operation) -> Work:
    """`HloCostAnalysis::HandleSort`: n · ⌈log2 n⌉, whatever the comparison costs."""
    count = elements(op.operand_shape(0))
    return Work(count * (count - 1).bit_length()) if count else Work()


def fft(op: Operation) -> Work:
    """`HloCostAnalysis::HandleFft`: four multiply-adds per element and the product of ⌊log2⌋ of the lengths."""
    return Work(8 * math.prod([n.bit_length() - 1 for n in op.integers("fft_length")]) * elements(op.operand_array(0)))


def triangular_solve(op: Operation) -> Work:
    """`HloCostAnalysis::HandleTriangularSolve`: n multiply-adds per element of the right-hand side."""
    return Work(2 * _last_dimension(op) * elements(op.operand_shape(1)))


def cholesky(op: Operation) -> Work:
    """`HloCostAnalysis::HandleCholesky`: n³ / 3 for each matrix."""
    return Work(_last_dimension(op) * elements(op.operand_shape(0)) // 3)


def _last_dimension(op: Operation) -> int:
    matrix = op.operand_array(0)
    if not matrix.dimensions:
        raise UnknownCostError("a scalar stands where a matrix is needed")
    return dimension(matrix, len(matrix.dimensions) - 1)


def random(op: Operation) -> Work:
    """`HloCostAnalysis::HandleRng` and `HandleRngBitGenerator`: a transcendental per element of every result."""
    return Work(transcendentals=_all_elements(op))


def all_reduce(op: Operation) -> Work:
    """`HloCostAnalysis::HandleAllReduce`: an operation per element of every result, as if between two replicas."""
    return Work(_all_elements(op))


def _all_elements(op: Operation) -> int:
    return sum(elements(leaf) for _, leaf in array_leaves(op.shape))

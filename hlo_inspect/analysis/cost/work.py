"""The work of one instruction, but for fusions and what runs other computations."""

from __future__ import annotations

from collections.abc import Callable

from hlo_inspect.analysis.cost import contraction, reductions
from hlo_inspect.analysis.cost.model import WORK, UnknownCostError, Work
from hlo_inspect.analysis.cost.operation import CALLERS, Operation, elements
from hlo_inspect.analysis.cost.reductions import Applied
from hlo_inspect.hlo.opcodes import OPCODES, is_known

_ONE_FLOP = """
    abs add and bitcast-convert ceil clamp compare complex convert count-leading-zeros divide floor imag is-finite maximum
    minimum mulhi multiply negate not or popcnt real reduce-precision remainder round-nearest-afz round-nearest-even select
    shift-left shift-right-arithmetic shift-right-logical sign stochastic-convert subtract xor
"""
_ONE_TRANSCENDENTAL = """
    acos acosh asin asinh atan2 atanh cbrt cosine cosh erf exponential exponential-minus-one log log-plus-one logistic power
    rsqrt sine sinh sqrt tan tanh
"""

ELEMENTWISE: dict[str, int] = dict.fromkeys(_ONE_FLOP.split(), WORK.index("flops")) | dict.fromkeys(
    _ONE_TRANSCENDENTAL.split(), WORK.index("transcendentals")
)
"""The figure of which an operation takes one for each element of its result, whatever the element's type: a transcendental
is no FLOP (`HloCostAnalysis::HandleElementwiseOp`).
"""

_NO_WORK = Work()


def work_of(op: Operation, applied: Applied) -> Work:
    """By the opcode's rule; an opcode without one moves data and computes nothing."""
    column = ELEMENTWISE.get(op.opcode)
    if column is not None:
        return Work(**{WORK[column]: elements(op.shape)})
    applying = _APPLYING.get(op.opcode)
    if applying is not None:
        return applying(op, applied)
    rule = _RULES.get(op.opcode)
    if rule is not None:
        return rule(op)
    if not is_known(op.opcode):
        raise UnknownCostError(f"there is no rule for the opcode {op.opcode}")
    return _NO_WORK


_RULES: dict[str, Callable[[Operation], Work]] = {
    "dot": contraction.dot,
    "scaled-dot": contraction.dot,
    "ragged-dot": contraction.ragged_dot,
    "convolution": contraction.convolution,
    "sort": reductions.sort,
    "fft": reductions.fft,
    "triangular-solve": reductions.triangular_solve,
    "cholesky": reductions.cholesky,
    "rng": reductions.random,
    "rng-bit-generator": reductions.random,
    "all-reduce": reductions.all_reduce,
    "all-reduce-start": reductions.all_reduce,
    "cross-replica-sum": reductions.all_reduce,
}

_APPLYING: dict[str, Callable[[Operation, Applied], Work]] = {
    "map": reductions.mapped,
    "reduce": reductions.reduced,
    "scan": reductions.scanned,
    "scatter": reductions.scattered,
    "reduce-window": reductions.reduce_window,
    "select-and-scatter": reductions.select_and_scatter,
}

WORKLESS = OPCODES - set(ELEMENTWISE) - set(_RULES) - set(_APPLYING) - set(CALLERS) - {"custom-call"}
"""Opcodes that move data, or not even that, and compute nothing."""

"""Operations that compute each element of their result on its own, and those that cost nothing at all."""

from __future__ import annotations

TRANSCENDENTAL = frozenset(
    """
    acos acosh asin asinh atan2 atanh cbrt cosine cosh erf exponential exponential-minus-one log log-plus-one logistic power
    rsqrt sine sinh sqrt tan tanh
    """.split()
)
"""One transcendental and no FLOP for each element (`HloCostAnalysis::HandleElementwiseOp`)."""

ELEMENTWISE = frozenset(
    """
    abs add and bitcast-convert ceil clamp compare complex convert count-leading-zeros divide floor imag is-finite maximum
    minimum mulhi multiply negate not or popcnt real reduce-precision remainder round-nearest-afz round-nearest-even select
    shift-left shift-right-arithmetic shift-right-logical sign stochastic-convert subtract xor
    """.split()
)
"""One FLOP for each element of the result, whatever its type (`HloCostAnalysis::HandleElementwiseOp`)."""

FREE = frozenset("add-dependency after-all bitcast constant domain get-tuple-element parameter".split())
"""Neither work nor bytes: they forward pointers or order others (`HloCostAnalysis::HandleParameter`, `HandleBitcast`, …)."""

"""Figures as XLA adds them up: in float32, one instruction after the other.

What is small beside the sum so far is rounded away, up to some millionths of the whole. The same order and rounding give what
`compiled.cost_analysis()` of JAX prints, in nearly all modules to the last digit.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Sequence
from functools import lru_cache

from hlo_inspect.analysis.cost.model import FIGURES, MAX_COUNT, TOO_LARGE, Figure, Gap

_EXACT = FIGURES.index("matmul_flops")
_EXACT_UP_TO = 2**24
"""No float32 rounds an integer up to here."""
_FLOAT = struct.Struct("f")


class XlaSum:
    """Sums of the four figures and why they may not be known. The FLOPs of matrix multiplications, which XLA does not tell
    apart, are exact.
    """

    __slots__ = ("amounts", "gaps")

    def __init__(self) -> None:
        self.amounts: list[float] = [0] * len(FIGURES)
        self.gaps: dict[Figure, Gap] = {}

    def add(self, amounts: Sequence[float]) -> None:
        sums = self.amounts
        for i, amount in enumerate(amounts):
            if amount:
                whole = sums[i] + amount
                sums[i] = whole if whole <= _EXACT_UP_TO or i == _EXACT else _rounded(sums[i] + _rounded_amount(amount))

    def miss(self, figures: Iterable[Figure], gap: Gap) -> None:
        for figure in figures:
            self.gaps[figure] = min(gap, self.gaps.get(figure, gap))

    def add_sum(self, other: XlaSum) -> None:
        self.add(other.amounts)
        self._add_gaps(other)

    def add_largest(self, others: Sequence[XlaSum]) -> None:
        """Adds of each figure the largest sum, and the gaps of all."""
        if others:
            self.add([max(amounts) for amounts in zip(*(other.amounts for other in others), strict=True)])
        for other in others:
            self._add_gaps(other)

    def _add_gaps(self, other: XlaSum) -> None:
        for figure, gap in other.gaps.items():
            self.miss((figure,), gap)

    def total(self, figure: Figure) -> int | None:
        """The sum, `None` where part of it is not known."""
        return None if self.why_unknown(figure) else int(self.amounts[FIGURES.index(figure)])

    def why_unknown(self, figure: Figure) -> str:
        """Why a figure has no total; nothing where it has one."""
        if figure in self.gaps:
            return str(self.gaps[figure])
        return TOO_LARGE if self.amounts[FIGURES.index(figure)] > MAX_COUNT else ""


@lru_cache(maxsize=1 << 12)
def _rounded_amount(amount: float) -> float:
    """The float32 next to what one instruction adds; most instructions are like some others."""
    return _rounded(amount)


def _rounded(value: float) -> float:
    """The float32 next to `value`. A sum of two of them is exact enough in float64 to be rounded once more."""
    try:
        rounded: float = _FLOAT.unpack(_FLOAT.pack(float(value)))[0]
    except OverflowError:
        return math.inf
    return rounded

"""Functions of a counter in closed form: `base + scale * f(inner)`, which sums and products with constants keep.

Expressions without such a form (the product of two changing factors, the sum of two different functions) are None.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

from hlo_inspect.optimizer.algebra.normal_form import close

Kind = Literal["constant", "linear", "cosine", "power", "exponential", "floor"]

NEARLY = 1e-5
"""A counter's quotient counts as a whole number up to this distance below it: 41 * float32(1 / 41) has such a distance."""


class Curve(NamedTuple):
    """A curve `base + scale * f`; a constant is `base` alone.

    `f` is the counter itself (linear), `cos(inner)`, `inner ** parameter`, `parameter ** inner` (exponential), or the whole
    part of `inner`.
    """

    kind: Kind
    base: float
    scale: float = 0.0
    inner: Curve | None = None
    parameter: float = 0.0

    def value(self, counter: float) -> float:
        """Return the value at a counter; NaN if it is undefined."""
        if self.kind == "constant":
            return self.base
        inner_value = counter if self.inner is None else self.inner.value(counter)
        try:
            return self.base + self.scale * self._function(inner_value)
        except (ArithmeticError, ValueError):
            return math.nan

    def _function(self, inner_value: float) -> float:
        if self.kind == "cosine":
            return math.cos(inner_value)
        if self.kind == "power":
            return math.pow(inner_value, self.parameter)
        if self.kind == "exponential":
            try:
                return math.pow(self.parameter, inner_value)
            except OverflowError:
                return math.inf
        return inner_value if self.kind == "linear" else math.floor(inner_value + NEARLY)

    def passed(self, counter: int) -> float:
        """Return the steps since the whole part of a rising line reached its value at a counter; 0 for another function."""
        if self.kind != "floor" or self.inner is None or self.inner.scale <= 0.0:
            return 0.0
        value = self.inner.value(counter)
        return max(0.0, value - math.floor(value + NEARLY)) / self.inner.scale

    def direction(self, low: int, high: int) -> int | None:
        """Return 1 if the curve does not fall between two counters, -1 if it does not rise, 0 if constant, None if unclear."""
        if self.kind == "constant":
            return 0
        rises = 1 if self.scale > 0 else -1
        if self.inner is None:
            return rises
        inner_direction = self.inner.direction(low, high)
        ends = self.inner.value(low), self.inner.value(high)
        if inner_direction is None or math.isnan(ends[0] + ends[1]):
            return None
        if self.kind == "cosine":
            return -rises * inner_direction if min(ends) >= 0 and max(ends) <= math.pi else None
        if self.kind == "power":
            sign = 1 if self.parameter > 0 else -1
            return rises * inner_direction * sign if min(ends) > 0 or (min(ends) == 0 and sign > 0) else None
        return rises * inner_direction * (-1 if self.kind == "exponential" and self.parameter < 1 else 1)


def constant(value: float) -> Curve:
    return Curve("constant", value)


def total(curves: Sequence[tuple[float, Curve]]) -> Curve | None:
    """Add curves with coefficients. Return None if the sum has no closed form."""
    base = sum(factor * curve.base for factor, curve in curves)
    changing = [(factor, curve) for factor, curve in curves if curve.kind != "constant"]
    if not changing:
        return constant(base)
    first = changing[0][1]
    if len({(curve.kind, curve.parameter, curve.inner) for _, curve in changing}) > 1:
        return None
    scale = sum(factor * curve.scale for factor, curve in changing)
    largest = max(abs(factor * curve.scale) for factor, curve in changing)
    if abs(scale) <= 1e-12 * largest:
        return constant(base)
    return Curve(first.kind, base, scale, first.inner, first.parameter)


def product(curves: Sequence[Curve]) -> Curve | None:
    """Multiply curves. Return None if two or more of them change, unless the constant factor is 0."""
    changing = [curve for curve in curves if curve.kind != "constant"]
    factor = math.prod(curve.base for curve in curves if curve.kind == "constant")
    if not changing or factor == 0.0:
        return constant(factor)
    return total([(factor, changing[0])]) if len(changing) == 1 else None


def power(curve: Curve, exponent: float) -> Curve | None:
    """Raise a curve to a constant power: a counter, a power of a counter, an exponential or a wave."""
    if exponent == 1.0:
        return curve
    if curve.kind == "constant":
        value = Curve("power", 0.0, 1.0, curve, exponent).value(0)
        return None if math.isnan(value) else constant(value)
    if curve.kind in {"linear", "cosine"}:
        return Curve("power", 0.0, 1.0, curve, exponent)
    return _power_of_power(curve, exponent) if curve.base == 0.0 and curve.scale > 0 else None


def _power_of_power(curve: Curve, exponent: float) -> Curve | None:
    if curve.inner is None:
        return None
    factor = math.pow(curve.scale, exponent)
    if curve.kind == "power" and curve.inner.kind == "linear":
        return Curve("power", 0.0, factor, curve.inner, curve.parameter * exponent)
    inner = total([(exponent, curve.inner)])
    if curve.kind == "exponential" and inner is not None:
        return Curve("exponential", 0.0, factor, inner, curve.parameter)
    return None


def exponential(base: float, exponent: Curve) -> Curve | None:
    """Raise a constant to the power of a counter or of its whole quotient."""
    if base <= 0 or not math.isfinite(base) or exponent.kind not in {"linear", "floor"}:
        return None
    return Curve("exponential", 0.0, 1.0, exponent, base)


def whole(curve: Curve, low: int, high: int) -> Curve | None:
    """Return the whole part of a curve that is linear and not negative between two counters."""
    if curve.kind != "linear" or min(curve.value(low), curve.value(high)) < 0:
        return None
    if curve.base == int(curve.base) and curve.scale == int(curve.scale):
        return curve
    first, last = (math.floor(curve.value(end) + NEARLY) for end in (low, high))
    return constant(float(first)) if first == last else Curve("floor", 0.0, 1.0, curve)


def are_equal_at(left: Curve, right: Curve, counters: Sequence[int], scale: float) -> bool:
    """Return True if two curves have the same values at some counters, relative to `scale`."""
    return all(
        abs(left.value(counter) - right.value(counter)) <= 1e-7 * scale
        or close(left.value(counter), right.value(counter), 1e-7)
        for counter in counters
    )

"""Hyper-parameters: their names, and values as they are read from coefficients."""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

Status = Literal["constant", "computed", "absent"]

EXACT = 3e-7  # a few roundings of float32
COARSE = 4e-3  # one rounding of bfloat16


class Hyperparameter(NamedTuple):
    """A hyper-parameter's value. None if it is computed from something else, or if the formula has no such term."""

    value: float | None
    status: Status


ABSENT = Hyperparameter(None, "absent")
COMPUTED = Hyperparameter(None, "computed")


def constant(value: float, tolerance: float = EXACT) -> Hyperparameter:
    return Hyperparameter(shortest(value, tolerance), "constant")


def shortest(value: float, tolerance: float = EXACT) -> float:
    """Return the shortest decimal within a relative tolerance: the number that somebody wrote."""
    if value == 0 or not math.isfinite(value):
        return value
    for digits in range(1, 9):
        rounded = float(f"{value:.{digits}g}")
        if abs(rounded - value) <= tolerance * abs(value):
            return rounded
    return float(f"{value:.8g}")

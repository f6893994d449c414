"""Hyper-parameters: their names, and values as they are read from coefficients."""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

Known = Literal["constant", "computed", "absent"]

HYPERPARAMETERS = {
    "learning_rate": "the constant factor of the step",
    "beta1": "decay of the first moment",
    "beta2": "decay of the second moment",
    "beta3": "decay of AdEMAMix's slow average",
    "alpha": "factor of that average in the step",
    "epsilon": "what is added to the root of the second moment",
    "weight_decay": "decay beside the step",
    "l2": "decay inside the gradient",
    "momentum": "decay of SGD's or RMSProp's momentum",
    "nesterov": "whether that is Nesterov's",
}
"""What rules can read, by the names of facts and columns: each is a number, except that `nesterov` is 0 or 1."""

EXACT = 3e-7  # a few roundings of float32
COARSE = 4e-3  # one of bfloat16


class Hyperparameter(NamedTuple):
    """A value that was read; `None` where it is computed from something else, or where the formula has no such term."""

    value: float | None
    known: Known


ABSENT = Hyperparameter(None, "absent")
COMPUTED = Hyperparameter(None, "computed")


def constant(value: float, tolerance: float = EXACT) -> Hyperparameter:
    return Hyperparameter(shortest(value, tolerance), "constant")


def shortest(value: float, tolerance: float = EXACT) -> float:
    """The shortest decimal within a relative tolerance: the number that somebody wrote."""
    if value == 0 or not math.isfinite(value):
        return value
    for digits in range(1, 9):
        rounded = float(f"{value:.{digits}g}")
        if abs(rounded - value) <= tolerance * abs(value):
            return rounded
    return float(f"{value:.8g}")

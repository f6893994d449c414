"""Numbers as somebody wrote them."""

from __future__ import annotations

import math

import pytest

from hlo_inspect.analysis.optimizer.readings import COARSE, constant, shortest


@pytest.mark.parametrize(
    ("value", "written"),
    [(1 - 0.999, 0.001), (0.89999998, 0.9), (0.95, 0.95), (0.1234567891, 0.1234568), (0.0, 0.0), (-0.1, -0.1)],
)
def test_shortest(value: float, written: float) -> None:
    assert shortest(value) == written


def test_bfloat16_has_two_to_three_digits() -> None:
    assert shortest(0.8984, COARSE) == 0.9
    assert shortest(0.1001, COARSE) == 0.1


def test_what_is_no_number_stays() -> None:
    assert shortest(math.inf) == math.inf
    assert math.isnan(shortest(math.nan))
    assert constant(0.1).state == "constant"

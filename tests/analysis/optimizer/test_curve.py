"""Arithmetic of curves against arithmetic."""

from __future__ import annotations

import math

import pytest

from hlo_inspect.analysis.optimizer.curve import Curve, alike, constant, exponential, power, product, total, whole

COUNTER = Curve("linear", 0.0, 1.0)
LINE = Curve("linear", 2.0, 3.0)


def same(found: Curve | None, expected: float, counter: int = 5) -> bool:
    return found is not None and math.isclose(found.value(counter), expected)


def test_sums_and_products() -> None:
    assert same(total([(2.0, LINE), (-1.0, COUNTER), (1.0, constant(4.0))]), 2 * 17 - 5 + 4)
    assert same(product([constant(-2.0), LINE]), -34.0)
    assert product([LINE, LINE]) is None
    assert total([(1.0, LINE), (1.0, Curve("cosine", 0.0, 1.0, COUNTER))]) is None


def test_what_cancels_out_is_a_constant() -> None:
    assert total([(1.0, LINE), (-3.0, COUNTER)]) == constant(2.0)


def test_powers() -> None:
    assert same(power(LINE, 2.0), 17.0**2)
    root = power(LINE, 0.5)
    assert root is not None
    assert same(power(root, 3.0), 17.0**1.5)
    decay = exponential(0.5, COUNTER)
    assert decay is not None
    assert same(power(decay, 2.0), 0.5**10)
    assert power(total([(1.0, root), (1.0, constant(1.0))]) or root, 2.0) is None


def test_the_power_of_what_is_negative_has_no_value() -> None:
    assert power(constant(-1.0), 0.5) is None
    falling = power(Curve("linear", 1.0, -1.0), 0.5)
    assert falling is not None
    assert math.isnan(falling.value(5))


def test_whole_parts() -> None:
    fifth = Curve("linear", 0.0, 0.2)
    assert same(whole(fifth, 0, 99), 1.0)
    assert whole(fifth, 5, 9) == constant(1.0)
    assert whole(LINE, 0, 99) is LINE
    assert whole(Curve("linear", -1.0, 0.2), 0, 99) is None


@pytest.mark.parametrize(
    ("curve", "direction"),
    [
        (constant(1.0), 0),
        (LINE, 1),
        (Curve("exponential", 0.0, 1.0, COUNTER, 0.5), -1),
        (Curve("exponential", 0.0, -1.0, COUNTER, 2.0), -1),
        (Curve("power", 0.0, 1.0, LINE, -0.5), -1),
        (Curve("power", 0.0, 1.0, Curve("linear", -5.0, 1.0), 2.0), None),
        (Curve("cosine", 0.0, 1.0, Curve("linear", 0.0, 0.01)), -1),
        (Curve("cosine", 0.0, 1.0, COUNTER), None),
        (Curve("floor", 0.0, 2.0, Curve("linear", 0.0, 0.1)), 1),
    ],
)
def test_directions(curve: Curve, direction: int | None) -> None:
    assert curve.direction(0, 100) == direction


def test_alike() -> None:
    assert alike(constant(0.5), Curve("linear", 0.0, 0.05), [10], 1.0)
    assert not alike(constant(0.5), Curve("linear", 0.0, 0.05), [10, 11], 1.0)

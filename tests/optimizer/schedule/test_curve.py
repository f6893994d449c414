"""Arithmetic of curves against arithmetic."""

from __future__ import annotations

import math

import pytest

from hlo_inspect.optimizer.schedule.curve import Curve, are_equal_at, constant, exponential, power, product, total, whole
from hlo_inspect.optimizer.schedule.piecewise import LAST, Piece, pieces_of
from tests.optimizer.programs import ScheduleCounter

COUNTER = Curve("linear", 0.0, 1.0)
LINE = Curve("linear", 2.0, 3.0)


def same(curve: Curve | None, expected: float, counter: int = 5) -> bool:
    return curve is not None and math.isclose(curve.value(counter), expected)


def test_sums_and_products() -> None:
    assert same(total([(2.0, LINE), (-1.0, COUNTER), (1.0, constant(4.0))]), 2 * 17 - 5 + 4)
    assert same(product([constant(-2.0), LINE]), -34.0)
    assert product([LINE, LINE]) is None
    assert total([(1.0, LINE), (1.0, Curve("cosine", 0.0, 1.0, COUNTER))]) is None


def test_terms_that_cancel_leave_a_constant() -> None:
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


def test_a_fractional_power_of_a_negative_number_has_no_value() -> None:
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


def test_curves_are_compared_at_single_steps() -> None:
    assert are_equal_at(constant(0.5), Curve("linear", 0.0, 0.05), [10], 1.0)
    assert not are_equal_at(constant(0.5), Curve("linear", 0.0, 0.05), [10, 11], 1.0)


# -- Where expressions of a counter change, worked out by hand ----------------------------------------------------------


def split(x: ScheduleCounter, node: int) -> list[tuple[int, int]]:
    pieces = pieces_of(*x.form(node))
    assert pieces is not None
    return [(piece.first, piece.last) for piece in pieces]


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ("LT", [(0, 99), (100, LAST)]),
        ("LE", [(0, 99), (100, 100), (101, LAST)]),
        ("EQ", [(0, 99), (100, 100), (101, LAST)]),
    ],
)
def test_a_comparison(how: str, expected: list[tuple[int, int]]) -> None:
    """Each range is one in which the counter is below 100, or 100, or above."""
    x = ScheduleCounter()
    node = x("select", x("compare", x.c, 100.0, how=how), 1.0, 2.0)
    pieces = pieces_of(*x.form(node))
    assert pieces is not None
    for piece in pieces:
        for counter in (piece.first, piece.last):
            holds = {"LT": counter < 100, "LE": counter <= 100, "EQ": counter == 100}[how]
            assert piece.curve.value(counter) == (1.0 if holds else 2.0)
    firsts = {first for first, _ in expected}
    assert {piece.first for piece in pieces} <= firsts | {101}


def test_limits() -> None:
    """min(max(c - 10, 0), 20): 0 to 10, a line to 30, then 20."""
    x = ScheduleCounter()
    node = x("minimum", x("maximum", x("add", x.c, -10.0), 0.0), 20.0)
    pieces = pieces_of(*x.form(node))
    assert pieces is not None
    values = {
        counter: next(p.curve.value(counter) for p in pieces if p.first <= counter <= p.last)
        for counter in (0, 9, 10, 11, 29, 30, 31, LAST)
    }
    assert values == {0: 0, 9: 0, 10: 0, 11: 1, 29: 19, 30: 20, 31: 20, LAST: 20}


def test_curves_that_cross() -> None:
    """A line `c / 8` is above `(c + 1) ** -0.5` from c = 4 on: 0.375 and 0.5 at 3, 0.5 and 0.447 at 4."""
    x = ScheduleCounter()
    node = x("minimum", x("multiply", x.c, 0.125), x("rsqrt", x("add", x.c, 1.0)))
    assert split(x, node) == [(0, 3), (4, LAST)]


def test_whole_numbers() -> None:
    x = ScheduleCounter()
    pieces = pieces_of(*x.form(x("integer-divide", x.c, 100.0)))
    assert pieces is not None
    assert [pieces[-1].curve.value(counter) for counter in (100, 199, 200, 12345)] == [1.0, 1.0, 2.0, 123.0]


def test_truths() -> None:
    x = ScheduleCounter()
    unknown = x("compare", x("sine", x.c), 0.0, how="LT")
    early = x("compare", x.c, 10.0, how="LT")
    assert pieces_of(*x.form(x("select", x("and", early, unknown), 1.0, 2.0))) is None
    late = x("compare", x.c, -1.0, how="LT")
    pieces = pieces_of(*x.form(x("select", x("and", late, unknown), 1.0, 2.0)))
    assert pieces is not None
    assert {piece.curve.base for piece in pieces} == {2.0}
    assert pieces_of(*x.form(x("select", x("or", early, x("not", early)), 1.0, x("sine", x.c)))) is not None


def test_other_functions_of_the_counter_are_no_curve() -> None:
    x = ScheduleCounter()
    wave = x("cosine", x.c)
    for node in (
        x("sine", x.c),
        x("multiply", wave, x.c),
        x("add", wave, x.c),
        x("maximum", wave, 0.5),
        x("remainder", x.c, 7.0),
    ):
        assert pieces_of(*x.form(node)) is None


def test_one_piece() -> None:
    x = ScheduleCounter()
    (piece,) = pieces_of(*x.form(x("exponential", x("multiply", x.c, -0.01)))) or []
    assert isinstance(piece, Piece)
    assert math.isclose(piece.curve.value(50), math.exp(-0.5))


def test_too_many_ranges_are_given_up() -> None:
    x = ScheduleCounter()
    node = x.c
    for n in range(300):
        node = x("select", x("compare", x.c, float(7 * n), how="LT"), float(n % 2), node)
    assert pieces_of(*x.form(node)) is None

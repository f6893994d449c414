"""Figures: bounds of sums, products and choices hold the number, whatever it is."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hlo_inspect.figure import (
    MAX_FIGURE,
    Figure,
    Number,
    Quantity,
    add,
    any_of,
    at_least,
    between,
    exact,
    first_reason,
    greatest,
    known_part,
    least,
    maximum,
    multiply,
    reason,
    subtract,
    total,
    unknown,
)

TRIPS = at_least(1, "the trip count is unknown")
BRANCH = between(0, 1, "one branch runs")


def test_a_known_number_stays_the_number_that_it_is() -> None:
    assert (add(2, 3), multiply(2, 3.5), subtract(2, 3), total([1, 2, 3]), total([])) == (5, 7.0, -1, 6, 0)
    assert between(4, 4, "never said") == 4
    assert (least(4), greatest(4), exact(4), reason(4)) == (4, 4, 4, "")


def test_a_sum_with_a_missing_part_is_at_least_what_is_known() -> None:
    assert (known_part(2.5, ""), known_part(2.5, "no rate")) == (2.5, Figure(2.5, None, "no rate"))
    assert (first_reason([4, BRANCH, TRIPS]), first_reason([4])) == ("one branch runs", "")


def test_sums_and_products_stop_at_a_limit() -> None:
    limited = at_least(10**30, "it exceeds 10^30")
    assert (add(10**30, 1), multiply(10**15, 10**16), add(10**30, 0)) == (limited, limited, 10**30)


def test_bounds_by_hand() -> None:
    assert Figure(6, None, "the trip count is unknown") == 4 + 2 * TRIPS
    assert sum([1, BRANCH, 2, BRANCH]) == Figure(3, 5, "one branch runs")
    assert Figure(0, None, "one branch runs") == BRANCH * TRIPS
    assert Figure(9, 10, "one branch runs") == 10 - BRANCH
    assert Figure(-10, -9, "one branch runs") == BRANCH - 10
    assert Figure(-math.inf, 9, "the trip count is unknown") == 10 - TRIPS
    assert maximum([BRANCH, 5]) == 5
    assert maximum([TRIPS, 5, BRANCH]) == Figure(5, None, "the trip count is unknown")
    assert any_of([3, 7], "branches differ") == Figure(3, 7, "branches differ")
    assert any_of([3, 3], "branches differ") == 3
    assert (exact(TRIPS), least(unknown("why")), greatest(TRIPS)) == (None, 0, None)


def test_a_factor_of_zero_makes_nothing_of_what_is_unknown() -> None:
    assert TRIPS * 0 == 0
    assert 0 * unknown("why") == 0


def test_what_exceeds_the_limit_is_a_lower_bound() -> None:
    assert multiply(10**20, 10**20) == Figure(MAX_FIGURE, None, "it exceeds 10^30")
    assert add(BRANCH, MAX_FIGURE) == Figure(MAX_FIGURE, None, "one branch runs")


@st.composite
def quantities(draw: st.DrawFn) -> tuple[Quantity, int]:
    """Return a quantity and a number within its bounds."""
    number = draw(st.integers(0, 50))
    low, high = draw(st.integers(0, number)), draw(st.none() | st.integers(number, 60))
    return draw(st.sampled_from([number, between(low, high, "drawn")])), number


def holds(quantity: Quantity, number: Number) -> bool:
    limit = greatest(quantity)
    return least(quantity) <= number and (limit is None or number <= limit)


@pytest.mark.parametrize(
    ("of_quantities", "of_numbers"),
    [
        (add, lambda a, b: a + b),
        (subtract, lambda a, b: a - b),
        (multiply, lambda a, b: a * b),
        (lambda a, b: maximum([a, b]), max),
        (lambda a, b: any_of([a, b], "either"), lambda a, _: a),
    ],
)
@given(quantities(), quantities())
def test_bounds_hold_the_number(
    of_quantities: Callable[[Quantity, Quantity], Quantity],
    of_numbers: Callable[[int, int], int],
    a: tuple[Quantity, int],
    b: tuple[Quantity, int],
) -> None:
    result = of_quantities(a[0], b[0])
    assert holds(result, of_numbers(a[1], b[1]))
    assert not isinstance(result, Figure) or (result.reason and result.least != result.greatest)

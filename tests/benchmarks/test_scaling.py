"""The benchmark of growth: its exponents, and the shapes that it doubles."""

from __future__ import annotations

import math

import pytest

from benchmarks import scaling
from benchmarks.scaling import Cost, Row, exponent
from benchmarks.shapes import SHAPES, TextShape

SIZES = [1000, 2000, 4000, 8000]


@pytest.mark.parametrize("power", [1, 1.5, 2])
def test_the_exponent_of_a_power(power: float) -> None:
    slope = exponent([(size / 1000) ** power for size in SIZES], SIZES, 0.01)
    assert slope == pytest.approx(power)


def test_times_near_the_floor_have_no_exponent() -> None:
    assert exponent([0.001, 0.002, 0.003, 0.015], SIZES, 0.01) is None


def test_a_run_that_does_not_end_has_an_infinite_exponent() -> None:
    assert Row("x", SIZES[:2], [Cost(1, 1), None], [Cost(1, 1)]).exponents == (math.inf, math.inf)


@pytest.mark.parametrize(("power", "runs"), [(1, 3), (2, 12)])
def test_a_text_that_seems_to_grow_too_fast_is_measured_again(monkeypatch: pytest.MonkeyPatch, power: int, runs: int) -> None:
    """The least of all runs counts: the second of each text is disturbed less than the others."""
    seen: list[int] = []

    def measure_once(text: str, _passes: object, *, traced: bool = False) -> Cost:
        if not traced:
            seen.append(len(text))
        return Cost((len(text) / 1000) ** power * (1 if seen.count(len(text)) == 2 else 3), 0)

    monkeypatch.setattr(scaling, "measure_once", measure_once)
    result = scaling.row(TextShape("x", lambda n: "x" * n, 1000), [], 3, Cost(0, 0))
    assert [seen.count(size) for size in SIZES] == [runs] * 4
    assert result.exponents[0] == pytest.approx(power)


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_a_shape_grows_as_its_size(shape: TextShape) -> None:
    small, large = (len(shape.make(size)) for size in (60, 120))
    assert 1.5 < large / small < 2.6

"""Equations and words of parts."""

from __future__ import annotations

import math

import pytest

from hlo_inspect.analysis.optimizer.schedule_parts import FAR, Part, described


def test_equations() -> None:
    """Halfway: the mean of the ends on a line and a half wave; a quarter and a half of the difference with exponents."""
    assert Part("linear", 10, 100, 0.0, 1.0).value(60) == 0.5
    assert math.isclose(Part("cosine", 10, 100, 1.0, 0.0).value(60), 0.5)
    assert math.isclose(Part("cosine", 10, 100, 1.0, 0.0, exponent=2.0).value(60), 0.25)
    assert math.isclose(Part("polynomial", 10, 100, 1.0, 0.2, exponent=2.0).value(60), 0.4)
    assert Part("staircase", 10, None, 8.0, 8.0, factor=0.5, every=20.0).value(69) == 2.0
    assert Part("inverse square root", 0, None, 0.0, 0.0, factor=6.0, every=1.0).value(8) == 2.0


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ([Part("constant", 0, None, 0.1, 0.1)], "constant 0.1"),
        ([Part("linear", 0, 10, 0.2, 0.1), Part("constant", 10, None, 0.1, 0.1)], "linear 0.2 to 0.1 over 10 steps"),
        (
            [Part("linear", 0, 10, 0.2, 0.1), Part("constant", 10, None, 0.3, 0.3)],
            "linear 0.2 to 0.1 over 10 steps, then constant 0.3",
        ),
        (
            [Part("linear", 0, 10, 0.1, 0.2), Part("cosine", 10, 90, 0.2, 0.0)],
            "linear warm-up 0.1 to 0.2 over 10 steps, then cosine to 0 over 90 steps",
        ),
        ([Part("polynomial", 0, 10, 1.0, 0.0, 3.0)], "polynomial with exponent 3 1 to 0 over 10 steps"),
        ([Part("exponential", 0, 10, 1.0, 1.0, factor=0.5, every=1.0)], "exponential from 1, times 0.5 each step for 10 steps"),
        ([Part("inverse square root", 0, None, 1.0, 0.0, factor=2.0, every=-3.0)], "inverse square root 2 / sqrt(counter - 3)"),
    ],
)
def test_words(parts: list[Part], words: str) -> None:
    assert described(parts) == words


def test_points() -> None:
    """Both ends, and between; of stairs no point at which one begins."""
    line = Part("linear", 10, 100, 0.0, 1.0).points()
    assert (min(line), max(line)) == (10, 109)
    assert max(Part("linear", 10, None, 0.0, 1.0).points()) == 10 + FAR - 1
    stairs = Part("staircase", 10, 200, 1.0, 1.0, factor=0.5, every=50.0).points()
    assert stairs
    assert all(10 < point < 210 and (point - 10) % 50 for point in stairs)

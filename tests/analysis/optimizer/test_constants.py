"""The numbers that constants spell."""

from __future__ import annotations

import math

import pytest

from hlo_inspect.analysis.optimizer.constants import constant_value, is_rounded
from tests.analysis.optimizer.reading import statement_of


def value(literal: str, shape: str = "f32[]") -> float | None:
    return constant_value(statement_of(f"{shape} constant", f"{literal})"))


@pytest.mark.parametrize(
    ("literal", "number"),
    [("0.1", 0.1), ("-1e-08", -1e-8), ("2147483647", 2147483647.0), ("true", 1.0), ("inf", math.inf), ("{ 0.9, 0.9 }", 0.9)],
)
def test_values(literal: str, number: float) -> None:
    assert value(literal) == number


def test_nan() -> None:
    found = value("nan")
    assert found is not None
    assert math.isnan(found)


@pytest.mark.parametrize("literal", ["{...}", "{1, 2}", "{}", '"text"', "(1, 2)", "1" * 50, ""])
def test_what_is_no_single_number(literal: str) -> None:
    assert value(literal) is None


def test_rounded_constants() -> None:
    """0.001 in bfloat16 is 0x3A83, as a float32 0.000999450684; 0.1 in float16 is 0x2E66, 0.0999755859."""
    assert is_rounded(0.1, "bf16")
    assert is_rounded(0.000999450684, "f32")
    assert is_rounded(0.0999755859375, "f32")
    assert not is_rounded(0.1, "f32")
    assert not is_rounded(0.5, "f32")
    assert not is_rounded(1e300, "f32")

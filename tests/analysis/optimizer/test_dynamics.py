"""What goes one way is no gradient: products of `w` with another input, in steps that look like descent."""

from __future__ import annotations

import pytest

from tests.analysis.optimizer.reading import rules_of
from tests.analysis.optimizer.step import step_of

CONTRACTED = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"
DOWN = ("u = multiply o rate", "new = add w u")


def dot(name: str, left: str, right: str) -> str:
    return f"{name} = f32[4,4]{{1,0}} dot(%{left}, %{right}), {CONTRACTED}"


@pytest.mark.parametrize(
    "lines",
    [
        (dot("o", "m1", "w"),),
        (dot("o", "w", "m1"),),
        (dot("h", "m1", "w"), "o = tanh h"),
        ("s = sine w", dot("o", "m1", "s")),
        ("o = f32[4,4]{1,0} convolution(%w, %m1), window={size=3x3 pad=1_1x1_1}, dim_labels=01_01->01",),
    ],
)
def test_one_product_is_no_gradient(lines: tuple[str, ...]) -> None:
    assert rules_of(step_of(*lines, *DOWN, states=1)) == []


def test_with_a_velocity() -> None:
    lines = (dot("f", "m2", "w"), "a = multiply m1 nine", "o = add a f")
    assert rules_of(step_of(*lines, *DOWN, outputs="new o", states=2)) == []


def test_there_and_back() -> None:
    lines = (dot("h", "m1", "w"), "t = tanh h", dot("o", "m1", "t"))
    assert rules_of(step_of(*lines, *DOWN, states=1)) == ["sgd"]


def test_beside_a_gradient() -> None:
    assert rules_of(step_of(dot("f", "m1", "w"), "o = add f g", *DOWN, states=1)) == ["sgd"]


def test_two_products_can_be_the_gradient_of_a_quadratic_form() -> None:
    assert rules_of(step_of(dot("f", "m1", "w"), dot("h", "w", "m1"), "o = add f h", *DOWN, states=1)) != []

"""Updates that are nearly those of a rule: another equation is claimed by none."""

from __future__ import annotations

import pytest

from tests.optimizer.programs import changed, rules_of, text_of

SQRT = (r" sqrt\(", " cbrt(")
OTHER_EQUATIONS = {
    **dict.fromkeys(("adabelief", "adadelta", "adafactor", "adam", "adamw", "amsgrad", "lamb", "lars"), SQRT),
    **dict.fromkeys(("nadam", "nadamw", "novograd", "radam", "schedule_free_adamw"), SQRT),
    "adagrad": (r" rsqrt\(", " cbrt("),
    "rmsprop": (r" rsqrt\(", " cbrt("),
    "adamax": (r" abs\(", " tanh("),
    **dict.fromkeys(("lion", "signum", "signum_scheduled"), (r" sign\(", " tanh(")),
    **dict.fromkeys(("sign_sgd", "sign_sgd_decayed"), (r" sign\(", " rsqrt(")),
    "yogi": (r" sign\(", " tanh("),
}
"""A cube root in place of a square root, a smooth function in place of the sign or the absolute value."""


@pytest.mark.parametrize("program", OTHER_EQUATIONS)
def test_another_function_is_another_equation(program: str) -> None:
    assert rules_of(changed(text_of(f"{program}.before"), *OTHER_EQUATIONS[program])) == ["unknown", "unknown"]


@pytest.mark.parametrize(("stage", "sum_of_squares"), [("before", "mul.32, mul.33"), ("after", "%mul.12, %mul.11")])
def test_squares_that_swing_are_no_second_moment(stage: str, sum_of_squares: str) -> None:
    """`0.02 * g ** 2 - 0.98 * v` in the update of the bias, which comes first."""
    text = changed(text_of(f"adam.{stage}"), rf"add\((?={sum_of_squares}\))", "subtract(")
    assert rules_of(text) == ["unknown", "adam"]


def test_the_largest_accumulator_is_no_sm3() -> None:
    """In place of the smallest; a vector has only one."""
    assert rules_of(changed(text_of("sm3.before"), r" minimum\(", " maximum(")) == ["sm3", "unknown"]


def test_factors_of_nadam_go_together() -> None:
    """`(1 - b1) * g` or `(1 - b1)` of the first moment with 0.3 in place of 0.1."""
    lines = text_of("nadam.after").splitlines()
    places = [n for n, line in enumerate(lines) if "constant(0.1)" in line]
    assert places
    for place in places:
        edited = [*lines[:place], lines[place].replace("constant(0.1)", "constant(0.3)"), *lines[place + 1 :]]
        assert sorted(rules_of("\n".join(edited) + "\n")) == ["nadam", "unknown"]


@pytest.mark.parametrize(
    ("pattern", "by"),
    [
        (r"multiply\(reduce_sum.15, broadcast.17\)", "multiply(integer_pow.2, broadcast.17)"),  # another slow average
        (r"add\(div.11, mul.56\)", "add(add.26, mul.56)"),  # neither of the two averages is corrected
        (r"add\(div.11, mul.56\)", "maximum(div.11, mul.56)"),
        (r"multiply\(add.28, broadcast.13\)", "multiply(add.28, reduce_sum.15)"),  # no factor alpha, but the gradient
    ],
)
def test_another_mixture_is_no_ademamix(pattern: str, by: str) -> None:
    """In the update of the bias, which comes first."""
    assert rules_of(changed(text_of("ademamix.before"), pattern, by)) == ["unknown", "ademamix"]


@pytest.mark.parametrize("case", ["lamb", "lars"])
def test_the_norm_of_something_else_is_unknown(case: str) -> None:
    """Fourth powers in place of squares, wherever something is multiplied by itself and added up."""
    text = changed(text_of(f"{case}.before"), r"reduce\((\S+), (\S+)\), dimensions=\{0,1\}", r"reduce(\1, \2), dimensions={0}")
    text = changed(text, r" sqrt\(", " log(")
    assert set(rules_of(text)) <= {"unknown"}

"""Updates that are nearly those of a rule: another equation is claimed by none."""

from __future__ import annotations

import pytest

import hlo_inspect
from tests.optimizer.programs import changed, rules_of, step_of, text_of

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


MOMENTUM = ("a = multiply m1 nine", "b = multiply g tenth")
STEP = ("u = multiply s rate", "new = add w u")


@pytest.mark.parametrize(
    ("lines", "rule"),
    [
        ((*MOMENTUM, "m = add a b", "s = sign m", *STEP), "signum"),
        ((*MOMENTUM, "m = add a g", "s = sign m", *STEP), "signum"),  # undamped
        ((*MOMENTUM, "m = add a b", "c = multiply m1 half", "d = multiply g half", "k = add c d", "s = sign k", *STEP), "lion"),
        ((*MOMENTUM, "m = add a b", "c = add m b", "s = sign c", *STEP), "unknown"),
        ((*MOMENTUM, "m = add a b", "c = multiply m g", "s = sign c", *STEP), "unknown"),
        ((*MOMENTUM, "c = sign b", "m = add a c", "s = sign m", *STEP), "unknown"),
        ((*MOMENTUM, "m = add a b", "c = abs w", "k = sign m", "s = multiply k c", *STEP), "unknown"),
        (("m = multiply m1 nine", "s = sign g", *STEP), "sign_sgd"),
        (("m = multiply m1 nine", "c = multiply g m1", "s = sign c", *STEP), "unknown"),  # the turn of Rprop
        (("m = multiply m1 nine", "c = sign g", "d = abs w", "s = multiply c d", *STEP), "unknown"),
    ],
)
def test_a_sign_of_something_else_is_another_equation(lines: tuple[str, ...], rule: str) -> None:
    """The sign is that of the kept average `m`, of the gradient, or of another average of both."""
    assert rules_of(step_of(*lines, outputs="new m", states=1)) == [rule]


@pytest.mark.parametrize(
    ("how", "factor", "rule"),
    [
        ("multiply", "least", "unknown"),
        ("multiply", "norm", "unknown"),
        ("multiply", "two_s", "sgd"),
        ("divide", "norm", "sgd"),
    ],
)
def test_a_step_as_long_as_its_weight_is_no_sgd(how: str, factor: str, rule: str) -> None:
    """That of Fromage, or of optax's scale_by_param_block_norm. With `w / stop_gradient(norm(w))` the gradient is divided."""
    text = step_of(
        "ww = f32[4,4]{1,0} multiply(%w, %w)",
        "sum = f32[] reduce(%ww, %zero_s), dimensions={0,1}, to_apply=%add",
        "norm = f32[] sqrt(%sum)",
        "least = f32[] maximum(%norm, %tenth_s)",
        f"size = f32[4,4]{{1,0}} broadcast(%{factor}), dimensions={{}}",
        f"step = {how} g size",
        "u = multiply step rate",
        "new = add w u",
    )
    assert rules_of(text) == [rule]


@pytest.mark.parametrize(("divisor", "rule"), [("norm", "unknown"), ("two_s", "sgd")])
def test_a_rate_that_norms_of_the_gradient_bound_is_no_sgd(divisor: str, rule: str) -> None:
    """Polyak's step, the smaller one of loss / norm(g) ** 2 and a number; without the norm it is a part of the gradient."""
    text = step_of(
        "gg = f32[4,4]{1,0} multiply(%g, %g)",
        "hh = f32[9,4]{1,0} multiply(%h, %h)",
        "norm = f32[] reduce(%gg, %zero_s), dimensions={0,1}, to_apply=%add",
        "loss = f32[] reduce(%hh, %zero_s), dimensions={0,1}, to_apply=%add",
        f"ratio = f32[] divide(%loss, %{divisor})",
        "bound = f32[] minimum(%ratio, %nine_s)",
        "bounds = f32[4,4]{1,0} broadcast(%bound), dimensions={}",
        "step = f32[4,4]{1,0} multiply(%g, %bounds)",
        "new = f32[4,4]{1,0} subtract(%w, %step)",
    )
    assert rules_of(text) == [rule]


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


def test_a_product_of_which_a_factor_begins_with_a_number() -> None:
    """An operand that is defined nowhere, plus one, times a matrix: one factor of the product is `1 + x`."""
    text = (
        "HloModule m\n\nsilu {\n  c = f32[] constant(1)\n  b = f32[4,16]{1,0} broadcast(c), dimensions={}\n"
        "  ROOT a = f32[4,16]{1,0} add(nobody, b)\n}\n\nENTRY e {\n  s = f32[4,16]{1,0} parameter(0)\n"
        "  j = f32[4,16]{1,0} call(lost), to_apply=silu\n"
        "  d = f32[4,16]{1,0} dot(j, none), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
        "  m = f32[4,16]{1,0} multiply(d, more)\n  v = f32[4,16]{1,0} divide(m, other)\n"
        "  n = f32[4,16]{1,0} subtract(s, v)\n  ROOT t = (f32[4,16]{1,0}, f32[4,16]{1,0}) tuple(n, last)\n}\n"
    )
    assert hlo_inspect.inspect(text, "optimizer").facts["optimizer.name"] in {"unknown", "none", None}

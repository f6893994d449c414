"""Weights that the loss reads as a symmetric or an antisymmetric matrix: the gradient is `(g + g.T) / 2` or `g - g.T`."""

from __future__ import annotations

import pytest

from tests.optimizer.programs import report_of

STEP = """HloModule jit_step, input_output_alias={{ {{}}: (0, {{}}, may-alias) }}

ENTRY main {{
  w = f32[4,4]{{1,0}} parameter(0), metadata={{op_name="w"}}
  x = f32[8,4]{{1,0}} parameter(1), metadata={{op_name="x"}}
  wt = f32[4,4]{{0,1}} transpose(w), dimensions={{{order}}}
  s = f32[4,4]{{1,0}} {how}(w, wt)
  y = f32[8,4]{{1,0}} dot(x, s), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  g = f32[4,4]{{1,0}} dot(x, y), lhs_contracting_dims={{0}}, rhs_contracting_dims={{0}}
{gradient}
  k = f32[] constant(-0.1)
  ks = f32[4,4]{{1,0}} broadcast(k), dimensions={{}}
  u = f32[4,4]{{1,0}} multiply(d, ks)
  ROOT v = f32[4,4]{{1,0}} add(w, u)
}}
"""
TURNED = "  gt = f32[4,4]{1,0} transpose(g), dimensions={1,0}\n"
HALF = "  half = f32[] constant(0.5)\n  hs = f32[4,4]{1,0} broadcast(half), dimensions={}\n"
HALVED = HALF + "  h = f32[4,4]{1,0} multiply(g, hs)\n  ht = f32[4,4]{1,0} transpose(h), dimensions={1,0}\n"
GRADIENTS = {
    "sum of halves": ("add", HALVED + "  d = f32[4,4]{1,0} add(h, ht)"),
    "half of a sum": ("add", HALF + TURNED + "  b = f32[4,4]{1,0} add(g, gt)\n  d = f32[4,4]{1,0} multiply(b, hs)"),
    "difference": ("subtract", TURNED + "  d = f32[4,4]{1,0} subtract(g, gt)"),
    "difference of halves": ("subtract", HALVED + "  d = f32[4,4]{1,0} subtract(h, ht)"),
    "sum with what is negated": (
        "subtract",
        "  n = f32[4,4]{1,0} negate(g)\n  nt = f32[4,4]{0,1} transpose(n), dimensions={1,0}\n"
        "  c = f32[4,4]{1,0} copy(nt)\n  d = f32[4,4]{1,0} add(g, c)",
    ),
}
FACTS = ("name", "update_count", "frozen_count", "learning_rate")


def _facts(gradient: str, how: str, order: str = "1,0") -> list[object]:
    text = STEP.format(gradient=gradient, how=how, order=order)
    return [report_of(text).facts[f"optimizer.{name}"] for name in FACTS]


@pytest.mark.parametrize(("how", "gradient"), GRADIENTS.values(), ids=GRADIENTS)
def test_the_rate_is_that_of_the_gradient(how: str, gradient: str) -> None:
    assert _facts(gradient, how) == ["sgd", 1, 0, 0.1]


def test_an_array_transposed_twice_is_the_array() -> None:
    twice = TURNED + "  gg = f32[4,4]{1,0} transpose(gt), dimensions={1,0}\n  d = f32[4,4]{1,0} add(g, gg)"
    assert _facts(twice, "add") == ["sgd", 1, 0, 0.2]


def test_a_transpose_that_keeps_the_order_is_the_array() -> None:
    same = "  gt = f32[4,4]{0,1} transpose(g), dimensions={0,1}\n  d = f32[4,4]{1,0} add(g, gt)"
    assert _facts(same, "add", "0,1") == ["sgd", 1, 0, 0.2]

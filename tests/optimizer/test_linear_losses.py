"""Losses that are linear in a weight, such as the mean of a critic: its gradient depends on other weights alone."""

from __future__ import annotations

import pytest

from tests.optimizer.programs import report_of

STEP = """HloModule jit_step, entry_computation_layout={(f32[4,4]{1,0}, f32[4,4]{1,0}, f32[8,4]{1,0})\
->(f32[4,4]{1,0}, f32[4,4]{1,0}, f32[])}

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}

ENTRY main {
  w = f32[4,4]{1,0} parameter(0), metadata={op_name="w"}
  v = f32[4,4]{1,0} parameter(1), metadata={op_name="v"}
  x = f32[8,4]{1,0} parameter(2), metadata={op_name="x"}
  zero = f32[] constant(0)
  one = f32[] constant(1)
  k = f32[] constant(-0.1)
  ks = f32[4,4]{1,0} broadcast(k), dimensions={}
  ones = f32[8,4]{1,0} broadcast(one), dimensions={}
  y = f32[8,4]{1,0} dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  h = f32[8,4]{1,0} tanh(y)
  z = f32[8,4]{1,0} dot(h, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  l = f32[] reduce(z, zero), dimensions={0,1}, to_apply=add
  dh = f32[8,4]{1,0} dot(ones, v), lhs_contracting_dims={1}, rhs_contracting_dims={1}
  hh = f32[8,4]{1,0} multiply(h, h)
  t = f32[8,4]{1,0} subtract(ones, hh)
  dy = f32[8,4]{1,0} multiply(dh, t)
  gw = f32[4,4]{1,0} dot(x, dy), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  gv = f32[4,4]{1,0} dot(h, ones), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  sw = f32[4,4]{1,0} multiply(ks, gw)
  sv = f32[4,4]{1,0} multiply(ks, gv)
  nw = f32[4,4]{1,0} add(w, sw)
  nv = f32[4,4]{1,0} add(v, sv)
  ROOT r = (f32[4,4]{1,0}, f32[4,4]{1,0}, f32[]) tuple(nw, nv, l)
}
"""
FACTS = ("name", "update_count", "frozen_count", "learning_rate", "weight_bytes")


def _facts(text: str) -> list[object]:
    return [report_of(text).facts[f"optimizer.{name}"] for name in FACTS]


def test_both_weights_are_found() -> None:
    assert _facts(STEP) == ["sgd", 2, 0, 0.1, 2 * 4 * 4 * 4]


def test_the_last_layer_may_have_its_own_rate() -> None:
    text = STEP.replace("sv = f32[4,4]{1,0} multiply(ks, gv)", "sv = f32[4,4]{1,0} multiply(js, gv)")
    text = text.replace("  ones =", "  j = f32[] constant(-0.2)\n  js = f32[4,4]{1,0} broadcast(j), dimensions={}\n  ones =")
    assert _facts(text) == ["sgd", 2, 0, None, 2 * 4 * 4 * 4]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("nv = f32[4,4]{1,0} add(v, sv)", "nv = f32[4,4]{1,0} subtract(v, sv)"),  # goes up
        (
            "dot(h, ones), lhs_contracting_dims={0}",
            "dot(x, ones), lhs_contracting_dims={0}",
        ),  # v is multiplied with nothing
        ("dot(h, ones)", "dot(h, h)"),  # correlations, without a gradient from the loss
    ],
)
def test_an_update_without_a_gradient_is_no_update_of_a_weight(old: str, new: str) -> None:
    assert old in STEP
    assert "sgd" not in _facts(STEP.replace(old, new))


ONE_OUTPUT = """HloModule jit_step, entry_computation_layout={(f32[4,4]{1,0}, f32[4,4]{1,0}, f32[4]{0}, f32[8,4]{1,0})\
->(f32[4,4]{1,0}, f32[4,4]{1,0}, f32[4]{0}, f32[8]{0})}

ENTRY main {
  u = f32[4,4]{1,0} parameter(0)
  w = f32[4,4]{1,0} parameter(1)
  v = f32[4]{0} parameter(2)
  x = f32[8,4]{1,0} parameter(3)
  one = f32[] constant(1)
  k = f32[] constant(-0.1)
  ks = f32[4,4]{1,0} broadcast(k), dimensions={}
  k4 = f32[4]{0} broadcast(k), dimensions={}
  ones = f32[8,4]{1,0} broadcast(one), dimensions={}
  ones8 = f32[8]{0} broadcast(one), dimensions={}
  y = f32[8,4]{1,0} dot(x, u), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  h = f32[8,4]{1,0} tanh(y)
  o = f32[8,4]{1,0} dot(h, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  a = f32[8,4]{1,0} tanh(o)
  z = f32[8]{0} dot(a, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  da = f32[8,4]{1,0} broadcast(v), dimensions={1}
  aa = f32[8,4]{1,0} multiply(a, a)
  s = f32[8,4]{1,0} subtract(ones, aa)
  do = f32[8,4]{1,0} multiply(da, s)
  dh = f32[8,4]{1,0} dot(do, w), lhs_contracting_dims={1}, rhs_contracting_dims={1}
  hh = f32[8,4]{1,0} multiply(h, h)
  t = f32[8,4]{1,0} subtract(ones, hh)
  dy = f32[8,4]{1,0} multiply(dh, t)
  gu = f32[4,4]{1,0} dot(x, dy), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  gw = f32[4,4]{1,0} dot(h, do), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  gv = f32[4]{0} dot(a, ones8), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  su = f32[4,4]{1,0} multiply(ks, gu)
  sw = f32[4,4]{1,0} multiply(ks, gw)
  sv = f32[4]{0} multiply(k4, gv)
  nu = f32[4,4]{1,0} add(u, su)
  nw = f32[4,4]{1,0} add(w, sw)
  nv = f32[4]{0} add(v, sv)
  ROOT r = (f32[4,4]{1,0}, f32[4,4]{1,0}, f32[4]{0}, f32[8]{0}) tuple(nu, nw, nv, z)
}
"""


def test_the_way_back_through_one_output_is_no_product() -> None:
    """The weight is repeated instead; what the result is multiplied with below, a weight before it, is not in the gradient."""
    assert _facts(ONE_OUTPUT) == ["sgd", 3, 0, 0.1, 4 * (2 * 4 * 4 + 4)]


SADDLE = """HloModule jit_step, entry_computation_layout={(f32[4]{0}, f32[6]{0}, f32[6,4]{1,0})->(f32[4]{0}, f32[6]{0})}

ENTRY main {
  x = f32[4]{0} parameter(0)
  y = f32[6]{0} parameter(1)
  a = f32[6,4]{1,0} parameter(2)
  k = f32[] constant(0.1)
  k4 = f32[4]{0} broadcast(k), dimensions={}
  k6 = f32[6]{0} broadcast(k), dimensions={}
  ay = f32[4]{0} dot(y, a), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  sx = f32[4]{0} multiply(k4, ay)
  nx = f32[4]{0} subtract(x, sx)
  ax = f32[6]{0} dot(a, nx), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  sy = f32[6]{0} multiply(k6, ax)
  ny = f32[6]{0} add(y, sy)
  ROOT r = (f32[4]{0}, f32[6]{0}) tuple(nx, ny)
}
"""


def test_every_cofactor_of_a_weight_is_in_its_gradient() -> None:
    """The loss is the sum of `x * z`; of Hebb's rule, without what comes back from the loss, it is not."""
    weighted = STEP.replace("dot(ones, v)", "dot(x, v)")
    assert _facts(weighted.replace("dot(h, ones)", "dot(h, x)")) == ["sgd", 2, 0, 0.1, 2 * 4 * 4 * 4]
    assert "sgd" not in _facts(weighted.replace("dot(h, ones)", "dot(h, y)"))


def test_the_steps_of_a_saddle_point_method_have_no_name() -> None:
    assert "sgd" not in _facts(SADDLE)

"""Gradients that XLA works out once more in each fusion that reads them: they are one value."""

from __future__ import annotations

import pytest

from tests.optimizer.programs import report_of

STEP = """HloModule jit_step, is_scheduled=true, entry_computation_layout={{(f32[4,4]{{1,0}}, f32[4,4]{{1,0}}, f32[8,4]{{1,0}})\
->(f32[4,4]{{1,0}}, f32[4,4]{{1,0}})}}

moment {{
  m = f32[4,4]{{1,0}} parameter(0)
  g = f32[4,4]{{1,0}} parameter(1)
{moment}
  b = f32[] constant(0.9)
  bs = f32[4,4]{{1,0}} broadcast(b), dimensions={{}}
  bm = f32[4,4]{{1,0}} multiply(m, bs)
  ROOT n = f32[4,4]{{1,0}} add(bm, d)
}}

weight {{
  w = f32[4,4]{{1,0}} parameter(0)
  m = f32[4,4]{{1,0}} parameter(1)
  g = f32[4,4]{{1,0}} parameter(2)
{weight}
  b = f32[] constant(0.9)
  bs = f32[4,4]{{1,0}} broadcast(b), dimensions={{}}
  bm = f32[4,4]{{1,0}} multiply(m, bs)
  n = f32[4,4]{{1,0}} add(bm, d)
  k = f32[] constant(-0.1)
  ks = f32[4,4]{{1,0}} broadcast(k), dimensions={{}}
  u = f32[4,4]{{1,0}} multiply(n, ks)
  ROOT v = f32[4,4]{{1,0}} add(w, u)
}}

ENTRY main {{
  w = f32[4,4]{{1,0}} parameter(0), metadata={{op_name="w"}}
  m = f32[4,4]{{1,0}} parameter(1), metadata={{op_name="m"}}
  x = f32[8,4]{{1,0}} parameter(2), metadata={{op_name="x"}}
  y = f32[8,4]{{1,0}} dot(x, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  g = f32[4,4]{{1,0}} dot(x, y), lhs_contracting_dims={{0}}, rhs_contracting_dims={{0}}
  n = f32[4,4]{{1,0}} fusion(m, g), kind=kLoop, calls=moment
  v = f32[4,4]{{1,0}} fusion(w, m, g), kind=kLoop, calls=weight
  ROOT r = (f32[4,4]{{1,0}}, f32[4,4]{{1,0}}) tuple(v, n)
}}
"""
FLIPPED = "  d = f32[4,4]{1,0} reverse(g), dimensions={0}"
TRIANGLE = """  i = s32[4,4]{1,0} iota(), iota_dimension=0
  j = s32[4,4]{1,0} iota(), iota_dimension=1
  c = pred[4,4]{1,0} compare(i, j), direction=GE
  o = f32[] constant(0)
  z = f32[4,4]{1,0} broadcast(o), dimensions={}
  d = f32[4,4]{1,0} select(c, g, z)"""
FACTS = ("name", "update_count", "learning_rate", "momentum")


@pytest.mark.parametrize("gradient", [FLIPPED, TRIANGLE], ids=["flipped", "triangle"])
def test_a_gradient_of_two_fusions_counts_once(gradient: str) -> None:
    facts = report_of(STEP.format(moment=gradient, weight=gradient)).facts
    assert [facts[f"optimizer.{name}"] for name in FACTS] == ["sgd", 1, 0.1, 0.9]


@pytest.mark.parametrize(
    ("gradient", "other"),
    [
        (FLIPPED, FLIPPED.replace("{0}", "{1}")),
        (FLIPPED, FLIPPED.replace(", dimensions={0}", "")),
        (TRIANGLE, TRIANGLE.replace("i, j", "j, i")),
        (TRIANGLE, TRIANGLE.replace(", iota_dimension=1", "")),
    ],
)
def test_gradients_that_differ_or_may_differ_are_two(gradient: str, other: str) -> None:
    assert report_of(STEP.format(moment=gradient, weight=other)).facts["optimizer.name"] == "unknown"

"""Steps in loops that hand constants of the step around the loop, as TPU does."""

from __future__ import annotations

from tests.optimizer.programs import report_of

STATE = "(f32[4,8], f32[16,4], f32[], f32[1], s32[])"
LOOP = f"""HloModule jit_steps, entry_computation_layout={{(f32[4,8], f32[16,4])->(f32[4,8], f32[])}}

add {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}}

step {{
  s = {STATE} parameter(0)
  w = f32[4,8] get-tuple-element(s), index=0
  x = f32[16,4] get-tuple-element(s), index=1
  rate = f32[1] get-tuple-element(s), index=3
  i = s32[] get-tuple-element(s), index=4
  one = s32[] constant(1)
  j = s32[] add(i, one)
  zero = f32[] constant(0)
  y = f32[16,8] dot(x, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  t = f32[16,8] tanh(y)
  l = f32[] reduce(t, zero), dimensions={{0,1}}, to_apply=add
  tt = f32[16,8] multiply(t, t)
  onef = f32[] constant(1)
  ones = f32[16,8] broadcast(onef), dimensions={{}}
  dy = f32[16,8] subtract(ones, tt)
  g = f32[4,8] dot(x, dy), lhs_contracting_dims={{0}}, rhs_contracting_dims={{0}}
  r = f32[] reshape(rate)
  rs = f32[4,8] broadcast(r), dimensions={{}}
  u = f32[4,8] multiply(rs, g)
  n = f32[4,8] add(w, u)
  ROOT o = {STATE} tuple(n, x, l, rate, j)
}}

more {{
  s = {STATE} parameter(0)
  i = s32[] get-tuple-element(s), index=4
  most = s32[] constant(5)
  ROOT c = pred[] compare(i, most), direction=LT
}}

epoch {{
  s = {STATE} parameter(0)
  w = f32[4,8] get-tuple-element(s), index=0
  x = f32[16,4] get-tuple-element(s), index=1
  l = f32[] get-tuple-element(s), index=2
  rate = f32[1] get-tuple-element(s), index=3
  i = s32[] get-tuple-element(s), index=4
  none = s32[] constant(0)
  inner = {STATE} tuple(w, x, l, rate, none)
  steps = {STATE} while(inner), condition=more, body=step
  one = s32[] constant(1)
  j = s32[] add(i, one)
  nw = f32[4,8] get-tuple-element(steps), index=0
  nx = f32[16,4] get-tuple-element(steps), index=1
  nl = f32[] get-tuple-element(steps), index=2
  nr = f32[1] get-tuple-element(steps), index=3
  ROOT o = {STATE} tuple(nw, nx, nl, nr, j)
}}

ENTRY main {{
  w = f32[4,8] parameter(0)
  x = f32[16,4] parameter(1)
  zero = f32[] constant(0)
  none = s32[] constant(0)
  rate = f32[1] constant({{-0.1}})
  state = {STATE} tuple(w, x, zero, rate, none)
  steps = {STATE} while(state), condition=more, body=BODY
  n = f32[4,8] get-tuple-element(steps), index=0
  l = f32[] get-tuple-element(steps), index=2
  ROOT o = (f32[4,8], f32[]) tuple(n, l)
}}
"""


def test_a_constant_that_a_loop_hands_around_is_that_constant() -> None:
    """W' = w - 0.1 * g in a loop, and in a loop in a loop, whose state holds the rate."""
    for body in ("step", "epoch"):
        facts = report_of(LOOP.replace("BODY", body)).facts
        assert [facts[f"optimizer.{name}"] for name in ("name", "update_count", "learning_rate")] == ["sgd", 1, 0.1]


def test_a_number_that_a_loop_changes_is_no_constant() -> None:
    changed = LOOP.replace("BODY", "step").replace(
        f"ROOT o = {STATE} tuple(n, x, l, rate, j)",
        f"half = f32[1] constant({{0.5}})\n  nr = f32[1] multiply(rate, half)\n  ROOT o = {STATE} tuple(n, x, l, nr, j)",
    )
    assert report_of(changed).facts["optimizer.learning_rate"] is None

"""Roles of parameters beside the optimizer's own state: averages of weights, and a second set of weights."""

from __future__ import annotations

from collections import Counter

import pytest

import hlo_inspect
from hlo_inspect.report.model import Report
from tests.optimizer.programs import text_of
from tests.tables import columns

STEP = """HloModule jit_step, input_output_alias={ {0}: (0, {}, may-alias), {1}: (1, {}, may-alias) }

ENTRY main {
  w = f32[4,4]{1,0} parameter(0)
  v = f32[4,8]{1,0} parameter(1)
  x = f32[9,4]{1,0} parameter(2)
  w2 = f32[4,4]{1,0} parameter(3)
  v2 = SHAPE parameter(4)
  h = f32[9,4]{1,0} dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  t = f32[9,4]{1,0} tanh(h)
  y = f32[9,8]{1,0} dot(t, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  h2 = f32[9,4]{1,0} dot(x, w2), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  t2 = f32[9,4]{1,0} tanh(h2)
  y2 = f32[9,8]{1,0} dot(t2, v2), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  e = f32[9,8]{1,0} subtract(y, y2)
  gv = f32[4,8]{1,0} dot(t, e), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  dt = f32[9,4]{1,0} dot(e, v), lhs_contracting_dims={1}, rhs_contracting_dims={1}
  dh = f32[9,4]{1,0} multiply(dt, t)
  gw = f32[4,4]{1,0} dot(x, dh), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  r = f32[] constant(0.1)
  rw = f32[4,4]{1,0} broadcast(r), dimensions={}
  rv = f32[4,8]{1,0} broadcast(r), dimensions={}
  sw = f32[4,4]{1,0} multiply(gw, rw)
  sv = f32[4,8]{1,0} multiply(gv, rv)
  nw = f32[4,4]{1,0} subtract(w, sw)
  nv = f32[4,8]{1,0} subtract(v, sv)
  k = f32[] constant(0.9)
  kw = f32[4,4]{1,0} broadcast(k), dimensions={}
  aw = f32[4,4]{1,0} multiply(w2, kw)
  bw = f32[4,4]{1,0} multiply(nw, rw)
  average = f32[4,4]{1,0} add(aw, bw)
  ROOT out = (f32[4,4]{1,0}, f32[4,8]{1,0}OUTPUTS) tuple(nw, nvRETURNED)
}
"""
"""SGD on `w` and `v`. `w2` and `v2` are the weights of a teacher; `average` is 0.9 w2 + 0.1 w'."""


def report(shape: str = "f32[4,8]{1,0}", outputs: str = "", returned: str = "") -> Report:
    text = STEP.replace("SHAPE", shape).replace("OUTPUTS", outputs).replace("RETURNED", returned)
    return hlo_inspect.inspect(text, ("optimizer", "params"))


def roles(own: Report) -> list[object]:
    return [role for (role,) in columns(own.table("params"), "role")]


def test_a_second_set_of_weights_is_frozen() -> None:
    assert roles(report()) == ["weight", "weight", None, "frozen", "frozen"]


def test_arrays_of_other_shapes_are_inputs() -> None:
    """Only one more array has a weight's shape: it may be part of the batch."""
    assert roles(report("bf16[4,8]{1,0}")) == ["weight", "weight", None, None, None]


def test_arrays_that_the_step_changes_are_no_second_set() -> None:
    """A rule that is unknown keeps sums of products in both arrays: they are its state."""
    sums = "  tw = f32[4,4]{1,0} add(w2, xx)\n  tv = f32[4,8]{1,0} add(v2, xy)\n"
    for name, shape, other in (("xx", "f32[4,4]", "x"), ("xy", "f32[4,8]", "y")):
        sums = f"  {name} = {shape} dot(x, {other}), lhs_contracting_dims={{0}}, rhs_contracting_dims={{0}}\n" + sums
    text = STEP.replace("SHAPE", "f32[4,8]{1,0}").replace("  ROOT", f"{sums}  ROOT")
    text = text.replace("OUTPUTS", ", f32[4,4]{1,0}, f32[4,8]{1,0}").replace("RETURNED", ", tw, tv")
    text = text.replace("{1}: (1, {}", "{2}: (3, {}, may-alias), {3}: (4, {}, may-alias), {1}: (1, {}")
    assert roles(hlo_inspect.inspect(text, ("optimizer", "params"))) == ["weight", "weight", None, None, None]


def test_an_average_of_a_weight_has_a_role() -> None:
    averaged = report(outputs=", f32[4,4]{1,0}", returned=", average")
    assert roles(averaged) == ["weight", "weight", None, "average", None]
    assert averaged.facts["optimizer.name"] == "sgd"


def test_an_average_may_compute_its_share() -> None:
    """The average is d w2 + (1 - d) w' with d = min(0.9, count)."""
    text = STEP.replace("SHAPE", "f32[4,8]{1,0}").replace("OUTPUTS", ", f32[4,4]{1,0}").replace("RETURNED", ", average")
    share = (
        "  count = f32[] parameter(5)\n  d = f32[] minimum(k, count)\n  one = f32[] constant(1)\n  s = f32[] subtract(one, d)\n"
    )
    text = text.replace("  kw = f32[4,4]{1,0} broadcast(k)", f"{share}  kw = f32[4,4]{{1,0}} broadcast(d)")
    text = text.replace("  bw =", "  sw2 = f32[4,4]{1,0} broadcast(s), dimensions={}\n  bw =").replace("(nw, rw)", "(nw, sw2)")
    assert roles(hlo_inspect.inspect(text, ("optimizer", "params"))) == ["weight", "weight", None, "average", None, None]


def test_a_target_that_takes_the_weights_in_some_steps_has_a_role() -> None:
    """`w2` becomes the new weight if the caller's flag is set."""
    text = STEP.replace("SHAPE", "f32[4,8]{1,0}").replace("OUTPUTS", ", f32[4,4]{1,0}").replace("RETURNED", ", target")
    target = "  is_due = pred[] parameter(5)\n  target = f32[4,4]{1,0} select(is_due, nw, w2)\n"
    text = text.replace("{1}: (1, {}", "{2}: (3, {}, may-alias), {1}: (1, {}").replace("  ROOT", f"{target}  ROOT")
    assert roles(hlo_inspect.inspect(text, ("optimizer", "params"))) == ["weight", "weight", None, "average", None, None]


@pytest.mark.parametrize("stage", ["before", "after"])
def test_the_counters_of_an_ensemble_are_one_array(stage: str) -> None:
    """Three members have a vector of three counters; the batch are the two arrays without a role."""
    own = roles(hlo_inspect.inspect(text_of(f"adam_ensemble.{stage}"), ("optimizer", "params")))
    assert Counter(own) == {"weight": 2, "first_moment": 2, "second_moment": 2, "counter": 1, None: 2}


@pytest.mark.parametrize(
    ("path", "expected"), [("", ["0{0}", "0{1}"]), (', metadata={op_name="params"}', ["params", "params"])]
)
def test_weights_of_a_tuple_parameter_are_named_by_their_index(path: str, expected: list[str]) -> None:
    text = STEP.replace("SHAPE", "f32[4,8]{1,0}").replace("OUTPUTS", "").replace("RETURNED", "")
    text = text.replace("(0, {}, may", "(0, {0}, may").replace("(1, {}, may", "(0, {1}, may")
    for number, new in ((4, 3), (3, 2), (2, 1)):
        text = text.replace(f"parameter({number})", f"PARAMETER({new})")
    text = text.replace("  w = f32[4,4]{1,0} parameter(0)", "  p = (f32[4,4]{1,0}, f32[4,8]{1,0}) parameter(0)" + path)
    text = text.replace("  v = f32[4,8]{1,0} parameter(1)", "  w = f32[4,4]{1,0} get-tuple-element(p), index=0")
    text = text.replace("  x = ", "  v = f32[4,8]{1,0} get-tuple-element(p), index=1\n  x = ").replace("PARAMETER", "parameter")
    weights = hlo_inspect.inspect(text, "optimizer").table("optimizer")
    assert [value for (value,) in columns(weights, "path")] == expected

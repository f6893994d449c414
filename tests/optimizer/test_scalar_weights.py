"""Scalar weights without a matrix product in their gradient: rows, or a note."""

from __future__ import annotations

import pytest

import hlo_inspect
from hlo_inspect.report.model import Report
from tests.tables import columns

STEP = """HloModule jit_step, input_output_alias={ {0}: (0, {}, may-alias), {1}: (1, {}, may-alias) }

sum {
  l = f32[] parameter(0)
  r = f32[] parameter(1)
  ROOT s = f32[] add(l, r)
}

ENTRY main {
  w = f32[4,6] parameter(0)
  s = f32[] parameter(1)
  x = f32[8,4] parameter(2)
  mw = f32[4,6] parameter(3)
  ms = f32[] parameter(4)
  zero = f32[] constant(0)
  one = f32[] constant(1)
  ones = f32[8,6] broadcast(one), dimensions={}
  y = f32[8,6] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  h = f32[8,6] tanh(y)
  objective = f32[] reduce(h, zero), dimensions={0,1}, to_apply=sum
  hh = f32[8,6] multiply(h, h)
  constraint = f32[] reduce(hh, zero), dimensions={0,1}, to_apply=sum
  weighted = f32[] multiply(s, constraint)
  loss = f32[] add(objective, weighted)
  factor = f32[8,6] broadcast(s), dimensions={}
  twice = f32[8,6] add(h, h)
  part = f32[8,6] multiply(factor, twice)
  dh = f32[8,6] add(ones, part)
  slope = f32[8,6] subtract(ones, hh)
  dy = f32[8,6] multiply(dh, slope)
  gw = f32[4,6] dot(x, dy), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  gs = f32[] negate(constraint)
  kept = f32[] constant(0.83)
  keptw = f32[4,6] broadcast(kept), dimensions={}
  rate = f32[] constant(0.1)
  ratew = f32[4,6] broadcast(rate), dimensions={}
  agew = f32[4,6] multiply(mw, keptw)
  ages = f32[] multiply(ms, kept)
  nmw = f32[4,6] add(agew, gw)
  nms = f32[] add(ages, gs)
  uw = f32[4,6] multiply(STEP_W, ratew)
  us = f32[] multiply(STEP_S, rate)
  nw = f32[4,6] subtract(w, uw)
  ns = f32[] subtract(s, us)
  ROOT out = (f32[4,6], f32[], f32[4,6], f32[], f32[]) tuple(nw, ns, OUT_W, OUT_S, loss)
}
"""
"""With `h = tanh(x @ w)` the loss is `sum(h) + s * sum(h * h)`; the multiplier `s` of this constraint goes up."""

NOTE = "optimizer.update_count: parameter 1 may be a weight: a scalar without a visible gradient has no row"


def report_of(*, has_momentum: bool, text: str = STEP) -> Report:
    parts = ("nmw", "nms", "nmw", "nms") if has_momentum else ("gw", "gs", "mw", "ms")
    for name, part in zip(("STEP_W", "STEP_S", "OUT_W", "OUT_S"), parts, strict=True):
        text = text.replace(name, part)
    return hlo_inspect.inspect(text, "optimizer")


def test_a_scalar_that_changes_as_the_weights_do_is_a_weight() -> None:
    report = report_of(has_momentum=True)
    rows = columns(report.table("optimizer"), "weight", "rule", "first_moment", "learning_rate", "momentum")
    assert rows == [(0, "sgd", 3, 0.1, 0.83), (1, "sgd", 4, 0.1, 0.83)]
    assert report.facts["optimizer.update_count"] == 2
    assert NOTE not in report.notes


@pytest.mark.parametrize(
    ("old", "new"), [("multiply(STEP_S, rate)", "multiply(STEP_S, kept)"), ("multiply(ms, kept)", "add(ms, ms)")]
)
def test_a_scalar_that_changes_otherwise_has_a_note(old: str, new: str) -> None:
    """Another rate, another momentum: nothing tells a weight from a value that the step adjusts."""
    report = report_of(has_momentum=True, text=STEP.replace(old, new))
    assert columns(report.table("optimizer"), "weight", "rule") == [(0, "sgd")]
    assert NOTE in report.notes


def test_plain_sgd_on_a_scalar_has_a_note() -> None:
    """Any number times any value is such a step, so that neither rate nor direction are known."""
    report = report_of(has_momentum=False)
    assert columns(report.table("optimizer"), "weight", "rule") == [(0, "sgd")]
    assert NOTE in report.notes


def test_a_sum_of_losses_has_no_note() -> None:
    """A metric adds up the loss of all steps, and the step returns its mean."""
    text = STEP.replace("multiply(STEP_S, rate)", "negate(objective)").replace(
        "multiply(factor, twice)", "multiply(ones, twice)"
    )
    text = text.replace("  ROOT out", "  mean = f32[] multiply(ns, kept)\n  ROOT out")
    report = report_of(has_momentum=False, text=text.replace("OUT_S, loss)", "OUT_S, mean)"))
    assert columns(report.table("optimizer"), "weight", "rule") == [(0, "sgd")]
    assert NOTE not in report.notes

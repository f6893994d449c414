"""Clips of gradients: by a global norm, by the norm of one array, by value, and bounds that are no known clip."""

from __future__ import annotations

import pytest

import hlo_inspect
from tests.tables import columns

STEP = """HloModule jit_step, input_output_alias={ {0}: (0, {}, may-alias), {1}: (1, {}, may-alias) }

add {
  l = f32[] parameter(0)
  r = f32[] parameter(1)
  ROOT s = f32[] add(l, r)
}

ENTRY main {
  a = f32[4,4] parameter(0)
  b = f32[4,8] parameter(1)
  x = f32[9,4] parameter(2)
  ya = f32[9,4] dot(x, a), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  yb = f32[9,8] dot(x, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ga = f32[4,4] dot(x, ya), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  gb = f32[4,8] dot(x, yb), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  zero = f32[] constant(0)
  limit = f32[] constant(2)
  qa = f32[4,4] multiply(ga, ga)
  qb = f32[4,8] multiply(gb, gb)
  sa = f32[] reduce(qa, zero), dimensions={0,1}, to_apply=add
  sb = f32[] reduce(qb, zero), dimensions={0,1}, to_apply=add
  both = f32[] add(sa, sb)
  na = f32[] NORM_A
  nb = f32[] NORM_B
  la = f32[] divide(limit, na)
  lb = f32[] divide(limit, nb)
  unit = f32[] constant(1)
  fa = f32[] BOUND_A
  fb = f32[] BOUND_B
  ma = f32[4,4] broadcast(fa), dimensions={}
  mb = f32[4,8] broadcast(fb), dimensions={}
  ca = f32[4,4] multiply(ga, ma)
  cb = f32[4,8] multiply(gb, mb)
  rate = f32[] constant(0.1)
  ra = f32[4,4] broadcast(rate), dimensions={}
  rb = f32[4,8] broadcast(rate), dimensions={}
  ua = f32[4,4] multiply(ca, ra)
  ub = f32[4,8] multiply(cb, rb)
  va = f32[4,4] subtract(a, ua)
  vb = f32[4,8] subtract(b, ub)
  ROOT out = (f32[4,4], f32[4,8]) tuple(va, vb)
}
"""
"""SGD with a loss that is a sum of two terms, one for each weight: no gradient depends on the other weight."""
MINIMUM = ("minimum(unit, la)", "minimum(unit, lb)")


def step(norms: tuple[str, str], bounds: tuple[str, str] = MINIMUM) -> str:
    text = STEP.replace("NORM_A", norms[0]).replace("NORM_B", norms[1])
    return text.replace("BOUND_A", bounds[0]).replace("BOUND_B", bounds[1])


@pytest.mark.parametrize(
    ("norms", "clip"),
    [
        (("sqrt(both)", "sqrt(both)"), "global norm 2"),
        (("sqrt(sa)", "sqrt(sb)"), "norm 2"),
    ],
)
def test_a_norm_over_several_arrays_is_global(norms: tuple[str, str], clip: str) -> None:
    report = hlo_inspect.inspect(step(norms), "optimizer")
    assert (report.facts["optimizer.name"], report.facts["optimizer.clip_norm"]) == ("sgd", 2.0)
    assert columns(report.table("optimizer"), "clip") == [(clip,), (clip,)]
    assert columns(report.table("optimizer_groups"), "clip", "weights") == [(clip, 2)]


def test_a_norm_with_a_least_value_is_a_clip() -> None:
    """Each array's own norm is at least 0.000001, so that nothing is divided by 0."""
    text = step(("maximum(pa, tiny)", "maximum(pb, tiny)"))
    text = text.replace("  na = ", "  tiny = f32[] constant(1e-06)\n  pa = f32[] sqrt(sa)\n  pb = f32[] sqrt(sb)\n  na = ")
    assert columns(hlo_inspect.inspect(text, "optimizer").table("optimizer"), "clip") == [("norm 2",), ("norm 2",)]


def test_limits_by_value_are_shown() -> None:
    text = step(("sqrt(sa)", "sqrt(sb)"))
    text = text.replace("multiply(ga, ma)", "clamp(low, ga, high)").replace(
        "  rate = ",
        "  h = f32[] constant(0.5)\n  high = f32[4,4] broadcast(h), dimensions={}\n  low = f32[4,4] negate(high)\n  rate = ",
    )
    clips = columns(hlo_inspect.inspect(text, "optimizer").table("optimizer"), "clip")
    assert clips == [("value 0.5",), ("norm 2",)]


def test_a_bound_that_is_no_known_clip_has_a_note() -> None:
    """The smaller one of 1 and the largest element is a bound, but no norm."""
    largest = "reduce(qa, zero), dimensions={0,1}, to_apply=largest"
    text = step((largest, "sqrt(sb)")).replace("ENTRY", LARGEST + "ENTRY")
    report = hlo_inspect.inspect(text, "optimizer")
    assert columns(report.table("optimizer"), "clip") == [("unknown",), ("norm 2",)]
    assert "optimizer.clip_norm: the gradient of parameter 0 has a bound that is no known clip" in report.notes


def test_a_choice_of_a_multiple_that_is_no_known_clip_has_a_note() -> None:
    """Each column is bounded by a number of its own, as optax's adaptive clip does after optimization."""
    text = step(("sqrt(sa)", "sqrt(sb)")).replace("multiply(ga, ma)", "select(small, ga, scaled)")
    report = hlo_inspect.inspect(text.replace("  rate = ", COLUMNS + "  rate = "), "optimizer")
    assert columns(report.table("optimizer"), "rule", "clip") == [("sgd", "unknown"), ("sgd", "norm 2")]
    assert "optimizer.clip_norm: the gradient of parameter 0 has a bound that is no known clip" in report.notes


COLUMNS = """
  squares = f32[4] reduce(qa, zero), dimensions={0}, to_apply=add
  columns = f32[4] sqrt(squares)
  limits = f32[4] broadcast(limit), dimensions={}
  under = pred[4] compare(columns, limits), direction=LT
  small = pred[4,4] broadcast(under), dimensions={1}
  tiny = f32[] constant(1e-06)
  tinies = f32[4] broadcast(tiny), dimensions={}
  most = f32[4] maximum(columns, tinies)
  ratios = f32[4] divide(limits, most)
  ratio = f32[4,4] broadcast(ratios), dimensions={1}
  scaled = f32[4,4] multiply(ga, ratio)
"""

LARGEST = "largest {\n  l = f32[] parameter(0)\n  r = f32[] parameter(1)\n  ROOT m = f32[] maximum(l, r)\n}\n\n"

"""Exposed work beside kernels of unknown length, and exposed copies over the link to the host."""

from __future__ import annotations

import pytest

import hlo_inspect
from hlo_inspect.report.model import Report

WINDOW = """HloModule m, is_scheduled=true, num_partitions=8

plus {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}

ENTRY e {
  x = f32[4194304]{0} parameter(0)
  q = bf16[1,4096,8,128]{3,2,1,0} parameter(1)
  sent = f32[4194304]{0} all-reduce-start(x), channel_id=1, replica_groups=[1,8]<=[8], use_global_device_ids=true, to_apply=plus
  KERNEL
  ended = f32[4194304]{0} all-reduce-done(sent)
  ROOT t = (f32[4194304]{0}, bf16[1,4096,8,128]{3,2,1,0}) tuple(ended, k)
}
"""
UNKNOWN = 'k = bf16[1,4096,8,128]{3,2,1,0} custom-call(q, q, q), custom_call_target="attention"'
KNOWN = "k = bf16[1,4096,8,128]{3,2,1,0} negate(q)"
OPERAND = 2 * 4096 * 8 * 128
"""Bytes of an operand of the kernel."""
MEMORY = 3352e9


def of(text: str, *passes: str) -> Report:
    return hlo_inspect.inspect(text, passes or ("time",), profile="h100-sxm")


def number(value: object) -> float:
    assert isinstance(value, int | float)
    return value


def test_a_kernel_of_unknown_length_hides_between_nothing_and_all() -> None:
    """The call reads three operands and writes one result at least; how long it takes is not in the text."""
    facts = of(WINDOW.replace("KERNEL", UNKNOWN)).facts
    busy, least = number(facts["time.collective_s"]), 4 * OPERAND / MEMORY
    for name, most in (("exposed_collective_s", busy - least), ("estimate_exposed_collective_s", None)):
        assert facts[f"time.{name}"] is None
        assert f"time.{name}.lower_bound" not in facts  # at least 0
        assert most is None or facts[f"time.{name}.upper_bound"] == pytest.approx(most)
    assert facts["time.step_s"] is None
    assert facts["time.step_s.lower_bound"] == pytest.approx(busy)  # the call, or what is left of the all-reduce


def test_beside_a_kernel_of_known_length_the_exposed_time_is_exact() -> None:
    facts = of(WINDOW.replace("KERNEL", KNOWN)).facts
    assert facts["time.exposed_collective_s"] == pytest.approx(number(facts["time.collective_s"]) - 2 * OPERAND / MEMORY)


def test_what_is_open_has_a_row_of_its_own_and_no_share() -> None:
    report = of(WINDOW.replace("KERNEL", UNKNOWN))
    rows = {row["part"]: row for row in report.table("step").records()}
    collective, either = rows["exposed collectives, d0"], rows["longer kernels or exposed work"]
    assert (collective["share"], collective["bound_share"]) == (None, None)
    assert collective["estimate_s_upper_bound"] == pytest.approx(either["estimate_s_lower_bound"])
    assert either["estimate_s"] is None
    assert either["estimate_s_lower_bound"] == pytest.approx(report.facts["time.estimate_exposed_collective_s.upper_bound"])
    shares = sum(number(row["share"]) for row in rows.values() if row["share"] is not None)
    assert shares == pytest.approx(1)


def test_an_upper_bound_decides_a_check() -> None:
    """The all-reduce takes 86.0 us by NCCL's model, and 11.0 us of the call hide a part of it in any case."""
    report = hlo_inspect.inspect(WINDOW.replace("KERNEL", UNKNOWN), ("time", "collectives", "top"), profile="h100-sxm")
    upper = number(report.facts["time.estimate_exposed_collective_s.upper_bound"])
    assert upper == pytest.approx(
        number(report.table("collective_links").records()[0]["estimate_s"]) - 1e-6 - 4 * OPERAND / MEMORY
    )
    (row,) = (row for row in report.table("kernels").records() if row["name"] == "sent")
    assert (row["step_share"], row["estimate_exposed_s"], row["estimate_exposed_s_upper_bound"]) == (None, None, upper)


HOST = """HloModule m, is_scheduled=true

ENTRY e {
  h = f32[8192,8192]{1,0:S(5)} parameter(0)
  y = bf16[4096,4096]{1,0} parameter(1)
  s = (f32[8192,8192]{1,0}, f32[8192,8192]{1,0:S(5)}, u32[]) copy-start(h)
  d = bf16[4096,4096]{1,0} dot(y, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  c = f32[8192,8192]{1,0} copy-done(s)
  ROOT t = (f32[8192,8192]{1,0}, bf16[4096,4096]{1,0}) tuple(c, d)
}
"""


def test_an_exposed_copy_of_the_host_is_a_part_of_its_own() -> None:
    """256 MiB at 64 GB/s, of which a product hides its 2 * 4096^3 FLOPs at 989.4 TFLOP/s."""
    report = of(HOST)
    copy, product = 4 * 8192**2 / 64e9, 2 * 4096**3 / 989.4e12
    rows = {row["part"]: row for row in report.table("step").records()}
    assert rows["exposed copies, host link"]["bound_s"] == pytest.approx(copy - product, rel=1e-3)
    assert rows["exposed copies, host link"]["estimate_s"] == pytest.approx(4.05e-3, rel=1e-3)
    assert rows["fixed costs of kernels"]["estimate_s"] == pytest.approx(1e-6)  # of one kernel
    assert "kernels bound by memory" not in rows
    (kernel,) = (row for row in report.table("kernels").records() if row["name"] == "s")
    assert kernel["bound_by"] == "host link"
    (line,) = (row for row in report.headline if row.label == "bottleneck")
    assert line.parts[0] == "host link, busy for "


def test_fixed_costs_can_be_the_bottleneck() -> None:
    """A kernel of 1 KiB: a launch takes 1 us, its bytes 0.6 ns."""
    text = "HloModule m, is_scheduled=true\n\nENTRY e {\n  p = f32[256]{0} parameter(0)\n  ROOT n = f32[256]{0} negate(p)\n}\n"
    (line,) = (row for row in of(text).headline if row.label == "bottleneck")
    assert line.parts[0] == "fixed costs of kernels, "


def test_a_time_of_which_nothing_is_known_has_no_share() -> None:
    """No document says how many devices PCIe joins around an L4."""
    text = WINDOW.replace("KERNEL", KNOWN)
    report = hlo_inspect.inspect(text, ("time",), profile="l4")
    (row,) = (row for row in report.table("kernels").records() if row["kind"] == "all-reduce")
    assert (row["step_share"], row["bound_s"]) == (None, None)
    shown = hlo_inspect.inspect(text, ("show",), profile="l4", name="sent")
    words = {row.label: "".join(map(str, row.parts)) for row in shown.headline}
    assert words["costs"].endswith(", ? of the step's estimate")


def test_without_collectives_none_is_exposed() -> None:
    """Either of two different branches runs: their time is open, that of no collective is 0."""
    text = """HloModule m, is_scheduled=true

one {
  p = f32[1024,1024]{1,0} parameter(0)
  ROOT d = f32[1024,1024]{1,0} dot(p, p), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}

two {
  p = f32[1024,1024]{1,0} parameter(0)
  ROOT n = f32[1024,1024]{1,0} negate(p)
}

ENTRY e {
  is_on = pred[] parameter(0)
  x = f32[1024,1024]{1,0} parameter(1)
  ROOT c = f32[1024,1024]{1,0} conditional(is_on, x, x), true_computation=one, false_computation=two
}
"""
    facts = of(text).facts
    assert facts["time.step_s"] is None
    assert (facts["time.exposed_collective_s"], facts["time.estimate_exposed_collective_s"]) == (0, 0)


QUEUE = """HloModule m, is_scheduled=true

sliced {
  a = f32[4096,4096]{1,0} parameter(0)
  ROOT b = f32[2048,4096]{1,0} slice(SLICED), slice={[0:2048], [0:4096]}
}

ENTRY e {
  p = f32[4096,4096]{1,0} parameter(0)
  q = f32[4096,4096]{1,0} parameter(1)
  s = ((f32[4096,4096]{1,0}), f32[2048,4096]{1,0}, u32[]) async-start(p), calls=sliced
  c = (f32[4096,4096]{1,0}, f32[4096,4096]{1,0}, u32[]) copy-start(q)
  d = f32[4096,4096]{1,0} copy-done(c)
  t = f32[2048,4096]{1,0} async-done(s)
  ROOT r = (f32[4096,4096]{1,0}, f32[2048,4096]{1,0}) tuple(d, t)
}
"""


@pytest.mark.parametrize(("operand", "is_known"), [("a", True), ("gone", False)])
def test_a_copy_behind_one_of_unknown_size_waits_for_it(operand: str, is_known: bool) -> None:
    """Both are on the stream of copies; the shape of `gone` is in no line."""
    rows = {row["name"]: row for row in of(QUEUE.replace("SLICED", operand), "top").table("kernels").records()}
    assert (rows["c"]["bound_s"] is not None) == is_known
    copied = 2 * 4 * 4096**2 / MEMORY
    sliced = 2 * 4 * 2048 * 4096 / MEMORY
    assert not is_known or rows["c"]["bound_s"] == pytest.approx(copied + sliced)


TRAINED = """HloModule m, is_scheduled=true, num_partitions=8

plus {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}

body {
  t = (s32[], s32[], f32[2048,2048]{1,0}) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  n = s32[] get-tuple-element(t), index=1
  v = f32[2048,2048]{1,0} get-tuple-element(t), index=2
  o = s32[] constant(1)
  j = s32[] add(i, o)
  d = f32[2048,2048]{1,0} dot(v, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT r = (s32[], s32[], f32[2048,2048]{1,0}) tuple(j, n, d)
}

condition {
  t = (s32[], s32[], f32[2048,2048]{1,0}) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  n = s32[] get-tuple-element(t), index=1
  ROOT c = pred[] compare(i, n), direction=LT
}

yes {
  v = f32[2048,2048]{1,0} parameter(0)
  ROOT d = f32[2048,2048]{1,0} dot(v, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}

no {
  ROOT v = f32[2048,2048]{1,0} parameter(0)
}

ENTRY e {
  x = f32[16777216]{0} parameter(0)
  n = s32[] parameter(1)
  v = f32[2048,2048]{1,0} parameter(2)
  is_on = pred[] parameter(3)
  z = s32[] constant(0)
  s = f32[16777216]{0} all-reduce-start(x), channel_id=1, replica_groups=[1,8]<=[8], use_global_device_ids=true, to_apply=plus
  WORK
  k = f32[16777216]{0} all-reduce-done(s)
  ROOT q = (f32[16777216]{0}, f32[2048,2048]{1,0}) tuple(k, u)
}
"""
LOOP = """t = (s32[], s32[], f32[2048,2048]{1,0}) tuple(z, n, v)
  w = (s32[], s32[], f32[2048,2048]{1,0}) while(t), condition=condition, body=body
  u = f32[2048,2048]{1,0} get-tuple-element(w), index=2"""
BRANCH = "u = f32[2048,2048]{1,0} conditional(is_on, v, v), true_computation=yes, false_computation=no"


@pytest.mark.parametrize(("work", "shortest"), [(LOOP, 2 * 2048**3 / 494.7e12), (BRANCH, 0)])
def test_a_loop_or_a_branch_hides_an_unknown_part(work: str, shortest: float) -> None:
    """A loop runs once or more, a branch may not run: products of 2 * 2048^3 FLOPs in tf32."""
    report = of(TRAINED.replace("WORK", work))
    busy = number(report.facts["time.collective_s"])
    rows = {row["part"]: row for row in report.table("step").records()}
    exposed = rows["exposed collectives, d0"]
    assert (exposed["bound_s"], exposed["bound_s_lower_bound"]) == (None, 0)
    assert exposed["bound_s_upper_bound"] == pytest.approx(busy - shortest, rel=1e-3)
    assert report.facts["time.exposed_collective_s"] is None
    assert number(report.facts["time.step_s.lower_bound"]) >= busy * (1 - 1e-9)

"""Weights that devices hold in parts: with another sharding of the output, gathered or put together as TPU does it.

Each text is one device's program of a momentum step over 2 devices, written by hand: `w' = w - 0.1 * m'`, `m' = 0.9 * m + g`.
The gradient is that of `loss = sum(tanh(x @ w))`; SGD of a rate of 0.1 and a momentum of 0.9 is the answer.
"""

from __future__ import annotations

import re

import pytest

from tests.optimizer.programs import report_of

CONSTANTS = """
  k = f32[] constant(-0.1)
  d = f32[] constant(0.9)
  zero = f32[] constant(0)
  id = u32[] partition-id()
  two = u32[] constant(2)
  table = u32[2] constant({0, 2})
  own = u32[1] dynamic-slice(table, id), dynamic_slice_sizes={1}
  at = u32[] reshape(own)
  none = u32[] constant(0)
  k4 = f32[4,8] broadcast(k), dimensions={}
  d4 = f32[4,8] broadcast(d), dimensions={}
  k2 = f32[2,8] broadcast(k), dimensions={}
  d2 = f32[2,8] broadcast(d), dimensions={}
  zeros = f32[4,8] broadcast(zero), dimensions={}"""


def program(parameters: str, results: str, body: str, others: str = "") -> str:
    """Return a module over two partitions; `g4` is the gradient of `w4`, the whole weight."""
    weight, momentum, _ = re.findall(r"b?f\d+\[[\d,]+\]", parameters)
    return f"""HloModule jit_step, is_scheduled=true, entry_computation_layout={{({parameters})->({results})}}, num_partitions=2

add {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}}
{others}
ENTRY main {{
  w = {weight} parameter(0)
  m = {momentum} parameter(1)
  x = f32[16,4]{{1,0}} parameter(2){CONSTANTS}
{body}
}}
"""


GRADIENT = """
  y = f32[16,8] dot(x, w4), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  t = f32[16,8] tanh(y)
  l = f32[] reduce(t, zero), dimensions={0,1}, to_apply=add
  tt = f32[16,8] multiply(t, t)
  one = f32[] constant(1)
  ones = f32[16,8] broadcast(one), dimensions={}
  dy = f32[16,8] subtract(ones, tt)
  gl = f32[4,8] dot(x, dy), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  g4 = f32[4,8] all-reduce(gl), replica_groups={{0,1}}, to_apply=add"""


def step(weight: str, momentum: str) -> str:
    """Return the new values `wn` and `mn` of a device's own rows of both."""
    return f"""  g2 = f32[2,8] dynamic-slice(g4, at, none), dynamic_slice_sizes={{2,8}}
  dm = f32[2,8] multiply(d2, {momentum})
  mn = f32[2,8] add(dm, g2)
  u = f32[2,8] multiply(k2, mn)
  wn = f32[2,8] add({weight}, u)"""


GROUPS = "replica_groups={{0,1}}, channel_id=1, use_global_device_ids=true"

SLICED = program(  # replicated arrays that come back in parts, as the propagation of shardings makes of them
    "f32[4,8], f32[4,8], f32[16,4]",
    "f32[2,8], f32[2,8], f32[]",
    f"""  w4 = f32[4,8] copy(w){GRADIENT}
  w2 = f32[2,8] dynamic-slice(w, at, none), dynamic_slice_sizes={{2,8}}
  m2 = f32[2,8] dynamic-slice(m, at, none), dynamic_slice_sizes={{2,8}}
{step("w2", "m2")}
  ROOT r = (f32[2,8], f32[2,8], f32[]) tuple(wn, mn, l)""",
)
GATHERED = program(  # arrays in parts that come back whole
    "f32[2,8], f32[2,8], f32[16,4]",
    "f32[4,8], f32[4,8], f32[]",
    f"""  w4 = f32[4,8] all-gather(w), dimensions={{0}}, {GROUPS}{GRADIENT}
{step("w", "m")}
  wa = f32[4,8] all-gather(wn), dimensions={{0}}, {GROUPS}
  ma = f32[4,8] all-gather(mn), dimensions={{0}}, {GROUPS}
  ROOT r = (f32[4,8], f32[4,8], f32[]) tuple(wa, ma, l)""",
)
ROWS_TO_COLUMNS = f"""  left = f32[2,4] slice(wn), slice={{[0:2], [0:4]}}
  right = f32[2,4] slice(wn), slice={{[0:2], [4:8]}}
  both = (f32[2,4], f32[2,4]) all-to-all(left, right), {GROUPS}
  e0 = f32[2,4] get-tuple-element(both), index=0
  e1 = f32[2,4] get-tuple-element(both), index=1
  wa = f32[4,4] concatenate(e0, e1), dimensions={{0}}"""
"""The new weight, of which each device has rows, with columns on each: slices are exchanged."""
EXCHANGED = program(  # rows become columns, and the step is computed with each state's own sharding
    "f32[2,8], f32[2,8], f32[16,4]",
    "f32[4,4], f32[2,8], f32[]",
    f"""  w4 = f32[4,8] all-gather(w), dimensions={{0}}, {GROUPS}{GRADIENT}
{step("w", "m")}
{ROWS_TO_COLUMNS}
  ROOT r = (f32[4,4], f32[2,8], f32[]) tuple(wa, mn, l)""",
)
SUMMED = program(  # TPU gathers small arrays as a sum: each device writes its part into zeros
    "f32[4,8], f32[2,8], f32[16,4]",
    "f32[4,8], f32[2,8], f32[]",
    f"""  w4 = f32[4,8] copy(w){GRADIENT}
  w2 = f32[2,8] dynamic-slice(w, at, none), dynamic_slice_sizes={{2,8}}
{step("w2", "m")}
  part = f32[4,8] dynamic-update-slice(zeros, wn, at, none)
  wa = f32[4,8] all-reduce(part), {GROUPS}, to_apply=add
  ROOT r = (f32[4,8], f32[2,8], f32[]) tuple(wa, mn, l)""",
)
MASTERS = program(  # each device keeps a part of the more precise master weights, and all of the copy
    "bf16[4,8], f32[2,8], f32[16,4]",
    "bf16[4,8], f32[2,8], f32[]",
    f"""  w4 = f32[4,8] convert(w){GRADIENT}
  g2 = f32[2,8] dynamic-slice(g4, at, none), dynamic_slice_sizes={{2,8}}
  u = f32[2,8] multiply(k2, g2)
  wn = f32[2,8] add(m, u)
  wb = bf16[2,8] convert(wn)
  wa = bf16[4,8] all-gather(wb), dimensions={{0}}, {GROUPS}
  ROOT r = (bf16[4,8], f32[2,8], f32[]) tuple(wa, wn, l)""",
)
ASYNC_START = """
begin {
  p = f32[2,8] parameter(0)
  ag = f32[4,8] all-gather(p), dimensions={0}, replica_groups={{0,1}}, channel_id=3, use_global_device_ids=true
  ROOT c = (f32[2,8], f32[4,8], u32[]) custom-call(ag), custom_call_target="AsyncCollectiveStart"
}

end {
  p = f32[2,8] parameter(0)
  b = f32[4,8] parameter(1)
  f = u32[] parameter(2)
  ag = f32[4,8] all-gather(p), dimensions={0}, replica_groups={{0,1}}, channel_id=3, use_global_device_ids=true
  ROOT c = f32[4,8] custom-call(p, b, ag, f), custom_call_target="AsyncCollectiveDone"
}
"""
ASYNCHRONOUS = program(  # TPU's fusions in which a gather of new weights starts and ends
    "f32[4,8], f32[2,8], f32[16,4]",
    "f32[4,8], f32[2,8], f32[]",
    f"""  w4 = f32[4,8] copy(w){GRADIENT}
  w2 = f32[2,8] dynamic-slice(w, at, none), dynamic_slice_sizes={{2,8}}
{step("w2", "m")}
  async-collective-start = (f32[2,8], f32[4,8], u32[]) fusion(wn), kind=kCustom, calls=begin
  s0 = f32[2,8] get-tuple-element(async-collective-start), index=0
  s1 = f32[4,8] get-tuple-element(async-collective-start), index=1
  s2 = u32[] get-tuple-element(async-collective-start), index=2
  wa = f32[4,8] fusion(s0, s1, s2), kind=kCustom, calls=end
  ROOT r = (f32[4,8], f32[2,8], f32[]) tuple(wa, mn, l)""",
    ASYNC_START,
)
PADDED = program(  # the gradient is padded in each fusion that reads it
    "f32[4,8], f32[4,8], f32[16,4]",
    "f32[4,8], f32[4,8], f32[]",
    f"""  w4 = f32[4,8] copy(w){GRADIENT}
  g2 = f32[2,8] slice(g4), slice={{[0:2], [0:8]}}
  g3 = f32[2,8] slice(g4), slice={{[2:4], [0:8]}}
  pa = f32[4,8] pad(g2, zero), padding=0_2x0_0
  pb = f32[4,8] pad(g3, zero), padding=2_0x0_0
  ga = f32[4,8] add(pa, pb)
  dm = f32[4,8] multiply(d4, m)
  mn = f32[4,8] add(dm, ga)
  pc = f32[4,8] pad(g2, zero), padding=0_2x0_0
  pd = f32[4,8] pad(g3, zero), padding=2_0x0_0
  gb = f32[4,8] add(pd, pc)
  dn = f32[4,8] multiply(m, d4)
  mo = f32[4,8] add(gb, dn)
  u = f32[4,8] multiply(k4, mo)
  wn = f32[4,8] add(w, u)
  ROOT r = (f32[4,8], f32[4,8], f32[]) tuple(wn, mn, l)""",
)
SWAPPED = program(  # weight and state swap their shardings: the outputs have the shapes of the inputs
    "f32[2,8], f32[4,4], f32[16,4]",
    "f32[4,4], f32[2,8], f32[]",
    f"""  w4 = f32[4,8] all-gather(w), dimensions={{0}}, {GROUPS}{GRADIENT}
  up = f32[2,4] slice(m), slice={{[0:2], [0:4]}}
  down = f32[2,4] slice(m), slice={{[2:4], [0:4]}}
  old = (f32[2,4], f32[2,4]) all-to-all(up, down), {GROUPS}
  o0 = f32[2,4] get-tuple-element(old), index=0
  o1 = f32[2,4] get-tuple-element(old), index=1
  m2 = f32[2,8] concatenate(o0, o1), dimensions={{1}}
{step("w", "m2")}
{ROWS_TO_COLUMNS}
  ROOT r = (f32[4,4], f32[2,8], f32[]) tuple(wa, mn, l)""",
)
PERMUTED = program(  # devices change places: half of a weight goes to its new device by itself, half is gathered and cut out
    "f32[2,8], f32[2,8], f32[16,4]",
    "f32[4,8], f32[4,8], f32[]",
    f"""  w4 = f32[4,8] all-gather(w), dimensions={{0}}, {GROUPS}{GRADIENT}
  half = f32[] constant(0.5)
  half2 = f32[2,8] broadcast(half), dimensions={{}}
  own_half = f32[2,8] multiply(half2, w)
  all_half = f32[4,8] all-gather(own_half), dimensions={{0}}, {GROUPS}
  new_half = f32[2,8] dynamic-slice(all_half, at, none), dynamic_slice_sizes={{2,8}}
  q = f32[2,8] collective-permute(w), channel_id=9, source_target_pairs={{{{0,1}},{{1,0}}}}
  other_half = f32[2,8] multiply(half2, q)
  w2 = f32[2,8] add(new_half, other_half)
  m2 = f32[2,8] collective-permute(m), channel_id=8, source_target_pairs={{{{0,1}},{{1,0}}}}
{step("w2", "m2")}
  wa = f32[4,8] all-gather(wn), dimensions={{0}}, {GROUPS}
  ma = f32[4,8] all-gather(mn), dimensions={{0}}, {GROUPS}
  ROOT r = (f32[4,8], f32[4,8], f32[]) tuple(wa, ma, l)""",
)
PROGRAMS = {
    "sliced": SLICED,
    "gathered": GATHERED,
    "exchanged": EXCHANGED,
    "swapped": SWAPPED,
    "permuted": PERMUTED,
    "summed": SUMMED,
    "asynchronous": ASYNCHRONOUS,
    "padded": PADDED,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_weight_is_found_in_any_sharding_of_its_output(name: str) -> None:
    facts = report_of(PROGRAMS[name]).facts
    names = ("name", "update_count", "learning_rate", "momentum")
    assert [facts[f"optimizer.{name}"] for name in names] == ["sgd", 1, 0.1, 0.9]
    rows = 2 if name in {"gathered", "exchanged", "swapped", "permuted"} else 4  # the bytes are those of the parameter
    assert facts["optimizer.weight_bytes"] == rows * 8 * 4


def test_a_master_weight_may_be_a_part_of_its_copy() -> None:
    facts = report_of(MASTERS).facts
    names = ("name", "update_count", "learning_rate", "weight_bytes", "master_bytes")
    assert [facts[f"optimizer.{name}"] for name in names] == ["sgd", 1, 0.1, 4 * 8 * 2, 2 * 8 * 4]


def test_parts_written_into_zeros_at_one_place_are_a_sum() -> None:
    """If every device writes at the same place, the sum over devices is more than the part."""
    text = SUMMED.replace("dynamic-update-slice(zeros, wn, at, none)", "dynamic-update-slice(zeros, wn, none, none)")
    assert report_of(text).facts["optimizer.name"] != "sgd"


def test_pads_of_other_widths_are_other_arrays() -> None:
    text = PADDED.replace("pd = f32[4,8] pad(g3, zero), padding=2_0x0_0", "pd = f32[4,8] pad(g3, zero), padding=1_1x0_0")
    assert report_of(text).facts["optimizer.name"] != "sgd"


def test_a_weight_of_a_program_that_is_not_partitioned_keeps_its_shape() -> None:
    text = SLICED.replace(", num_partitions=2", "")
    assert report_of(text).facts["optimizer.update_count"] == 0


FILLED = """HloModule jit_step, is_scheduled=true

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}

ENTRY main {
  w = f32[4,8]{1,0} parameter(0)
  v = f32[8]{0} parameter(1)
  x = f32[16,4]{1,0} parameter(2)
  zero = f32[] constant(0)
  y = f32[16,8] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  vb = f32[16,8] broadcast(v), dimensions={1}
  yv = f32[16,8] add(y, vb)
  t = f32[16,8] tanh(yv)
  l = f32[] reduce(t, zero), dimensions={0,1}, to_apply=add
  tt = f32[16,8] multiply(t, t)
  one = f32[] constant(1)
  ones = f32[16,8] broadcast(one), dimensions={}
  dy = f32[16,8] subtract(ones, tt)
  gw = f32[4,8] dot(x, dy), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  gv = f32[8] reduce(dy, zero), dimensions={0}, to_apply=add
  wf = f32[32] reshape(w)
  gf = f32[32] reshape(gw)
  first = s32[] constant(0)
  second = s32[] constant(32)
  buffer = f32[40] custom-call(), custom_call_target="AllocateBuffer"
  f0 = f32[40] dynamic-update-slice(buffer, v, second)
  flat = f32[40] dynamic-update-slice(f0, wf, first)
  g = f32[40] concatenate(gf, gv), dimensions={0}
  k = f32[] constant(-0.1)
  ks = f32[40] broadcast(k), dimensions={}
  u = f32[40] multiply(ks, g)
  n = f32[40] add(flat, u)
  nw = f32[32] slice(n), slice={[0:32]}
  nv = f32[8] slice(n), slice={[32:40]}
  nr = f32[4,8] reshape(nw)
  ROOT r = (f32[4,8], f32[8], f32[]) tuple(nr, nv, l)
}
"""


def test_a_buffer_that_is_filled_part_by_part_is_a_concatenation() -> None:
    facts = report_of(FILLED).facts
    assert [facts[f"optimizer.{name}"] for name in ("name", "update_count", "learning_rate")] == ["sgd", 2, 0.1]


@pytest.mark.parametrize("start", [0, 8, 31])
def test_a_buffer_with_a_gap_is_no_concatenation(start: int) -> None:
    facts = report_of(FILLED.replace("second = s32[] constant(32)", f"second = s32[] constant({start})")).facts
    assert facts["optimizer.update_count"] == 0


REWRITTEN = """HloModule jit_step

ENTRY main {
  w = f32[2,8] parameter(0)
  m = f32[2,8] parameter(1)
  x = f32[16,2] parameter(2)
  y = f32[16,8] parameter(3)
  h = f32[16,8] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  e = f32[16,8] subtract(h, y)
  g = f32[2,8] dot(x, e), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  k = f32[] constant(-0.1)
  ks = f32[2,8] broadcast(k), dimensions={}
  d = f32[] constant(0.9)
  ds = f32[2,8] broadcast(d), dimensions={}
  dm = f32[2,8] multiply(ds, m)
  mn = f32[2,8] add(dm, g)
  first = s32[] constant(0)
  second = s32[] constant(1)
  ga = f32[1,8] slice(g), slice={[0:1], [0:8]}
  gb = f32[1,8] slice(g), slice={[1:2], [0:8]}
  ma = f32[1,8] slice(mn), slice={[0:1], [0:8]}
  mb = f32[1,8] slice(mn), slice={[1:2], [0:8]}
  buffer = f32[2,8] custom-call(), custom_call_target="AllocateBuffer"
  b1 = f32[2,8] dynamic-update-slice(buffer, ga, first, first)
  b2 = f32[2,8] dynamic-update-slice(b1, gb, second, first)
  b3 = f32[2,8] dynamic-update-slice(b2, ma, first, first)
  b4 = f32[2,8] dynamic-update-slice(b3, mb, second, first)
  u = f32[2,8] multiply(ks, b4)
  wn = f32[2,8] add(w, u)
  ROOT r = (f32[2,8], f32[2,8]) tuple(wn, mn)
}
"""


def test_the_last_of_two_writes_to_the_same_rows_counts() -> None:
    """The rows of the gradient are overwritten with those of the momentum, by which the weight changes."""
    facts = report_of(REWRITTEN).facts
    assert (facts["optimizer.name"], facts["optimizer.momentum"]) != ("sgd", None)


PULL = """  q = f32[2,8] collective-permute({weight}), channel_id=9, source_target_pairs={{{{0,1}},{{1,0}}}}
  df = f32[2,8] subtract({difference})
  pull = f32[2,8] multiply(k2, df)
  wp = f32[2,8] add({weight}, pull)
  wn = f32[2,8] add(wp, u)"""
"""Each device moves its weight towards that of the other, or away from it, and by a step."""


@pytest.mark.parametrize("difference", ["{weight}, q", "q, {weight}"])
@pytest.mark.parametrize(("text", "weight"), [(SLICED, "w2"), (GATHERED, "w")])
def test_a_difference_to_the_weight_of_another_device_is_not_zero(text: str, weight: str, difference: str) -> None:
    pull = PULL.format(weight=weight, difference=difference.format(weight=weight)).replace("{{", "{").replace("}}", "}")
    report = report_of(text.replace(f"  wn = f32[2,8] add({weight}, u)", pull))
    assert report.facts["optimizer.name"] == "unknown"
    assert "collective-permute(p0)" in report.notes[0]

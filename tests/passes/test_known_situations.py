"""Counts, bytes and FLOPs of unusual programs, by hand: newer collectives, slices in place, ragged exchanges, scans."""

from __future__ import annotations

from pathlib import Path

import pytest

import hlo_inspect
from tests.calling import call_text

SUM = "plus {\n  l = f32[] parameter(0)\n  r = f32[] parameter(1)\n  ROOT s = f32[] add(l, r)\n}\n\n"
TO_ROOT = (
    "HloModule m, replica_count=6\n\n"
    + SUM
    + """ENTRY main {
  x = f32[256]{0} parameter(0)
  who = s32[1]{0} parameter(1)
  ROOT c = f32[256]{0} collective-reduce(x, who), replica_groups={{0,1,2},{3,4,5}}, has_dynamic_root=true, to_apply=plus
}
"""
)


def test_a_reduction_to_a_root_is_a_collective(tmp_path: Path) -> None:
    facts = hlo_inspect.inspect(TO_ROOT, "collectives").facts
    assert facts["collectives.collective-reduce.count"] == facts["collectives.group_size.3.count"] == 1
    assert facts["collectives.operand_bytes"] == facts["collectives.wire_bytes"] == 256 * 4
    dump = tmp_path / "dump.hlo"
    dump.write_text(TO_ROOT)
    assert call_text("check", dump, "--assert", "collectives.count == 0").returncode == 1


IN_PLACE = """HloModule m, replica_count=2

ENTRY main {
  x = bf16[64,32]{1,0} parameter(0)
  out = bf16[128,32]{1,0} parameter(1)
  z = s32[] constant(0)
  from = (s32[], s32[]) tuple(z, z)
  k = s32[] constant(96)
  to = (s32[], s32[]) tuple(k, z)
  ROOT r = bf16[128,32]{1,0} collective-permute(x, out, from, to), source_target_pairs={{0,1},{1,0}}, slice_sizes={{16,32}}
}
"""


def test_a_permute_in_place_sends_its_slice() -> None:
    facts = hlo_inspect.inspect(IN_PLACE, "collectives").facts
    assert facts["collectives.operand_bytes"] == facts["collectives.wire_bytes"] == 16 * 32 * 2


RAGGED = """HloModule m, is_scheduled=true, num_partitions=4

%inner (a: f32[64,8], b: f32[128,8], c: s32[4], d: s32[4], e: s32[4], f: s32[4]) -> f32[128,8] {
  %a = f32[64,8]{1,0} parameter(0)
  %b = f32[128,8]{1,0} parameter(1)
  %c = s32[4]{0} parameter(2)
  %d = s32[4]{0} parameter(3)
  %e = s32[4]{0} parameter(4)
  %f = s32[4]{0} parameter(5)
  ROOT %r = f32[128,8]{1,0} ragged-all-to-all(%a, %b, %c, %d, %e, %f), channel_id=1, replica_groups=[1,4]<=[4]
}

ENTRY %main (x: f32[64,8], o: f32[128,8], p: s32[4], q: s32[4], r: s32[4], s: s32[4]) -> f32[128,8] {
  %x = f32[64,8]{1,0} parameter(0)
  %o = f32[128,8]{1,0} parameter(1)
  %p = s32[4]{0} parameter(2)
  %q = s32[4]{0} parameter(3)
  %r = s32[4]{0} parameter(4)
  %s = s32[4]{0} parameter(5)
  %start = ((f32[64,8]{1,0}, f32[128,8]{1,0}, s32[4]{0}, s32[4]{0}, s32[4]{0}, s32[4]{0}), f32[128,8]{1,0}) ASYNC
  ROOT %done = f32[128,8]{1,0} async-done(%start)
}
""".replace("ASYNC", "async-start(%x, %o, %p, %q, %r, %s), calls=%inner")


def test_a_ragged_exchange_sends_at_most_its_first_operand() -> None:
    """The second operand is the buffer of the result."""
    report = hlo_inspect.inspect(RAGGED, "summary")
    facts = report.facts
    assert facts["collectives.operand_bytes"] == 64 * 8 * 4
    assert (facts["collectives.wire_bytes"], facts["collectives.wire_bytes.upper_bound"]) == (None, 64 * 8 * 4)
    assert "one ragged-all-to-all" in str(report.headline[0].parts)


SCAN = """HloModule m

addf {
  l = f32[16] parameter(0)
  r = f32[16] parameter(1)
  a = f32[16] add(l, r)
  ROOT t = (f32[16], f32[16]) tuple(a, a)
}

ENTRY main {
  x = f32[ROWS,16]{1,0} parameter(0)
  i = f32[16]{0} parameter(1)
  ROOT s = (f32[ROWS,16]{1,0}, f32[16]{0}) scan(x, i), dimensions={0}, num_carries=1, to_apply=addf
}
"""


@pytest.mark.parametrize("rows", [1, 100, 200])
def test_a_scan_works_once_for_each_row(rows: int) -> None:
    facts = hlo_inspect.inspect(SCAN.replace("ROWS", str(rows)), "cost").facts
    assert facts["cost.executed_flops"] == rows * 16


BESIDE_A_CALL = """HloModule m, is_scheduled=true

one {
  p = (bf16[64,32]{1,0}, bf16[32,16]{1,0}) parameter(0)
  a = bf16[64,32]{1,0} get-tuple-element(p), index=0
  b = bf16[32,16]{1,0} get-tuple-element(p), index=1
  ROOT d = bf16[64,16]{1,0} dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}

none {
  p = (bf16[64,32]{1,0}, bf16[32,16]{1,0}) parameter(0)
  c = bf16[] constant(0)
  ROOT n = bf16[64,16]{1,0} broadcast(c), dimensions={}
}

ENTRY main {
  is_on = pred[] parameter(0)
  x = bf16[64,32]{1,0} parameter(1)
  y = bf16[32,16]{1,0} parameter(2)
  t = (bf16[64,32]{1,0}, bf16[32,16]{1,0}) tuple(x, y)
  z = bf16[64,16]{1,0} conditional(is_on, t, t), true_computation=one, false_computation=none
  CALL
  ROOT d = bf16[64,16]{1,0} dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
"""


@pytest.mark.parametrize("fact", ["cost.executed_flops", "cost.executed_matmul_flops", "cost.matmul_flops.bf16"])
def test_an_unknown_call_takes_the_upper_bound_of_flops(fact: str) -> None:
    """A product of 2 * 64 * 32 * 16 FLOPs runs, and another if `is_on`."""
    product = 2 * 64 * 32 * 16
    facts = hlo_inspect.inspect(BESIDE_A_CALL.replace("  CALL\n", ""), "cost").facts
    assert facts[f"{fact}.lower_bound"] == product
    assert facts.get(f"{fact}.upper_bound", 2 * product) == 2 * product
    call = 'w = bf16[64,16]{1,0} custom-call(x, y), custom_call_target="odd"'
    facts = hlo_inspect.inspect(BESIDE_A_CALL.replace("CALL", call), "cost").facts
    assert (facts[fact], facts[f"{fact}.lower_bound"], facts.get(f"{fact}.upper_bound")) == (None, product, None)
    assert facts["cost.matmul_flops.f32"] is None

"""No step is shorter than a unit or a link is busy, however many streams run."""

from __future__ import annotations

import pytest

import hlo_inspect

TWO_STREAMS = """HloModule m, is_scheduled=true

other {
  x = bf16[2048,2048]{1,0} parameter(0)
  ROOT y = bf16[2048,2048]{1,0} dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}

ENTRY e {
  p = bf16[2048,2048]{1,0} parameter(0)
  s = ((bf16[2048,2048]{1,0}), bf16[2048,2048]{1,0}, u32[]) call-start(p), to_apply=other
  d = bf16[2048,2048]{1,0} dot(p, p), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  o = bf16[2048,2048]{1,0} call-done(s)
  ROOT r = (bf16[2048,2048]{1,0}, bf16[2048,2048]{1,0}) tuple(d, o)
}
"""
EXCHANGE = """HloModule m, is_scheduled=true, num_partitions=16

ENTRY e {
  p = f32[16,65536]{1,0} parameter(0)
  ROOT a = f32[16,65536]{1,0} all-to-all(p), replica_groups=[1,16]<=[16], dimensions={0}, channel_id=1
}
"""


def test_two_streams_share_the_matrix_unit() -> None:
    """Two products of 2 · 2048³ FLOPs at 989.4 TFLOP/s; the parts of the step add up to them."""
    report = hlo_inspect.inspect(TWO_STREAMS, ("time",), profile="h100-sxm")
    both = 2 * 2 * 2048**3 / 989.4e12
    assert report.facts["time.step_s"] == pytest.approx(both, rel=1e-3)
    assert float(str(report.facts["time.estimate_step_s"])) >= float(str(report.facts["time.step_s"]))
    rows = {row["part"]: row for row in report.table("step").records()}
    assert rows["units busy on other streams"]["bound_s"] == pytest.approx(both / 2, rel=1e-3)
    assert sum(float(str(row["bound_s"])) for row in rows.values()) == pytest.approx(report.facts["time.step_s"])


def test_an_exchange_between_nodes_takes_at_least_the_time_of_the_network() -> None:
    """Eight of 16 parts of 256 KiB leave the node of a device; each device has one adapter of 25 GB/s."""
    report = hlo_inspect.inspect(EXCHANGE, ("time",), profile="a100-sxm-80gb")
    network = 8 * 65536 * 4 / 25e9
    assert report.facts["time.step_s"] == pytest.approx(network, rel=1e-3)
    assert float(str(report.facts["time.estimate_step_s"])) >= network

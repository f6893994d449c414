"""Mended faults that are put back: the fuzzer finds each of them."""

from __future__ import annotations

import pytest

from tests.fuzz import __main__ as fuzz
from tests.fuzz.__main__ import Samples, case
from tests.fuzz.mended_faults import MENDED

TEXT = b"""HloModule m, is_scheduled=true, input_output_alias={ {0}: (0, {}, may-alias) }

fused {
  x = f32[4,8] parameter(0)
  y = f32[4,8] copy(x)
  ROOT w = f32[4,8] add(x, y)
}

sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}

ENTRY e {
  p = f32[4,8] parameter(0)
  z = s32[] constant(0)
  u = f32[1,8] constant({...})
  i = f32[4,8] multiply(p, p)
  j = f32[4,8] subtract(i, p)
  k = f32[4,8] add(j, i)
  l = f32[4,8] divide(k, i)
  m = f32[4,8] maximum(l, k)
  n = f32[4,8] add(m, j)
  t = f32[4,8] transpose(p), dimensions={0,1}
  d = f32[4,8] dynamic-update-slice(t, u, z, z)
  f = f32[4,8] fusion(d), kind=kLoop, calls=fused
  g = f32[4,8] all-reduce(f), replica_groups={{0,1}}, to_apply=sum
  ROOT r = (f32[4,8], f32[4,8]) tuple(n, g)
}
"""
SAMPLES = Samples([TEXT], [b"{}"], [], b"")


def fault(name: str, seed: int) -> str:
    with MENDED[name]():
        return case(seed, SAMPLES).fault


@pytest.mark.parametrize(
    ("name", "seed", "message"),
    [
        ("asynchronous-end", 194, "IndexError: "),
        ("missing-operand", 384, "IndexError: "),
        ("lost-modules", 22, "modules are lost by an internal error in the first"),
        ("endless-cycle", 844, "TimeLimitError: "),
        ("unequal-groups", 1247, "ValueError: "),
    ],
)
def test_a_mended_fault_that_is_put_back_is_found(name: str, seed: int, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each seed is the first that finds the fault; another text or damage needs other seeds."""
    monkeypatch.setattr(fuzz, "LIMIT_SECONDS", 10)
    assert message in fault(name, seed)
    assert fault("", seed) == ""

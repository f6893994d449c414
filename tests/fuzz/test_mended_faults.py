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
  ROOT r = (f32[4,8], f32[4,8]) tuple(n, f)
}
"""
SAMPLES = Samples([TEXT], [b"{}"], [], b"")


def fault(name: str, seed: int) -> str:
    with MENDED[name]():
        return case(seed, SAMPLES).fault


@pytest.mark.parametrize(
    ("name", "seed", "message"),
    [
        ("asynchronous-end", 544, "IndexError: "),
        ("missing-operand", 153, "IndexError: "),
        ("lost-modules", 7, "modules are lost by an internal error in the first"),
        ("endless-cycle", 160, "TimeLimitError: "),
    ],
)
def test_a_mended_fault_that_is_put_back_is_found(name: str, seed: int, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each seed is the first that finds the fault; another text or damage needs other seeds."""
    monkeypatch.setattr(fuzz, "LIMIT_SECONDS", 10)
    assert message in fault(name, seed)
    assert fault("", seed) == ""

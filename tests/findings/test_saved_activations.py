"""HI305: its share of the peak, worked out by hand."""

from __future__ import annotations

import pytest

import hlo_inspect

TEXT = """HloModule step, is_scheduled=true

ENTRY main {
  x = f32[512,1024]{1,0} parameter(0)
  y = f32[ROWS,1024]{1,0} parameter(1)
  a = f32[512,1024]{1,0} exponential(x), metadata={op_name="jit(f)/jvp(layer)/exp"}
  b = f32[512,1024]{1,0} sine(a), metadata={op_name="jit(f)/jvp(layer)/sin"}
  g = f32[512,1024]{1,0} cosine(b), metadata={op_name="jit(f)/transpose(jvp(layer))/cos"}
  h = f32[512,1024]{1,0} multiply(g, a), metadata={op_name="jit(f)/transpose(jvp(layer))/mul"}
  ROOT r = f32[8]{0} custom-call(h, y), custom_call_target="reads"
}
"""
"""The backward pass reads `a` and `b`, of 2 MiB each. `g` takes the buffer of `b`, and `h` that of `g` or `a`."""


@pytest.mark.parametrize(
    ("rows", "share"),
    [
        (256, "57 %"),  # y has 1 MiB: 4 of 2 + 1 + 4 MiB
        (1024, "40 %"),  # 4 MiB: 4 of 10
        (2304, "27 %"),  # 9 MiB: 4 of 15
        (2816, None),  # 11 MiB: 4 of 17 is less than a quarter
    ],
)
def test_the_share_is_that_of_the_peak(rows: int, share: str | None) -> None:
    report = hlo_inspect.inspect(TEXT.replace("ROWS", str(rows)), "memory")
    messages = [finding.message for finding in report.findings if finding.rule == "HI305"]
    assert messages == [
        f"2 arrays (4.00 MiB in total, {share} of the peak) are saved for the backward pass; "
        "jax.checkpoint can free at most these; largest: layer 4.00 MiB"
        for _ in range(share is not None)
    ]

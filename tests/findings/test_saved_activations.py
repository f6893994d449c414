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


def messages(text: str, profile: str | None = None) -> list[str]:
    report = hlo_inspect.inspect(text, "memory", profile=profile)
    return [finding.message for finding in report.findings if finding.rule == "HI305"]


def test_inputs_of_a_checkpoint_do_not_count() -> None:
    """The recomputation reads `a`, which `jax.checkpoint` keeps; `b` with 2 of 7 MiB is left."""
    again = "jit(f)/transpose(jvp(layer))/checkpoint/rematted_computation/mul"
    text = TEXT.replace("ROWS", "256").replace("jit(f)/transpose(jvp(layer))/mul", again)
    (message,) = messages(text)
    assert "1 array (2.00 MiB in total, 29 % of the peak) is saved for the backward pass" in message
    assert messages(text.replace("jit(f)/transpose(jvp(layer))/cos", again)) == []


SLICED = """
layer {
  s = f32[2,512,1024]{2,1,0} parameter(0)
  i = s32[] parameter(1)
  z = s32[] constant(0)
  d = f32[1,512,1024]{2,1,0} dynamic-slice(s, i, z, z), dynamic_slice_sizes={1,512,1024}
  ROOT b = f32[512,1024]{1,0} bitcast(d)
}

ENTRY main {
  x = f32[2,512,1024]{2,1,0} parameter(0)
  n = s32[] parameter(1)
  a = f32[2,512,1024]{2,1,0} exponential(x), metadata={op_name="jit(f)/jvp(layer)/exp"}
  t = f32[512,1024]{1,0} fusion(a, n), kind=kLoop, calls=layer, metadata={op_name="jit(f)/transpose(jvp(layer))/dynamic_slice"}
  c = f32[512,1024]{1,0} cosine(t), metadata={op_name="jit(f)/transpose(jvp(layer))/cos"}
  ROOT r = f32[8]{0} custom-call(c), custom_call_target="reads"
}
"""


def test_slices_of_a_stack_are_followed_to_the_recomputation() -> None:
    """The stack has 2 x 2 MiB; its parameter has as much, and the slice of a layer 2 MiB: 4 of 10."""
    text = f"HloModule step, is_scheduled=true\n{SLICED}"
    (message,) = messages(text)
    assert "1 array (4.00 MiB in total, 40 % of the peak) is saved" in message
    again = text.replace("transpose(jvp(layer))/cos", "transpose(jvp(layer))/checkpoint/rematted_computation/cos")
    assert messages(again) == []


def test_a_program_of_less_than_half_of_the_memory_has_none() -> None:
    """With 2^20 rows the arrays have 4 GiB: 12 GiB of arguments and temporaries, more than half of an L4's 22.5 GiB."""
    text = TEXT.replace("512,1024", "1048576,1024").replace("ROWS", "256")
    assert len(messages(text)) == 1
    assert len(messages(text, "l4")) == 1
    assert messages(text, "a100-sxm-40gb") == []

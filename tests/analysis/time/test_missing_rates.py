"""Types without a rate in the profile: the rate of the type that they are widened to, or a lower bound with its reason."""

from __future__ import annotations

import pytest

import hlo_inspect
from hlo_inspect.report.model import Report

SIZE = 4096
FLOPS = 2 * SIZE**3
PRODUCT = """HloModule m, is_scheduled=true, entry_computation_layout={(TYPE[N,N]{1,0}, TYPE[N,N]{1,0})->OUT[N,N]{1,0}}

ENTRY e {
  a = TYPE[N,N]{1,0} parameter(0)
  b = TYPE[N,N]{1,0} parameter(1)
  ROOT d = OUT[N,N]{1,0} dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
"""
ADDITION = """HloModule m, is_scheduled=true, entry_computation_layout={(TYPE[1024]{0})->TYPE[1024]{0}}

ENTRY e {
  a = TYPE[1024]{0} parameter(0)
  ROOT s = TYPE[1024]{0} OPCODE(a, a)
}
"""


def of_product(operand: str, result: str, profile: str) -> Report:
    text = PRODUCT.replace("TYPE", operand).replace("OUT", result).replace("N,N", f"{SIZE},{SIZE}")
    return hlo_inspect.inspect(text, ("time",), profile=profile)


@pytest.mark.parametrize(
    ("operand", "result", "profile", "rate"),
    [
        ("f8e4m3fn", "f32", "h100-sxm", 1978.9e12),  # its own
        ("f8e4m3fn", "f32", "a100-sxm-80gb", 312e12),  # that of bf16
        ("f8e4m3fn", "bf16", "tpu-v5e", 197e12),
        ("c64", "c64", "a100-sxm-80gb", 156e12 / 4),  # four products of f32, which XLA rounds to tf32
        ("c128", "c128", "a100-sxm-80gb", 19.5e12 / 4),
    ],
)
def test_products_of_other_types(operand: str, result: str, profile: str, rate: float) -> None:
    facts = of_product(operand, result, profile).facts
    assert facts["time.step_s"] == pytest.approx(FLOPS / rate, rel=1e-4)


@pytest.mark.parametrize("profile", ["h100-sxm", "tpu-v5p"])
def test_products_of_integers_of_32_bits_take_at_least_their_bytes(profile: str) -> None:
    """No document states how fast they are; the bound is that of three matrices in memory."""
    report = of_product("s32", "s32", profile)
    bandwidth = {"h100-sxm": 3352e9, "tpu-v5p": 2765e9}[profile]
    assert report.facts["time.step_s"] is None
    assert report.facts["time.step_s.lower_bound"] == pytest.approx(3 * 4 * SIZE**2 / bandwidth, rel=1e-3)
    assert report.facts["time.estimate_step_s"] is None
    assert any("states no rate for matmul.s32" in note for note in report.notes)


@pytest.mark.parametrize(("dtype", "is_known"), [("s32", True), ("f64", False), ("c64", True)])
def test_small_work_on_integers_hides_behind_memory(dtype: str, is_known: bool) -> None:
    """The profile of the B200 states no rate of s32, that of the H100 PCIe none of f64."""
    profile = "h100-pcie" if dtype == "f64" else "b200"
    report = hlo_inspect.inspect(ADDITION.replace("TYPE", dtype).replace("OPCODE", "add"), ("time",), profile=profile)
    assert (report.facts["time.step_s"] is not None) == is_known

"""Which unit of the hardware does what."""

from __future__ import annotations

import pytest

from hlo_inspect.analysis.cost.units import elementwise_part, matmul_unit
from hlo_inspect.analysis.hardware import load_profile, profile_names
from tests.analysis.cost.small import cost_of


def units(*lines: str, before: str = "") -> dict[str, int]:
    """FLOPs by unit."""
    rows = cost_of(*lines, before=before).opcodes.rows
    return {part.unit: row[0] for part, row in rows.items() if row[0]}


@pytest.mark.parametrize(
    ("dtype", "unit"),
    [
        ("f32", "vector.f32"),
        ("bf16", "vector.bf16"),
        ("f8e4m3fn", "vector.f8"),
        ("s32", "vector.s32"),
        ("u8", "vector.s32"),
        ("pred", "vector.s32"),
        ("s64", ""),
        ("c64", ""),
        ("", ""),
    ],
)
def test_elementwise(dtype: str, unit: str) -> None:
    assert elementwise_part("add", dtype) == ("add", unit)


@pytest.mark.parametrize(
    ("lhs", "rhs", "unit"),
    [
        ("bf16", "bf16", "matmul.bf16"),
        ("bf16", "f32", "matmul.f32"),
        ("f8e4m3fn", "f8e5m2", "matmul.f8"),
        ("s8", "u8", "matmul.s8"),
        ("s4", "s8", "matmul.s8"),
        ("c64", "c64", ""),
        ("pred", "pred", ""),
    ],
)
def test_matrix_products_run_in_the_wider_type(lhs: str, rhs: str, unit: str) -> None:
    assert matmul_unit(lhs, rhs) == unit


def test_units_are_figures_of_profiles() -> None:
    figures = [set(load_profile(name).figures) for name in profile_names()]
    dtypes = ("f64", "f32", "bf16", "f16", "f8e5m2", "s32", "pred", "s8", "s4")
    named = {elementwise_part("add", dtype).unit for dtype in dtypes} | {matmul_unit(d, d) for d in dtypes if d != "pred"}
    assert all(named <= known for known in figures)


def test_a_comparison_runs_in_the_type_that_it_compares() -> None:
    p = "%p = f32[8] parameter(0)"
    assert units(p, "%c = pred[8] compare(%p, %p), direction=LT") == {"vector.f32": 8}
    fused = f"%f {{\n  {p}\n  ROOT %c = pred[8] compare(%p, %p), direction=LT\n}}\n"
    assert units(p, "%g = pred[8] fusion(%p), kind=kLoop, calls=%f", before=fused) == {"vector.f32": 8}


def test_a_product_runs_in_the_type_of_its_operands() -> None:
    """Whatever it accumulates in; what is applied runs in the type of what applies it."""
    p = "%p = bf16[8] parameter(0)"
    assert units(p, "%d = f32[] dot(%p, %p), lhs_contracting_dims={0}, rhs_contracting_dims={0}") == {"matmul.bf16": 16}
    assert units(p, "%z = bf16[] constant(0)", "%r = bf16[] reduce(%p, %z), dimensions={0}, to_apply=%add") == {
        "vector.bf16": 7
    }


def test_a_kernel_does_not_tell_its_unit() -> None:
    config = 'backend_config={"custom_call_config":{"cost_estimate":{"flops":"2048"}}}'
    line = f'%c = f32[8] custom-call(%p), custom_call_target="tpu_custom_call", {config}'
    assert units("%p = f32[8] parameter(0)", line) == {"": 2048}

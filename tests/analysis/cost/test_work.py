"""The tables of opcodes with work, and the units of the hardware that do it."""

from __future__ import annotations

from hlo_inspect.analysis.cost import work
from hlo_inspect.analysis.cost.bytes_accessed import FREE
from hlo_inspect.analysis.cost.operation import CALLERS
from hlo_inspect.analysis.hardware import load_profile, profile_names
from hlo_inspect.hlo.opcodes import OPCODES


def test_each_elementwise_opcode_has_no_other_rule() -> None:
    assert set(work.ELEMENTWISE) <= OPCODES
    assert not set(work.ELEMENTWISE) & (FREE | CALLERS)


def test_units_are_figures_of_profiles() -> None:
    figures = [set(load_profile(name).figures) for name in profile_names()]
    dtypes = ("f64", "f32", "bf16", "f16", "f8e5m2", "s32", "pred", "s8", "s4")
    named = {work.elementwise_key("add", dtype).unit for dtype in dtypes} | {
        work.matmul_unit(d, d) for d in dtypes if d != "pred"
    }
    assert all(named <= stated for stated in figures)

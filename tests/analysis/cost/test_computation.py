"""Applied and fused computations: their work goes to whom they belong to."""

from __future__ import annotations

import pytest

from hlo_inspect.analysis.cost.figures import FIGURES
from hlo_inspect.figure import exact, reason
from tests.analysis.cost.small import as_xla, by_label, cost_of, executed

P = "%p = f32[8] parameter(0)"
TANH = "%tanh {\n  %x = f32[8] parameter(0)\n  ROOT %y = f32[8] tanh(%x)\n}\n"


def test_the_work_of_a_fusion_stands_with_the_opcodes_inside() -> None:
    fused = "%f {\n  %x = f32[8] parameter(0)\n  %y = f32[8] tanh(%x)\n  ROOT %z = f32[8] add(%x, %y)\n}\n"
    cost = cost_of(P, "ROOT %f = f32[8] fusion(%p), kind=kLoop, calls=%f", before=fused)
    assert by_label(cost.opcodes) == {"tanh": (0, 8, 0, 0), "add": (8, 0, 0, 0), "fusion": (0, 0, 0, 64)}


def test_the_work_of_what_is_applied_stands_with_the_opcode_that_applies_it() -> None:
    cost = cost_of(P, "%z = f32[] constant(0)", "ROOT %r = f32[] reduce(%p, %z), dimensions={0}, to_apply=%add")
    assert by_label(cost.opcodes) == {"reduce": (7, 0, 0, 32 + 4 + 4)}


def test_fusions_in_fusions_calls_and_loops_in_them() -> None:
    """Only work counts there; a loop once, of branches the largest of each figure."""
    before = (
        TANH
        + """%step {
  %s = f32[8] parameter(0)
  ROOT %t = f32[8] add(%s, %s)
}
%test {
  %s = f32[8] parameter(0)
  ROOT %c = pred[] compare(%s, %s), direction=LT
}
%outer {
  %x = f32[8] parameter(0)
  %f = f32[8] fusion(%x), kind=kLoop, calls=%tanh
  %c = f32[8] call(%x), to_apply=%tanh
  %w = f32[8] while(%x), condition=%test, body=%step
  ROOT %i = f32[8] conditional(%x, %x, %x), true_computation=%tanh, false_computation=%step
}
"""
    )
    figures = as_xla(P, "ROOT %f = f32[8] fusion(%p), kind=kLoop, calls=%outer", before=before)
    assert figures == (8 + 1 + 8, 8 + 8 + 8, 0, 64)


def test_a_scatter_in_a_custom_fusion_counts_alone() -> None:
    """Three updates, each applied once; twice and once more their bytes, and those of the indices."""
    fused = """%f {
  %x = f32[8] parameter(0)
  %i = s32[3,1] parameter(1)
  %u = f32[3] parameter(2)
  %n = f32[8] negate(%x)
  ROOT %s = f32[8] scatter(%n, %i, %u), to_apply=%add
}
"""
    lines = (P, "%i = s32[3,1] parameter(1)", "%u = f32[3] parameter(2)")
    custom = cost_of(*lines, "%f = f32[8] fusion(%p, %i, %u), kind=kCustom, calls=%f", before=fused)
    assert by_label(custom.opcodes) == {"scatter": (3, 0, 0, 3 * 12 + 12)}
    usual = as_xla(*lines, "%f = f32[8] fusion(%p, %i, %u), kind=kLoop, calls=%f", before=fused)
    assert usual == (8 + 3, 0, 0, 32 + 12 + 12 + 32)


@pytest.mark.parametrize(
    ("lines", "gaps"),
    [
        ((P, "%f = f32[8] fusion(%p), kind=kLoop, calls=%gone"), (None, None, None, None)),
        ((P, "%f = f32[8] fusion(%p), kind=kLoop"), (None, None, None, None)),
        ((P, "%f = f32[8] map(%p), to_apply=%gone"), (None, None, None, 64)),
        ((P, "%f = f32[8] map(%p)"), (None, None, None, 64)),
        ((P, "%f = f32[8] negate(%gone)"), (8, 0, 0, None)),
        ((P, "%f = f32[?] negate(%p)"), (None, None, None, None)),
        ((P, "%f = q9[8] negate(%p)"), (None, None, None, None)),
        ((P, "%f = f32[8] frobnicate(%p)"), (None, None, None, 64)),
        ((P, "%f = f32[8] call(%p), to_apply=%gone"), (None, None, None, None)),
        ((P, "%f = f32[8] while(%p)"), (None, None, None, None)),
    ],
)
def test_gaps(lines: tuple[str, ...], gaps: tuple[int | None, ...]) -> None:
    """Figures that do not depend on the gap are known."""
    assert as_xla(*lines) == gaps


def test_a_gap_keeps_its_place_through_fusions_and_applications() -> None:
    broken = "%broken {\n  %x = f32[] parameter(0)\n  ROOT %y = f32[?] negate(%x)\n}\n"
    fused = broken + "%f {\n  %x = f32[8] parameter(0)\n  ROOT %m = f32[8] map(%x), to_apply=%broken\n}\n"
    cost = cost_of(P, "%f = f32[8] fusion(%p), kind=kLoop, calls=%f", before=fused)
    assert reason(cost.as_xla.bounds("flops")).startswith("line 11: y: ")
    assert reason(cost.opcodes.bounds("flops")) == reason(cost.as_xla.bounds("flops"))
    assert exact(cost.as_xla.bounds("bytes")) == 64


def test_custom_calls_without_a_rule() -> None:
    fused = '%f {\n  %x = f32[8] parameter(0)\n  ROOT %y = f32[8] custom-call(%x), custom_call_target="odd"\n}\n'
    calls = [
        '%a = f32[8] custom-call(%p), custom_call_target="odd"',
        '%b = f32[8] custom-call(%a), custom_call_target="Sharding"',
        "%c = f32[8] fusion(%b), kind=kLoop, calls=%f",
        "%d = f32[8] fusion(%c), kind=kLoop, calls=%f",
    ]
    cost = cost_of(P, *calls, before=fused)
    assert [(call.target, call.line) for call in cost.unknown_calls] == [("odd", 11), ("odd", 16)]
    assert exact(cost.as_xla.bounds("bytes")) == 2 * 64
    assert exact(cost.as_xla.bounds("flops")) == 0


def test_a_library_call_whose_configuration_is_broken() -> None:
    """Figures that depend on it are unknown; XLA counts no custom call."""
    line = '%g = f32[3,7] custom-call(%x, %y), custom_call_target="__cublas$gemm", backend_config="odd"'
    cost = cost_of("%x = f32[3,5] parameter(0)", "%y = f32[5,7] parameter(1)", line, "%n = f32[3,7] negate(%g)")
    fault = "its backend_config is not JSON"
    assert [(call.instruction.name, call.target, call.line, call.cost.fault) for call in cost.unknown_calls] == [
        ("g", "__cublas$gemm", 13, fault)
    ]
    assert executed(cost) == (None, None, None, 4 * (15 + 35 + 21) + 2 * 84)
    assert reason(cost.opcodes.bounds("flops")) == f"line 13: g: {fault}"
    assert [exact(cost.as_xla.bounds(figure)) for figure in FIGURES] == [21, 0, None, 2 * 84]


def test_a_library_call_inside_of_a_fusion_is_not_in_the_figures_of_xla() -> None:
    config = 'backend_config={"dot_dimension_numbers":{"lhs_contracting_dimensions":["1"]}}'
    fused = f"""%f {{
  %x = f32[3,5] parameter(0)
  %y = f32[5,7] parameter(1)
  %g = f32[3,7] custom-call(%x, %y), custom_call_target="__cublas$gemm", {config}
  ROOT %n = f32[3,7] negate(%g)
}}
"""
    lines = ("%x = f32[3,5] parameter(0)", "%y = f32[5,7] parameter(1)")
    cost = cost_of(*lines, "%f = f32[3,7] fusion(%x, %y), kind=kCustom, calls=%f", before=fused)
    assert [exact(cost.as_xla.bounds("flops")), exact(cost.as_xla.bounds("matmul_flops"))] == [21, 210]
    assert [exact(cost.opcodes.bounds("flops")), exact(cost.opcodes.bounds("matmul_flops"))] == [231, 210]


def test_a_triton_matrix_product_is_a_fusion_with_a_dot() -> None:
    """Whatever its blocks are: fusions in fusions that multiply (`__triton_nested_gemm_fusion`)."""
    fused = """%lhs {
  ROOT %x = f32[3,5] parameter(0)
}
%gemm {
  %x = f32[3,5] parameter(0)
  %y = f32[5,7] parameter(1)
  %l = f32[3,5] fusion(%x), kind=kCustom, calls=%lhs
  ROOT %d = f32[3,7] dot(%l, %y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
"""
    lines = ("%x = f32[3,5] parameter(0)", "%y = f32[5,7] parameter(1)")
    config = 'backend_config={"fusion_backend_config":{"kind":"__triton_nested_gemm_fusion"}}'
    cost = cost_of(*lines, f"%f = f32[3,7] fusion(%x, %y), kind=kCustom, calls=%gemm, {config}", before=fused)
    assert exact(cost.opcodes.bounds("matmul_flops")) == 2 * 3 * 7 * 5
    assert set(by_label(cost.tally("kind"))) == {"kCustom"}


@pytest.mark.parametrize("before", ["", ', metadata={op_name="a}"}', ', frontend_attributes={a=", metadata={"}'])
def test_rows_that_differ_in_an_attribute_only(before: str) -> None:
    """2 · 9 · 3 and 2 · 9 · 5 FLOPs, and the second ones once more."""
    lines = ("%x = f32[3,5] parameter(0)", "%y = f32[3,5] parameter(1)")
    dots = [f"%d{i} = f32[3,3] dot(%x, %y){before}, lhs_contracting_dims={{{n}}}" for i, n in enumerate((0, 1, 1))]
    assert as_xla(*lines, *dots)[0] == 2 * 9 * (3 + 5 + 5)

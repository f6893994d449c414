"""What sums add up, in one stage or in several."""

from __future__ import annotations

import pytest

from hlo_inspect.analysis.optimizer.explain import text
from hlo_inspect.analysis.optimizer.normal import Forms
from hlo_inspect.analysis.optimizer.reductions import Reductions
from hlo_inspect.analysis.optimizer.sites import Region
from tests.analysis.optimizer.reading import entry_of, flow_of

SQUARES = ("%p = f32[4,8]{1,0} parameter(0)", "%z = f32[] constant(0)", "%m = f32[4,8]{1,0} multiply(%p, %p)")
ROWS = "%w = f32[4,2]{1,0} reduce-window(%m, %z), window={size=1x4 stride=1x4}, to_apply=%add"
FORMS = [
    ("ROOT %r = f32[] reduce(%m, %z), dimensions={0,1}, to_apply=%add",),
    (ROWS, "ROOT %r = f32[] reduce(%w, %z), dimensions={0,1}, to_apply=%add"),
    ("%s = f32[] reduce(%m, %z), dimensions={0,1}, to_apply=%add", "ROOT %r = f32[] all-reduce(%s), to_apply=%add"),
    (
        "%s = f32[] reduce(%m, %z), dimensions={0,1}, to_apply=%add",
        "%a = f32[] all-reduce-start(%s), to_apply=%add",
        "ROOT %r = f32[] all-reduce-done(%a)",
    ),
    (
        "%s = f32[] reduce(%m, %z), dimensions={0,1}, to_apply=%add",
        "%o = f32[1]{0} reshape(%s)",
        "%c = f32[2]{0} concatenate(%o, %o), dimensions={0}",
        "%a = f32[2]{0} all-reduce(%c), to_apply=%add",
        "%l = f32[1]{0} slice(%a), slice={[1:2]}",
        "ROOT %r = f32[] reshape(%l)",
    ),
]

COMBINED = (
    "%s = f32[] reduce(%m, %z), dimensions={0,1}, to_apply=%add",
    "%d = f32[] add(%s, %s)",
    "%o = f32[1]{0} reshape(%d)",
    "%n = f32[1]{0} negate(%o)",
    "%c = f32[2]{0} concatenate(%n, %o), dimensions={0}",
    "%a = f32[2]{0} all-reduce(%c), to_apply=%add",
)
"""An expression and another one, summed over devices together."""


def opened(*lines: str) -> str | None:
    flow, frame = flow_of(entry_of(*lines))
    forms = Forms(flow.graph)
    ((monomial, _),) = forms.form(flow.node(flow.root(frame, ()))).items()
    found = Reductions(flow, Region(frame, {}), forms).summed(monomial[0][0])
    return None if found is None else text(forms, found)


@pytest.mark.parametrize("lines", FORMS)
def test_sums_of_squares(lines: tuple[str, ...]) -> None:
    assert opened(*SQUARES, *lines) == "p0**2"


def test_another_reduction_adds_nothing_up() -> None:
    largest = "ROOT %r = f32[] reduce(%m, %z), dimensions={0,1}, to_apply=%nobody"
    assert opened(*SQUARES, largest) is None
    assert opened(SQUARES[0], "ROOT %r = f32[4,8]{1,0} rng(%p, %p), distribution=rng_uniform") is None


def test_a_part_of_a_combined_sum_can_be_any_expression() -> None:
    first = ("%l = f32[1]{0} slice(%a), slice={[0:1]}", "ROOT %r = f32[] reshape(%l)")
    second = ("%l = f32[1]{0} slice(%a), slice={[1:2]}", "ROOT %r = f32[] reshape(%l)")
    assert str(opened(*SQUARES, *COMBINED, *first)).startswith("-2*x#")
    assert str(opened(*SQUARES, *COMBINED, *second)).startswith("2*x#")


@pytest.mark.parametrize(
    ("product", "expected"),
    [
        ("dot(%m, %p), lhs_contracting_dims={1}, rhs_contracting_dims={1}", ("p0**2", "p0")),
        ("convolution(%m, %p), dim_labels=bf_io->bf", ("p0**2", "p0")),
        ("convolution(%m, %p), window={size=3}, dim_labels=bf0_io0->bf0", None),
        ('custom-call(%m, %p), custom_call_target="__cublas$gemm"', ("p0**2", "p0")),
        ('custom-call(%m, %p), custom_call_target="other"', None),
        ("rng(%m, %p), distribution=rng_uniform", None),
    ],
)
def test_products_of_matrices(product: str, expected: tuple[str, str] | None) -> None:
    flow, frame = flow_of(entry_of(*SQUARES, f"ROOT %r = f32[4,4]{{1,0}} {product}"))
    forms = Forms(flow.graph)
    ((monomial, _),) = forms.form(flow.node(flow.root(frame, ()))).items()
    found = Reductions(flow, Region(frame, {}), forms).factors(monomial[0][0])
    assert (found and tuple(text(forms, one) for one in found)) == expected

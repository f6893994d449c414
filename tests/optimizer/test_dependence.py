"""Dependences of places, in any way."""

from __future__ import annotations

import pytest

from hlo_inspect.optimizer.algebra.dependence import AtomDependence
from hlo_inspect.optimizer.algebra.normal_form import NormalForms
from hlo_inspect.optimizer.algebra.reductions import Reductions
from hlo_inspect.optimizer.algebra.unexplained_updates import describe
from hlo_inspect.optimizer.graph import Graph
from hlo_inspect.optimizer.step.state_arrays import TrainingStep
from hlo_inspect.optimizer.step.step_dependence import EVERYTHING, InputDependence
from tests.optimizer.programs import entry_of, flow_of

LINES = (
    "%p = f32[8,8]{1,0} parameter(0)",
    "%q = f32[8,8]{1,0} parameter(1)",
    "%u = f32[8,8]{1,0} parameter(2)",
    "%z = f32[] constant(0)",
    "%d = f32[8,8]{1,0} dot(%p, %q), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
    "%s = f32[] reduce(%d, %z), dimensions={0,1}, to_apply=%add",
    "ROOT %t = (f32[], f32[8,8]{1,0}) tuple(%s, %u)",
)


def test_dependence_goes_through_products_and_reductions() -> None:
    flow, frame = flow_of(entry_of(*LINES))
    reach = InputDependence(flow.frames)
    p, q, u = (reach.bit((frame, n, ())) for n in range(3))
    assert reach.inputs(flow.frames.root(frame, (0,))) == p | q
    assert reach.inputs(flow.frames.root(frame, (1,))) == u


def test_what_depends_on_itself_ends() -> None:
    flow, frame = flow_of(entry_of(LINES[0], "%a = f32[8,8]{1,0} add(%p, %b)", "ROOT %b = f32[8,8]{1,0} negate(%a)"))
    reach = InputDependence(flow.frames)
    assert reach.inputs(flow.frames.root(frame, ())) == reach.bit((frame, 0, ()))


def test_calls_that_double_end() -> None:
    """300 computations, each of which calls the one before twice: 2^300 places, of which no more are looked at than allowed."""
    doubles = "%f0 (p: f32[8]) -> f32[8] {\n  %p = f32[8] parameter(0)\n  ROOT %r = f32[8] exponential(%p)\n}\n"
    for i in range(1, 300):
        calls = f"  %a = f32[8] call(%p), to_apply=%f{i - 1}\n  ROOT %b = f32[8] call(%a), to_apply=%f{i - 1}\n"
        doubles += f"%f{i} (p: f32[8]) -> f32[8] {{\n  %p = f32[8] parameter(0)\n{calls}}}\n"
    lines = ("%p = f32[8] parameter(0)", "ROOT %r = f32[8] call(%p), to_apply=%f299")
    flow, frame = flow_of(entry_of(*lines, before=doubles))
    assert InputDependence(flow.frames).inputs(flow.frames.root(frame, ())) == EVERYTHING
    assert flow.frames.is_cut_short
    assert len(flow.frames) < flow.frames.max_places


def test_a_sum_over_devices_depends_on_all_its_operands() -> None:
    """Each of its results does; a tuple that goes nowhere else keeps its elements apart."""
    pair = "(f32[8,8]{1,0}, f32[8,8]{1,0})"
    lines = (
        *LINES[:3],
        f"%s = {pair} all-reduce(%p, %q), replica_groups={{}}, to_apply=%add",
        "%a = f32[8,8]{1,0} get-tuple-element(%s), index=0",
        "%b = f32[8,8]{1,0} get-tuple-element(%s), index=1",
        f"%v = {pair} tuple(%q, %u)",
        "%c = f32[8,8]{1,0} get-tuple-element(%v), index=0",
        "%d = f32[8,8]{1,0} get-tuple-element(%v), index=1",
        "ROOT %t = (f32[8,8]{1,0}, f32[8,8]{1,0}, f32[8,8]{1,0}, f32[8,8]{1,0}) tuple(%a, %b, %c, %d)",
    )
    flow, frame = flow_of(entry_of(*lines))
    reach = InputDependence(flow.frames)
    p, q, u = (reach.bit((frame, n, ())) for n in range(3))
    assert [reach.inputs(flow.frames.root(frame, (n,))) for n in range(4)] == [p | q, p | q, q, u]


# -- Bits of what atoms hold, however deep ------------------------------------------------------------------------------


def test_values_and_inputs_of_nested_atoms() -> None:
    graph = Graph()
    w, m, count = graph.input((0, 0, ()), 8), graph.input((0, 1, ()), 8), graph.input((0, 2, ()), 1)
    gradient = graph.opaque((0, 7, ()), 8)
    inner = graph.make("sqrt", (graph.make("add", (m, graph.make("maximum", (gradient, count)))),))
    node = graph.make("tanh", (inner,))
    forms = NormalForms(graph)
    atoms = {name: forms.leaf(node) for name, node in {"w": w, "m": m}.items()}
    contents = AtomDependence(forms, atoms.values(), lambda _: 0b100)
    form = forms.form(node)
    assert list(contents.atoms(contents.values(form))) == [atoms["m"]]
    assert contents.inputs(form) == 0b100
    ((monomial, _),) = form.items()
    assert not contents.are_scalars(monomial[0][0])
    assert contents.are_scalars(forms.leaf(count))
    assert contents.values_in(forms.leaf(count)) == contents.inputs_in(forms.leaf(count)) == 0


# -- What sums add up, in one stage or in several -----------------------------------------------------------------------


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
    forms = NormalForms(flow.graph)
    ((monomial, _),) = forms.form(flow.node(flow.frames.root(frame, ()))).items()
    summed = Reductions(flow, TrainingStep(frame, InputDependence(flow.frames)), forms).summed(monomial[0][0])
    return None if summed is None else describe(forms, summed)


@pytest.mark.parametrize("lines", FORMS)
def test_sums_of_squares(lines: tuple[str, ...]) -> None:
    assert opened(*SQUARES, *lines) == "p0**2"


@pytest.mark.parametrize("first", ["add", "maximum"])
def test_a_sum_and_a_maximum_are_asked_for_in_any_order(first: str) -> None:
    """The result for one kind of reduction says nothing of the other."""
    largest = "%max (a: f32[], b: f32[]) -> f32[] {\n  %a = f32[] parameter(0)\n  %b = f32[] parameter(1)\n"
    largest += "  ROOT %m = f32[] maximum(%a, %b)\n}\n"
    flow, frame = flow_of(entry_of(*SQUARES, "ROOT %r = f32[] reduce(%m, %z), dimensions={0,1}, to_apply=%max", before=largest))
    forms = NormalForms(flow.graph)
    ((monomial, _),) = forms.form(flow.node(flow.frames.root(frame, ()))).items()
    reductions = Reductions(flow, TrainingStep(frame, InputDependence(flow.frames)), forms)
    for kind in (first, "add", "maximum"):
        summed = reductions.summed(monomial[0][0], kind)
        assert (summed and describe(forms, summed)) == ("p0**2" if kind == "maximum" else None)


def test_a_part_of_a_combined_maximum() -> None:
    largest = "%max (a: f32[], b: f32[]) -> f32[] {\n  %a = f32[] parameter(0)\n  %b = f32[] parameter(1)\n"
    largest += "  ROOT %m = f32[] maximum(%a, %b)\n}\n"
    lines = (
        "%p = f32[4]{0} parameter(0)",
        "%q = f32[4]{0} parameter(1)",
        "%c = f32[8]{0} concatenate(%p, %q), dimensions={0}",
        "%a = f32[8]{0} all-reduce(%c), to_apply=%max",
        "ROOT %r = f32[4]{0} slice(%a), slice={[4:8]}",
    )
    flow, frame = flow_of(entry_of(*lines, before=largest))
    forms = NormalForms(flow.graph)
    ((monomial, _),) = forms.form(flow.node(flow.frames.root(frame, ()))).items()
    reductions = Reductions(flow, TrainingStep(frame, InputDependence(flow.frames)), forms)
    summed = reductions.summed(monomial[0][0], "maximum")
    assert summed is not None
    assert describe(forms, summed) == "p1"
    assert reductions.summed(monomial[0][0]) is None


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
    forms = NormalForms(flow.graph)
    ((monomial, _),) = forms.form(flow.node(flow.frames.root(frame, ()))).items()
    factors = Reductions(flow, TrainingStep(frame, InputDependence(flow.frames)), forms).factors(monomial[0][0])
    assert (factors and tuple(describe(forms, factor) for factor in factors)) == expected

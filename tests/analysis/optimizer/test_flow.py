"""Expressions from text, also from text that makes no sense."""

from __future__ import annotations

from tests.analysis.optimizer.reading import entry_of, flow_of, root_of

P = "%p = f32[8]{0} parameter(0)"


def test_elements_by_element() -> None:
    half = "%h = f32[] constant(0.5)"
    lines = (P, half, "%b = f32[8]{0} broadcast(%h), dimensions={}", "ROOT %r = f32[8]{0} multiply(%p, %b)")
    assert root_of(entry_of(*lines)) == "multiply(0.5, p0)"


def test_comparisons_keep_their_direction() -> None:
    flow, frame = flow_of(entry_of(P, "ROOT %r = pred[8]{0} compare(%p, %p), direction=GE"))
    assert flow.graph.attributes[flow.node(flow.root(frame, ()))] == "GE"


def test_what_depends_on_itself_ends() -> None:
    flow, frame = flow_of(
        entry_of(P, "%a = f32[8]{0} add(%p, %b)", "%b = f32[8]{0} negate(%a)", "ROOT %r = f32[8]{0} sine(%a)")
    )
    flow.node(flow.root(frame, ()))
    assert {reason for _, _, reason in flow.faults.found} == {"depends on itself"}


def test_a_computation_that_calls_itself_ends() -> None:
    loop = "%f (x: f32[8]) -> f32[8] {\n  %x = f32[8]{0} parameter(0)\n  ROOT %y = f32[8]{0} call(%x), to_apply=%f\n}\n"
    flow, frame = flow_of(entry_of(P, "ROOT %r = f32[8]{0} call(%p), to_apply=%f", before=loop))
    assert flow.graph.ops[flow.node(flow.root(frame, ()))] == "opaque"


def test_operands_that_are_not_there() -> None:
    flow, frame = flow_of(entry_of(P, "%n = f32[8]{0} negate(%nobody)", "ROOT %r = f32[8]{0} add(%p, %n)"))
    flow.node(flow.root(frame, ()))
    assert ("main", "nobody", "is not defined") in flow.faults.found


def test_operands_that_are_cut_off() -> None:
    flow, frame = flow_of(entry_of(P, "ROOT %r = f32[8]{0} negate()"))
    assert flow.graph.ops[flow.node(flow.root(frame, ()))] == "opaque"
    assert flow.faults.found


def test_a_chain_of_thousands() -> None:
    lines = [f"%n{i} = f32[8]{{0}} negate(%{f'n{i - 1}' if i else 'p'})" for i in range(20_000)]
    flow, frame = flow_of(entry_of(P, *lines, "ROOT %r = f32[8]{0} negate(%n19999)"))
    flow.node(flow.root(frame, ()))
    assert len(flow.graph.ops) == 20_002

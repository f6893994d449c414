"""Expressions from text, also from text that makes no sense."""

from __future__ import annotations

import pytest

from hlo_inspect.analysis.optimizer import flow as flow_module
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


def test_calls_of_calls_that_multiply_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each computation calls the next one twice: 2 ** 40 values, one behind the other."""
    monkeypatch.setattr(flow_module, "MAX_PLACES", 2000)
    level = "%f{0} (x{0}: f32[8]) -> f32[8] {{\n  %x{0} = f32[8]{{0}} parameter(0)\n"
    level += "  %a{0} = f32[8]{{0}} call(%x{0}), to_apply=%f{1}\n  ROOT %b{0} = f32[8]{{0}} call(%a{0}), to_apply=%f{1}\n}}\n"
    last = "%f40 (x40: f32[8]) -> f32[8] {\n  %x40 = f32[8]{0} parameter(0)\n  ROOT %s = f32[8]{0} sine(%x40)\n}\n"
    before = last + "".join(level.format(n, n + 1) for n in range(39, -1, -1))
    flow, frame = flow_of(entry_of(P, "ROOT %r = f32[8]{0} call(%p), to_apply=%f0", before=before))
    flow.node(flow.root(frame, ()))
    assert {reason for _, _, reason in flow.faults.found} == {"lies behind too many expressions to follow"}

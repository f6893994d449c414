"""What is stepped through on the way to where a value is made."""

from __future__ import annotations

import pytest

from tests.analysis.optimizer.reading import entry_of, flow_of, root_of

P = "%p = f32[8]{0} parameter(0)"
TWICE = "%twice (x: f32[8]) -> f32[8] {\n  %x = f32[8]{0} parameter(0)\n  ROOT %y = f32[8]{0} add(%x, %x)\n}\n"
PAIR = "%pair (x: f32[8]) -> (f32[8], f32[8]) {\n  %x = f32[8]{0} parameter(0)\n  %n = f32[8]{0} negate(%x)\n"
PAIR += "  ROOT %t = (f32[8]{0}, f32[8]{0}) tuple(%n, %x)\n}\n"
SAME = [
    "ROOT %r = bf16[8]{0} convert(%p)",
    "ROOT %r = f32[8]{0} copy(%p)",
    "ROOT %r = f32[4,2]{1,0} reshape(%p)",
    "ROOT %r = f32[4,2]{1,0} bitcast(%p)",
    "ROOT %r = f32[8]{0} transpose(%p), dimensions={0}",
    "ROOT %r = f32[8]{0} reduce-precision(%p), exponent_bits=8, mantissa_bits=7",
    "ROOT %r = f32[64]{0} all-gather(%p), dimensions={0}, replica_groups={}",
    'ROOT %r = f32[8]{0} custom-call(%p), custom_call_target="Sharding"',
    'ROOT %r = f32[8]{0} custom-call(%p), custom_call_target="xla.sdy.FuncResultSharding"',
]


@pytest.mark.parametrize("line", SAME)
def test_what_changes_no_value(line: str) -> None:
    assert root_of(entry_of(P, line)) == "p0"


def test_a_broadcast_of_a_scalar_but_not_of_an_array() -> None:
    assert root_of(entry_of("%p = f32[] parameter(0)", "ROOT %r = f32[8]{0} broadcast(%p), dimensions={}")) == "p0"
    assert root_of(entry_of(P, "ROOT %r = f32[8,2]{1,0} broadcast(%p), dimensions={0}")) == "broadcast(p0)"


def test_a_conversion_that_cuts_digits_off() -> None:
    assert root_of(entry_of(P, "ROOT %r = s32[8]{0} convert(%p)")) == "truncate(p0)"
    assert root_of(entry_of("%p = s32[] parameter(0)", "ROOT %r = s64[] convert(%p)")) == "p0"


def test_fusions_calls_and_tuples() -> None:
    fusion = "%f = (f32[8]{0}, f32[8]{0}) fusion(%p), kind=kLoop, calls=%pair"
    element = "%e = f32[8]{0} get-tuple-element(%f), index=0"
    call = "ROOT %r = f32[8]{0} call(%e), to_apply=%twice"
    assert root_of(entry_of(P, fusion, element, call, before=TWICE + PAIR)) == "add(negate(p0), negate(p0))"


def test_asynchronous_pairs() -> None:
    copy = ("%s = (f32[8]{0}, f32[8]{0}, u32[]) copy-start(%p)", "ROOT %r = f32[8]{0} copy-done(%s)")
    assert root_of(entry_of(P, *copy)) == "p0"
    start = "%s = ((f32[8]{0}), f32[8]{0}, u32[]) async-start(%p), calls=%twice"
    pair = (start, "%u = ((f32[8]{0}), f32[8]{0}, u32[]) async-update(%s)", "ROOT %r = f32[8]{0} async-done(%u)")
    assert root_of(entry_of(P, *pair, before=TWICE)) == "add(p0, p0)"


def test_where_a_value_is_made() -> None:
    flow, frame = flow_of(entry_of(P, "ROOT %r = f32[8]{0} fusion(%p), kind=kLoop, calls=%twice", before=TWICE))
    made = flow.made_at(flow.root(frame, ()))
    assert (made.fusion, made.computation, made.line) == ("r", "twice", 11)


def test_parameters_of_a_tuple_and_what_is_not_there() -> None:
    tuple_ = "%p = (f32[8]{0}, f32[8]{0}) parameter(0)"
    assert root_of(entry_of(tuple_, "ROOT %r = f32[8]{0} get-tuple-element(%p), index=1")) == "p0.1"
    flow, frame = flow_of(entry_of(P, "ROOT %r = f32[8]{0} fusion(%p), kind=kLoop, calls=%nobody"))
    assert flow.graph.ops[flow.node(flow.root(frame, ()))] == "opaque"

"""What a place depends on, by whatever way."""

from __future__ import annotations

from hlo_inspect.analysis.optimizer.reach import Reach
from tests.analysis.optimizer.reading import entry_of, flow_of

LINES = (
    "%p = f32[8,8]{1,0} parameter(0)",
    "%q = f32[8,8]{1,0} parameter(1)",
    "%u = f32[8,8]{1,0} parameter(2)",
    "%z = f32[] constant(0)",
    "%d = f32[8,8]{1,0} dot(%p, %q), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
    "%s = f32[] reduce(%d, %z), dimensions={0,1}, to_apply=%add",
    "ROOT %t = (f32[], f32[8,8]{1,0}) tuple(%s, %u)",
)


def test_through_products_and_reductions() -> None:
    flow, frame = flow_of(entry_of(*LINES))
    reach = Reach(flow)
    p, q, u = (reach.bit((frame, n, ())) for n in range(3))
    assert reach.inputs(flow.root(frame, (0,))) == p | q
    assert reach.inputs(flow.root(frame, (1,))) == u


def test_what_depends_on_itself_ends() -> None:
    flow, frame = flow_of(entry_of(LINES[0], "%a = f32[8,8]{1,0} add(%p, %b)", "ROOT %b = f32[8,8]{1,0} negate(%a)"))
    reach = Reach(flow)
    assert reach.inputs(flow.root(frame, ())) == reach.bit((frame, 0, ()))


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
    reach = Reach(flow)
    p, q, u = (reach.bit((frame, n, ())) for n in range(3))
    assert [reach.inputs(flow.root(frame, (n,))) for n in range(4)] == [p | q, p | q, q, u]

"""Modules with thousands of calls, and one without an entry."""

from __future__ import annotations

from hlo_inspect.analysis.cost.figures import FIGURES
from hlo_inspect.analysis.cost.module_cost import module_cost
from hlo_inspect.figure import exact, reason
from hlo_inspect.graph.calls import CallGraph
from hlo_inspect.hlo.module import Module
from hlo_inspect.hlo.values.header import Header
from hlo_inspect.hlo.wants import Wants
from tests.analysis.cost.small import as_xla, cost_of, executed

P = "%p = f32[8] parameter(0)"
STEP = "%step {\n  %x = f32[8] parameter(0)\n  ROOT %y = f32[8] negate(%x)\n}\n"


def test_calls_nested_deeper_than_python_recurses() -> None:
    before = STEP + "".join(
        f"%c{i} {{\n  %x = f32[8] parameter(0)\n  ROOT %y = f32[8] call(%x), to_apply={f'%c{i - 1}' if i else '%step'}\n}}\n"
        for i in range(3000)
    )
    assert as_xla(P, "%c = f32[8] call(%p), to_apply=%c2999", before=before) == (8, 0, 0, 64)


def test_calls_that_double_without_end() -> None:
    """2^600 negations are more than any figure holds."""
    before = STEP + "".join(
        f"%c{i} {{\n  %x = f32[8] parameter(0)\n  %y = f32[8] call(%x), to_apply={callee}\n"
        f"  ROOT %z = f32[8] call(%y), to_apply={callee}\n}}\n"
        for i in range(600)
        for callee in [f"%c{i - 1}" if i else "%step"]
    )
    cost = cost_of(P, "%c = f32[8] call(%p), to_apply=%c599", before=before)
    assert (exact(cost.as_xla.bounds("flops")), exact(cost.as_xla.bounds("transcendentals"))) == (None, 0)
    assert executed(cost) == (None, 0, 0, None)


def test_a_module_without_an_entry() -> None:
    module = Module(Header("m"), "m.txt", 4, Wants(graph=True))
    cost = module_cost(module, CallGraph(module))
    for figure in FIGURES:
        assert (exact(cost.as_xla.bounds(figure)), exact(cost.step[figure])) == (None, None)
    assert reason(cost.as_xla.bounds("flops")) == "line 4: the module has no entry computation"

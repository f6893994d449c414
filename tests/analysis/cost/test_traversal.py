"""A whole module: each computation once, callees first, whatever calls what."""

from __future__ import annotations

from hlo_inspect.analysis.cost.model import FIGURES
from hlo_inspect.analysis.cost.traversal import Label, module_cost
from hlo_inspect.hlo.header import Header
from hlo_inspect.hlo.module import Module, Wants
from tests.analysis.cost.small import as_xla, by_label, cost_of, executed

LABELS: tuple[Label, ...] = ("kind", "phase", "source")
P = "%p = f32[8] parameter(0)"
STEP = "%step {\n  %x = f32[8] parameter(0)\n  ROOT %y = f32[8] negate(%x)\n}\n"
TEST = "%test {\n  %x = f32[8] parameter(0)\n  ROOT %c = pred[] compare(%x, %x), direction=LT\n}\n"
LOOP = (P, "%a = f32[8] abs(%p)", "%w = f32[8] while(%a), condition=%test, body=%step")


def test_loops_as_often_as_they_run() -> None:
    cost = cost_of(*LOOP, before=STEP + TEST, executions={"step": 12, "test": 13})
    assert executed(cost) == (8 + 12 * 8 + 13, 0, 0, 64 + 12 * 64 + 13 * 65)
    assert cost.as_xla.total("flops") == 8 + 8 + 1
    for label in LABELS:
        assert executed(cost) == tuple(cost.by(label).total(figure) for figure in FIGURES)


def test_a_loop_that_does_not_run() -> None:
    assert executed(cost_of(*LOOP, before=STEP + TEST, executions={"step": 0, "test": 1})) == (8 + 1, 0, 0, 64 + 65)


def test_a_loop_that_runs_unknown_times() -> None:
    """What it has nothing of stays known."""
    cost = cost_of(*LOOP, before=STEP + TEST, executions={"step": None, "test": None})
    assert executed(cost) == (None, 0, 0, None)
    assert cost.opcodes.why_unknown("flops") == "line 9: step runs unknown times"
    assert by_label(cost.opcodes)["abs"] == (8, 0, 0, 64)
    assert cost.as_xla.total("flops") == 17


def test_a_computation_in_two_roles() -> None:
    """Run by a call and applied by a map: eight and eight times a negation of what it says."""
    before = "%one {\n  %x = f32[] parameter(0)\n  ROOT %y = f32[] negate(%x)\n}\n"
    lines = ("%o = f32[] parameter(1)", "%c = f32[] call(%o), to_apply=%one", "%m = f32[8] map(%p), to_apply=%one")
    assert as_xla(P, *lines, before=before) == (1 + 8, 0, 0, 8 + 64)


def test_a_computation_that_calls_itself() -> None:
    before = "%a {\n  %x = f32[8] parameter(0)\n  ROOT %y = f32[8] call(%x), to_apply=%b\n}\n"
    before += "%b {\n  %x = f32[8] parameter(0)\n  ROOT %y = f32[8] call(%x), to_apply=%a\n}\n"
    assert as_xla(P, "%c = f32[8] call(%p), to_apply=%a", before=before) == (None, None, None, None)
    assert as_xla(P, "%c = f32[8] call(%p), to_apply=%main") == (None, None, None, None)
    fused = "%f {\n  %x = f32[8] parameter(0)\n  ROOT %y = f32[8] fusion(%x), kind=kLoop, calls=%f\n}\n"
    assert as_xla(P, "%c = f32[8] fusion(%p), kind=kLoop, calls=%f", before=fused)[0] is None


def test_callees_that_come_later_in_the_text() -> None:
    before = "%a {\n  %x = f32[8] parameter(0)\n  ROOT %y = f32[8] call(%x), to_apply=%step\n}\n" + STEP
    assert as_xla(P, "%c = f32[8] call(%p), to_apply=%a", before=before) == (8, 0, 0, 64)


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
    cost = cost_of(P, "%c = f32[8] call(%p), to_apply=%c599", before=before, executions={"step": 2**600})
    assert (cost.as_xla.total("flops"), cost.as_xla.total("transcendentals")) == (None, 0)
    assert executed(cost) == (None, 0, 0, None)


def test_what_the_entry_does_not_reach_is_not_counted() -> None:
    unused = '%unused {\n  %x = f32[?] parameter(0)\n  ROOT %y = f32[?] custom-call(%x), custom_call_target="odd"\n}\n'
    cost = cost_of(P, "%n = f32[8] negate(%p)", before=unused)
    assert (executed(cost), cost.unknown_calls) == ((8, 0, 0, 64), ())


def test_a_module_without_an_entry() -> None:
    cost = module_cost(Module(Header("m"), "m.txt", 4, Wants(graph=True)), {}, str)
    for figure in FIGURES:
        assert (cost.as_xla.total(figure), cost.opcodes.total(figure), cost.by("kind").total(figure)) == (None, None, None)
    assert cost.as_xla.why_unknown("flops") == "line 4: the module has no entry computation"

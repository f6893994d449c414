"""A whole module: each computation once, callees first, in any order of the text; as XLA counts it and as often as it runs."""

from __future__ import annotations

from hlo_inspect.analysis.cost.figures import FIGURES
from hlo_inspect.analysis.cost.module_cost import Label, module_cost
from hlo_inspect.figure import exact, reason
from hlo_inspect.graph.calls import CallGraph
from hlo_inspect.hlo.module import Module
from hlo_inspect.hlo.values.header import Header
from hlo_inspect.hlo.wants import Wants
from tests.analysis.cost.small import as_xla, by_label, cost_of, executed, limits

LABELS: tuple[Label, ...] = ("kind", "phase", "source", "scope")
P = "%p = f32[8] parameter(0)"
STEP = "%step {\n  %x = f32[8] parameter(0)\n  ROOT %y = f32[8] negate(%x)\n}\n"
TEST = "%test {\n  %x = f32[8] parameter(0)\n  ROOT %c = pred[] compare(%x, %x), direction=LT\n}\n"
LOOP = (P, "%a = f32[8] abs(%p)", "%w = f32[8] while(%a), condition=%test, body=%step")


def loop(times: int) -> tuple[str, ...]:
    config = f', backend_config={{"known_trip_count":{{"n":"{times}"}}}}'
    return (*LOOP[:-1], LOOP[-1] + config)


def test_loops_as_often_as_they_run() -> None:
    cost = cost_of(*loop(12), before=STEP + TEST)
    assert executed(cost) == (8 + 12 * 8 + 13, 0, 0, 64 + 12 * 64 + 13 * 65)
    assert exact(cost.as_xla.bounds("flops")) == 8 + 8 + 1
    for label in LABELS:
        assert executed(cost) == tuple(exact(cost.tally(label).bounds(figure)) for figure in FIGURES)


def test_a_loop_that_does_not_run() -> None:
    assert executed(cost_of(*loop(0), before=STEP + TEST)) == (8 + 1, 0, 0, 64 + 65)


def test_a_loop_that_runs_unknown_times() -> None:
    """Figures that are 0 in the loop stay known. It runs at least once, and its condition once more."""
    cost = cost_of(*LOOP, before=STEP + TEST)
    assert executed(cost) == (None, 0, 0, None)
    assert limits(cost.step["flops"]) == (8 + 8 + 2, None)
    assert limits(cost.step["bytes"]) == (3 * 64 - 64 + 2 * 65, None)
    assert reason(cost.opcodes.bounds("flops")).startswith("the trip count of w (line 21) ")
    assert by_label(cost.opcodes)["abs"] == (8, 0, 0, 64)
    assert exact(cost.as_xla.bounds("flops")) == 17


def test_a_computation_in_two_roles() -> None:
    """A call runs it and a map applies it: 8 and 8 times a negation."""
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
    cost = cost_of(P, "%c = f32[8] call(%p), to_apply=%c599", before=before)
    assert (exact(cost.as_xla.bounds("flops")), exact(cost.as_xla.bounds("transcendentals"))) == (None, 0)
    assert executed(cost) == (None, 0, 0, None)


def test_computations_that_the_entry_does_not_call_cost_nothing() -> None:
    unused = '%unused {\n  %x = f32[?] parameter(0)\n  ROOT %y = f32[?] custom-call(%x), custom_call_target="odd"\n}\n'
    cost = cost_of(P, "%n = f32[8] negate(%p)", before=unused)
    assert (executed(cost), cost.unknown_calls) == ((8, 0, 0, 64), ())


def test_a_module_without_an_entry() -> None:
    module = Module(Header("m"), "m.txt", 4, Wants(graph=True))
    cost = module_cost(module, CallGraph(module))
    for figure in FIGURES:
        assert (exact(cost.as_xla.bounds(figure)), exact(cost.step[figure])) == (None, None)
    assert reason(cost.as_xla.bounds("flops")) == "line 4: the module has no entry computation"


# -- computations that run themselves ------------------------------------------------------------------------------------------


FLOPS = "%flops {\n  %x = f32[8] parameter(0)\n  %y = f32[8] add(%x, %x)\n  ROOT %z = f32[8] add(%y, %y)\n}\n"
TANH = "%tanh {\n  %x = f32[8] parameter(0)\n  ROOT %y = f32[8] tanh(%x)\n}\n"
ADDS = 2 * 3 * 32
"""Bytes of the two additions of `%flops`."""


def test_a_loop_counts_its_body_and_its_condition_once() -> None:
    figures = as_xla(P, "%w = f32[8] while(%p), condition=%test, body=%flops", before=FLOPS + TEST)
    assert figures == (16 + 1, 0, 0, ADDS + 1 + 32 + 32)


def test_each_figure_is_the_largest_of_its_branches() -> None:
    line = "%i = f32[8] conditional(%p, %p, %p), branch_computations={%flops, %tanh}"
    assert as_xla(P, line, before=FLOPS + TANH) == (16, 8, 0, ADDS)


def test_one_branch_of_a_conditional_runs() -> None:
    """The least of each figure, and at most the greatest: 16 FLOPs or none, no transcendentals or 8, 192 bytes or 64."""
    line = "%i = f32[8] conditional(%p, %p, %p), branch_computations={%flops, %tanh}"
    cost = cost_of(P, line, before=FLOPS + TANH)
    assert [limits(cost.step[figure]) for figure in FIGURES] == [(0, 16), (0, 8), (0, 0), (64, ADDS)]
    assert executed(cost) == (None, None, 0, None)
    assert reason(cost.opcodes.bounds("bytes")) == "i (line 21) runs only one of its branches"


def test_branches_that_cost_the_same() -> None:
    line = "%i = f32[8] conditional(%p, %p, %p), branch_computations={%flops, %same}"
    cost = cost_of(P, line, before=FLOPS + FLOPS.replace("%flops", "%same"))
    assert executed(cost) == (16, 0, 0, ADDS)


def test_calls_and_asynchronous_computations_count_what_they_run() -> None:
    lines = ("%c = f32[8] call(%p), to_apply=%flops", "%s = ((f32[8]), f32[8], u32[]) async-start(%c), calls=%tanh")
    figures = as_xla(P, *lines, "%d = f32[8] async-done(%s)", before=FLOPS + TANH)
    assert figures == (16, 8, 0, ADDS + 64 + (32 + 3 * 4))  # the done reads three pointers and writes the result


def test_each_call_of_a_computation_counts() -> None:
    call = "f32[8] call(%p), to_apply=%flops"
    assert executed(cost_of(P, *(f"%c{i} = {call}" for i in range(5)), before=FLOPS)) == (5 * 16, 0, 0, 5 * ADDS)


def test_a_gap_is_noted_everywhere() -> None:
    cost = cost_of(P, "%a = f32[8] negate(%gone)", "%w = f32[8] while(%a), body=%lost, condition=%lost")
    for tally in (cost.opcodes, cost.tally("kind"), cost.tally("phase"), cost.tally("source")):
        assert (exact(tally.bounds("flops")), exact(tally.bounds("bytes"))) == (None, None)
    assert {label for label, _ in cost.opcodes.by_label()} == {"negate", "while"}
    assert reason(cost.as_xla.bounds("bytes")) == "line 12: a: the shape of operand gone is unknown"
    assert reason(cost.as_xla.bounds("flops")) == "line 13: w: computation lost is not in the text, or calls itself"


def test_the_sum_is_rounded_in_the_order_of_xla() -> None:
    """An addition of one element is lost behind 2^24 FLOPs, and counted before them."""
    big = ("%q = f32[4096,4096] parameter(1)", "%b = f32[4096,4096] negate(%q)")
    small = ("%o = f32[] parameter(2)", "%n = f32[] negate(%o)")
    for first, second in ((big, small), (small, big)):
        root = f"ROOT %t = (f32[], f32[]) tuple({second[1].split()[0]}, {first[1].split()[0]})"
        figures = as_xla(*big, *small, root)
        assert figures[0] == 2**24 + (0 if second is small else 1) - (1 if second is big else 0)


def test_custom_calls_in_equal_fusions_count_each() -> None:
    """The fusions have one class, and each holds a call of its own."""
    body = '{{\n  %x = f32[8] parameter(0)\n  ROOT %c{0} = f32[8] custom-call(%x), custom_call_target="Other"\n}}\n'
    before = "".join(f"%f{number} " + body.format(number) for number in range(3))
    fusions = [f"%n{number} = f32[8] fusion(%p), kind=kCustom, calls=%f{number}" for number in range(3)]
    assert [call.instruction.name for call in cost_of(P, *fusions, before=before).calls] == ["c0", "c1", "c2"]

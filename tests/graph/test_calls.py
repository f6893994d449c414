"""Runs of computations, and the executed figures of collectives."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hlo_inspect.analysis.collectives.executed_collectives import ExecutedTotals
from hlo_inspect.analysis.collectives.logical_collectives import OPCODES, TARGETS
from hlo_inspect.analysis.context import Context
from hlo_inspect.figure import Figure, Number, at_least, exact, greatest, least, reason, unknown
from hlo_inspect.graph.calls import WANTS, CallGraph
from hlo_inspect.hlo.wants import Wants
from tests.graph.loops import BODY, CONDITION, LOOP, START, STATE, STEP, computation, loop_text
from tests.hlo.reading import module

DATA = Path(__file__).parents[1] / "data"
LIGHT = Wants(opcodes=OPCODES, targets=TARGETS) | WANTS
GRAPH = LIGHT | Wants(graph=True)
ALL_WAYS = [LIGHT, LIGHT | Wants(every_line=True), GRAPH]

SHARED = "%v = f32[8]{0} parameter(0)"
SUM = "all-reduce(%v), replica_groups={{0,1}}, to_apply=%add"
GATHER = "%g = f32[16]{0} all-gather(%v), replica_groups={{0,1}}, dimensions={0}"
STEP_END = f"ROOT %out = {STATE} tuple(%next, %n, %y)"
PREDICATE = "%p = pred[] parameter(1)"
REDUCER = computation("%add", ("%a = f32[] parameter(0)", "%b = f32[] parameter(1)", "ROOT %c = f32[] add(%a, %b)"))
CALLEES = {
    "%summing": (f"ROOT %r = f32[8]{{0}} {SUM}",),
    "%twin": (f"%s = f32[8]{{0}} {SUM}", "ROOT %r = f32[8]{0} copy(%s)"),
    "%gathering": (GATHER, "ROOT %r = f32[8]{0} copy(%v)"),
    "%plain": ("ROOT %r = f32[8]{0} negate(%v)",),
    "%other": ("ROOT %r = f32[8]{0} sqrt(%v)",),
    "%again": (f"%s = f32[8]{{0}} {SUM}", "ROOT %r = f32[8]{0} call(%s), to_apply=%again"),
}
CALL = "ROOT %r = f32[8]{0} call(%v), to_apply="


def entry_of(*lines: str) -> str:
    """Write an entry of the lines after a parameter `%v`, and the computations that they name."""
    named = [computation(name, (SHARED, *body)) for name, body in CALLEES.items() if name in "".join(lines)]
    return "\n".join(["HloModule m\n", REDUCER, *named, computation("ENTRY %main", (SHARED, *lines))])


def line_of(text: str, part: str) -> int:
    return 1 + text[: text.index(part)].count("\n")


def runs_of_each(text: str, wants: Wants = LIGHT) -> dict[str, Number | None]:
    return _runs_of_each(CallGraph(module(text.encode(), wants)))


def _runs_of_each(graph: CallGraph) -> dict[str, Number | None]:
    """Return the runs of each reached computation; None if unknown."""
    return {name: exact(graph.runs(name)) for name in graph.calls}


def figures(text: str, wants: Wants = LIGHT) -> ExecutedTotals:
    return Context(module(text.encode(), wants)).executed.total


def executed_figures(text: str, wants: Wants = LIGHT) -> tuple[Number | None, Number | None]:
    """Return the executed collectives, and the bytes of their operands."""
    total = figures(text, wants)
    return exact(total.count), exact(total.operand_bytes)


def test_a_computation_with_two_callers_runs_twice() -> None:
    calls = (
        "%x = f32[8]{0} call(%v), to_apply=%summing",
        "%y = f32[8]{0} fusion(%x), kind=kLoop, calls=%summing",
        "%z = f32[8]{0} fusion(%y), kind=kLoop, calls=%plain",
        "ROOT %w = f32[] reduce(%z, %z), dimensions={0}, to_apply=%add",
    )
    assert runs_of_each(entry_of(*calls)) == {"main": 1, "summing": 2}
    assert runs_of_each(entry_of(*calls), GRAPH) == {"main": 1, "summing": 2}
    assert executed_figures(entry_of(*calls)) == (2, 64)


def test_an_async_wrapper_runs_once() -> None:
    """Before 2024 XLA printed the computation on the update and the done too."""
    text = entry_of(
        "%s = ((f32[8]{0}), f32[8]{0}, u32[]) async-start(%v), calls=%summing",
        "%u = ((f32[8]{0}), f32[8]{0}, u32[]) async-update(%s), calls=%summing",
        "ROOT %d = f32[8]{0} async-done(%u), calls=%summing",
    )
    assert runs_of_each(text) == {"main": 1, "summing": 1}
    assert executed_figures(text) == (1, 32)


def nested_loops(limit: str) -> str:
    """Write a loop of 10 iterations around a loop of `limit` iterations with an all-reduce in body and condition."""
    inner_body = computation("%sums", (*STEP, f"%y = f32[8]{{0}} {SUM.replace('%v', '%x')}", STEP_END))
    compared = f"ROOT %less = pred[] compare(%i, {limit}), direction=LT"
    inner_condition = computation("%checks", (*STEP, f"%y = f32[8]{{0}} {SUM.replace('%v', '%x')}", compared))
    body = (
        *STEP,
        "%zero = s32[] constant(0)",
        f"%init = {STATE} tuple(%zero, %n, %x)",
        f"%inner = {STATE} while(%init), condition=%checks, body=%sums",
        "%y = f32[8]{0} get-tuple-element(%inner), index=2",
        STEP_END,
    )
    return loop_text(body=body, before=REDUCER + inner_body + inner_condition)


@pytest.mark.parametrize("wants", ALL_WAYS)
def test_runs_of_nested_loops_multiply_and_conditions_run_once_more(wants: Wants) -> None:
    counts = runs_of_each(nested_loops("%n"), wants)
    assert counts == {"main": 1, "body": 10, "cond": 11, "sums": 60, "checks": 70}
    assert executed_figures(nested_loops("%n"), wants) == (130, 130 * 32)


def test_a_loop_of_0_iterations_never_runs_its_body() -> None:
    condition = ("%s = s32[] parameter(0)", "%k = s32[] constant(0)", "ROOT %c = pred[] compare(%s, %k), direction=LT")
    body = (
        f"%s = {STATE} parameter(0)",
        "%x = f32[8]{0} get-tuple-element(%s), index=2",
        "%y = f32[8]{0} call(%x), to_apply=%looping",
    )
    looping = computation(
        "%looping", (SHARED, f"%a = f32[8]{{0}} {SUM}", "ROOT %w = f32[8]{0} while(%a), condition=%what, body=%what")
    )
    config = ', backend_config={"known_trip_count":{"n":"0"}}'
    text = loop_text(condition=condition, body=body, entry=(*START, LOOP + config), before=REDUCER + looping)
    assert runs_of_each(text) == {"main": 1, "cond": 1, "body": 0, "looping": 0}
    assert executed_figures(text) == (0, 0)


def test_two_loops_of_the_same_name_have_their_own_trip_counts() -> None:
    """The first loop runs 10 iterations, the second 4."""
    again = computation("%cond.4", (*CONDITION[:-2], "%ten = s32[] constant(4)", CONDITION[-1])) + computation("%body.4", BODY)
    second = LOOP.replace("%cond", "%cond.4").replace("%body", "%body.4")
    text = loop_text(entry=(*START, LOOP.replace("ROOT ", ""), second), before=again)
    assert runs_of_each(text, GRAPH) == {"main": 1, "cond": 11, "body": 10, "cond.4": 5, "body.4": 4}


def test_runs_are_unknown_in_a_loop_that_never_ends() -> None:
    text = nested_loops("%next")
    line = line_of(text, "%inner = ")
    why = f"the trip count of inner (line {line}) is unknown: its condition stays true, or its counter overflows"
    graph = CallGraph(module(text.encode(), LIGHT))
    assert _runs_of_each(graph) == {"main": 1, "body": 10, "cond": 11, "sums": None, "checks": None}
    assert reason(graph.runs("sums")) == reason(graph.runs("checks")) == why
    total = figures(text)
    assert total.count == at_least(10 + 20, why)
    assert total.operand_bytes == at_least(30 * 32, why)


@pytest.mark.parametrize(
    "branches", ["true_computation=%summing, false_computation=%summing", "branch_computations={%summing, %summing}"]
)
def test_a_computation_in_both_branches_runs_once(branches: str) -> None:
    text = entry_of(PREDICATE, f"ROOT %r = f32[8]{{0}} conditional(%p, %v, %v), {branches}")
    assert runs_of_each(text) == {"main": 1, "summing": 1}
    assert executed_figures(text) == (1, 32)


@pytest.mark.parametrize(
    ("branches", "expected"),
    [
        ("true_computation=%summing, false_computation=%twin", (1, 32)),
        ("branch_computations={%summing, %twin, %summing}", (1, 32)),
        ("branch_computations={%other, %plain}", (0, 0)),
        ("branch_computations={%summing, %plain}", None),
        ("branch_computations={%plain, %summing, %twin}", None),
        ("branch_computations={%summing, %gathering}", None),
    ],
)
@pytest.mark.parametrize("wants", ALL_WAYS)
def test_figures_of_a_conditional_are_exact_if_its_branches_agree(
    branches: str, expected: tuple[int, int] | None, wants: Wants
) -> None:
    """The operand of the all-gather has the size of the all-reduce's."""
    text = entry_of(PREDICATE, f"ROOT %r = f32[8]{{0}} conditional(%p, %v, %v), {branches}")
    assert executed_figures(text, wants) == (expected or (None, None))
    if expected is None:
        why = f"r (line {line_of(text, 'conditional(')}) runs only one of its branches, which differ"
        totals = figures(text, wants)
        assert [reason(figure) for figure in (totals.count, totals.operand_bytes, totals.wire_bytes)] == [why] * 3
        assert least(totals.count) == int("%plain" not in branches)


def test_runs_of_different_branches_are_unknown() -> None:
    text = entry_of(PREDICATE, "ROOT %r = f32[8]{0} conditional(%p, %v, %v), branch_computations={%summing, %gathering}")
    graph = CallGraph(module(text.encode(), LIGHT))
    assert _runs_of_each(graph) == {"main": 1, "summing": None, "gathering": None}
    assert reason(graph.runs("summing")).endswith("runs only one of its branches")


@pytest.mark.parametrize("wants", ALL_WAYS)
def test_runs_of_a_recursive_computation_are_unknown(wants: Wants) -> None:
    graph = CallGraph(module(entry_of(CALL + "%again").encode(), wants))
    assert _runs_of_each(graph) == {"main": 1, "again": None}
    assert reason(graph.runs("again")) == "again is part of a recursion"
    total = figures(entry_of(CALL + "%again"), wants)
    assert total.count == at_least(1, reason(graph.runs("again")))
    assert exact(total.operand_bytes) is None


def test_runs_of_a_recursive_entry_are_unknown() -> None:
    text = entry_of(f"%s = f32[8]{{0}} {SUM}", CALL + "%main")
    assert runs_of_each(text) == {"main": None}
    assert executed_figures(text)[0] is None


def test_runs_of_a_computation_that_a_custom_call_names_are_unknown() -> None:
    text = entry_of("ROOT %r = f32[8]{0} custom-call(%v), custom_call_target='f', called_computations={%summing}")
    calls = LIGHT | Wants(opcodes=frozenset({"custom-call"}))
    assert runs_of_each(text, calls) == {"main": 1, "summing": None}
    assert reason(figures(text, calls).count).endswith(
        f"r (line {line_of(text, 'custom-call(')}) is a custom call, which runs it any number of times"
    )
    assert figures(text).count == at_least(0, "no instruction of the text calls summing")


def test_runs_of_a_chain_of_3000_calls_are_exact() -> None:
    """The chain is 3000 calls deep. In it 60 computations call the next one twice: 2^60 runs."""
    chain = "\n".join(
        computation(
            f"%c{n + 1}",
            (SHARED, *([f"%a = f32[8]{{0}} call(%v), to_apply=%c{n}"] if n < 60 else []), CALL + f"%c{n}"),
        )
        for n in range(3000)
    )
    first = computation("%c0", (SHARED, f"ROOT %r = f32[8]{{0}} {SUM}"))
    text = "\n".join(["HloModule m\n", REDUCER, first, chain, computation("ENTRY %main", (SHARED, CALL + "%c3000"))])
    assert executed_figures(text)[0] == 2**60


def test_calls_of_missing_computations_are_ignored() -> None:
    text = entry_of(
        f"%s = f32[8]{{0}} {SUM}", "%t = f32[8]{0} call(%s), to_apply=%gone", "ROOT %r = f32[8]{0} while(%t), body=%gone"
    )
    assert runs_of_each(text) == {"main": 1}
    assert executed_figures(text) == (1, 32)


def test_sends_do_not_count_and_unsized_operands_leave_a_lower_bound() -> None:
    text = entry_of(
        "%d = f32[?]{0} parameter(1)",
        "%t = token[] after-all()",
        "%s = (f32[8]{0}, u32[], token[]) send(%v, %t), channel_id=1",
        f"%a = f32[?]{{0}} {SUM.replace('%v', '%d')}",
        f"ROOT %r = f32[8]{{0}} {SUM}",
    )
    why = f"the shape of a (line {line_of(text, '%a = f32[?]')}) or of its operands cannot be read, or has no size"
    assert exact(figures(text).count) == 2
    assert figures(text).operand_bytes == at_least(32, why)


@pytest.mark.parametrize("wants", ALL_WAYS)
def test_a_module_without_computations_has_no_runs(wants: Wants) -> None:
    text = "HloModule m, is_scheduled=true\n"
    assert runs_of_each(text, wants) == {}
    assert executed_figures(text, wants) == (0, 0)


@pytest.mark.parametrize("wants", ALL_WAYS)
@pytest.mark.parametrize("printed", [True, False])
def test_collectives_of_a_scan_run_once_per_layer(wants: Wants, printed: bool) -> None:
    """Outside of loops 2 all-reduces have 388 bytes. A layer has gathers of 128 forward and backward, and a scatter of 256."""
    text = (DATA / "cpu" / "scan_fsdp.after.txt").read_text()
    figures_of_step = executed_figures(text if printed else re.sub("known_trip_count", "taken_out", text), wants)
    assert figures_of_step == (2 + 3 + 6, 388 + 3 * 128 + 3 * (128 + 256))


def test_a_call_start_runs_its_computation_once() -> None:
    text = entry_of("%s = ((f32[8]{0}), f32[8]{0}) call-start(%v), to_apply=%summing", "ROOT %d = f32[8]{0} call-done(%s)")
    assert runs_of_each(text) == {"main": 1, "summing": 1}
    assert executed_figures(text) == (1, 32)


# -- bounds -----------------------------------------------------------------------------------------------------------------


def test_runs_have_a_lower_bound_if_the_trip_count_is_unknown() -> None:
    """The outer loop runs 10 iterations. The inner body runs 10 times or more, its condition 20 times or more."""
    graph = CallGraph(module(nested_loops("%next").encode(), LIGHT))
    assert graph.runs("body") == 10
    for name, fewest in (("sums", 10), ("checks", 20)):
        runs = graph.runs(name)
        assert (least(runs), greatest(runs), exact(runs)) == (fewest, None, None)
        assert reason(runs).startswith("the trip count of inner (line ")


def test_runs_of_a_computation_without_callers_are_unknown() -> None:
    runs = CallGraph(module(entry_of("ROOT %r = f32[8]{0} negate(%v)").encode(), LIGHT)).runs("summing")
    assert runs == unknown("no instruction of the text calls summing")


def test_a_branch_runs_0_or_1_times() -> None:
    text = entry_of(PREDICATE, "ROOT %r = f32[8]{0} conditional(%p, %v, %v), branch_computations={%summing, %gathering}")
    runs = CallGraph(module(text.encode(), LIGHT)).runs("gathering")
    assert (least(runs), greatest(runs)) == (0, 1)
    assert reason(runs).endswith("runs only one of its branches")


def test_a_figure_is_between_its_least_and_its_greatest_branch() -> None:
    """Each figure has its own bounds. The branches do 5, 9 and 0, and move 70, 20 and 0."""
    branches = "branch_computations={%summing, %gathering, %plain}"
    text = entry_of(PREDICATE, f"ROOT %r = f32[8]{{0}} conditional(%p, %v, %v), {branches}")
    graph = CallGraph(module(text.encode(), GRAPH))
    own = {
        "main": {"done": 100},
        "summing": {"done": 5, "moved": 70},
        "gathering": {"done": 9, "moved": 20},
    }
    why = f"r (line {line_of(text, 'conditional(')}) runs only one of its branches, which differ"
    assert graph.bounds(own) == {"done": Figure(100, 109, why), "moved": Figure(0, 70, why)}
    assert graph.bounds(own | {"plain": {"done": 7}})["done"] == Figure(105, 109, why)


def test_figures_of_loops_are_multiplied_by_their_runs() -> None:
    """The condition runs 11 times, the body 10 times. Each iteration runs the inner body once or more."""
    graph = CallGraph(module(nested_loops("%next").encode(), LIGHT))
    own = {name: {"done": 1} for name in ("main", "body", "cond")}
    assert graph.bounds(own) == {"done": 1 + 10 + 11}
    done = graph.bounds(own | {"sums": {"done": 1000}})["done"]
    assert (least(done), greatest(done)) == (22 + 10 * 1000, None)
    assert reason(done).startswith("the trip count of inner (line ")


def test_figures_of_a_computation_include_those_of_its_calls() -> None:
    """Two computations call `five` once each, a third calls it twice: 5 + 5 + 10 = 20."""
    text = """HloModule m

five { ROOT %f = f32[] constant(5) }

first { ROOT %a = f32[] call(), to_apply=five }

second { ROOT %b = f32[] call(), to_apply=five }

twice {
  %c = f32[] call(), to_apply=five
  ROOT %d = f32[] call(), to_apply=five
}

ENTRY main {
  %x = f32[] call(), to_apply=first
  %y = f32[] call(), to_apply=second
  ROOT %z = f32[] call(), to_apply=twice
}
"""
    each = CallGraph(module(text.encode(), GRAPH)).bounds_of_each({"five": {"done": 5}})
    assert each["first"] == each["second"]
    done = {name: exact(figures["done"]) for name, figures in each.items()}
    assert done == {"five": 5, "first": 5, "second": 5, "twice": 10, "main": 20}


def test_an_unknown_figure_of_a_body_that_never_runs_counts_0() -> None:
    text = loop_text(entry=(*START, LOOP + ', backend_config={"known_trip_count":{"n":"0"}}'))
    graph = CallGraph(module(text.encode(), LIGHT))
    assert graph.bounds({"body": {"done": at_least(3, "nobody knows")}}) == {"done": 0}


def test_a_count_above_10_to_the_30_is_a_lower_bound() -> None:
    """4000 computations, each of which calls the next one twice: 2^4000 has 1205 digits."""
    chain = [
        computation(
            f"%c{n + 1}",
            (SHARED, f"%a = f32[8]{{0}} call(%v), to_apply=%c{n}", f"ROOT %r = f32[8]{{0}} call(%a), to_apply=%c{n}"),
        )
        for n in range(4000)
    ]
    first = computation("%c0", (SHARED, f"ROOT %r = f32[8]{{0}} {SUM}"))
    text = "\n".join(["HloModule m\n", REDUCER, first, *chain, computation("ENTRY %main", (SHARED, CALL + "%c4000"))])
    assert figures(text).count == at_least(10**30, "it exceeds 10^30")
    assert least(CallGraph(module(text.encode(), LIGHT)).runs("c0")) == 10**30


def test_many_branches_take_linear_time() -> None:
    count = 3000
    named = [computation(f"%b{n}", (SHARED, "ROOT %r = f32[8]{0} negate(%v)")) for n in range(count)]
    branches = ", ".join(f"%b{n}" for n in range(count))
    entry = computation(
        "ENTRY %main",
        (SHARED, "%p = s32[] parameter(1)", f"ROOT %r = f32[8]{{0}} conditional(%p), branch_computations={{{branches}}}"),
    )
    graph = CallGraph(module("\n".join(["HloModule m\n", *named, entry]).encode(), GRAPH))
    bounds = graph.bounds({f"b{n}": {n: 1} for n in range(count)})
    assert {(least(amount), greatest(amount)) for amount in bounds.values()} == {(0, 1)}

"""Steps of short texts: what they run, issue and wait for."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.time.program_steps import (
    BranchStep,
    CallStep,
    ComputeStep,
    IssuedWork,
    IssueStep,
    LoopStep,
    Step,
    WaitStep,
    issued_work,
)
from hlo_inspect.passes.cost import Cost

GROUPS = "replica_groups={{0,1}}, channel_id=1"


@pytest.fixture
def work(entry: Callable[..., Context]) -> Callable[..., IssuedWork]:
    def found(*lines: str, before: str = "", in_order: bool = True) -> IssuedWork:
        context = entry(*lines, before=before, header=", num_partitions=2", wants=Cost.wants)
        return issued_work(
            context.module, context.views, context.call_graph, context.kernels, context.collectives, in_order=in_order
        )

    return found


def told(steps: list[Step]) -> list[tuple[object, ...]]:
    """Return the kind of each step, with the names of its instructions."""
    words = {ComputeStep: "compute", CallStep: "call", LoopStep: "loop", BranchStep: "branch"}
    return [
        ("now" if step.waits else "issue", step.place[2])
        if isinstance(step, IssueStep)
        else ("wait", step.place[2])
        if isinstance(step, WaitStep)
        else (words[type(step)], step.place[2], *step[1:])
        for step in steps
    ]


def test_a_start_its_done_and_what_is_synchronous(work: Callable[..., IssuedWork]) -> None:
    issued = work(
        "%p = f32[8] parameter(0)",
        f"%s = f32[8] all-reduce-start(%p), {GROUPS}, to_apply=%add",
        "%k = f32[8] negate(%p)",
        "%d = f32[8] all-reduce-done(%s)",
        f"%s2 = f32[8] all-reduce-start(%d), {GROUPS}, to_apply=%add, "
        'backend_config={"collective_backend_config":{"is_sync":true}}',
        "%d2 = f32[8] all-reduce-done(%s2)",
        f"ROOT %r = f32[8] all-reduce(%d2), {GROUPS}, to_apply=%add",
    )
    assert told(list(issued.program.steps["main"])) == [
        ("issue", "s"),
        ("compute", "k"),
        ("wait", "s"),
        ("now", "s2"),
        ("wait", "s2"),
        ("now", "r"),
    ]


def test_issued_collectives_keep_the_order_of_the_program(work: Callable[..., IssuedWork]) -> None:
    """Sums over it are of one order of summands, and the same in every process."""
    reduced = (
        f"%s{number} = f32[8] all-reduce(%{'p' if number == 0 else f's{number - 1}'}), {GROUPS}, to_apply=%add"
        for number in range(20)
    )
    issued = work("%p = f32[8] parameter(0)", *reduced)
    assert [name for _, _, name in issued.issued] == [f"s{number}" for number in range(20)]


def test_copies_by_their_ends(work: Callable[..., IssuedWork]) -> None:
    issued = work(
        "%p = f32[8] parameter(0)",
        "%out = (f32[8]{0:S(5)}, f32[8]{0}, u32[]) copy-start(%p)",
        "%host = f32[8]{0:S(5)} copy-done(%out)",
        "%in = (f32[8]{0}, f32[8]{0:S(5)}, u32[]) copy-start(%host)",
        "%back = f32[8]{0} copy-done(%in)",
        "%near = (f32[8]{0:S(1)}, f32[8]{0}, u32[]) copy-start(%back)",
        "%vmem = f32[8]{0:S(1)} copy-done(%near)",
        "%sl = ((f32[8]{0}), f32[4]{0:S(1)}, s32[]) slice-start(%back), slice={[0:4]}",
        "ROOT %sd = f32[4]{0:S(1)} slice-done(%sl)",
    )
    assert {place[2]: streams for place, streams in issued.streams.items()} == {
        "out": ("to host",),
        "in": ("from host",),
        "near": ("copies",),
        "sl": ("copies",),
    }
    names = ["out", "in", "near", "sl"]
    assert told(list(issued.program.steps["main"])) == [(word, name) for name in names for word in ("issue", "wait")]


def test_without_a_schedule_copies_compute_and_collectives_are_left_out(work: Callable[..., IssuedWork]) -> None:
    issued = work(
        "%p = f32[8] parameter(0)",
        "%c = (f32[8], f32[8], u32[]) copy-start(%p)",
        "%cd = f32[8] copy-done(%c)",
        f"ROOT %r = f32[8] all-reduce(%cd), {GROUPS}, to_apply=%add",
        in_order=False,
    )
    assert told(list(issued.program.steps["main"])) == [("compute", "c"), ("wait", "c")]


def test_loops_conditionals_and_calls(work: Callable[..., IssuedWork]) -> None:
    issued = work(
        "%p = s32[] parameter(0)",
        "%w = s32[] while(%p), condition=%cond, body=%body",
        "%b = s32[] conditional(%w, %w, %w), branch_computations={%body, %other}",
        "ROOT %c = s32[] call(%b), to_apply=%other",
        before="""%body (q: s32[]) -> s32[] {
  %q = s32[] parameter(0)
  %one = s32[] constant(1)
  ROOT %next = s32[] add(%q, %one)
}

%cond (q: s32[]) -> pred[] {
  %q = s32[] parameter(0)
  %limit = s32[] constant(8)
  ROOT %less = pred[] compare(%q, %limit), direction=LT
}

%other (q: s32[]) -> s32[] {
  %q = s32[] parameter(0)
  ROOT %minus = s32[] negate(%q)
}
""",
    )
    assert told(list(issued.program.steps["main"])) == [
        ("loop", "w", "cond", "body", None),
        ("branch", "b", ("body", "other")),
        ("call", "c", "other"),
    ]
    assert told(list(issued.program.steps["body"])) == [("compute", "next")]


def test_computations_of_an_async_start_run_beside_the_main_stream(work: Callable[..., IssuedWork]) -> None:
    """A collective is one itself; other computations take what their steps take, on the stream of their thread."""
    wrapped = """%wrapped_a2a (q: f32[8]) -> f32[8] {
  %q = f32[8] parameter(0)
  ROOT %a2a = f32[8] all-to-all(%q), replica_groups={{0,1}}, dimensions={0}
}

%sparse (q: f32[8]) -> f32[8] {
  %q = f32[8] parameter(0)
  %ag = f32[8] all-reduce(%q), replica_groups={{0,1}}, to_apply=%add
  ROOT %neg = f32[8] negate(%ag)
}
"""
    issued = work(
        "%p = f32[8] parameter(0)",
        "%a = ((f32[8]), f32[8], u32[]) async-start(%p), calls=%wrapped_a2a",
        '%s = ((f32[8]), f32[8], u32[]) call-start(%p), async_execution_thread="sparsecore", to_apply=%sparse',
        "%ad = f32[8] async-done(%a)",
        "ROOT %sd = f32[8] call-done(%s)",
        before=wrapped,
    )
    assert told(list(issued.program.steps["main"])) == [("issue", "a"), ("issue", "s"), ("wait", "a"), ("wait", "s")]
    assert {place[2]: streams for place, streams in issued.streams.items()} == {"s": ("sparsecore",)}
    assert {place[2]: name for place, name in issued.program.parallel.items()} == {"s": "sparse"}
    assert told(list(issued.program.steps["sparse"])) == [("compute", "ag"), ("compute", "neg")]


def test_a_send_is_not_waited_for_at_once(work: Callable[..., IssuedWork]) -> None:
    issued = work(
        "%p = f32[8] parameter(0)",
        "%t = token[] after-all()",
        "%s = (f32[8], u32[], token[]) send(%p, %t), channel_id=3",
        "%k = f32[8] negate(%p)",
        "%sd = token[] send-done(%s), channel_id=3",
        "ROOT %r = f32[8] copy(%k)",
    )
    assert told(list(issued.program.steps["main"])) == [("issue", "s"), ("compute", "k"), ("wait", "s"), ("compute", "r")]


def test_tpu_fusions_that_start_and_end_a_collective(work: Callable[..., IssuedWork]) -> None:
    """Two are open at once; each is ended by the fusion that holds a copy of it."""

    def halves(number: int) -> str:
        gather = f"f32[8] all-gather(%q), replica_groups={{{{0,1}}}}, dimensions={{0}}, channel_id={number}"
        return f"""%begin.{number} (q: f32[4]) -> (f32[4], f32[8], u32[]) {{
  %q = f32[4] parameter(0)
  %ag.{number} = {gather}
  ROOT %cc.{number} = (f32[4], f32[8], u32[]) custom-call(%ag.{number}), custom_call_target="AsyncCollectiveStart"
}}

%end.{number} (q: f32[4], flag: u32[]) -> f32[8] {{
  %q = f32[4] parameter(0)
  %flag = u32[] parameter(1)
  %again.{number} = {gather}
  ROOT %ce.{number} = f32[8] custom-call(%again.{number}, %flag), custom_call_target="AsyncCollectiveDone"
}}

"""

    issued = work(
        "%p = f32[4] parameter(0)",
        "%s1 = (f32[4], f32[8], u32[]) fusion(%p), kind=kCustom, calls=%begin.1",
        "%s2 = (f32[4], f32[8], u32[]) fusion(%p), kind=kCustom, calls=%begin.2",
        "%f2 = u32[] get-tuple-element(%s2), index=2",
        "%f1 = u32[] get-tuple-element(%s1), index=2",
        "%k = f32[4] negate(%p)",
        "%d2 = f32[8] fusion(%p, %f2), kind=kCustom, calls=%end.2",
        "ROOT %d1 = f32[8] fusion(%p, %f1), kind=kCustom, calls=%end.1",
        before=halves(1) + halves(2),
    )
    assert told(list(issued.program.steps["main"])) == [
        ("issue", "s1"),
        ("issue", "s2"),
        ("compute", "k"),
        ("wait", "s2"),
        ("wait", "s1"),
    ]

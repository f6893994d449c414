"""Streams, queues, loops, conditionals and what runs beside the compute stream, each worked out by hand in seconds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from hlo_inspect.analysis.time import timeline as module
from hlo_inspect.analysis.time.program_steps import (
    BranchStep,
    CallStep,
    ComputeStep,
    IssueStep,
    LoopStep,
    Step,
    TimedProgram,
    WaitStep,
)
from hlo_inspect.analysis.time.timeline import BranchTaken, Timeline
from hlo_inspect.graph.calls import InstructionPlace


def at(name: str, computation: str = "main") -> InstructionPlace:
    return computation, 1, name


def wait(name: str, computation: str = "main") -> WaitStep:
    return WaitStep(at(name, computation), at(f"{name}-done", computation))


def run(
    steps: Mapping[str, Sequence[Step]],
    seconds: Mapping[str, float],
    streams: Mapping[str, Sequence[str]] | None = None,
    branch: BranchTaken = "first",
    parallel: Mapping[InstructionPlace, str] | None = None,
) -> Timeline:
    """Return the timeline of a program. `seconds` and `streams` are by name; the default stream is `link`."""
    program = TimedProgram("main", steps, parallel or {})
    return Timeline(program, lambda place: seconds[place[2]], lambda place: (streams or {}).get(place[2], ("link",)), branch)


def test_a_window_hides_what_fits_in_it() -> None:
    steps: list[Step] = [IssueStep(at("a"), False), ComputeStep(at("k")), wait("a"), ComputeStep(at("k2"))]
    timeline = run({"main": steps}, {"a": 5, "k": 3, "k2": 1})
    assert (timeline.step, timeline.compute) == (6, 4)
    assert timeline.site(at("a")) == (1, 5, 3, 2)
    hidden = run({"main": steps}, {"a": 2, "k": 3, "k2": 1})
    assert (hidden.step, hidden.site(at("a")).exposed) == (4, 0)


def test_what_waits_in_the_queue_of_a_stream_is_exposed_longer_than_it_takes() -> None:
    steps: list[Step] = [IssueStep(at("a"), False), IssueStep(at("b"), True), wait("a")]
    timeline = run({"main": steps}, {"a": 10, "b": 1})
    assert (timeline.step, timeline.site(at("b")).exposed, timeline.site(at("a")).exposed) == (11, 11, 0)
    apart = run({"main": steps}, {"a": 10, "b": 1}, {"b": ("other",)})
    assert (apart.step, apart.site(at("b")).exposed, apart.site(at("a")).exposed) == (10, 1, 9)


def test_a_collective_over_two_axes_holds_both() -> None:
    """`both` begins when the later of the two is free, and `x` again behind it."""
    seconds = {"x": 1, "y": 4, "both": 2, "x2": 1}
    streams = {"x": ["x"], "y": ["y"], "both": ["x", "y"], "x2": ["x"]}
    timeline = run({"main": [*(IssueStep(at(name), False) for name in seconds), wait("x2")]}, seconds, streams)
    assert timeline.step == 7


def loop(count: int | None) -> dict[str, Sequence[Step]]:
    return {
        "main": [IssueStep(at("outer"), False), LoopStep(at("while"), "cond", "body", count), wait("outer")],
        "cond": [ComputeStep(at("c", "cond"))],
        "body": [IssueStep(at("a", "body"), False), ComputeStep(at("k", "body")), wait("a", "body")],
    }


def test_a_loop_is_followed_until_its_iterations_are_alike() -> None:
    """The first iterations wait for what was issued before the loop, the others do not."""
    for count in (0, 1, 2, 5, 1_000_000):
        timeline = run(loop(count), {"outer": 10, "c": 1, "a": 3, "k": 2})
        first = 10 + 3 if count else 10  # `a` of the first iteration begins at 10
        others = 4 * (count - 1) + 1 if count else 0
        assert timeline.step == first + others
        assert timeline.compute == 3 * count + 1
        assert timeline.runs(at("k", "body")) == count
        assert timeline.reason == ""
        exposed = timeline.site(at("outer")).exposed + timeline.site(at("a", "body")).exposed
        assert timeline.step == pytest.approx(timeline.compute + exposed, rel=1e-12)


def test_a_loop_of_an_unknown_count_is_taken_once_and_says_so() -> None:
    timeline = run(loop(None), {"outer": 0, "c": 1, "a": 3, "k": 2})
    assert (timeline.step, timeline.reason) == (5, "the trip count of while (line 1) is not known")


def test_a_lag_that_never_repeats_is_extrapolated() -> None:
    """Each iteration issues more than it computes and waits for nothing: the lag grows by one each time. With less than it
    computes the lag of what was issued before the loop shrinks by one, and is gone at the end.
    """
    steps: dict[str, Sequence[Step]] = {
        "main": [IssueStep(at("outer"), False), LoopStep(at("while"), "cond", "body", 1000), IssueStep(at("last"), True)],
        "cond": [],
        "body": [IssueStep(at("a", "body"), False), ComputeStep(at("k", "body"))],
    }
    timeline = run(steps, {"outer": 0, "a": 3, "k": 2, "last": 0})
    assert (timeline.step, timeline.compute) == (3000, 2000)
    assert timeline.site(at("a", "body")) == (1000, 3000, 0, 0)
    assert timeline.reason.startswith("the iterations of while (line 1) still differ after ")
    assert run(steps, {"outer": 200, "a": 1, "k": 2, "last": 0}).step == 2000


def test_of_a_conditional_the_branch_that_ends_first_or_last() -> None:
    steps: dict[str, Sequence[Step]] = {
        "main": [BranchStep(at("conditional"), ("short", "long"))],
        "short": [ComputeStep(at("s", "short"))],
        "long": [ComputeStep(at("l", "long"))],
    }
    first = run(steps, {"s": 1, "l": 2})
    last = run(steps, {"s": 1, "l": 2}, branch="last")
    assert (first.step, last.step) == (1, 2)
    assert (first.runs(at("l", "long")), last.runs(at("l", "long"))) == (0, 1)
    assert first.reason == last.reason == "conditional (line 1) runs only one of its branches, which differ"
    assert run(steps, {"s": 2, "l": 2}).reason == ""


def test_a_computation_beside_the_compute_stream() -> None:
    """It takes what its own steps take, and another one that is issued to the same stream waits for it."""
    steps: dict[str, Sequence[Step]] = {
        "main": [IssueStep(at("one"), False), IssueStep(at("two"), False), ComputeStep(at("k")), wait("two")],
        "inside": [ComputeStep(at("i", "inside")), CallStep(at("call", "inside"), "deeper")],
        "deeper": [ComputeStep(at("d", "deeper"))],
    }
    timeline = run(steps, {"i": 2, "d": 3, "k": 1}, parallel={at("one"): "inside", at("two"): "inside"})
    assert (timeline.step, timeline.compute) == (10, 1)
    assert timeline.site(at("two")) == (1, 5, 1, 9)
    assert timeline.site(at("one")) == (1, 5, 0, 0)


def test_a_computation_that_runs_itself_ends() -> None:
    timeline = run({"main": [ComputeStep(at("k")), CallStep(at("call"), "main")]}, {"k": 1})
    assert timeline.step == 1
    assert "calls itself" in timeline.reason


def test_calls_nest_deeper_than_the_stack_of_python() -> None:
    depth = 5000
    steps: dict[str, Sequence[Step]] = {f"c{i}": [CallStep(at("call"), f"c{i + 1}")] for i in range(depth)}
    steps |= {"main": [CallStep(at("call"), "c0")], f"c{depth}": [ComputeStep(at("k", f"c{depth}"))]}
    assert run(steps, {"k": 2}).step == 2


def test_computations_that_each_call_the_next_one_twice_are_followed_once_for_each_state() -> None:
    """A chain of 40 runs its last computation 2^40 times."""
    steps: dict[str, Sequence[Step]] = {f"c{i}": [CallStep(at("call"), f"c{i + 1}")] * 2 for i in range(40)}
    steps |= {"main": [CallStep(at("call"), "c0")], "c40": [IssueStep(at("a", "c40"), True)]}
    timeline = run(steps, {"a": 1})
    assert (timeline.step, timeline.site(at("a", "c40")).runs) == (2.0**40, 2**40)


def test_work_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Past the limit a computation counts as in the state in which it was followed before."""
    monkeypatch.setattr(module, "MAX_STEPS", 0)
    monkeypatch.setattr(module, "MAX_TIMES", 1)
    body: list[Step] = [IssueStep(at("a", "body"), False), ComputeStep(at("k", "body"))]
    steps: dict[str, Sequence[Step]] = {"main": [CallStep(at("call"), "body")] * 50, "body": body}
    timeline = run(steps, {"a": 3, "k": 2})
    assert (timeline.step, timeline.site(at("a", "body")).runs) == (100, 50)
    assert timeline.reason == "computations run in more states of the streams than are followed"


def test_the_run_of_what_is_beside_the_compute_stream() -> None:
    """`f` takes 2 + 3 s beside `main`, which waits for it after 1 s. Nothing is beside `k`, and `g` is never issued."""
    steps: dict[str, Sequence[Step]] = {
        "main": [IssueStep(at("x"), False), ComputeStep(at("k")), wait("x")],
        "f": [ComputeStep(at("p", "f")), ComputeStep(at("q", "f"))],
        "g": [ComputeStep(at("r", "g"))],
    }
    timeline = run(steps, {"k": 1, "p": 2, "q": 3, "r": 7}, parallel={at("x"): "f", at("y"): "g"})
    inner = timeline.beside(at("x"))
    assert inner is not None
    assert (inner.computation, inner.passed, inner.compute) == ("f", 5 * module.TICKS, 5 * module.TICKS)
    assert timeline.computed_in(inner) == {at("p", "f"): 1, at("q", "f"): 1}
    assert timeline.beside(at("k")) is None
    assert timeline.beside(at("y")) is None
    assert (timeline.step, timeline.compute, timeline.site(at("x")).exposed) == (5, 1, 4)


def test_a_stream_that_a_called_computation_uses_stays_busy_for_its_callers() -> None:
    """Each of three iterations issues 3 s of transfer and computes 2 s, in a computation that the body calls.

    The transfers queue up and end after 9 s, and `last` has to wait for them. Kernels alone end after 6 s.
    """
    steps: dict[str, Sequence[Step]] = {
        "main": [LoopStep(at("while"), "cond", "body", 3), IssueStep(at("last"), True)],
        "cond": [],
        "body": [CallStep(at("call", "body"), "inner")],
        "inner": [IssueStep(at("a", "inner"), False), ComputeStep(at("k", "inner"))],
    }
    timeline = run(steps, {"a": 3, "k": 2, "last": 0})
    assert (timeline.step, timeline.compute) == (9, 6)


def test_what_a_step_computes_is_what_all_that_it_calls_computes() -> None:
    """`f` computes 2 s. The loop runs it three times and its condition, of 1 s, four times; the branch of 2 s ends first."""
    loop_step, call = LoopStep(at("while"), "cond", "f", 3), CallStep(at("call"), "f")
    branch = BranchStep(at("conditional"), ("f", "long"))
    steps: dict[str, Sequence[Step]] = {
        "main": [loop_step, call, branch],
        "cond": [ComputeStep(at("c", "cond"))],
        "f": [ComputeStep(at("k", "f"))],
        "long": [ComputeStep(at("l", "long"))],
    }
    timeline = run(steps, {"c": 1, "k": 2, "l": 5})
    computed = [timeline.computing(step) / module.TICKS for step in (loop_step, call, branch, ComputeStep(at("k", "f")))]
    assert computed == [10, 2, 2, 2]
    assert timeline.step == 10 + 2 + 2

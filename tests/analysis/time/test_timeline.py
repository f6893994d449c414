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
from hlo_inspect.analysis.time.stream_clock import TICKS
from hlo_inspect.analysis.time.timeline import BranchTaken, Timeline
from hlo_inspect.graph.view import InstructionPlace


def place_of(name: str, computation: str = "main") -> InstructionPlace:
    return computation, 1, name


def wait(name: str, computation: str = "main") -> WaitStep:
    return WaitStep(place_of(name, computation), place_of(f"{name}-done", computation))


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
    steps: list[Step] = [IssueStep(place_of("a"), False), ComputeStep(place_of("k")), wait("a"), ComputeStep(place_of("k2"))]
    timeline = run({"main": steps}, {"a": 5, "k": 3, "k2": 1})
    assert (timeline.step, timeline.compute) == (6, 4)
    assert timeline.site(place_of("a")) == (1, 5, 3, 2)
    hidden = run({"main": steps}, {"a": 2, "k": 3, "k2": 1})
    assert (hidden.step, hidden.site(place_of("a")).exposed) == (4, 0)


def test_a_queued_collective_is_exposed_longer_than_it_takes() -> None:
    steps: list[Step] = [IssueStep(place_of("a"), False), IssueStep(place_of("b"), True), wait("a")]
    timeline = run({"main": steps}, {"a": 10, "b": 1})
    assert (timeline.step, timeline.site(place_of("b")).exposed, timeline.site(place_of("a")).exposed) == (11, 11, 0)
    apart = run({"main": steps}, {"a": 10, "b": 1}, {"b": ("other",)})
    assert (apart.step, apart.site(place_of("b")).exposed, apart.site(place_of("a")).exposed) == (10, 1, 9)


def test_a_collective_over_two_axes_holds_both() -> None:
    """`both` begins when the later of the two is free, and `x` again behind it."""
    seconds = {"x": 1, "y": 4, "both": 2, "x2": 1}
    streams = {"x": ["x"], "y": ["y"], "both": ["x", "y"], "x2": ["x"]}
    timeline = run({"main": [*(IssueStep(place_of(name), False) for name in seconds), wait("x2")]}, seconds, streams)
    assert timeline.step == 7


def loop(count: int | None) -> dict[str, Sequence[Step]]:
    return {
        "main": [IssueStep(place_of("outer"), False), LoopStep(place_of("while"), "cond", "body", count), wait("outer")],
        "cond": [ComputeStep(place_of("c", "cond"))],
        "body": [IssueStep(place_of("a", "body"), False), ComputeStep(place_of("k", "body")), wait("a", "body")],
    }


def test_a_loop_is_followed_until_its_iterations_are_alike() -> None:
    """The first iterations wait for what was issued before the loop, the others do not."""
    for count in (0, 1, 2, 5, 1_000_000):
        timeline = run(loop(count), {"outer": 10, "c": 1, "a": 3, "k": 2})
        first = 10 + 3 if count else 10  # `a` of the first iteration begins at 10
        others = 4 * (count - 1) + 1 if count else 0
        assert timeline.step == first + others
        assert timeline.compute == 3 * count + 1
        assert timeline.runs(place_of("k", "body")) == count
        assert timeline.reason == ""
        exposed = timeline.site(place_of("outer")).exposed + timeline.site(place_of("a", "body")).exposed
        assert timeline.step == pytest.approx(timeline.compute + exposed, rel=1e-12)


def test_a_loop_of_an_unknown_count_is_taken_once_and_says_so() -> None:
    timeline = run(loop(None), {"outer": 0, "c": 1, "a": 3, "k": 2})
    assert (timeline.step, timeline.reason) == (5, "the trip count of while (line 1) is unknown")


def test_a_lag_that_never_repeats_is_extrapolated() -> None:
    """Each iteration issues more than it computes and waits for nothing: the lag grows by one each time.

    If it issues less than it computes, the lag from before the loop shrinks by one each time, and is 0 at the end.
    """
    steps: dict[str, Sequence[Step]] = {
        "main": [
            IssueStep(place_of("outer"), False),
            LoopStep(place_of("while"), "cond", "body", 1000),
            IssueStep(place_of("last"), True),
        ],
        "cond": [],
        "body": [IssueStep(place_of("a", "body"), False), ComputeStep(place_of("k", "body"))],
    }
    timeline = run(steps, {"outer": 0, "a": 3, "k": 2, "last": 0})
    assert (timeline.step, timeline.compute) == (3000, 2000)
    assert timeline.site(place_of("a", "body")) == (1000, 3000, 0, 0)
    assert timeline.reason.startswith("the iterations of while (line 1) still differ after ")
    assert run(steps, {"outer": 200, "a": 1, "k": 2, "last": 0}).step == 2000


def test_a_timeline_takes_the_branch_that_ends_first_or_last() -> None:
    steps: dict[str, Sequence[Step]] = {
        "main": [BranchStep(place_of("conditional"), ("short", "long"))],
        "short": [ComputeStep(place_of("s", "short"))],
        "long": [ComputeStep(place_of("l", "long"))],
    }
    first = run(steps, {"s": 1, "l": 2})
    last = run(steps, {"s": 1, "l": 2}, branch="last")
    assert (first.step, last.step) == (1, 2)
    assert (first.runs(place_of("l", "long")), last.runs(place_of("l", "long"))) == (0, 1)
    assert first.reason == last.reason == "conditional (line 1) runs only one of its branches, which differ"
    assert run(steps, {"s": 2, "l": 2}).reason == ""


def test_a_computation_beside_the_compute_stream() -> None:
    """It takes what its own steps take, and another one that is issued to the same stream waits for it."""
    steps: dict[str, Sequence[Step]] = {
        "main": [IssueStep(place_of("one"), False), IssueStep(place_of("two"), False), ComputeStep(place_of("k")), wait("two")],
        "inside": [ComputeStep(place_of("i", "inside")), CallStep(place_of("call", "inside"), "deeper")],
        "deeper": [ComputeStep(place_of("d", "deeper"))],
    }
    timeline = run(steps, {"i": 2, "d": 3, "k": 1}, parallel={place_of("one"): "inside", place_of("two"): "inside"})
    assert (timeline.step, timeline.compute) == (10, 1)
    assert timeline.site(place_of("two")) == (1, 5, 1, 9)
    assert timeline.site(place_of("one")) == (1, 5, 0, 0)


def test_a_computation_that_runs_itself_ends() -> None:
    timeline = run({"main": [ComputeStep(place_of("k")), CallStep(place_of("call"), "main")]}, {"k": 1})
    assert timeline.step == 1
    assert "part of a recursion" in timeline.reason


def test_calls_nest_deeper_than_the_stack_of_python() -> None:
    depth = 5000
    steps: dict[str, Sequence[Step]] = {f"c{i}": [CallStep(place_of("call"), f"c{i + 1}")] for i in range(depth)}
    steps |= {"main": [CallStep(place_of("call"), "c0")], f"c{depth}": [ComputeStep(place_of("k", f"c{depth}"))]}
    assert run(steps, {"k": 2}).step == 2


def test_computations_that_each_call_the_next_one_twice_are_followed_once_for_each_state() -> None:
    """A chain of 40 runs its last computation 2^40 times."""
    steps: dict[str, Sequence[Step]] = {f"c{i}": [CallStep(place_of("call"), f"c{i + 1}")] * 2 for i in range(40)}
    steps |= {"main": [CallStep(place_of("call"), "c0")], "c40": [IssueStep(place_of("a", "c40"), True)]}
    timeline = run(steps, {"a": 1})
    assert (timeline.step, timeline.site(place_of("a", "c40")).runs) == (2.0**40, 2**40)


def test_work_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Past the limit a computation counts as in the state in which it was followed before."""
    monkeypatch.setattr(module, "MAX_STEPS", 0)
    monkeypatch.setattr(module, "MAX_TIMES", 1)
    body: list[Step] = [IssueStep(place_of("a", "body"), False), ComputeStep(place_of("k", "body"))]
    steps: dict[str, Sequence[Step]] = {"main": [CallStep(place_of("call"), "body")] * 50, "body": body}
    timeline = run(steps, {"a": 3, "k": 2})
    assert (timeline.step, timeline.site(place_of("a", "body")).runs) == (100, 50)
    assert timeline.reason == "computations start with more different loads of the streams than the timeline follows"


def test_runs_of_work_beside_the_compute_stream() -> None:
    """`f` takes 2 + 3 s beside `main`, which waits for it after 1 s. Nothing is beside `k`, and `g` is never issued."""
    steps: dict[str, Sequence[Step]] = {
        "main": [IssueStep(place_of("x"), False), ComputeStep(place_of("k")), wait("x")],
        "f": [ComputeStep(place_of("p", "f")), ComputeStep(place_of("q", "f"))],
        "g": [ComputeStep(place_of("r", "g"))],
    }
    timeline = run(steps, {"k": 1, "p": 2, "q": 3, "r": 7}, parallel={place_of("x"): "f", place_of("y"): "g"})
    inner = timeline.parallel_run(place_of("x"))
    assert inner is not None
    assert (inner.computation, inner.passed, inner.compute) == ("f", 5 * TICKS, 5 * TICKS)
    assert timeline.computed_in(inner) == {place_of("p", "f"): 1, place_of("q", "f"): 1}
    assert timeline.parallel_run(place_of("k")) is None
    assert timeline.parallel_run(place_of("y")) is None
    assert (timeline.step, timeline.compute, timeline.site(place_of("x")).exposed) == (5, 1, 4)


def test_a_stream_that_a_called_computation_uses_stays_busy_for_its_callers() -> None:
    """Each of three iterations issues 3 s of transfer and computes 2 s, in a computation that the body calls.

    The transfers queue up and end after 9 s, and `last` has to wait for them. Kernels alone end after 6 s.
    """
    steps: dict[str, Sequence[Step]] = {
        "main": [LoopStep(place_of("while"), "cond", "body", 3), IssueStep(place_of("last"), True)],
        "cond": [],
        "body": [CallStep(place_of("call", "body"), "inner")],
        "inner": [IssueStep(place_of("a", "inner"), False), ComputeStep(place_of("k", "inner"))],
    }
    timeline = run(steps, {"a": 3, "k": 2, "last": 0})
    assert (timeline.step, timeline.compute) == (9, 6)


def test_compute_of_a_step_includes_its_calls() -> None:
    """`f` computes 2 s. The loop runs it three times and its condition, of 1 s, four times; the branch of 2 s ends first."""
    loop_step, call = LoopStep(place_of("while"), "cond", "f", 3), CallStep(place_of("call"), "f")
    branch = BranchStep(place_of("conditional"), ("f", "long"))
    steps: dict[str, Sequence[Step]] = {
        "main": [loop_step, call, branch],
        "cond": [ComputeStep(place_of("c", "cond"))],
        "f": [ComputeStep(place_of("k", "f"))],
        "long": [ComputeStep(place_of("l", "long"))],
    }
    timeline = run(steps, {"c": 1, "k": 2, "l": 5})
    computed = [timeline.computing(step) / TICKS for step in (loop_step, call, branch, ComputeStep(place_of("k", "f")))]
    assert computed == [10, 2, 2, 2]
    assert timeline.step == 10 + 2 + 2

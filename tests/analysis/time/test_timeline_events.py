"""Events of short programs, in seconds."""

from __future__ import annotations

from collections.abc import Sequence

from hlo_inspect.analysis.time.program_steps import BranchStep, CallStep, ComputeStep, IssueStep, LoopStep, Step
from hlo_inspect.analysis.time.timeline_events import StreamEvent, timeline_events
from tests.analysis.time.test_timeline import loop, place_of, run, wait


def told(events: Sequence[StreamEvent]) -> list[tuple[object, ...]]:
    return [(event.stream, event.kind, event.place[2], event.begin, event.end - event.begin) for event in events]


def test_issued_collectives_are_on_their_streams_and_waits_on_compute() -> None:
    steps: list[Step] = [
        IssueStep(place_of("a"), False),
        ComputeStep(place_of("k")),
        wait("a"),
        IssueStep(place_of("b"), True),
        wait("b"),
    ]
    timeline = run({"main": steps}, {"a": 5, "k": 3, "b": 2}, {"a": ("x", "y"), "b": ("x",)})
    assert told(list(timeline_events(timeline))) == [
        ("x", "issued", "a", 0, 5),
        ("y", "issued", "a", 0, 5),
        ("compute", "kernel", "k", 0, 3),
        ("compute", "wait", "a", 3, 2),
        ("x", "issued", "b", 5, 2),
        ("compute", "wait", "b", 5, 2),
    ]


def test_a_loop_is_unrolled_up_to_a_limit() -> None:
    """Hidden iterations are one event, and the program continues at the time of the timeline."""
    steps = loop(1000)
    steps["main"] = [*steps["main"], ComputeStep(place_of("end"))]
    timeline = run(steps, {"outer": 10, "c": 1, "a": 3, "k": 2, "end": 7})
    events = list(timeline_events(timeline, unrolled=2))
    assert [
        (event.kind, event.begin, event.end - event.begin, event.iterations)
        for event in events
        if event.kind.startswith("iteration")
    ] == [
        ("iteration", 0, 13, 1),
        ("iteration", 13, 4, 1),
        ("iterations", 17, 4 * 998, 998),
    ]
    last = events[-1]
    assert (last.place[2], last.end) == ("end", timeline.step)
    assert len(list(timeline_events(timeline, limit=30, unrolled=500))) < 40


def test_calls_and_the_branch_that_is_taken() -> None:
    steps: dict[str, Sequence[Step]] = {
        "main": [BranchStep(place_of("conditional"), ("short", "long")), CallStep(place_of("call"), "short")],
        "short": [ComputeStep(place_of("s", "short"))],
        "long": [ComputeStep(place_of("l", "long"))],
    }
    events = list(timeline_events(run(steps, {"s": 1, "l": 2}, branch="last")))
    assert told(events) == [("compute", "kernel", "l", 0, 2), ("compute", "kernel", "s", 2, 1)]


def test_loops_in_loops_take_as_long_as_in_the_timeline() -> None:
    inner = loop(5)
    steps = {**inner, "inner": inner["main"], "main": [LoopStep(place_of("all"), "cond", "inner", 7)]}
    timeline = run(steps, {"outer": 10, "c": 1, "a": 3, "k": 2})
    for limit in (1, 10, 1000):
        events = list(timeline_events(timeline, limit=limit, unrolled=3))
        assert max(event.end for event in events) == timeline.step

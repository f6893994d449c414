"""Instructions followed through passes: each case is two or three states written by hand."""

from __future__ import annotations

from hlo_inspect.analysis.pass_history import FollowedInstruction, PassTrace, Traces


def one(
    kind: str, name: str, op_name: str = "", shape: str = "f32[8]", operands: str = "f32[8]", *, is_async: bool = False
) -> FollowedInstruction:
    return FollowedInstruction(kind, name, op_name, shape, tuple(operands.split()), "{{0,1}}", is_async, 32)


def traces(*states: list[FollowedInstruction]) -> list[PassTrace]:
    """Follow the instructions through the states. The passes are called p0, p1 and so on."""
    history = Traces()
    for number, state in enumerate(states):
        history.take(state, f"p{number}")
    return history.traces


def said(trace: PassTrace) -> tuple[str, str, str, str, str, str]:
    return (
        trace.first.name,
        trace.brought_by,
        trace.merged_by,
        trace.async_by,
        trace.became_by,
        trace.gone_by,
    )


def test_an_instruction_is_what_has_its_name() -> None:
    """Even if another one has its shape and op_name, and comes first."""
    a, b = one("all-reduce", "a", "x"), one("all-reduce", "b", "x")
    history = traces([a], [b, a], [b])
    assert [said(trace) for trace in history] == [("a", "p0", "", "", "", "p2"), ("b", "p1", "", "", "", "")]


def test_another_name_with_op_name_shape_and_groups() -> None:
    (trace,) = traces([one("all-gather", "a", "x")], [one("all-gather", "a.clone", "x")])
    assert said(trace) == ("a", "p0", "", "", "", "")
    assert trace.now.name == "a.clone"


def test_a_pass_makes_a_collective_asynchronous() -> None:
    (trace,) = traces(
        [one("all-gather", "a", "x")],
        [one("all-gather", "a-start", "x", is_async=True)],
        [one("all-gather", "a-start", "x", is_async=True)],
    )
    assert said(trace) == ("a", "p0", "", "p1", "", "")


def test_several_that_are_merged_and_then_made_asynchronous() -> None:
    a, b = one("all-reduce", "a", "x", "f32[8]", "f32[8]"), one("all-reduce", "b", "y", "f32[4]", "f32[4]")
    both = one("all-reduce", "ab", "x", "(f32[8], f32[4])", "f32[8] f32[4]")
    history = traces([a, b], [both], [both._replace(name="ab-start", is_async=True)])
    assert [said(trace) for trace in history] == [("a", "p0", "p1", "p2", "", ""), ("b", "p0", "p1", "p2", "", "")]


def test_a_merged_one_takes_all_its_operands_from_those_that_are_gone() -> None:
    both = one("all-reduce", "ab", "z", "(f32[8], f32[4])", "f32[8] f32[4]")
    history = traces([one("all-reduce", "a", "x")], [both])
    assert [said(trace) for trace in history] == [("a", "p0", "", "", "", "p1"), ("ab", "p1", "", "", "", "")]


def test_an_all_reduce_that_becomes_a_reduce_scatter() -> None:
    (trace,) = traces([one("all-reduce", "a", "x")], [one("reduce-scatter", "rs", "x", "f32[4]")])
    assert said(trace) == ("a", "p0", "", "", "p1", "")
    assert trace.now.kind == "reduce-scatter"


def test_a_loop_that_is_unrolled_brings_copies() -> None:
    a = one("all-gather", "a", "x")
    history = traces([a], [a, one("all-gather", "a.1", "x"), one("all-gather", "a.2", "x")])
    assert [said(trace)[:2] for trace in history] == [("a", "p0"), ("a.1", "p1"), ("a.2", "p1")]


def test_equal_instructions_are_counted_one_by_one() -> None:
    a = one("all-gather", "a", "x")
    history = traces([a, a], [a])
    assert sorted(trace.gone_by for trace in history) == ["", "p1"]

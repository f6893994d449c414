"""Deadlocks of collectives, against a simulation that knows no loops and lets one meeting after the other happen."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hlo_inspect.compare.programs.meetings import (
    MOST_STEPS,
    Alternatives,
    DeviceOrder,
    Meeting,
    Repeated,
    Step,
    decide,
)


def meeting(name: str, *groups: Sequence[int]) -> Meeting:
    return Meeting(name, frozenset(map(frozenset, groups)))


def order(devices: Sequence[int], *steps: Step) -> DeviceOrder:
    return DeviceOrder(frozenset(devices), steps)


ROWS, COLUMNS = meeting("A", (0, 1), (2, 3)), meeting("B", (0, 2), (1, 3))
FIRST, SECOND, THIRD = (meeting(name, (0, 1)) for name in "ABC")


def swapped_on(*ranks: int) -> list[DeviceOrder]:
    """Return the orders of a 2x2 mesh whose ranks run B before A if they are named, else A before B."""
    return [order([rank], *((COLUMNS, ROWS) if rank in ranks else (ROWS, COLUMNS))) for rank in range(4)]


@pytest.mark.parametrize(
    ("ranks", "hangs"),
    [((0,), False), ((3,), False), ((0, 3), True), ((1, 2), True), ((0, 1), False), ((0, 1, 2), False), ((0, 1, 2, 3), False)],
)
def test_orders_on_a_mesh_hang_together_that_do_not_hang_alone(ranks: tuple[int, ...], hangs: bool) -> None:
    assert decide(swapped_on(*ranks)).hangs is hangs


def test_any_swap_over_one_group_hangs() -> None:
    assert decide([order([0], FIRST, SECOND), order([1], SECOND, FIRST)]).hangs


def test_permutes_without_a_common_device_may_swap() -> None:
    pairs = meeting("permute {{0,1}}", (0, 1)), meeting("permute {{2,3}}", (2, 3))
    assert decide([order([0, 2], *pairs), order([1, 3], *reversed(pairs))]).hangs is False


def test_a_collective_that_another_rank_lacks_hangs() -> None:
    assert decide([order([0], FIRST, SECOND), order([1], FIRST)]).hangs
    assert decide([order([0], FIRST), order([1])]).hangs


def test_unknown_groups_and_branches_leave_it_unknown_unless_they_are_equal() -> None:
    unknown = Meeting("A", None)
    assert decide([order([0], unknown, FIRST, SECOND), order([1], unknown, FIRST, SECOND)]).hangs is False
    assert decide([order([0], unknown, FIRST), order([1], unknown, SECOND)]).hangs  # before what differs it does not matter
    assert decide([order([0], FIRST, unknown), order([1], unknown, FIRST)]).hangs is None
    branch = Alternatives(((FIRST,), ()))
    assert (
        decide([order([0], FIRST, branch), order([1], branch, FIRST)]).reason == "a conditional decides which collectives run"
    )


def test_a_branch_that_hangs_in_a_conditional_of_both_ranks_hangs() -> None:
    harmless = Alternatives(((FIRST,), (FIRST, SECOND)))
    assert decide([order([0], harmless), order([1], Alternatives(((FIRST,), (SECOND, FIRST))))]).hangs


def test_long_loops_are_not_unrolled() -> None:
    loop, swapped = Repeated(10**12, (FIRST, SECOND)), Repeated(10**12, (SECOND, FIRST))
    assert decide([order([0], loop), order([1], loop)]).hangs is False
    assert decide([order([0], loop), order([1], swapped)]).hangs
    assert decide([order([0], loop, ROWS), order([1], loop, ROWS), order([2, 3], ROWS)]).hangs is False
    assert decide([order([0], loop, THIRD), order([1], THIRD, loop)]).hangs


def test_a_loop_that_one_rank_has_unrolled_does_not_hang() -> None:
    loop = Repeated(4, (FIRST,))
    assert decide([order([0], loop), order([1], Repeated(2, (FIRST, FIRST)))]).hangs is False
    assert decide([order([0], loop), order([1], FIRST, Repeated(3, (FIRST,)))]).hangs is False
    assert decide([order([0], loop), order([1], Repeated(3, (FIRST,)))]).hangs


def test_orders_that_are_too_long_are_unknown() -> None:
    long, other = Repeated(MOST_STEPS, (FIRST,)), Repeated(MOST_STEPS // 2, (FIRST, FIRST, FIRST))
    decision = decide([order([0], long), order([1], other)])
    assert decision.hangs is None
    assert "more than 200,000 collectives" in decision.reason


def test_runs_of_a_loop_may_be_unknown_if_all_ranks_have_it() -> None:
    loop, swapped = Repeated(None, (FIRST, SECOND)), Repeated(None, (SECOND, FIRST))
    assert decide([order([0], loop, THIRD), order([1], loop, THIRD)]).hangs is False
    assert decide([order([0], loop), order([1], swapped)]).hangs
    assert decide([order([0], loop), order([1], FIRST, SECOND)]).hangs is None


# -- all small programs -----------------------------------------------------------------------------------------------------

DEVICES = 4
MEETINGS = st.sampled_from(
    [
        *(meeting("pair", (a, b)) for a in range(DEVICES) for b in range(a)),
        meeting("rows", (0, 1), (2, 3)),
        meeting("columns", (0, 2), (1, 3)),
        meeting("all", range(DEVICES)),
        meeting("three", (0, 1, 2)),
    ]
)
LOOPS = st.builds(Repeated, st.integers(1, 6), st.lists(MEETINGS, min_size=1, max_size=3).map(tuple))
NESTED = st.builds(Repeated, st.integers(1, 3), st.lists(st.one_of(MEETINGS, LOOPS), min_size=1, max_size=2).map(tuple))
STEPS = st.lists(st.one_of(MEETINGS, MEETINGS, LOOPS, NESTED), max_size=5)


@st.composite
def rank_programs(draw: st.DrawFn) -> list[DeviceOrder]:
    """Return programs of ranks with one or two devices. Most are permutations of one program, in loops too."""
    steps = draw(STEPS)
    size = draw(st.sampled_from([1, 2]))
    orders = []
    for first in range(0, DEVICES, size):
        own = draw(st.one_of(st.just(steps), st.permutations(steps), st.permutations(steps), STEPS))
        if draw(st.booleans()):
            own = [Repeated(s.runs, tuple(reversed(s.steps))) if isinstance(s, Repeated) else s for s in own]
        orders.append(order(range(first, first + size), *own))
    return orders


def expanded(steps: Sequence[Step]) -> list[Meeting]:
    meetings: list[Meeting] = []
    for step in steps:
        if isinstance(step, Repeated):
            assert step.runs is not None
            meetings += expanded(step.steps) * step.runs
        elif isinstance(step, Meeting):
            meetings.append(step)
    return meetings


def hang_in_simulation(orders: Sequence[DeviceOrder]) -> bool:
    """Let meetings happen while all devices of a group are at one; return True if a device is left."""
    waiting: dict[int, list[tuple[Meeting, frozenset[int]]]] = {}
    for devices, steps in orders:
        for device in devices:
            groups = [(step, group) for step in expanded(steps) for group in step.groups or () if device in group]
            waiting[device] = groups
    happens = True
    while happens:
        happens = False
        for device in range(DEVICES):
            if waiting[device] and all(waiting[d][:1] == waiting[device][:1] for d in waiting[device][0][1]):
                for member in waiting[device][0][1]:
                    del waiting[member][0]
                happens = True
                break
    return any(waiting.values())


@settings(max_examples=300, deadline=None)
@given(rank_programs())
def test_decision_agrees_with_the_simulation(orders: list[DeviceOrder]) -> None:
    assert decide(orders).hangs is hang_in_simulation(orders)


@settings(max_examples=100, deadline=None)
@given(st.lists(MEETINGS, min_size=1, max_size=3), MEETINGS, st.data())
def test_a_shared_loop_decides_like_its_unrolled_form(body: list[Meeting], outside: Meeting, data: st.DataObject) -> None:
    orders = []
    for device in range(DEVICES):
        loop: Step = Repeated(9, tuple(data.draw(st.permutations(body))))
        steps: list[Step] = data.draw(st.permutations([loop, outside]))
        orders.append(order([device], *steps))
    assert decide(orders).hangs is hang_in_simulation(orders)

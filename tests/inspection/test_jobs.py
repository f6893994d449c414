"""Work in several processes: order, exceptions, and processes that die."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator

import pytest

from hlo_inspect.errors import UsageError
from hlo_inspect.inspection.jobs import AHEAD, Jobs, LostProcessError

DEATH = -1


def start() -> Callable[[int], Iterator[int]]:
    """Return work that yields the numbers below a number. 3 fails after two of them; -1 ends the process."""

    def work(number: int) -> Iterator[int]:
        if number == DEATH:
            os._exit(7)
        for result in range(number):
            if number == 3 and result == 2:
                raise ValueError("in the middle")
            yield result

    return work


@pytest.mark.parametrize("count", [1, 2, 3])
def test_results_are_in_the_order_of_the_inputs(count: int) -> None:
    numbers = [5, 0, 1, 4, 2, 1, 0, 6]
    with Jobs(count, start) as jobs:
        assert list(jobs.in_order(numbers)) == [(list(range(number)), None) for number in numbers]


def test_an_exception_follows_earlier_results_and_the_process_lives_on() -> None:
    with Jobs(1, start) as jobs:
        (before, none), (results, failure), (after, also_none) = jobs.in_order([2, 3, 1])
        assert len(jobs._processes) == 1
    assert (before, none, after, also_none) == ([0, 1], None, [0], None)
    assert results == [0, 1]
    assert isinstance(failure, ValueError)
    assert str(failure) == "in the middle"


@pytest.mark.parametrize("count", [1, 2])
def test_a_dead_process_is_reported_and_another_does_the_rest(count: int) -> None:
    with Jobs(count, start) as jobs:
        results = list(jobs.in_order([1, DEATH, 2, DEATH, 1]))
    assert [done for done, _ in results] == [[0], [], [0, 1], [], [0]]
    failures = [failure for _, failure in results]
    assert [type(failure) for failure in failures] == [type(None), LostProcessError, type(None), LostProcessError, type(None)]
    assert str(failures[1]) == "the process that worked on it ended with status 7"


def test_few_inputs_are_started_ahead_of_the_results() -> None:
    """At most `AHEAD` inputs are started for each of two processes."""
    started_inputs: list[int] = []

    def hundred_inputs() -> Iterator[int]:
        for number in range(100):
            started_inputs.append(number)
            yield 1

    with Jobs(2, start) as jobs:
        results = jobs.in_order(hundred_inputs())
        assert next(results) == ([0], None)
        assert len(started_inputs) <= 2 * AHEAD
        assert len(list(results)) == 99


def test_no_process_outlives_the_with_block() -> None:
    with Jobs(2, start) as jobs:
        next(jobs.in_order([1, 1, 1]))
        processes = list(jobs._processes.values())
    assert processes
    assert not any(process.is_alive() for process in processes)


def test_a_browser_has_no_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "emscripten")
    with pytest.raises(UsageError, match="need processes, which a browser does not have"):
        Jobs(2, start)

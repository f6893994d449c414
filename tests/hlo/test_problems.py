"""Faults of a module: each is kept once with its count, and their number is limited."""

from __future__ import annotations

import pytest

from hlo_inspect.errors import Location
from hlo_inspect.hlo.module import MAX_OF_A_KIND, Problem, Problems


def problem(message: str, line: int | None = 1, code: str = "HI001") -> Problem:
    return Problem(code, message, Location("a.txt", line))


def test_a_repeated_fault_is_counted_at_its_first_line() -> None:
    problems = Problems()
    for line in (4, 9, 12):
        problems.add(problem("odd", line, "HI004"))
    problems.add(problem("odd", 5, "HI006"))
    assert [(p.code, p.location.line, p.times) for p in problems] == [("HI004", 4, 3), ("HI006", 5, 1)]
    assert problems.left_out == {}


def test_unreadable_lines_are_separate_faults() -> None:
    problems = Problems()
    for line in (4, 9, 9):
        problems.add(problem("odd", line))
    assert [(p.location.line, p.times) for p in problems] == [(4, 1), (9, 2)]


@pytest.mark.parametrize("code", ["HI001", "HI004"])
def test_problems_of_a_code_are_limited(code: str) -> None:
    problems = Problems()
    for number in range(MAX_OF_A_KIND + 7):
        problems.add(problem(f"odd {number}", number, code))
    problems.add(problem("other", code="HI006"))
    problems.add(problem("odd 0", 0, code))
    assert len(list(problems)) == MAX_OF_A_KIND + 1
    assert next(iter(problems)).times == 2
    assert problems.left_out == {code: 7}


def test_faults_from_a_line_on_can_be_dropped() -> None:
    problems = Problems()
    for line in (1, 5, 6):
        problems.add(problem(f"odd {line}", line))
    problems.add(problem("end", 6, "HI002"))
    problems.add(problem("nowhere", None))
    problems.drop_from("HI001", 5)
    assert [p.message for p in problems] == ["odd 1", "end", "nowhere"]
    problems.add(problem("odd 6", 8))
    assert [p.message for p in problems] == ["odd 1", "end", "nowhere", "odd 6"]

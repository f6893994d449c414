"""Trip counts of real dumps, in each way of reading, and of progressions. Cases of texts are in tests/cases/graph/loops."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hlo_inspect.graph.calls import WANTS
from hlo_inspect.graph.loops import Progression, UnknownError, find_loops, runs
from hlo_inspect.hlo.wants import Wants
from tests.cases.case import FOLDER, Case, cases_of
from tests.hlo.reading import module

DATA = Path(__file__).parents[1] / "data"
WAYS = [WANTS, WANTS | Wants(every_line=True), WANTS | Wants(graph=True)]
CASES = [case for path in sorted((FOLDER / "graph" / "loops").glob("*.hlo")) for case in cases_of(path)]


@pytest.mark.parametrize("case", CASES, ids=[case.path.stem for case in CASES])
def test_loops_of_cases_are_the_same_if_lines_are_skipped(case: Case) -> None:
    light, whole, graph = (find_loops(module(case.text.encode(), wants)) for wants in WAYS)
    assert light
    assert [loop[3:] for loop in light] == [loop[3:] for loop in whole] == [loop[3:] for loop in graph]


def test_a_data_dependent_loop_has_a_reason_and_no_trip_count() -> None:
    text = (DATA / "cpu" / "control_flow.after.txt").read_text()
    unknown, counted = find_loops(module(text.encode(), WANTS))
    assert (unknown.trip_count, unknown.source, counted.trip_count) == (None, None, 5)
    line = next(n for n, line in enumerate(text.splitlines(), 1) if "ROOT %lt.4 = " in line)
    assert unknown.reason == f"depends on reduce_sum.0, which the compare lt.4 (line {line}) reads and which is no integer"


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("cpu/scan_fsdp.after", [3, 3]),
        ("cpu/scan_fsdp.before", [3, 3]),
        ("cpu/scan_forward.after", [3]),
        ("cpu/scan_forward.before", [3]),
        ("gpu/scan_forward.after", [3]),
        ("tpu/scan_forward.after", [3]),
        ("jax_0_5_0/scan_fsdp.after", [3, 3]),
        ("jax_0_5_0/scan_fsdp.before", [3, 3]),
        ("jax_0_4_13/scan_forward.after", [3]),
        ("jax_0_4_13/scan_forward.before", [3]),
        ("cpu/control_flow.after", [None, 5]),
        ("cpu/control_flow.before", [5, None]),
        ("handmade/control_flow", [4]),
    ],
)
@pytest.mark.parametrize("wants", WAYS, ids=["light", "lines", "graph"])
def test_trip_counts_of_real_loops_are_derived_without_printed_ones(name: str, counts: list[int | None], wants: Wants) -> None:
    """`programs.py` scans over 3 layers and counts to 5. The test removes the printed counts."""
    text = re.sub("known_trip_count", "taken_out", (DATA / f"{name}.txt").read_text())
    loops = find_loops(module(text.encode(), wants))
    assert [loop.trip_count for loop in loops] == counts
    assert {loop.source for loop in loops} <= {"derived", None}


COMPARE = {
    "LT": lambda a, b: a < b,
    "LE": lambda a, b: a <= b,
    "GT": lambda a, b: a > b,
    "GE": lambda a, b: a >= b,
    "NE": lambda a, b: a != b,
}


def count_by_running(direction: str, left: Progression, right: Progression) -> int | None:
    """Count the iterations by running the loop. Return None if a value leaves s8 or the loop does not end."""
    a, b = left.start, right.start
    for n in range(600):
        if not (-128 <= a < 128 and -128 <= b < 128):
            return None
        if not COMPARE[direction](a, b):
            return n
        a, b = a + left.step, b + right.step
    return None


NUMBERS = st.builds(Progression, st.integers(-128, 127), st.integers(-9, 9), st.just("s8"))


@given(st.sampled_from(sorted(COMPARE)), NUMBERS, NUMBERS)
def test_derived_counts_equal_those_of_running_the_loop(direction: str, left: Progression, right: Progression) -> None:
    expected = count_by_running(direction, left, right)
    if expected is not None:
        assert runs(direction, left, right) == expected
    else:
        with pytest.raises(UnknownError, match="stays true, or its counter overflows"):
            runs(direction, left, right)


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        (Progression(0, 1, "s32"), Progression(2**31 - 1, 0, ""), 2**31 - 1),
        (Progression(0, 1, "u32"), Progression(2**32 - 1, 0, ""), 2**32 - 1),
        (Progression(0, 3, "u8"), Progression(253, 0, ""), 85),
        (Progression(-5, 2, "s64"), Progression(10**15, 0, ""), (10**15 + 5 + 1) // 2),
    ],
)
def test_a_counter_may_reach_the_largest_value_of_its_type(left: Progression, right: Progression, expected: int) -> None:
    assert runs("LT", left, right) == expected


@pytest.mark.parametrize("dtype", ["s32", "u32"])
def test_the_count_is_unknown_if_the_counter_overflows(dtype: str) -> None:
    top = 2**31 - 1 if dtype == "s32" else 2**32 - 1
    with pytest.raises(UnknownError):
        runs("LE", Progression(0, 1, dtype), Progression(top, 0, ""))
    with pytest.raises(UnknownError):
        runs("LT", Progression(0, 2, dtype), Progression(top, 0, ""))


@pytest.mark.parametrize("direction", ["EQ", "", "lt"])
def test_a_loop_with_another_compare_direction_is_not_counted(direction: str) -> None:
    with pytest.raises(UnknownError, match="direction="):
        runs(direction, Progression(0, 1, "s32"), Progression(4, 0, ""))

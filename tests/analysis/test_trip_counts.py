"""How often loops run: as printed, and as worked out."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hlo_inspect.analysis.callgraph import WANTS
from hlo_inspect.analysis.induction import Progression, UnknownError
from hlo_inspect.analysis.trip_counts import find_loops, printed_count, runs
from hlo_inspect.hlo.module import Wants
from tests.analysis.loops import LOOP, START, loop_of, loop_text
from tests.hlo.reading import module

DATA = Path(__file__).parents[1] / "data"


@pytest.mark.parametrize(
    ("config", "count"),
    [
        ('{"known_trip_count":{"n":"4"}}', 4),
        ('{"known_trip_count":{"n":4}}', 4),
        ('{"known_trip_count":{"n":"0"},"known_induction_variable":{"tuple_index":"0"}}', 0),
        ('{ "dynamic_variables" : [], "known_trip_count" : { "n" : "12" } }', 12),
        (r'"{\"known_trip_count\":{\"n\":\"15\"}}"', 15),
        (r'"{\"known_trip_count\": {\"n\": 3}}"', 3),
        ("", None),
        ('{"known_init_step":{"init":"0","step":"1"}}', None),
    ],
)
def test_a_printed_count(config: str, count: int | None) -> None:
    assert printed_count(config) == (count, None)


@pytest.mark.parametrize(
    "value",
    ['{"n":"four"}', '{"n":"-1"}', '{"n":""}', "{}", "7", '{"n":"1e3"}', '{"n":"٣"}', '{"n":"' + "9" * 5000 + '"}', '{"n":"4}'],
)
def test_a_printed_count_that_is_none(value: str) -> None:
    count, fault = printed_count(f'{{"known_trip_count":{value}}}')
    assert count is None
    assert fault is not None
    assert fault.startswith("known_trip_count is no count: ")
    assert len(fault) < 100


def test_the_printed_count_comes_first() -> None:
    config = ', backend_config={"known_trip_count":{"n":"7"}}'
    loop = loop_of(loop_text(entry=(*START, LOOP + config)))
    assert (loop.trip_count, loop.source, loop.body, loop.condition) == (7, "known_trip_count", "body", "cond")


def test_a_count_that_is_text_is_told_and_worked_out() -> None:
    config = ', backend_config={"known_trip_count":{"n":"many"}}'
    loop = loop_of(loop_text(entry=(*START, LOOP + config)))
    assert (loop.trip_count, loop.source) == (10, "derived")
    assert loop.fault == """known_trip_count is no count: '{"n":"many"}'"""


def test_a_loop_that_depends_on_data_has_none_and_says_on_what() -> None:
    text = (DATA / "cpu" / "control_flow.after.txt").read_text()
    unknown, known = find_loops(module(text.encode(), WANTS))
    assert (unknown.trip_count, unknown.source, known.trip_count) == (None, None, 5)
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
@pytest.mark.parametrize(
    "wants", [WANTS, WANTS | Wants(every_line=True), WANTS | Wants(graph=True)], ids=["light", "lines", "graph"]
)
def test_the_loops_of_compilers_without_their_printed_counts(name: str, counts: list[int | None], wants: Wants) -> None:
    """`programs.py` scans over 3 layers and counts to 5; the printers' own counts are taken out of the text."""
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


def counted(direction: str, left: Progression, right: Progression) -> int | None:
    """By running: `None` once a number leaves s8, or after all its values were seen."""
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
def test_counts_are_what_running_gives(direction: str, left: Progression, right: Progression) -> None:
    expected = counted(direction, left, right)
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
def test_counts_up_to_the_end_of_a_type(left: Progression, right: Progression, expected: int) -> None:
    assert runs("LT", left, right) == expected


@pytest.mark.parametrize("dtype", ["s32", "u32"])
def test_a_counter_that_overflows_before_its_limit(dtype: str) -> None:
    top = 2**31 - 1 if dtype == "s32" else 2**32 - 1
    with pytest.raises(UnknownError):
        runs("LE", Progression(0, 1, dtype), Progression(top, 0, ""))
    with pytest.raises(UnknownError):
        runs("LT", Progression(0, 2, dtype), Progression(top, 0, ""))


@pytest.mark.parametrize("direction", ["EQ", "", "lt"])
def test_other_directions_are_not_counted(direction: str) -> None:
    with pytest.raises(UnknownError, match="direction="):
        runs(direction, Progression(0, 1, "s32"), Progression(4, 0, ""))

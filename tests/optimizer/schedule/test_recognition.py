"""Parts of schedules: their equations and words, and that they give what the text computes."""

from __future__ import annotations

import math

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hlo_inspect.optimizer.algebra.numeric import value_of_node
from hlo_inspect.optimizer.schedule.recognition import FAR, Segment, format_segments, schedule_of
from tests.optimizer.programs import ScheduleCounter

OPERATIONS = ["add", "multiply", "minimum", "maximum", "subtract"]
STEPS = st.lists(
    st.tuples(
        st.sampled_from([*OPERATIONS, "cosine", "floor", "power", "root", "choice", "half wave"]),
        st.integers(0, 5),
        st.sampled_from([0.0, 0.5, -0.01, 0.1, 2.0, 10.0, 100.0, 250.0]),
    ),
    min_size=1,
    max_size=7,
)


def cosine(x: ScheduleCounter, counter: int, steps: float) -> int:
    """Make the node of (1 + cos(pi * min(counter, steps) / steps)) / 2."""
    angle = x("multiply", x("minimum", counter, steps), math.pi / steps)
    return x("multiply", x("add", x("cosine", angle), 1.0), 0.5)


def built(x: ScheduleCounter, steps: list[tuple[str, int, float]]) -> int:
    nodes = [x.c]
    for op, which, number in steps:
        operand = nodes[which % len(nodes)]
        if op in OPERATIONS:
            nodes.append(x(op, operand, number))
        elif op == "power":
            nodes.append(x("power", 0.9, operand))
        elif op == "root":
            nodes.append(x("rsqrt", x("add", operand, 1.0)))
        elif op == "choice":
            nodes.append(x("select", x("compare", x.c, number, how="LT"), operand, nodes[-1]))
        elif op == "half wave":
            nodes.append(cosine(x, operand, 200.0))
        else:
            nodes.append(x(op, x("multiply", operand, 0.1)))
    return nodes[-1]


@settings(max_examples=300)
@example([("multiply", 0, -0.01), ("power", 1, 0.0), ("minimum", 2, 2.0)], [0, 656, 2000], 0)  # 0.9 ** -2e7 at the last step
@example([("multiply", 0, 250.0), ("minimum", 1, 0.0), ("power", 2, 0.0)], [0, 1, 2000], 1)  # 0.9 ** -250 before the first step
@given(STEPS, st.lists(st.integers(0, 2000), min_size=20, max_size=20), st.integers(0, 1))
def test_a_named_schedule_gives_the_computed_values(
    steps: list[tuple[str, int, float]], counters: list[int], ahead: int
) -> None:
    """The equations of an expression's parts give its value at any counter, except at the beginning of a stair."""
    x = ScheduleCounter()
    node = x("multiply", built(x, steps), 0.7)
    parts = schedule_of(*x.form(node), ahead)
    if parts is None:
        return
    scale = max(abs(computed(x, node, counter)) for counter in [0, *counters])
    for counter in counters:
        part = [part for part in parts if part.first <= counter + ahead][-1]
        if part.kind != "staircase" or (counter + ahead - part.first) % part.every not in {0, part.every - 1}:
            assert abs(part.value(counter + ahead) - computed(x, node, counter)) <= 1e-4 * scale + 1e-12


def computed(x: ScheduleCounter, node: int, counter: int) -> float:
    value = value_of_node(x.graph, node, lambda leaf: float(counter) if leaf == x.c else None)
    assert value is not None
    return value


# -- Equations and words of parts ---------------------------------------------------------------------------------------


def test_equations() -> None:
    """Halfway: the mean of the ends on a line and a half wave; a quarter and a half of the difference with exponents."""
    assert Segment("linear", 10, 100, 0.0, 1.0).value(60) == 0.5
    assert math.isclose(Segment("cosine", 10, 100, 1.0, 0.0).value(60), 0.5)
    assert math.isclose(Segment("cosine", 10, 100, 1.0, 0.0, exponent=2.0).value(60), 0.25)
    assert math.isclose(Segment("polynomial", 10, 100, 1.0, 0.2, exponent=2.0).value(60), 0.4)
    assert Segment("staircase", 10, None, 8.0, 8.0, factor=0.5, every=20.0).value(69) == 2.0
    assert Segment("inverse square root", 0, None, 0.0, 0.0, factor=6.0, every=1.0).value(8) == 2.0


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ([Segment("constant", 0, None, 0.1, 0.1)], "constant 0.1"),
        ([Segment("linear", 0, 10, 0.2, 0.1), Segment("constant", 10, None, 0.1, 0.1)], "linear 0.2 to 0.1 over 10 steps"),
        (
            [Segment("linear", 0, 10, 0.2, 0.1), Segment("constant", 10, None, 0.3, 0.3)],
            "linear 0.2 to 0.1 over 10 steps, then constant 0.3",
        ),
        (
            [Segment("linear", 0, 10, 0.1, 0.2), Segment("cosine", 10, 90, 0.2, 0.0)],
            "linear warm-up 0.1 to 0.2 over 10 steps, then cosine to 0 over 90 steps",
        ),
        ([Segment("polynomial", 0, 10, 1.0, 0.0, 3.0)], "polynomial with exponent 3 1 to 0 over 10 steps"),
        (
            [Segment("exponential", 0, 10, 1.0, 1.0, factor=0.5, every=1.0)],
            "exponential from 1, times 0.5 each step for 10 steps",
        ),
        (
            [Segment("inverse square root", 0, None, 1.0, 0.0, factor=2.0, every=-3.0)],
            "inverse square root 2 / sqrt(counter - 3)",
        ),
    ],
)
def test_words(parts: list[Segment], words: str) -> None:
    assert format_segments(parts) == words


def test_points() -> None:
    """Both ends, and between; of stairs no point at which one begins."""
    line = Segment("linear", 10, 100, 0.0, 1.0).points()
    assert (min(line), max(line)) == (10, 109)
    assert max(Segment("linear", 10, None, 0.0, 1.0).points()) == 10 + FAR - 1
    stairs = Segment("staircase", 10, 200, 1.0, 1.0, factor=0.5, every=50.0).points()
    assert stairs
    assert all(10 < point < 210 and (point - 10) % 50 for point in stairs)

"""Schedules by name, with the numbers that the programs were given."""

from __future__ import annotations

import math

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hlo_inspect.optimizer.algebra.numeric import value_of_node
from hlo_inspect.optimizer.schedule.recognition import FAR, Segment, counts_steps, format_schedule, format_segments, schedule_of
from tests.optimizer.programs import ScheduleCounter


def words(x: ScheduleCounter, node: int) -> str | None:
    return format_schedule(*x.form(node))


def cosine(x: ScheduleCounter, counter: int, steps: float, until: float | None = None) -> int:
    """Make the node of (1 + cos(pi * min(counter, until) / steps)) / 2."""
    angle = x("multiply", x("minimum", counter, until or steps), math.pi / steps)
    return x("multiply", x("add", x("cosine", angle), 1.0), 0.5)


def test_linear() -> None:
    x = ScheduleCounter()
    assert words(x, x("multiply", x("minimum", x.c, 100.0), 1e-5)) == "linear warm-up 0 to 0.001 over 100 steps"
    falling = x("subtract", 0.5, x("multiply", x("minimum", x.c, 100.0), 0.004))
    assert words(x, falling) == "linear 0.5 to 0.1 over 100 steps"
    assert words(x, x("add", x("multiply", x.c, 1e-6), 0.1)) == "linear from 0.1 by 1e-06 each step"


def test_a_half_cosine_is_named() -> None:
    x = ScheduleCounter()
    assert words(x, cosine(x, x.c, 500.0)) == "cosine 1 to 0 over 500 steps"
    assert words(x, cosine(x, x.c, 500.0, until=400.0)) is None
    assert words(x, x("cosine", x("multiply", x.c, 0.01))) is None
    rising = x("subtract", 2.0, cosine(x, x.c, 500.0))
    assert words(x, rising) == "cosine 1 to 2 over 500 steps"


@pytest.mark.parametrize(("warm", "peak"), [(10, 3e-5), (1, 0.001)])
def test_a_cosine_without_an_end_is_named(warm: int, peak: float) -> None:
    """MaxText's: it would rise again after its end."""
    x = ScheduleCounter()
    rising = x("multiply", x("minimum", x("maximum", x.c, 0.0), float(warm)), peak / warm)
    turned = x("multiply", x("subtract", x.c, float(warm)), math.pi / 15)
    wave = x("add", x("multiply", x("cosine", turned), 0.45 * peak), 0.55 * peak)
    node = x("select", x("compare", x.c, float(warm), how="LT"), rising, wave)
    assert words(x, node) == f"cosine {peak:g} to {peak / 10:g} over 15 steps after {warm} of warm-up"
    assert words(x, wave) is None  # begins in the middle of one
    assert words(x, x("cosine", x("multiply", x.c, math.pi / 15))) == "cosine 1 to -1 over 15 steps"


@pytest.mark.parametrize(("warm", "steps"), [(1, "1 step"), (2, "2 steps"), (3, "3 steps")])
def test_a_warm_up_of_few_steps_is_a_line(warm: int, steps: str) -> None:
    """The rate is 0 at counter 0 and rises by 1e-5 until counter `warm`. The text chooses between single numbers."""
    x = ScheduleCounter()
    node = x("multiply", 1.0, 1e-5 * warm)
    for counter in reversed(range(warm)):
        node = x("select", x("compare", x.c, float(counter + 1), how="LT"), 1e-5 * counter, node)
    assert words(x, node) == f"linear warm-up 0 to {1e-5 * warm:g} over {steps}"


def test_steps_that_do_not_rise_evenly_are_no_line() -> None:
    x = ScheduleCounter()
    jump = x("select", x("compare", x.c, 2.0, how="LT"), 0.1, 0.3)
    node = x("select", x("compare", x.c, 1.0, how="LT"), 0.0, jump)
    assert words(x, node) == "constant 0 for 1 step, then constant 0.1 for 1 step, then constant 0.3"


def test_a_cosine_with_restarts_is_named() -> None:
    x = ScheduleCounter()
    first = cosine(x, x.c, 100.0)
    second = cosine(x, x("add", x.c, -100.0), 300.0)
    node = x("select", x("compare", x.c, 100.0, how="LT"), first, second)
    assert words(x, node) == "cosine 1 to 0 over 100 steps, then cosine 1 to 0 over 300 steps"


def test_exponentials() -> None:
    x = ScheduleCounter()
    decay = x("multiply", x("power", 0.9, x("divide", x.c, 50.0)), 0.2)
    assert words(x, decay) == "exponential from 0.2, times 0.9 every 50 steps"
    assert words(x, x("power", 0.999, x.c)) == "exponential from 1, times 0.999 each step"
    natural = x("exponential", x("multiply", x.c, -0.0003))
    assert words(x, natural) == f"exponential from 1, times {math.exp(-0.0003):.10g} each step"
    stairs = x("power", 0.9, x("floor", x("divide", x.c, 41.0)))
    assert words(x, stairs) == "staircase from 1, times 0.9 every 41 steps"


def test_the_inverse_of_time() -> None:
    """Keras has it as InverseTimeDecay."""
    x = ScheduleCounter()
    node = x("divide", 0.1, x("add", x("multiply", x.c, 0.002), 1.0))
    assert words(x, node) == "inverse 0.1 / (1 + 0.002 * counter)"
    halves = x("divide", 1.0, x("add", x("multiply", x.c, 0.5), 5.0))
    assert words(x, halves) == "inverse 0.2 / (1 + 0.1 * counter)"
    assert words(x, x("divide", 0.1, x.c)) is None


def test_a_staircase_decay_may_begin_later() -> None:
    """The first stair may have been entered before the text turns to the stairs: both give the same value there."""
    x = ScheduleCounter()
    stairs = x("multiply", x("power", 0.9, x("floor", x("divide", x("add", x.c, -50.0), 100.0))), 0.2)
    waiting = x("select", x("compare", x.c, 50.0, how="LE"), 0.2, stairs)
    assert words(x, waiting) == "constant 0.2 for 50 steps, then staircase from 0.2, times 0.9 every 100 steps"
    limited = x("maximum", waiting, 0.2 * 0.9**3)
    after = "for 300 steps, then constant 0.1458"
    assert words(x, limited) == f"constant 0.2 for 50 steps, then staircase from 0.2, times 0.9 every 100 steps {after}"
    assert words(x, x("select", x("compare", x.c, 60.0, how="LE"), 0.3, stairs)) is None  # begins in the middle of a stair
    assert words(x, x("select", x("compare", x.c, 170.0, how="LE"), 0.18, stairs)) == (
        "constant 0.18 for 150 steps, then staircase from 0.18, times 0.9 every 100 steps"
    )


def test_a_whole_quotient_is_named_only_as_an_exponent() -> None:
    x = ScheduleCounter()
    assert words(x, x("integer-divide", x.c, 100.0)) is None
    assert words(x, x("power", 0.5, x("integer-divide", x.c, 100.0))) == "staircase from 1, times 0.5 every 100 steps"


def test_a_stair_that_starts_late_is_not_named() -> None:
    x = ScheduleCounter()
    assert words(x, x("power", 0.5, x("floor", x("divide", x("add", x.c, 10.0), 100.0)))) is None


def test_inverse_roots() -> None:
    x = ScheduleCounter()
    assert words(x, x("rsqrt", x("add", x.c, 100.0))) == "inverse square root 1 / sqrt(counter + 100)"
    assert words(x, x("multiply", 3.0, x("rsqrt", x("multiply", 4.0, x("add", x.c, 1.0))))) == (
        "inverse square root 1.5 / sqrt(counter + 1)"
    )


def test_schedules_that_count_steps_from_1_are_named() -> None:
    """As a function of the counter itself neither has round numbers, or a name."""
    x = ScheduleCounter()
    step = x("add", x.c, 1.0)
    warm_up = x("multiply", x("minimum", step, 1000.0), 1e-6)
    assert words(x, warm_up) == "linear warm-up 0 to 0.001 over 1000 steps, of the counter + 1"
    wave = cosine(x, step, 500.0)
    assert words(x, wave) == "cosine 1 to 0 over 500 steps, of the counter + 1"


def test_a_line_begins_at_the_first_step() -> None:
    """As a function of the counter + 1 it is 0 at 1, not at 0; what it would be at 0 is a part of it all the same."""
    x = ScheduleCounter()
    rising = x("multiply", x("minimum", x.c, 70.0), 1e-5 / 70)
    node = x("select", x("compare", x.c, 0.0, how="LE"), x("multiply", x.c, 0.0), rising)
    assert words(x, node) == "linear warm-up 0 to 1e-05 over 70 steps"


def test_other_schedules_have_no_name() -> None:
    x = ScheduleCounter()
    y = x.graph.input((0, 1, ()), 1)
    for node in (x("sine", x.c), x("multiply", x.c, y), x("power", x("add", x.c, 1.0), 0.3)):
        assert words(x, node) is None
    assert words(x, x("multiply", x("multiply", x.c, 1e300), 1e300)) is None


def test_counters() -> None:
    x = ScheduleCounter()
    more, limit = x("add", x.c, 1.0), 2147483647.0
    node = x("select", x("compare", x.c, limit, how="LT"), more, limit)
    assert counts_steps(*x.form(more))
    assert counts_steps(*x.form(node))
    assert not counts_steps(*x.form(x("add", x.c, 2.0)))
    assert not counts_steps(*x.form(x("remainder", more, 4.0)))
    assert not counts_steps(*x.form(x("select", x("compare", more, 4.0, how="LT"), more, 0.0)))


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

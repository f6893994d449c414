"""The name and the shared values of several updates."""

from __future__ import annotations

import math
import re

import pytest

import hlo_inspect
from hlo_inspect.optimizer.algebra.hyperparameter import COARSE, constant, shortest
from tests.optimizer.programs import STAGES, changed, overview_of, report_of, text_of
from tests.tables import column


def test_weights_left_out_of_the_decay_are_of_the_same_rule() -> None:
    overview = overview_of(text_of("adamw.after"))
    assert [row.rule for row in overview.rows] == ["adamw", "adamw"]
    assert [row.hyperparameter("weight_decay").value for row in overview.rows] == [None, 0.05]
    assert (overview.name, overview.shared("weight_decay"), overview.decayed) == ("adamw", 0.05, 1)


def test_two_rules_are_mixed() -> None:
    overview = overview_of(text_of("mixed.before"))
    assert (overview.name, overview.shared("learning_rate"), overview.shared("beta1")) == ("mixed", None, 0.9)


def test_a_computed_rate_is_no_value() -> None:
    overview = overview_of(text_of("adamw_clip.after"))
    assert overview.shared("learning_rate") is None
    assert {row.hyperparameter("learning_rate").status for row in overview.rows} == {"computed"}
    assert overview.clip_norm == 0.5


def test_bytes_of_the_state() -> None:
    """36 weights of 4 bytes, twice; a counter of 4 for Adam, another for the schedule."""
    assert [overview_of(text_of(f"{name}.after")).bytes_of([]) for name in ("adam", "sgd")] == [0, 0]
    adam, scheduled = overview_of(text_of("adam.after")), overview_of(text_of("adamw_clip.after"))
    assert adam.bytes_of(adam.moments("first_moment")) == adam.bytes_of(adam.moments("second_moment")) == 36 * 4
    assert adam.bytes_of(adam.states) == 2 * 36 * 4 + 4
    assert scheduled.bytes_of(scheduled.states) == 2 * 36 * 4 + 2 * 4


def test_accumulators_are_state() -> None:
    """MultiSteps keeps the gradient, its own two counters and Adam's."""
    overview = overview_of(text_of("adamw_multistep.after"))
    assert overview.bytes_of(overview.states) == 3 * 36 * 4 + 2 * 4


# -- Numbers as somebody wrote them -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "written"),
    [(1 - 0.999, 0.001), (0.89999998, 0.9), (0.95, 0.95), (0.1234567891, 0.1234568), (0.0, 0.0), (-0.1, -0.1)],
)
def test_shortest(value: float, written: float) -> None:
    assert shortest(value) == written


def test_bfloat16_has_two_to_three_digits() -> None:
    assert shortest(0.8984, COARSE) == 0.9
    assert shortest(0.1001, COARSE) == 0.1


def test_texts_that_are_no_numbers_stay() -> None:
    assert shortest(math.inf) == math.inf
    assert math.isnan(shortest(math.nan))
    assert constant(0.1).status == "constant"


# -- Where rates come from, with the numbers that the programs were given -----------------------------------------------


# end of the warm-up of noam: 512 ** -0.5 * 4000 ** -0.5 = 0.00069877124; its factor: 512 ** -0.5 = 0.044194174
NAMES = {
    "adamw_clip": "linear warm-up 0 to 0.001 over 100 steps, then cosine to 0 over 900 steps",
    "schedule_cosine": "cosine 0.0003 to 3e-05 over 9000 steps",
    "schedule_cosine_squared": "cosine with exponent 2 0.2 to 0 over 5000 steps",
    "schedule_exponential": "exponential from 0.001, times 0.96 every 1000 steps",
    "schedule_inject": "linear warm-up 0 to 0.002 over 250 steps",
    "schedule_joined": "constant 0.01 for 100 steps, then linear to 0.1 over 400 steps, "
    "then exponential from 0.05, times 0.5 every 200 steps",
    "schedule_polynomial": "constant 0.1 for 50 steps, then polynomial with exponent 2 to 0.001 over 300 steps",
    "schedule_staircase": "staircase from 0.1, times 0.5 every 500 steps for 3000 steps, then constant 0.002",
    "schedule_steps": "constant 0.1 for 100 steps, then constant 0.01 for 150 steps, then constant 0.005",
    "schedule_waiting_staircase": "constant 0.1 for 7 steps, then staircase from 0.1, times 0.97 every 30 steps",
    "schedule_warm_up": "linear warm-up 0 to 0.004 over 1000 steps, then cosine to 1e-05 over 9000 steps",
}


def rates_of(text: str) -> set[object]:
    return set(column(report_of(text).table("optimizer"), "rate"))


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("name", NAMES)
def test_schedules_of_optax(name: str, stage: str) -> None:
    text = text_of(f"{name}.{stage}")
    assert rates_of(text) == {NAMES[name]}
    assert report_of(text).facts["optimizer.learning_rate"] is None


# first cycle: 0.1 / 25 at first and 0.004 / 1e4 at last; second cycle: 0.2 / 20 and 0.01 / 1e3
ARRAYS = {
    "schedule_onecycle": "cosine 0.01 to 0.2 over 250 steps, then cosine to 1e-05 over 750 steps",
    "schedule_onecycle_linear": "linear warm-up 0.004 to 0.1 over 600 steps, then linear to 0.004 over 1100 steps, "
    "then linear to 4e-07 over 300 steps",
    "schedule_interpolated": "linear 0.1 to 0.01 over 100 steps, then linear to 0.005 over 150 steps",
}


@pytest.mark.parametrize("name", ARRAYS)
def test_schedules_that_are_computed_as_arrays(name: str) -> None:
    """Once XLA has folded the products of their factors."""
    assert rates_of(text_of(f"{name}.after")) == {ARRAYS[name]}
    (before,) = rates_of(text_of(f"{name}.before"))
    assert str(before).startswith("computed from parameter 2")


@pytest.mark.parametrize("element", ["...", "0.1, 0.2, 0.3"])
def test_arrays_that_are_not_printed_or_of_another_size_are_no_schedule(element: str) -> None:
    text = changed(
        text_of("schedule_onecycle.after"), r"constant\(\{0.199999988, 9.99999884e-06\}\)", f"constant({{{element}}})"
    )
    (rate,) = rates_of(text)
    assert str(rate).startswith("computed from parameter 2")


@pytest.mark.parametrize("stage", STAGES)
def test_the_inverse_root(stage: str) -> None:
    (rate,) = rates_of(text_of(f"schedule_noam.{stage}"))
    match = re.fullmatch(
        r"linear warm-up (\S+) to (\S+) over 3999 steps, then inverse square root (\S+) / sqrt\(counter \+ 1\)", str(rate)
    )
    assert match is not None
    expected = (512**-0.5 * 4000**-1.5, 512**-0.5 * 4000**-0.5, 512**-0.5)
    assert [float(number) for number in match.groups()] == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("stage", STAGES)
def test_a_rate_without_a_named_schedule_shows_its_expression(stage: str) -> None:
    assert rates_of(text_of(f"schedule_sine.{stage}")) == {"computed from parameter 2: 0.01*(1 + 0.1*sine(p2))"}


@pytest.mark.parametrize("stage", STAGES)
def test_a_rate_that_is_an_input_of_the_step_is_not_computed(stage: str) -> None:
    assert rates_of(text_of(f"adam_inject.{stage}")) == {"parameter 7"}
    notes = report_of(text_of(f"adam_inject.{stage}")).notes
    assert "optimizer.learning_rate: it is parameter 7 of the step" in notes
    parameters = hlo_inspect.inspect(text_of(f"adam_inject.{stage}"), ("params",)).table("params")
    roles = {row["number"]: row["role"] for row in parameters.records()}
    assert roles[7] != "frozen"  # it is kept in the state and no weight


def test_rates_are_constant_or_absent() -> None:
    assert rates_of(text_of("adam.after")) == {"constant"}
    assert rates_of(changed(text_of("sign_sgd.after"), r" sign\(", " rsqrt(")) == {"absent"}

"""One name and shared values of several updates."""

from __future__ import annotations

from tests.analysis.optimizer.reading import overview_of, text_of
from tests.analysis.optimizer.step import DESCENT, step_of


def test_weights_left_out_of_the_decay_are_of_the_same_rule() -> None:
    overview = overview_of(text_of("adamw.after"))
    assert [row.rule for row in overview.rows] == ["adamw", "adamw"]
    assert [row.reading("weight_decay").value for row in overview.rows] == [None, 0.05]
    assert (overview.name, overview.shared("weight_decay"), overview.decayed) == ("adamw", 0.05, 1)


def test_two_rules_are_mixed() -> None:
    overview = overview_of(text_of("mixed.before"))
    assert (overview.name, overview.shared("learning_rate"), overview.shared("beta1")) == ("mixed", None, 0.9)


def test_a_computed_rate_is_no_value() -> None:
    overview = overview_of(text_of("adamw_clip.after"))
    assert overview.shared("learning_rate") is None
    assert {row.reading("learning_rate").state for row in overview.rows} == {"computed"}
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


def test_what_comes_out_unchanged_beside_a_weight_is_frozen() -> None:
    """`m1` is handed through; where nothing is updated, nothing is frozen."""
    assert overview_of(step_of(*DESCENT, outputs="new m1", states=1)).roles == {(0, ()): "weight", (1, ()): "frozen"}
    assert overview_of(step_of(outputs="w m1", states=1)).roles == {}

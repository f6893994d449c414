"""adam: what the programs of make_optimizers.py were given is read from their texts; another equation is refused."""

from __future__ import annotations

import pytest

from tests.analysis.optimizer.programs import ADAM_CONSTANTS, ADAM_MOMENTS, STAGES, Facts, changed, facts_of, rules_of, text_of

CASES: dict[str, Facts] = {
    "adam": {
        "name": "adam",
        "update_count": 2,
        "decayed_count": 0,
        "learning_rate": 0.002,
        "beta1": 0.85,
        "beta2": 0.98,
        "epsilon": 1e-06,
    },
    "adam.kept": {
        "name": "adam",
        "update_count": 2,
        "decayed_count": 0,
        "learning_rate": 0.002,
        "beta1": 0.85,
        "beta2": 0.98,
        "epsilon": 1e-06,
    },
    "adam_l2": {
        "name": "adam",
        "update_count": 2,
        "decayed_count": 2,
        "learning_rate": 0.001,
        "l2": 0.0001,
        **ADAM_MOMENTS,
    },
    "adam_guarded": {
        "name": "adam",
        **ADAM_CONSTANTS,
    },
    "adam_inject": {"name": "adam", "update_count": 2, "decayed_count": 0},
}


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("case", CASES)
def test_constants_are_those_of_the_program(case: str, stage: str) -> None:
    assert facts_of(text_of(f"{case}.{stage}")) == CASES[case]


def test_another_equation_is_no_adam() -> None:
    """A cube root in place of a square root."""
    text = changed(text_of("adam.before"), r" sqrt\(", " cbrt(")
    assert rules_of(text) == ["unknown", "unknown"]

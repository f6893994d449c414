"""lion: what the programs of make_optimizers.py were given is read from their texts; another equation is refused."""

from __future__ import annotations

import pytest

from tests.analysis.optimizer.programs import STAGES, Facts, changed, facts_of, rules_of, text_of

CASES: dict[str, Facts] = {
    "lion": {
        "name": "lion",
        "update_count": 2,
        "decayed_count": 2,
        "learning_rate": 0.0001,
        "weight_decay": 0.01,
        "beta1": 0.9,
        "beta2": 0.99,
    },
    "lion.kept": {
        "name": "lion",
        "update_count": 2,
        "decayed_count": 2,
        "learning_rate": 0.0001,
        "weight_decay": 0.01,
        "beta1": 0.9,
        "beta2": 0.99,
    },
}


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("case", CASES)
def test_constants_are_those_of_the_program(case: str, stage: str) -> None:
    assert facts_of(text_of(f"{case}.{stage}")) == CASES[case]


def test_another_equation_is_no_lion() -> None:
    """A smooth function in place of the sign."""
    text = changed(text_of("lion.before"), r" sign\(", " tanh(")
    assert rules_of(text) == ["unknown", "unknown"]

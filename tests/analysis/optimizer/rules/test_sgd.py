"""sgd: what the programs of make_optimizers.py were given is read from their texts; another equation is refused."""

from __future__ import annotations

import pytest

from tests.analysis.optimizer.programs import STAGES, Facts, facts_of, rules_of, text_of

CASES: dict[str, Facts] = {
    "sgd": {"name": "sgd", "update_count": 2, "decayed_count": 2, "learning_rate": 0.1, "weight_decay": 0.001},
    "sgd_nesterov": {
        "name": "sgd",
        "update_count": 2,
        "decayed_count": 2,
        "learning_rate": 0.1,
        "l2": 0.001,
        "momentum": 0.9,
        "nesterov": True,
    },
    "sgd_nesterov.kept": {
        "name": "sgd",
        "update_count": 2,
        "decayed_count": 2,
        "learning_rate": 0.1,
        "l2": 0.001,
        "momentum": 0.9,
        "nesterov": True,
    },
    "sgd_velocity": {
        "name": "sgd",
        "update_count": 2,
        "decayed_count": 0,
        "learning_rate": 0.05,
        "momentum": 0.9,
        "nesterov": False,
        "clip_norm": 2.0,
    },
}


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("case", CASES)
def test_constants_are_those_of_the_program(case: str, stage: str) -> None:
    assert facts_of(text_of(f"{case}.{stage}")) == CASES[case]


@pytest.mark.parametrize("stage", STAGES)
def test_the_sign_of_a_gradient_is_another_rule(stage: str) -> None:
    assert rules_of(text_of(f"sign_sgd.{stage}")) == ["unknown", "unknown"]

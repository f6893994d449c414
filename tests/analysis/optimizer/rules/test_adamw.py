"""adamw: what the programs of make_optimizers.py were given is read from their texts; another equation is refused."""

from __future__ import annotations

import pytest

from tests.analysis.optimizer.programs import ADAM_MOMENTS, STAGES, Facts, changed, facts_of, rules_of, text_of

CASES: dict[str, Facts] = {
    "adamw": {
        "name": "adamw",
        "update_count": 2,
        "decayed_count": 1,
        "learning_rate": 0.001,
        "weight_decay": 0.05,
        **ADAM_MOMENTS,
    },
    "adamw_clip": {
        "name": "adamw",
        "update_count": 2,
        "decayed_count": 2,
        "weight_decay": 0.1,
        "clip_norm": 0.5,
        **ADAM_MOMENTS,
    },
    "adamw_clip.kept": {
        "name": "adamw",
        "update_count": 2,
        "decayed_count": 2,
        "weight_decay": 0.1,
        "clip_norm": 0.5,
        **ADAM_MOMENTS,
    },
    "adamw_multistep": {
        "name": "adamw",
        "update_count": 2,
        "decayed_count": 2,
        "learning_rate": 0.001,
        "weight_decay": 0.0001,
        **ADAM_MOMENTS,
    },
    "adamw_average": {
        "name": "adamw",
        "update_count": 2,
        "decayed_count": 2,
        "learning_rate": 0.001,
        "weight_decay": 0.0001,
        **ADAM_MOMENTS,
    },
    "adamw_loop": {
        "name": "adamw",
        "update_count": 2,
        "decayed_count": 2,
        "learning_rate": 0.001,
        "weight_decay": 0.0001,
        **ADAM_MOMENTS,
    },
    "adamw_accumulated": {
        "name": "adamw",
        "update_count": 2,
        "decayed_count": 2,
        "learning_rate": 0.001,
        "weight_decay": 0.0001,
        **ADAM_MOMENTS,
    },
    "adamw_bf16_moment": {
        "name": "adamw",
        "update_count": 2,
        "decayed_count": 2,
        "learning_rate": 0.001,
        "weight_decay": 0.0001,
        **ADAM_MOMENTS,
    },
    "adamw_bf16_master": {
        "name": "adamw",
        "update_count": 2,
        "decayed_count": 2,
        "learning_rate": 0.001,
        "weight_decay": 0.0001,
        **ADAM_MOMENTS,
    },
    "adamw_if_finite": {
        "name": "adamw",
        "update_count": 2,
        "decayed_count": 2,
        "learning_rate": 0.001,
        "weight_decay": 0.0001,
        **ADAM_MOMENTS,
    },
    "adamw_torch": {
        "name": "adamw",
        "update_count": 2,
        "decayed_count": 2,
        "learning_rate": 0.001,
        "weight_decay": 0.01,
        **ADAM_MOMENTS,
    },
}


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("case", CASES)
def test_constants_are_those_of_the_program(case: str, stage: str) -> None:
    assert facts_of(text_of(f"{case}.{stage}")) == CASES[case]


def test_another_equation_is_no_adamw() -> None:
    """A cube root in place of a square root."""
    text = changed(text_of("adamw.before"), r" sqrt\(", " cbrt(")
    assert rules_of(text) == ["unknown", "unknown"]

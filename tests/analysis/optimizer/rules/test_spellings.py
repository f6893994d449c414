"""The programs of make_updates.py: what they were given is read from their texts, and nothing of their twins."""

from __future__ import annotations

import pytest

from tests.analysis.optimizer.programs import DATA, STAGES, Facts, facts_of, text_of

SPELLINGS: dict[str, Facts] = {
    "adam_handed_in": {"name": "adam"},
    "adam_powers": {"name": "adam", "learning_rate": 0.002, "beta1": 0.9, "beta2": 0.98, "epsilon": 1e-7},
    "adamax_beside": {"name": "adamax", "learning_rate": 0.002, "beta1": 0.9, "beta2": 0.98, "epsilon": 1e-7},
    "lamb_twice": {
        "name": "lamb",
        "learning_rate": 0.001,
        "beta1": 0.9,
        "beta2": 0.98,
        "epsilon": 1e-6,
        "weight_decay": 0.01,
        "decayed_count": 2,
    },
    "lars_paper": {
        "name": "lars",
        "learning_rate": 0.5,
        "momentum": 0.9,
        "nesterov": False,
        "weight_decay": 1e-4,
        "decayed_count": 2,
    },
    "lion_chosen": {
        "name": "lion",
        "learning_rate": 1e-4,
        "beta1": 0.9,
        "beta2": 0.99,
        "weight_decay": 0.1,
        "decayed_count": 2,
    },
    "nadam_scheduled": {"name": "nadam", "learning_rate": 0.002, "beta1": 0.9, "beta2": 0.98, "epsilon": 1e-7},
    "rmsprop_corrected": {"name": "rmsprop", "learning_rate": 0.001, "beta2": 0.9, "epsilon": 1e-8},
    "mars": {
        "name": "mars",
        "learning_rate": 0.003,
        "beta1": 0.95,
        "beta2": 0.99,
        "epsilon": 1e-8,
        "weight_decay": 0.01,
        "decayed_count": 2,
    },
    "adopt": {"name": "adopt", "learning_rate": 0.001, "beta1": 0.9, "beta2": 0.9999, "epsilon": 1e-6},
    "adabound": {"name": "adabound", "learning_rate": 0.002, "beta1": 0.9, "beta2": 0.98, "epsilon": 1e-8},
    "sophia": {
        "name": "sophia",
        "learning_rate": 0.001,
        "beta1": 0.96,
        "beta2": 0.99,
        "epsilon": 1e-12,
        "weight_decay": 0.1,
        "decayed_count": 2,
    },
    "rprop": {"name": "rprop"},
    "ftrl": {"name": "ftrl", "learning_rate": 0.1},
    "sgd_accumulated": {"name": "sgd", "learning_rate": 0.1, "momentum": 0.9, "nesterov": False},
}


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("program", SPELLINGS)
def test_spelling(program: str, stage: str) -> None:
    expected = {"update_count": 2, "decayed_count": 0} | SPELLINGS[program]
    assert facts_of(text_of(f"{program}.{stage}")) == expected


@pytest.mark.parametrize("name", sorted(path.stem for path in DATA.glob("*_twin.*.hlo")))
def test_a_twin_is_unknown(name: str) -> None:
    assert facts_of(text_of(name))["name"] == "unknown"

"""The programs of make_updates.py: what they were given is read from their texts, and nothing of their twins."""

from __future__ import annotations

import pytest

from tests.optimizer.programs import DATA, STAGES, Facts, facts_of, overview_of, text_of

BY_DISTANCE: Facts = {
    "learning_rate": 0.5,
    "beta1": 0.9,
    "beta2": 0.98,
    "epsilon": 1e-06,
    "weight_decay": 0.03,
    "decayed_count": 2,
}
SPELLINGS: dict[str, Facts] = {
    "adam_handed_in": {"name": "adam"},
    "adam_powers": {"name": "adam", "learning_rate": 0.002, "beta1": 0.9, "beta2": 0.98, "epsilon": 1e-07},
    "adamax_beside": {"name": "adamax", "learning_rate": 0.002, "beta1": 0.9, "beta2": 0.98, "epsilon": 1e-07},
    "lamb_of_keras": {
        "name": "lamb",
        "learning_rate": 0.001,
        "beta1": 0.9,
        "beta2": 0.98,
        "epsilon": 1e-06,
        "weight_decay": 0.004,
        "decayed_count": 2,
    },
    "lamb_twice": {
        "name": "lamb",
        "learning_rate": 0.001,
        "beta1": 0.9,
        "beta2": 0.98,
        "epsilon": 1e-06,
        "weight_decay": 0.01,
        "decayed_count": 2,
    },
    "lars_paper": {
        "name": "lars",
        "learning_rate": 0.5,
        "momentum": 0.9,
        "nesterov": False,
        "weight_decay": 0.0001,
        "decayed_count": 2,
    },
    "lion_chosen": {
        "name": "lion",
        "learning_rate": 0.0001,
        "beta1": 0.9,
        "beta2": 0.99,
        "weight_decay": 0.1,
        "decayed_count": 2,
    },
    "nadam_scheduled": {"name": "nadam", "learning_rate": 0.002, "beta1": 0.9, "beta2": 0.98, "epsilon": 1e-07},
    "rmsprop_corrected": {"name": "rmsprop", "learning_rate": 0.001, "beta2": 0.9, "epsilon": 1e-08},
    "mars": {
        "name": "mars",
        "learning_rate": 0.003,
        "beta1": 0.95,
        "beta2": 0.99,
        "epsilon": 1e-08,
        "weight_decay": 0.01,
        "decayed_count": 2,
    },
    "adopt": {"name": "adopt", "learning_rate": 0.001, "beta1": 0.9, "beta2": 0.9999, "epsilon": 1e-06},
    "adabound": {"name": "adabound", "learning_rate": 0.002, "beta1": 0.9, "beta2": 0.98, "epsilon": 1e-08},
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
    "rprop_handed_in": {"name": "rprop"},
    "ftrl": {"name": "ftrl", "learning_rate": 0.1},
    "prodigy_by_hand": {"name": "prodigy", **BY_DISTANCE},
    "dadapt_adamw_by_hand": {"name": "dadapt_adamw", **BY_DISTANCE},
    "asgd": {"name": "asgd", "weight_decay": 0.002, "decayed_count": 2},
    "asgd_kept": {"name": "asgd", "weight_decay": 0.002, "decayed_count": 2},
    "sgd_averaged_steadily": {"name": "sgd", "weight_decay": 0.002, "decayed_count": 2},
    "sgd_averaged_steeper": {"name": "sgd", "weight_decay": 0.002, "decayed_count": 2},
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


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("program", ["prodigy", "dadapt_adamw"])
def test_the_state_of_an_estimated_distance_has_roles(program: str, stage: str) -> None:
    roles = list(overview_of(text_of(f"{program}.{stage}")).roles.values())
    initial = {"initial_weight": 2} if program == "prodigy" else {}
    assert {role: roles.count(role) for role in roles} == {
        "weight": 2,
        "first_moment": 2,
        "second_moment": 2,
        "gradient_sum": 2,
        **initial,
        "distance": 1,
        "distance_numerator": 1,
        "counter": 1,
    }

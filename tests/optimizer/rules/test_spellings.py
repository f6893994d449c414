"""The programs of make_updates.py: what they were given is read from their texts, and nothing of their twins."""

from __future__ import annotations

import pytest

from tests.optimizer.programs import ADAM, DATA, STAGES, Facts, facts_of, overview_of, rules_of, step_of, text_of

BY_DISTANCE: Facts = {
    "learning_rate": 0.5,
    "beta1": 0.9,
    "beta2": 0.98,
    "epsilon": 1e-6,
    "weight_decay": 0.03,
    "decayed_count": 2,
}
SPELLINGS: dict[str, Facts] = {
    "adam_handed_in": {"name": "adam"},
    "adam_powers": {"name": "adam", "learning_rate": 0.002, "beta1": 0.9, "beta2": 0.98, "epsilon": 1e-7},
    "adamax_beside": {"name": "adamax", "learning_rate": 0.002, "beta1": 0.9, "beta2": 0.98, "epsilon": 1e-7},
    "lamb_of_keras": {
        "name": "lamb",
        "learning_rate": 0.001,
        "beta1": 0.9,
        "beta2": 0.98,
        "epsilon": 1e-6,
        "weight_decay": 0.004,
        "decayed_count": 2,
    },
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


def test_a_rate_of_which_a_factor_is_an_element_of_constants() -> None:
    """In optax the values between which a one-cycle schedule goes are running products of constants."""
    product = "%product (p: f32[], q: f32[]) -> f32[] {\n  %p = f32[] parameter(0)\n  %q = f32[] parameter(1)\n"
    product += "  ROOT %r = f32[] multiply(%p, %q)\n}\n\nENTRY"
    text = step_of(
        "factors = f32[3]{0} constant({0.5, 2, 0.25})",
        "products = f32[3]{0} reduce-window(%factors, %one_s), window={size=3 pad=2_0}, to_apply=%product",
        "last = f32[1]{0} slice(%products), slice={[2:3]}",
        "peak = f32[] reshape(%last)",
        "count = f32[] convert(%t)",
        "scaled = f32[] multiply(%count, %peak)",
        "late = f32[] add(%scaled, %tenth_s)",
        "rates = f32[4,4]{1,0} broadcast(%late), dimensions={}",
        *(line.replace("q rate", "q rates") for line in ADAM[:-1]),
        "new = subtract w u",
        outputs="new m v",
        states=2,
    )
    assert rules_of(text.replace("ENTRY", product)) == ["adam"]


def test_a_clip_of_the_norm_is_the_smaller_one_of_two_quotients() -> None:
    """`2 * min(1 / norm, 1 / 2)` of Keras clips at 2; the squares of several arrays are stacked before they are added up."""
    text = step_of(
        "gg = f32[4,4]{1,0} multiply(%g, %g)",
        "hh = f32[9,4]{1,0} multiply(%h, %h)",
        "g_sum = f32[] reduce(%gg, %zero_s), dimensions={0,1}, to_apply=%add",
        "h_sum = f32[] reduce(%hh, %zero_s), dimensions={0,1}, to_apply=%add",
        "g_one = f32[1]{0} reshape(%g_sum)",
        "h_one = f32[1]{0} reshape(%h_sum)",
        "stack = f32[2]{0} concatenate(%g_one, %h_one), dimensions={0}",
        "squares = f32[] reduce(%stack, %zero_s), dimensions={0}, to_apply=%add",
        "norm = f32[] sqrt(%squares)",
        "inverse = f32[] divide(%one_s, %norm)",
        "least = f32[] minimum(%inverse, %half_s)",
        "factor = f32[] multiply(%least, %two_s)",
        "factors = f32[4,4]{1,0} broadcast(%factor), dimensions={}",
        "clipped = f32[4,4]{1,0} multiply(%g, %factors)",
        "step = f32[4,4]{1,0} multiply(%clipped, %rate)",
        "new = f32[4,4]{1,0} add(%w, %step)",
    )
    facts = facts_of(text)
    assert (facts["name"], facts["learning_rate"], facts["clip_norm"]) == ("sgd", 0.01, 2.0)

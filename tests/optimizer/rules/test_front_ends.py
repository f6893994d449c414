"""Steps as front ends write them: torch_xla's, whose numbers are arguments, and networks with gradients of special forms.

Each has a twin in which one thing is wrong, and which no rule explains.
"""

from __future__ import annotations

import pytest

from tests.optimizer.programs import STAGES, Facts, facts_of, rules_of, text_of

TORCH = {
    "torch_adadelta_l2": ("adadelta", "sqrt("),
    "torch_adafactor": ("adafactor", "rsqrt("),
    "torch_adafactor_foreach": ("adafactor", "rsqrt("),
    "torch_adagrad_l2": ("adagrad", "sqrt("),
    "torch_adam_capturable": ("adam", "sqrt("),
    "torch_adamax_l2": ("adamax", "abs("),
    "torch_nadam_l2": ("nadam", "sqrt("),
    "torch_rmsprop_l2": ("rmsprop", "sqrt("),
    "torch_sgd_clipped": ("sgd", "sqrt("),
}
"""The rule, and the function that the twin has another one in the place of."""


@pytest.mark.parametrize("name", TORCH)
def test_torch_is_named(name: str) -> None:
    for stage in STAGES:
        facts = facts_of(text_of(f"{name}.{stage}"))
        assert (facts["name"], facts["update_count"]) == (TORCH[name][0], 2)


@pytest.mark.parametrize("name", [name for name in TORCH if name != "torch_sgd_clipped"])
def test_another_function_is_another_optimizer(name: str) -> None:
    rule, function = TORCH[name]
    text = text_of(f"{name}.before")
    assert f" {function}" in text
    assert facts_of(text.replace(f" {function}", " exponential("))["name"] == "unknown"
    assert facts_of(text)["name"] == rule


@pytest.mark.parametrize("stage", STAGES)
def test_the_gradient_that_torch_overwrites_is_no_momentum(stage: str) -> None:
    """With foreach, Nesterov's look ahead is written to the gradient: both it and the momentum hold the old momentum."""
    facts = facts_of(text_of(f"torch_sgd_nesterov.{stage}"))
    assert (facts["name"], facts["update_count"], facts["nesterov"]) == ("sgd", 2, True)


@pytest.mark.parametrize("stage", STAGES)
def test_a_step_that_is_handed_in_is_counted(stage: str) -> None:
    """PyTorch makes Muon's momentum orthogonal in programs of its own: what is left adds an argument to the matrix."""
    text = text_of(f"torch_muon.{stage}")
    facts = facts_of(text)
    assert (facts["name"], facts["update_count"], sorted(rules_of(text))) == ("unknown", 2, ["adamw", "unknown"])
    assert "frozen_count" not in facts


CLIPPED: Facts = {"learning_rate": 0.002, "beta1": 0.9, "beta2": 0.98, "epsilon": 1e-08}
NETWORKS: dict[str, Facts] = {
    "net_batch_norm": {"name": "sgd", "update_count": 3, "learning_rate": 0.05, "momentum": 0.9},
    "net_clipped": {"name": "adam", "update_count": 1, "clip_norm": 0.5, **CLIPPED},
    "net_embedding": {"name": "adam", "update_count": 1, **CLIPPED},
}


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("name", NETWORKS)
def test_networks_are_named(name: str, stage: str) -> None:
    facts = facts_of(text_of(f"{name}.{stage}"))
    assert NETWORKS[name].items() <= facts.items()


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("name", NETWORKS)
def test_a_twin_has_one_weight_that_is_unknown(name: str, stage: str) -> None:
    assert rules_of(text_of(f"{name}_other.{stage}")).count("unknown") == 1


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("name", ["net_standardized", "net_standardized_other"])
def test_a_standardized_weight_is_counted(name: str, stage: str) -> None:
    """Its gradient holds the weight itself, several times; whatever the rule, it is not left out."""
    assert facts_of(text_of(f"{name}.{stage}"))["update_count"] == 1

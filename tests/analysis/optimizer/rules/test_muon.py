"""muon: what the programs of make_optimizers.py were given is read from their texts; another equation is refused."""

from __future__ import annotations

import pytest

from tests.analysis.optimizer.programs import STAGES, Facts, changed, facts_of, overview_of, rules_of, text_of

CASES: dict[str, Facts] = {
    "muon": {
        "name": "mixed",
        "update_count": 2,
        "decayed_count": 0,
        "learning_rate": 0.02,
        "beta1": 0.9,
        "beta2": 0.999,
        "epsilon": 1e-8,
        "momentum": 0.95,
        "nesterov": True,
    },
    "muon_plain": {
        "name": "muon",
        "update_count": 1,
        "decayed_count": 1,
        "learning_rate": 0.001,
        "weight_decay": 0.1,
        "momentum": 0.95,
        "nesterov": False,
    },
    # the rate with the scale: 0.02 * sqrt(2) = 0.02828, to the digits of the step's type; the decay is folded into 1 - 0.0002
    "muon_by_hand": {
        "name": "muon",
        "update_count": 1,
        "decayed_count": 1,
        "learning_rate": 0.0283,
        "momentum": 0.9,
        "nesterov": True,
    },
}


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("case", CASES)
def test_constants_are_those_of_the_program(case: str, stage: str) -> None:
    assert facts_of(text_of(f"{case}.{stage}")) == CASES[case]


@pytest.mark.parametrize("stage", STAGES)
def test_the_bias_goes_by_adam(stage: str) -> None:
    """The bias comes first; optax hands `nesterov` on to the rule of what is no matrix."""
    overview = overview_of(text_of(f"muon.{stage}"))
    assert [row.rule for row in overview.rows] == ["nadam", "muon"]
    assert [len(row.roles) for row in overview.rows] == [2, 1]


def test_of_square_matrices() -> None:
    text = text_of("muon_by_hand.before").replace("[4,8]", "[8,8]").replace("[8,4]", "[8,8]").replace("[16,4]", "[16,8]")
    assert rules_of(text.replace("bf16[4,4]", "bf16[8,8]")) == ["muon"]


@pytest.mark.parametrize(
    ("pattern", "by"),
    [
        (r"constant\(-4.781\)", "constant(4.781)"),
        (r"constant\(3.438\)", "constant(-3.438)"),
        (r"constant\(2.031\)", "constant(-2.031)"),
        (r" sqrt\(", " log("),
        (r"dot\(dot_general.22, dot_general.22\)", "dot(dot_general.22, dot_general.19)"),
        (r"dot\(add.18, add.17\)", "dot(add.18, div.3)"),
        (r"dot\(add.17, transpose.11\)", "dot(add.17, transpose.10)"),
        (r"bf16\[4,4\]", "bf16[4,5]"),
    ],
)
def test_another_equation_is_no_muon(pattern: str, by: str) -> None:
    assert rules_of(changed(text_of("muon_by_hand.before"), pattern, by)) == ["unknown"]


@pytest.mark.parametrize("stage", STAGES)
def test_an_iteration_in_a_loop_is_unknown(stage: str) -> None:
    assert facts_of(text_of(f"muon_looped.{stage}"))["name"] == "unknown"

"""Muon: the iteration that makes a matrix nearly orthogonal, and what is none."""

from __future__ import annotations

import re

import pytest

from hlo_inspect.optimizer.rules.muon import Iteration, find_iteration
from tests.optimizer.programs import STAGES, changed, facts_of, overview_of, rules_of, text_of


@pytest.mark.parametrize("stage", STAGES)
def test_the_bias_goes_by_adam(stage: str) -> None:
    """The bias comes first; optax gives `nesterov` to the rule for arrays that are no matrix too."""
    overview = overview_of(text_of(f"muon.{stage}"))
    assert [row.rule for row in overview.rows] == ["nadam", "muon"]
    assert [len(row.roles) for row in overview.rows] == [2, 1]


def test_muon_of_square_matrices_is_recognized() -> None:
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
def test_the_steps_may_be_in_a_loop(stage: str) -> None:
    """The rate is 0.02 * sqrt(8 / 4); of the unrolled steps it is rounded, as the numbers of 16 bits beside it are."""
    expected = facts_of(text_of(f"muon_by_hand.{stage}")) | {"learning_rate": 0.02828427}
    assert facts_of(text_of(f"muon_looped.{stage}")) == expected


@pytest.mark.parametrize(
    ("pattern", "by"),
    [
        (r"constant\(-4.781\)", "constant(4.781)"),
        (r"dot\(dot_general.5, dot_general.5\)", "dot(dot_general.5, mul.16)"),
        (r"add\(mul.15, dot_general.7\)", "add(mul.15, mul.15)"),
        (r"multiply\(Arg_1.1, mul.14\)", "add(Arg_1.1, mul.14)"),
        (r"tuple\(constant.28, constant.28, div.3\)", "tuple(constant.28, constant.28, transpose.6)"),
    ],
)
def test_another_loop_is_no_muon(pattern: str, by: str) -> None:
    """Another polynomial in its body, or a matrix before it that is not divided by its norm."""
    assert rules_of(changed(text_of("muon_looped.before"), pattern, by)) == ["unknown"]


# -- the iteration ----------------------------------------------------------------------------------------------------------


def iteration_of(text: str) -> Iteration | None:
    update = overview_of(text).rows[-1].matched.update
    return find_iteration(update, update.rest)


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("case", ["muon", "muon_plain", "muon_by_hand"])
def test_steps_are_counted(case: str, stage: str) -> None:
    iteration = iteration_of(text_of(f"{case}.{stage}"))
    assert iteration is not None
    assert iteration.steps == 5


def test_the_factor_of_the_last_iteration_is_part_of_the_rate() -> None:
    """With consistent_rms 0.2 the rate of 0.001 stands with sqrt(8) * 0.2."""
    iteration = iteration_of(text_of("muon_plain.after"))
    assert iteration is not None
    assert list(iteration.factor.values()) == pytest.approx([-0.001 * 0.2 * 8**0.5])


def test_an_iteration_without_its_norm_is_no_muon() -> None:
    text = changed(text_of("muon_by_hand.before"), r" sqrt\(", " exponential(")
    assert iteration_of(text) is None


def test_plain_descent_is_no_iteration() -> None:
    assert iteration_of(text_of("sgd.after")) is None
    assert iteration_of(text_of("lion.after")) is None


def test_coefficients_in_slices_without_ranges_are_unknown() -> None:
    assert rules_of(re.sub(r", slice=\{[^}]*\}", "", text_of("muon.after"))) == ["nadam", "unknown"]

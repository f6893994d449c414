"""Trust ratios: the norms of the weight and of the step, not of anything else."""

from __future__ import annotations

import pytest

from tests.analysis.optimizer.reading import STAGES, changed, facts_of, rules_of, text_of


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("case", ["lamb", "lars"])
def test_safe_norms_are_seen_through(case: str, stage: str) -> None:
    assert facts_of(text_of(f"{case}.{stage}"))["name"] == case


@pytest.mark.parametrize("case", ["lamb", "lars"])
def test_the_norm_of_something_else_is_unknown(case: str) -> None:
    """Fourth powers in place of squares, wherever something is multiplied by itself and added up."""
    text = changed(text_of(f"{case}.before"), r"reduce\((\S+), (\S+)\), dimensions=\{0,1\}", r"reduce(\1, \2), dimensions={0}")
    text = changed(text, r" sqrt\(", " log(")
    assert set(rules_of(text)) <= {"unknown"}

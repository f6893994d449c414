"""sm3: what the programs of make_optimizers.py were given is read from their texts; another equation is refused."""

from __future__ import annotations

import pytest

from tests.analysis.optimizer.programs import STAGES, Facts, changed, facts_of, rules_of, text_of

CASES: dict[str, Facts] = {
    "sm3": {"name": "sm3", "update_count": 2, "decayed_count": 0, "learning_rate": 0.01, "momentum": 0.9, "epsilon": 1e-08},
}


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("case", CASES)
def test_constants_are_those_of_the_program(case: str, stage: str) -> None:
    assert facts_of(text_of(f"{case}.{stage}")) == CASES[case]


def test_another_equation_is_no_sm3() -> None:
    """The largest accumulator in place of the smallest; a vector has only one."""
    text = changed(text_of("sm3.before"), r" minimum\(", " maximum(")
    assert rules_of(text) == ["sm3", "unknown"]

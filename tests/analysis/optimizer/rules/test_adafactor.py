"""adafactor: what the programs of make_optimizers.py were given is read from their texts; another equation is refused."""

from __future__ import annotations

import pytest

from tests.analysis.optimizer.programs import STAGES, Facts, changed, facts_of, rules_of, text_of

CASES: dict[str, Facts] = {
    "adafactor": {"name": "adafactor", "update_count": 2, "decayed_count": 0, "learning_rate": 0.001, "epsilon": 1e-30},
}


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("case", CASES)
def test_constants_are_those_of_the_program(case: str, stage: str) -> None:
    assert facts_of(text_of(f"{case}.{stage}")) == CASES[case]


def test_another_equation_is_no_adafactor() -> None:
    """A cube root in place of a square root."""
    text = changed(text_of("adafactor.before"), r" sqrt\(", " cbrt(")
    assert rules_of(text) == ["unknown", "unknown"]

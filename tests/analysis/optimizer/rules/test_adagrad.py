"""adagrad: what the programs of make_optimizers.py were given is read from their texts; another equation is refused."""

from __future__ import annotations

import pytest

from tests.analysis.optimizer.programs import STAGES, Facts, changed, facts_of, rules_of, text_of

CASES: dict[str, Facts] = {
    "adagrad": {"name": "adagrad", "update_count": 2, "decayed_count": 0, "learning_rate": 0.01, "epsilon": 1e-07},
}


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("case", CASES)
def test_constants_are_those_of_the_program(case: str, stage: str) -> None:
    assert facts_of(text_of(f"{case}.{stage}")) == CASES[case]


def test_another_equation_is_no_adagrad() -> None:
    """A cube root in place of the inverse square root."""
    text = changed(text_of("adagrad.before"), r" rsqrt\(", " cbrt(")
    assert rules_of(text) == ["unknown", "unknown"]

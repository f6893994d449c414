"""The programs of make_updates.py: what they were given is read from their texts, and nothing of their twins."""

from __future__ import annotations

import pytest

from tests.analysis.optimizer.programs import DATA, STAGES, Facts, facts_of, text_of

SPELLINGS: dict[str, Facts] = {
    "adam_handed_in": {"name": "adam"},
    "adam_powers": {"name": "adam", "learning_rate": 0.002, "beta1": 0.9, "beta2": 0.98, "epsilon": 1e-7},
}


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("program", SPELLINGS)
def test_spelling(program: str, stage: str) -> None:
    expected = {"update_count": 2, "decayed_count": 0} | SPELLINGS[program]
    assert facts_of(text_of(f"{program}.{stage}")) == expected


@pytest.mark.parametrize("name", sorted(path.stem for path in DATA.glob("*_twin.*.hlo")))
def test_a_twin_is_unknown(name: str) -> None:
    assert facts_of(text_of(name))["name"] == "unknown"

"""Newton-Schulz iterations: five steps from the normalised momentum."""

from __future__ import annotations

import pytest

from hlo_inspect.analysis.optimizer.rules.muon import Iteration, find_iteration
from tests.analysis.optimizer.programs import STAGES, changed, overview_of, text_of


def iteration_of(text: str) -> Iteration | None:
    update = overview_of(text).rows[-1].matched.update
    return find_iteration(update, update.rest)


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("case", ["muon", "muon_plain", "muon_by_hand"])
def test_steps_are_counted(case: str, stage: str) -> None:
    found = iteration_of(text_of(f"{case}.{stage}"))
    assert found is not None
    assert found.steps == 5


def test_the_factor_of_the_last_step() -> None:
    """With consistent_rms 0.2 the rate of 0.001 stands with sqrt(8) * 0.2."""
    found = iteration_of(text_of("muon_plain.after"))
    assert found is not None
    assert list(found.factor.values()) == pytest.approx([-0.001 * 0.2 * 8**0.5])


def test_without_the_norm() -> None:
    text = changed(text_of("muon_by_hand.before"), r" sqrt\(", " exponential(")
    assert iteration_of(text) is None


def test_plain_descent_is_no_iteration() -> None:
    assert iteration_of(text_of("sgd.after")) is None
    assert iteration_of(text_of("lion.after")) is None

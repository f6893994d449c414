"""Averages of gradients and of their squares, and roots below a step."""

from __future__ import annotations

import pytest

from tests.analysis.optimizer.reading import facts_of, rules_of
from tests.analysis.optimizer.step import ADAM, step_of

POWER = "p_s = f32[] power(%nine_s, %tf)"
CORRECTED = (
    "tf = f32[] convert(%t)",
    POWER,
    "c_s = f32[] subtract(%one_s, %p_s)",
    "cc = f32[4,4]{1,0} broadcast(%c_s), dimensions={}",
)


def adam(**lines: str) -> str:
    """Adam's lines with others in place of those of the same name."""
    return step_of(*(lines.pop(line.split()[0], line) for line in ADAM), outputs="new m v", states=2)


def test_the_constants() -> None:
    expected = {"learning_rate": 0.01, "beta1": 0.9, "beta2": 0.5, "epsilon": 1e-8}
    assert facts_of(adam()) == {"name": "adam", "update_count": 1, "decayed_count": 0, **expected}


@pytest.mark.parametrize(
    "line",
    [
        {"d": "d = abs g"},
        {"d": "d = multiply g m1"},
        {"s": "s = tanh v"},
        {"q": "q = multiply m k"},
        {"c": "c = multiply m1 half"},
        {"e": "e = negate d"},
        {"k": "k = add s g"},
    ],
)
def test_another_moment_or_root_is_unknown(line: dict[str, str]) -> None:
    assert rules_of(adam(**line)) == ["unknown"]


def test_a_bias_correction_is_explained_and_gives_the_decay() -> None:
    lines = [*CORRECTED, *ADAM[:9], "mm = divide m cc", "q = divide mm k", *ADAM[10:]]
    assert facts_of(step_of(*lines, outputs="new m v", states=2))["beta1"] == 0.9


def test_a_factor_of_the_gradient_s_norm_is_not() -> None:
    norm = "n_s = f32[] reduce(%g, %zero_s), dimensions={0,1}, to_apply=%add"
    lines = [
        norm,
        "n = f32[4,4]{1,0} broadcast(%n_s), dimensions={}",
        *ADAM[:9],
        "mm = divide m n",
        "q = divide mm k",
        *ADAM[10:],
    ]
    assert rules_of(step_of(*lines, outputs="new m v", states=2)) == ["unknown"]

"""The gradient beside the first moment has to have the factor that goes with it."""

from __future__ import annotations

from tests.analysis.optimizer.programs import changed, facts_of, rules_of, text_of


def test_the_constants() -> None:
    assert facts_of(text_of("nadam.after"))["beta1"] == 0.9


def test_another_factor_makes_that_weight_unknown() -> None:
    """`(1 - b1) * g` or `(1 - b1)` of the first moment with 0.3 in place of 0.1, which then do not go together."""
    lines = text_of("nadam.after").splitlines()
    places = [n for n, line in enumerate(lines) if "constant(0.1)" in line]
    assert places
    for place in places:
        edited = [*lines[:place], lines[place].replace("constant(0.1)", "constant(0.3)"), *lines[place + 1 :]]
        assert sorted(rules_of("\n".join(edited) + "\n")) == ["nadam", "unknown"]


def test_another_root_is_unknown() -> None:
    assert rules_of(changed(text_of("nadam.before"), r" sqrt\(", " cbrt(")) == ["unknown", "unknown"]

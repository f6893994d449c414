"""The gradient beside the first moment has to have the factor that goes with it."""

from __future__ import annotations

from tests.analysis.optimizer.reading import changed, facts_of, rules_of, text_of


def test_the_constants() -> None:
    assert facts_of(text_of("nadam.after"))["beta1"] == 0.9


def test_another_factor_is_unknown() -> None:
    """`(1 - b1) * g` with 0.3 in place of 0.1, while the first moment keeps its own constants."""
    text = text_of("nadam.before")
    places = [n for n, line in enumerate(text.splitlines()) if "constant(0.1)" in line]
    lines = text.splitlines()
    found = set()
    for place in places:
        edited = [*lines[:place], lines[place].replace("constant(0.1)", "constant(0.3)"), *lines[place + 1 :]]
        found |= set(rules_of("\n".join(edited) + "\n"))
    assert found == {"nadam", "unknown"}
    assert rules_of(changed(text, r" sqrt\(", " cbrt(")) == ["unknown", "unknown"]

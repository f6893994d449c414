"""The gradient over the root of a second moment, alone or added up in a momentum."""

from __future__ import annotations

from tests.analysis.optimizer.reading import facts_of, rules_of
from tests.analysis.optimizer.step import step_of

SECOND = ("c = multiply m1 nine", "d = multiply g g", "e = multiply d tenth", "v = add c e")
SCALED = ("o = add v tiny", "s = rsqrt o", "q = multiply g s")
READ = {"learning_rate": 0.01, "beta2": 0.9, "epsilon": 1e-8}


def test_without_momentum() -> None:
    text = step_of(*SECOND, *SCALED, "u = multiply q rate", "new = add w u", outputs="new v", states=1)
    assert facts_of(text) == {"name": "rmsprop", "update_count": 1, "decayed_count": 0, **READ}


def test_the_rate_inside_or_outside_the_momentum() -> None:
    inside = ("r = multiply q rate", "k = multiply m2 half", "m = add k r", "new = add w m")
    outside = ("k = multiply m2 half", "m = add k q", "u = multiply m rate", "new = add w u")
    for lines in (inside, outside):
        facts = facts_of(step_of(*SECOND, *SCALED, *lines, outputs="new v m", states=2))
        assert facts == {
            "name": "rmsprop",
            "update_count": 1,
            "decayed_count": 0,
            "momentum": 0.5,
            "nesterov": False,
            **READ,
        }


def test_the_square_of_something_else_is_unknown() -> None:
    lines = (*SECOND[:1], "d = multiply g m1", *SECOND[2:], *SCALED, "u = multiply q rate", "new = add w u")
    assert rules_of(step_of(*lines, outputs="new v", states=1)) == ["unknown"]

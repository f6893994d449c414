"""The step over the root of a second moment, in the spellings that compilers and authors give it."""

from __future__ import annotations

import pytest

from tests.analysis.optimizer.reading import Facts, facts_of
from tests.analysis.optimizer.step import ADAM, step_of

HEAD, TAIL = ADAM[:7], ADAM[10:]
READ: Facts = {"learning_rate": 0.01, "beta1": 0.9, "beta2": 0.5, "epsilon": 1e-8}
SPELLINGS = [
    ("s = sqrt v", "k = add s tiny", "q = divide m k"),
    ("o = add v tiny", "s = rsqrt o", "q = multiply m s"),
    ("o = add v tiny", "s = sqrt o", "q = divide m s"),
    ("s = sqrt v", "k = add s tiny", "i = divide one k", "q = multiply i m"),
    ("s = sqrt v", "k = add tiny s", "kk = multiply k two", "p = multiply m two", "q = divide p kk"),
]


@pytest.mark.parametrize("lines", SPELLINGS)
def test_spellings(lines: tuple[str, ...]) -> None:
    facts = facts_of(step_of(*HEAD, *lines, *TAIL, outputs="new m v", states=2))
    assert facts == {"name": "adam", "update_count": 1, "decayed_count": 0, **READ}


def test_a_step_that_is_scaled_twice_has_one_rate() -> None:
    lines = (*HEAD, *SPELLINGS[0], "r = multiply q two", "u = multiply r rate", "new = add w u")
    assert facts_of(step_of(*lines, outputs="new m v", states=2))["learning_rate"] == 0.02

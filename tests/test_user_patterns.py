"""Regular expressions of users: their limits of length, depth and time."""

from __future__ import annotations

import signal

import pytest

from hlo_inspect import user_patterns
from hlo_inspect.errors import UsageError
from hlo_inspect.user_patterns import UserPattern
from tests.calling import call_text

TEXT = "HloModule m_%s, entry_computation_layout={()->f32[]}\n\nENTRY e {\n  ROOT p = f32[4] parameter(0)\n}\n"


def test_a_match_is_that_of_python() -> None:
    match = UserPattern(r"step_(\d+)").search("jit_step_12")
    assert match is not None
    assert match[1] == "12"
    assert UserPattern("x").search("y") is None


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no interval timers")
def test_an_expression_that_goes_back_without_end_is_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A repeat within a repeat tries 2^60 ways over 60 letters; this test ends because it is interrupted."""
    monkeypatch.setattr(user_patterns, "MAX_SECONDS", 0.05)
    pattern = UserPattern("(a+)+$")
    with pytest.raises(UsageError, match=r"takes more than 0.05 s to match"):
        pattern.search("a" * 60 + "b")
    assert signal.getitimer(signal.ITIMER_VIRTUAL)[0] == 0
    assert signal.getsignal(signal.SIGVTALRM) is signal.SIG_DFL


@pytest.mark.parametrize("expression", ["(" * 3000, "a" * 1001])
def test_long_expressions_are_wrong_usage(expression: str) -> None:
    done = call_text("list", "-", "--module", expression, given=TEXT % "a")
    assert (done.returncode, done.stdout) == (2, "")
    assert "is longer than 1,000 characters, the limit of a regular expression" in done.stderr
    filtered = call_text("top", "-", "--filter", f"name ~ {expression}", given=TEXT % "a")
    assert (filtered.returncode, "longer than 1,000" in filtered.stderr) == (2, True)


def test_nested_parentheses_are_wrong_usage() -> None:
    done = call_text("list", "-", "--module", "(" * 900, given=TEXT % "a")
    assert (done.returncode, "internal error" in done.stderr) == (2, False)

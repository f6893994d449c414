"""Texts that XLA's parser refuses, each with the place where it does and with a text beside it that it takes.

`»` marks the place in the text that is refused. `tests/test_oracle_strict.py` asks jaxlib for all of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from hlo_inspect.errors import ParseError
from hlo_inspect.hlo.module import Wants
from tests.hlo.reading import EVERYTHING, modules

COMPUTATIONS = """add {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT sum = f32[] add(x, y)
}

f {
  x = f32[2,3] parameter(0)
  ROOT y = f32[2,3] negate(x)
}

g {
  x = f32[2,3] parameter(0)
  ROOT y = f32[2,3] negate(x)
}

"""
ENTRY = """ENTRY e {
  p = f32[2,3] parameter(0)
  s = f32[] constant(0)
  i = s32[] constant(0)
  b = pred[] constant(true)
  k = token[] after-all()
  t = (f32[2,3], s32[]) tuple(p, i)
"""


class Case(NamedTuple):
    """`bad` is refused at `line` and `column`, `good` is taken."""

    good: str
    bad: str
    line: int
    column: int
    code: str
    message: str


def in_entry(code: str, rows: Iterable[tuple[str, str, str]]) -> list[Case]:
    """Cases of lines in an entry that has a few instructions already."""
    frame = f"HloModule m\n\n{COMPUTATIONS}{ENTRY}  "
    return in_text(code, ((f"{frame}{good}\n}}\n", f"{frame}{bad}\n}}\n", message) for good, bad, message in rows))


def with_attribute(code: str, operation: str, rows: Iterable[tuple[str, str, str]]) -> list[Case]:
    """Cases of attributes of one operation."""
    return in_entry(code, ((f"{operation}, {good}", f"{operation}, {bad}", message) for good, bad, message in rows))


def in_text(code: str, rows: Iterable[tuple[str, str, str]]) -> list[Case]:
    """Cases of whole texts."""
    cases = []
    for good, bad, message in rows:
        before, mark, after = bad.partition("»")
        assert mark, bad
        line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
        cases.append(Case(good, before + after, line, column, code, message))
    return cases


def refusal(text: str) -> tuple[int | None, int | None, str, str] | None:
    """Line, column, rule and message of what is refused in a text."""
    try:
        found = modules(text.encode(), strict=True)
    except ParseError as error:
        assert str(error).endswith("^")
        return error.line, error.column, error.code, error.message
    assert found, "no module"
    return None


def check(case: Case) -> None:
    assert refusal(case.good) is None
    line, column, code, message = refusal(case.bad) or (0, 0, "", "")
    assert (line, column, code) == (case.line, case.column, case.code)
    assert case.message in message
    found = modules(case.bad.encode(), EVERYTHING | Wants(refusals=True))
    assert found, "without strict it is read"
    assert any(p.code in {case.code, "HI018"} or p.location.line == case.line for one in found for p in one.problems)


def name(case: Case) -> str:
    """A short name for a test's report."""
    return case.bad.splitlines()[case.line - 1].strip()[-60:]

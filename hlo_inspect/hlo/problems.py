"""What is wrong with a text, as data: each fault once, with its first place and how often it occurs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from hlo_inspect.errors import Location

MAX_OF_A_KIND = 20
"""So many different faults of one code are kept with their place; the others are counted."""


UNREADABLE = "HI001"
CUT_OFF = "HI002"
PART = "HI011"


class Problem(NamedTuple):
    """Something in the text that is not as the language has it. `code` is the rule of the finding that it becomes."""

    code: str
    message: str
    location: Location
    subject: str | None = None
    times: int = 1


class Problems:
    """The faults of one module. The same fault again is counted, not kept; of lines that cannot be read each is a fault.
    `left_out` is how many more of a code there are.
    """

    def __init__(self) -> None:
        self.left_out: Counter[str] = Counter()
        self._found: dict[tuple[str, str, int | None], Problem] = {}
        self._kinds: Counter[str] = Counter()

    def add(self, problem: Problem, times: int = 1) -> None:
        key = (problem.code, problem.message, problem.location.line if problem.code == UNREADABLE else None)
        known = self._found.get(key)
        if known is not None:
            self._found[key] = known._replace(times=known.times + times)
        elif self._kinds[problem.code] >= MAX_OF_A_KIND:
            self.left_out[problem.code] += times
        else:
            self._kinds[problem.code] += 1
            self._found[key] = problem._replace(times=times)

    @property
    def hold_a_cut(self) -> bool:
        """Whether the module is cut off."""
        return bool(self._kinds[CUT_OFF])

    def drop_from(self, code: str, line: int) -> None:
        """Forgets those of `code` that were first seen at `line` or later."""
        for key in [k for k, p in self._found.items() if p.code == code and (p.location.line or 0) >= line]:
            del self._found[key]
            self._kinds[code] -= 1

    def drop(self, codes: frozenset[str]) -> None:
        """Forgets those of these codes."""
        self._found = {key: problem for key, problem in self._found.items() if key[0] not in codes}
        for code in codes:
            self._kinds.pop(code, None)
            self.left_out.pop(code, None)

    def __iter__(self) -> Iterator[Problem]:
        return iter(self._found.values())

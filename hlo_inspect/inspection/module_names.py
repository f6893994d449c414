"""The modules that a user means by a pattern of their names."""

from __future__ import annotations

import re
from collections.abc import Iterable

from hlo_inspect.errors import UsageError, did_you_mean

_NAMED = 8
"""So many names are listed."""


def name_pattern(module: str | None) -> re.Pattern[str] | None:
    """The pattern; `UsageError` for what is no regular expression."""
    try:
        return re.compile(module) if module is not None else None
    except re.error as error:
        raise UsageError(f"{module!r} is not a regular expression: {error}") from error


def listed_names(names: Iterable[str]) -> str:
    """The first names, each once."""
    found = list(dict.fromkeys(names))
    return ", ".join(found[:_NAMED]) + (", …" if len(found) > _NAMED else "")


def no_such_module(pattern: str | None, names: Iterable[str], what: str = "module") -> str:
    """What is wrong where no module is named as the pattern says."""
    names = list(names)
    hint = did_you_mean(pattern or "", dict.fromkeys(names))
    return f"holds no {what} that is named like {pattern!r}; there are: {listed_names(names)}{hint}"

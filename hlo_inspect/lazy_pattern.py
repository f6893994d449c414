"""Regular expressions that are compiled when they are first used: of the hundreds that there are a command needs a few."""

from __future__ import annotations

import re
from typing import Any, AnyStr, Generic, cast

_METHODS = ("match", "fullmatch", "search", "sub", "subn", "split", "findall", "finditer")


def lazy_pattern(expression: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """What `re.compile` gives, compiled at its first use. An expression that is wrong raises `re.error` then."""
    return cast("re.Pattern[AnyStr]", _LazyPattern(expression, flags))


class _LazyPattern(Generic[AnyStr]):
    """Has the methods of the compiled expression as attributes, once one is asked for."""

    def __init__(self, pattern: AnyStr, flags: int) -> None:
        self.pattern: AnyStr = pattern
        self._given_flags = flags

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever a pattern has
        compiled = re.compile(self.pattern, self._given_flags)
        self.__dict__.update((method, getattr(compiled, method)) for method in _METHODS)
        return getattr(compiled, name)

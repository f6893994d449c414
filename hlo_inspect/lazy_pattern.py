"""Regular expressions that are compiled on first use: a command needs a few of hundreds."""

from __future__ import annotations

import re
from typing import Any, AnyStr, Generic, cast

_METHODS = ("match", "fullmatch", "search", "sub", "subn", "split", "findall", "finditer")


def lazy_pattern(expression: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Compile `expression` on first use. A wrong expression raises re.error then, not at import."""
    return cast("re.Pattern[AnyStr]", _LazyPattern(expression, flags))


class _LazyPattern(Generic[AnyStr]):
    """Pattern whose first use of a method compiles the expression and copies its methods as attributes."""

    def __init__(self, pattern: AnyStr, flags: int) -> None:
        self.pattern: AnyStr = pattern
        self._given_flags = flags

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever a pattern has
        compiled = re.compile(self.pattern, self._given_flags)
        self.__dict__.update((method, getattr(compiled, method)) for method in _METHODS)
        return getattr(compiled, name)

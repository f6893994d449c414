"""hlo-inspect: reads XLA's HLO text dumps exactly, without XLA, and answers in tables.

report = hlo_inspect.inspect("dump.txt", passes=("collectives",))
report.facts["collectives.count"]
report.table("collectives").records()

The source is a path, HLO text, an open file, or an object with `as_text()` as JAX's `lowered` and `compiled`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from hlo_inspect.version import __version__

if TYPE_CHECKING:
    from hlo_inspect.api import inspect, inspect_all
    from hlo_inspect.api_compile import compile, prove  # noqa: A004 - as in re and in JAX
    from hlo_inspect.api_watch import watch
    from hlo_inspect.errors import (
        CompileError,
        HloInspectError,
        InputError,
        Location,
        MissingExtraError,
        ParseError,
        UnknownFactError,
        UsageError,
    )
    from hlo_inspect.report.model import Report
    from hlo_inspect.report.table import Table

__all__ = [
    "CompileError",
    "HloInspectError",
    "InputError",
    "Location",
    "MissingExtraError",
    "ParseError",
    "Report",
    "Table",
    "UnknownFactError",
    "UsageError",
    "__version__",
    "compile",
    "inspect",
    "inspect_all",
    "prove",
    "watch",
]


_HOMES = {
    "compile": "api_compile",
    "inspect": "api",
    "inspect_all": "api",
    "prove": "api_compile",
    "watch": "api_watch",
    "Report": "report.model",
    "Table": "report.table",
}
"""The modules of what is not in `errors`."""


def __getattr__(name: str) -> Any:  # noqa: ANN401 - whatever the module holds
    """Import the module of a name when it is first asked for: `hlo-inspect --help` does without most."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES.get(name, 'errors')}"), name)


def __dir__() -> list[str]:
    """Return the names of the API and those that every module has."""
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})

"""hlo-inspect: reads XLA's HLO text dumps exactly, without XLA, and answers in tables.

report = hlo_inspect.inspect("dump.txt", passes=("collectives",))
report.facts["collectives.count"]
report.table("collectives").rows
"""

from __future__ import annotations

from hlo_inspect.errors import HloInspectError, InputError, Location, ParseError, UsageError
from hlo_inspect.inspection import inspect, inspect_all
from hlo_inspect.report.model import Report
from hlo_inspect.version import __version__

__all__ = [
    "HloInspectError",
    "InputError",
    "Location",
    "ParseError",
    "Report",
    "UsageError",
    "__version__",
    "inspect",
    "inspect_all",
]

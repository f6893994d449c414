"""The text of a failed test: actual and expected value of each condition, and the rows that broke it, in a few lines."""

from __future__ import annotations

from collections.abc import Sequence

from hlo_inspect.checks.runner import CheckResult
from hlo_inspect.errors import printable
from hlo_inspect.report.formats.terminal import table_text
from hlo_inspect.report.options import RenderOptions, with_relative_paths
from hlo_inspect.report.table import Table, number_of

MAX_LINES = 16
"""Lines of a failure: with those that pytest adds it fits in 25."""

WIDTH = 100
_RULE = "─"


def failure_text(module: str, failed: Sequence[CheckResult], number: int) -> str:
    """Return the text about failed conditions of a module, `number` of which were checked."""
    lines = [f"{printable(module)}: {len(failed)} of {number_of(number, 'condition')} failed"]
    shown = list(failed[: MAX_LINES - 2])
    free = MAX_LINES - 1 - len(shown)
    for position, result in enumerate(shown):
        lines.append(f"  {printable(result.message)}")
        room = free // (len(shown) - position)
        rows = _rows(result.broke, room) if result.broke is not None else []
        lines += rows
        free -= len(rows)
    if len(failed) > len(shown):
        lines.append(f"  {len(failed) - len(shown)} more")
    return "\n".join(lines)


def _rows(table: Table, room: int) -> list[str]:
    """Return heading and first rows of a table, in `room` lines at most. The last row sums the others."""
    if room < 2:
        return []
    (shown,) = with_relative_paths([table.top(max(room - 2, 1))])
    text = table_text(shown, RenderOptions(width=WIDTH)).splitlines()[1:]
    lines = [line for line in text if not line.startswith(_RULE)]
    total = 1 if table.total is not None else 0
    return [f"    {line}" for line in lines[: len(lines) - total][:room]]

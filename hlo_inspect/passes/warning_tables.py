"""XLA's warnings in the log around a module: their table and their first line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from hlo_inspect.analysis.context import Context
from hlo_inspect.passes.instruction_rows import joined_name
from hlo_inspect.report.model import Amount, HeadlineRow, Parts
from hlo_inspect.report.table import Column, Table, TablePlace, Value, number_of
from hlo_inspect.report.table_spec import TableSpec

if TYPE_CHECKING:
    from hlo_inspect.analysis.compiler_warnings import JoinedWarning  # few texts have a log: not imported without need

_MOST_NAMED = 2
_NOT_FOUND = "not found"


def warnings_table(context: Context) -> Table:
    """Return one row per different warning of XLA, with the collectives that its instruction became."""
    return WARNINGS.of(context.compiler_warnings)


def _became(row: JoinedWarning) -> str | None:
    """Return the collectives that the instruction became; None if that is unknown."""
    if row.collectives is None:
        return None
    return joined_name([collective.start.name for collective in row.collectives]) if row.collectives else _NOT_FOUND


def _seconds(row: JoinedWarning) -> Value:
    """Return the longest of the printed durations."""
    return max((warning.seconds for warning in row.warnings if warning.seconds is not None), default=None)


WARNINGS = TableSpec(
    "compiler_warnings", "XLA's warnings in the log around the module", TablePlace("program", "")
).with_columns(
    Column("warning", width=34, get=lambda row: row.first.kind),
    Column("count", "count", get=lambda row: len(row.warnings)),
    Column("instruction", optional=True, get=lambda row: row.instruction.name if row.instruction else None),
    Column("opcode", detail=3, optional=True, get=lambda row: row.instruction.opcode if row.instruction else None),
    Column("shape", detail=4, optional=True, get=lambda row: str(row.instruction.shape) if row.instruction else None),
    Column("from_sharding", detail=1, optional=True, get=lambda row: row.first.from_sharding or None),
    Column("to_sharding", detail=1, optional=True, get=lambda row: row.first.to_sharding or None),
    Column("became", optional=True, get=_became),
    Column("context", optional=True, get=lambda row: row.first.context or None),
    Column("seconds", "seconds", optional=True, get=_seconds),
    Column("op_name", detail=5, optional=True, get=lambda row: row.origin.op_name or None),
    Column("source", detail=1, optional=True, get=lambda row: row.origin.source or None),
    Column("line", "number", detail=4, get=lambda row: row.first.line),
)


def warnings_rows(context: Context) -> Iterator[HeadlineRow]:
    """Yield the line that counts XLA's warnings and names the first of each kind."""
    joined = context.compiler_warnings
    if joined:
        yield HeadlineRow("XLA log", tuple(_words(joined)), severity="warning")


def _words(joined: list[JoinedWarning]) -> Parts:
    counts = Counter(row.first.kind for row in joined)
    for number, (kind, count) in enumerate(counts.items()):
        yield "; " if number else ""
        yield Amount(len([warning for row in joined if row.first.kind == kind for warning in row.warnings]), "count", kind)
        named = [row for row in joined if row.first.kind == kind and (row.instruction or row.first.context)]
        if named:
            more = f" and {number_of(count - _MOST_NAMED, 'other')}" if count > _MOST_NAMED else ""
            yield f": {', '.join(map(_text, named[:_MOST_NAMED]))}{more}"


def _text(row: JoinedWarning) -> str:
    """Return for example `copy.3 (gen.py:160, now all-gather.4)`."""
    if row.instruction is None:
        return row.first.context
    became = _became(row)
    now = "" if became is None else f"{became} in the module" if became == _NOT_FOUND else f"now {became}"
    about = ", ".join(filter(None, (row.origin.source, now)))
    return f"{row.instruction.name} ({about})" if about else row.instruction.name or ""


def warnings_notes(context: Context) -> Iterator[str]:
    """Yield the number of warnings that are left out."""
    left_out = context.module.left_out_warnings
    if left_out:
        yield f"XLA log: {left_out:,} more warnings are left out"

"""Columns, notes and a table about where phases come from: names or the graph of values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.op_names import UNKNOWN
from hlo_inspect.hlo.instruction import Instruction
from hlo_inspect.report.model import Column, Table


def phase_source(get: Callable[[Any], str]) -> Column:
    """`name` for a phase from metadata, `graph` for one from the graph of values; nothing where the phase is unknown."""
    return Column("phase_from", detail=9, optional=True, only_verbose=True, width=6, get=lambda row: get(row) or None)


def joined_sources(sources: Iterable[str]) -> str:
    """Where the phases of the instructions of one row come from."""
    return ", ".join(sorted(set(filter(None, sources)), reverse=True))


def phase_notes(context: Context, instructions: Iterable[Instruction]) -> list[str]:
    """Why phases are unknown that neither names nor graph give."""
    if context.phases_from == "names":
        return []
    found = {context.phases.of(instruction) for instruction in instructions}
    if any(one.phase_from == "graph" for one in found) or all(one.phase != UNKNOWN for one in found):
        return []
    why = context.why_no_graph
    return [f"phases: names leave some open, and the graph of values decides none: {why}"] if why else []


def differences(context: Context, instructions: Sequence[Instruction], what: str) -> Iterator[Table]:
    """With -v the instructions whose name and graph give different phases, where both were asked: the page follows names."""
    phases = context.phases
    found = [(one, phases.of(one)) for one in instructions]
    is_asked = any(phase.phase_from == "graph" for _, phase in found)
    both = [
        (one, phase.phase, told)
        for one, phase in (found if is_asked else ())
        if phase.phase_from == "name" and (told := phases.graph_phase(one)) != UNKNOWN
    ]
    columns = (
        Column("name", get=lambda row: row[0].name),
        Column("phase", get=lambda row: row[1]),
        Column("by_graph", width=9, get=lambda row: row[2]),
        Column("line", "number", get=lambda row: row[0].line),
    )
    rows = [row for row in both if row[1] != row[2]]
    title = f"Phases of {what} that differ between graph and names: {len(rows):,} of {len(both):,}"
    if rows:
        yield replace(Table.of(f"{what}_phase_differences", title, columns, rows), only_verbose=True)

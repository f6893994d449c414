"""What tables and notes say of what told a phase."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.op_names import UNKNOWN
from hlo_inspect.hlo.instruction import Instruction
from hlo_inspect.report.model import Column


def phase_source(get: Callable[[Any], str]) -> Column:
    """`name` where metadata told the phase, `graph` where the graph of values did; nothing where the phase is unknown."""
    return Column("phase_from", detail=9, optional=True, only_verbose=True, width=6, get=lambda row: get(row) or None)


def joined_sources(sources: Iterable[str]) -> str:
    """What told the phase of several that are in one row."""
    return ", ".join(sorted(set(filter(None, sources)), reverse=True))


def phase_notes(context: Context, instructions: Sequence[Instruction], what: str) -> list[str]:
    """Why phases are unknown that neither names nor graph tell; how often the two differ, where both were asked."""
    found = [context.phases.of(instruction) for instruction in instructions]
    is_asked = any(one.phase_from == "graph" for one in found)
    if not is_asked and any(one.phase == UNKNOWN for one in found):
        why = context.why_no_graph
        return [f"phases: names leave some open, and the graph of values tells none: {why}"] if why else []
    if not is_asked:
        return []
    both = [
        one.phase != told
        for instruction, one in zip(instructions, found, strict=True)
        if one.phase_from == "name" and (told := context.phases.told_by_graph(instruction)) != UNKNOWN
    ]
    if not any(both):
        return []
    return [
        f"phases: names and graph differ for {sum(both):,} of the {len(both):,} {what} of which both tell one; names are followed"
    ]

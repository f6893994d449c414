"""Parts that tables of instructions share: names of merged rows, phases, and call stacks."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from operator import attrgetter
from os.path import commonprefix
from typing import Any, NamedTuple, TypeVar

from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.provenance import InstructionPhase, Labels
from hlo_inspect.graph.calls import CallGraph
from hlo_inspect.hlo.instruction import Instruction
from hlo_inspect.hlo.values.attributes import Metadata
from hlo_inspect.hlo.values.op_names import PHASES, UNKNOWN, Origin, StackFrames, origin_of
from hlo_inspect.lazy_pattern import lazy_pattern
from hlo_inspect.report.table import Column, Table, TablePlace
from hlo_inspect.report.table_spec import TableSpec

Item = TypeVar("Item")

_NUMBERED = lazy_pattern(r"(?:\.(?:[0-9]+|clone|remat[0-9]*))++$", re.ASCII)
_SHORTEST_STEM = 3


def group_rows(items: Iterable[Item], key: Callable[[Item], Hashable]) -> list[list[Item]]:
    """Group the items by their key, each group in the place of its first item."""
    groups: dict[Hashable, list[Item]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return list(groups.values())


def joined_name(names: Sequence[str]) -> str:
    """Return one name for several instructions: their common part and their number, as `fusion.* × 24`."""
    if len(names) == 1:
        return names[0]
    stems = {_NUMBERED.sub("", name) for name in names}
    if len(stems) == 1:
        return f"{stems.pop()}.* × {len(names):,}"
    stem = commonprefix(list(stems))  # noqa: RUF071 - names are no paths, and share characters
    return f"{stem if len(stem) >= _SHORTEST_STEM else ''}* × {len(names):,}"


def loop_names(graph: CallGraph, computation: str) -> str:
    """Return the loops around a computation, innermost first, as `while.225 < while.224`; empty outside of loops."""
    return " < ".join(loop.instruction.name for loop in graph.loops_around(computation))


def phase_source(get: Callable[[Any], str]) -> Column:
    """Return the column of phase sources: `name` for metadata, `graph` for the graph of values, empty if unknown."""
    return Column("phase_from", detail=9, optional=True, only_verbose=True, width=6, get=lambda row: get(row) or None)


def phase_column(get: Callable[[Any], str], detail: int = 0) -> Column:
    """Return the column of phases, which is empty if --quick skips them."""
    return Column("phase", detail=detail, members=frozenset(PHASES), get=lambda row: get(row) or None)


def joined_sources(sources: Iterable[str]) -> str:
    """Return the sources of the phases in a merged row."""
    return ", ".join(sorted(set(filter(None, sources)), reverse=True))


def phase_notes(context: Context, phases: Iterable[InstructionPhase | Labels]) -> Iterator[str]:
    """Yield why some of these phases are unknown that neither names nor graph give."""
    if context.request.skips_graph_phases:
        yield "phases: op_names leave some open; run without --quick to follow the graph of values"
    if not context.request.uses_graph_for_phases:
        return
    are_all_known = True
    for phase in phases:
        if phase.phase_from == "graph":  # the graph was read and decides the phase
            return
        are_all_known = are_all_known and phase.phase != UNKNOWN
    why = "" if are_all_known else context.no_graph_reason
    if why:
        yield f"phases: op_names leave some open, and the graph of values does not decide them: {why}"


def differences(context: Context, instructions: Sequence[Instruction], table: TableSpec) -> Iterator[Table]:
    """With -v, yield the instructions whose name and graph give different phases, if both were read: the page follows names."""
    phases = context.phases
    phases_of = [(instruction, phases.for_instruction(instruction)) for instruction in instructions]
    if all(phase.phase_from != "graph" for _, phase in phases_of):
        return
    both = [
        _TwoPhases(instruction, phase.phase, graph_phase)
        for instruction, phase in phases_of
        if phase.phase_from == "name" and (graph_phase := phases.graph_phase(instruction)) != UNKNOWN
    ]
    rows = [row for row in both if row.phase != row.by_graph]
    if rows:
        yield table.of(rows, title=f"{table.title}: {len(rows):,} of {len(both):,}")


class _TwoPhases(NamedTuple):
    """An instruction with its phase by name and by graph."""

    instruction: Instruction
    phase: str
    by_graph: str


KERNELS_DIFFERENCES, COLLECTIVES_DIFFERENCES = (
    TableSpec(
        f"{section}_phase_differences",
        f"{section.capitalize()} with another phase by the graph than by op_names",
        TablePlace(section, section.capitalize(), "phases that disagree", rank),
        only_verbose=True,
    ).with_columns(
        Column("name", get=attrgetter("instruction.name")),
        Column("phase"),
        Column("by_graph", width=9),
        Column("line", "number", get=attrgetter("instruction.line")),
    )
    for section, rank in (("kernels", 2), ("collectives", 11))
)


# -- call stacks -------------------------------------------------------------------------------------------------------


def stacks_of(metadata: Iterable[Metadata | None], frames: StackFrames) -> Iterator[Table]:
    """Yield the stacks of some metadata; equal metadata is looked up once."""
    distinct = {} if frames.is_empty else dict.fromkeys(metadata)
    return call_stacks(origin_of(entry, frames) for entry in distinct if entry is not None)


def call_stacks(origins: Iterable[Origin]) -> Iterator[Table]:
    """Yield one row for each frame of each distinct stack, innermost first; no table without stacks.

    `source` is the line that other tables show for the stack.
    """
    stacks = dict.fromkeys(
        (origin.source, tuple(line._replace(column=0) for line in origin.stack)) for origin in origins if len(origin.stack) > 1
    )
    frames = [
        (source, depth, line) for source, stack in sorted(stacks, key=lambda item: item[0]) for depth, line in enumerate(stack)
    ]
    if frames:
        yield CALL_STACKS.of(frames)


CALL_STACKS = TableSpec(
    "call_stacks", "Call stacks, innermost first", TablePlace("program", ""), page_rows=0, only_verbose=True
).with_columns(
    Column("source", get=lambda frame: frame[0]),
    Column("depth", "number", get=lambda frame: frame[1]),
    Column("frame", get=lambda frame: frame[2].place),
    Column("function", detail=1, get=lambda frame: frame[2].function),
)

"""The changes of all areas between two modules: from their reports and, if both texts were read, their instructions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from hlo_inspect.analysis.context import Context
from hlo_inspect.compare.changes import Aspect, ModuleChange, differing, grouped
from hlo_inspect.compare.edits import ProgramEdits
from hlo_inspect.compare.instruction_changes import InstructionChanges
from hlo_inspect.compare.pairing import Record, records_of
from hlo_inspect.compare.table_changes import (
    changed_numbers,
    collective_changes,
    explained,
    loop_changes,
    optimizer_changes,
    output_changes,
    pair_in_order,
    pair_parameters,
    parameter_changes,
)
from hlo_inspect.report.model import Report

_TOLD_ELSEWHERE = frozenset(
    {"entry_computation_layout", "input_output_alias", "buffer_donor", "is_scheduled", "frontend_attributes"}
)
"""Attributes of the header that show in parameters and outputs, or in the first line."""


class Explanation:
    """The changes from OLD to NEW. `contexts` are the analyses of both, if their texts were read."""

    def __init__(self, old: Report, new: Report, contexts: tuple[Context, Context] | None) -> None:
        self._reports = (old, new)
        self._contexts = contexts
        self._parameters = pair_parameters(*self._records("params"))

    @cached_property
    def _edits(self) -> ProgramEdits | None:
        return None if self._contexts is None else self._program_edits(*self._contexts)

    @property
    def lines(self) -> Mapping[int, int]:
        """The line of each matched instruction in OLD, with that in NEW."""
        return {} if self._edits is None else self._edits.lines

    def changes(self) -> list[ModuleChange]:
        """Return all changes, merged if they agree, in the order of the report."""
        # cells of a workload file are no instructions: the facts add them up
        old, new = ([row for row in rows if "shape" in row] for rows in self._records("collectives"))
        outputs = pair_in_order(*self._records("outputs"))
        meshes = [report.facts.get("mesh.shape") for report in self._reports]
        changes = [
            *parameter_changes(self._parameters, have_one_mesh=meshes[0] == meshes[1]),
            *output_changes(outputs, self._parameters, have_one_mesh=meshes[0] == meshes[1]),
            *optimizer_changes(*self._records("optimizer"), self._parameters),
            *collective_changes(old, new, self.lines, self._aspects()),
            *loop_changes(*self._records("loops"), self.lines),
            *self._header_changes(),
        ]
        if self._contexts is not None and self._edits is not None:
            instructions = InstructionChanges(*self._contexts, self._edits.found)
            aspects = (aspect for change in changes if change.area in ("optimizer", "loops") for aspect in change.aspects)
            numbers = changed_numbers(aspects)
            others = (change for change in instructions.found() if change.area != "constants" or not explained(change, numbers))
            changes.extend(others)
            changes = changes or list(instructions.others())
        return grouped(changes)

    def _records(self, table: str) -> tuple[Sequence[Record], Sequence[Record]]:
        """Return the rows of a table on both sides; none if a saved report lacks it, as it may have left them out."""
        old, new = (records_of(report, table) for report in self._reports)
        if self._contexts is None and (old is None or new is None):
            return [], []
        return old or [], new or []

    def _program_edits(self, old: Context, new: Context) -> ProgramEdits | None:
        if old.module.entry is None or new.module.entry is None:
            return None
        entries = old.module.entry.name, new.module.entry.name
        rows: list[dict[Any, int]] = [
            context.views.for_computation(name).parameters_by_number for context, name in zip((old, new), entries, strict=True)
        ]
        given = {
            rows[0][before["number"]]: rows[1][after["number"]]
            for before, after in self._parameters.pairs
            if before["number"] in rows[0] and after["number"] in rows[1]
        }
        return ProgramEdits(old.canonical, new.canonical, entries, given.items())

    def _aspects(self) -> Mapping[int, Sequence[Aspect]]:
        """Return the changed properties of instructions by their line in OLD."""
        if self._contexts is None or self._edits is None:
            return {}
        views = self._contexts[0].views
        return {
            views.for_computation(edit.old.computation).lines[edit.old.row]: edit.aspects
            for edit in self._edits.found
            if edit.old is not None and edit.aspects
        }

    def _header_changes(self) -> Iterator[ModuleChange]:
        """Yield differences of the headers that are reported nowhere else."""
        if self._contexts is None:
            return
        old, new = (context.module.header.attributes for context in self._contexts)
        for aspect in differing(old, new):
            if aspect.name not in _TOLD_ELSEWHERE:
                yield ModuleChange("compiler", "changed", (aspect.name,), kind="header", aspects=(aspect,))


def sites(changes: Iterable[ModuleChange]) -> int:
    """Return the number of things that differ."""
    return sum(len(change.names) for change in changes)

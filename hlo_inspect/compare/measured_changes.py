"""The measured times of two recorded profiles, compared by matched instructions: names differ from compile to compile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import NamedTuple

from hlo_inspect.analysis.provenance import printed
from hlo_inspect.passes.instruction_rows import phase_column
from hlo_inspect.passes.measured.measured_rows import KernelRow, MeasuredRows
from hlo_inspect.report.model import Amount, HeadlineRow, Parts, sentence
from hlo_inspect.report.table import Column
from hlo_inspect.report.table_spec import TableSpec


class MeasuredChange(NamedTuple):
    """An instruction with its self times of a step in OLD and NEW; the side that lacks it or its events is None."""

    old: KernelRow | None
    new: KernelRow | None

    @property
    def row(self) -> KernelRow | None:
        return self.new or self.old

    @property
    def change_s(self) -> float:
        return _seconds(self.new) - _seconds(self.old)

    @property
    def share(self) -> float | None:
        """The change as a share of OLD; None if it has no time there."""
        before = _seconds(self.old)
        return self.change_s / before if before else None


def _seconds(row: KernelRow | None) -> float:
    return row.self_s if row is not None else 0.0


def measured_changes(old: MeasuredRows, new: MeasuredRows, lines: Mapping[int, int]) -> list[MeasuredChange]:
    """Return the changes of instructions with events, the largest first. `lines` maps matched lines of OLD to those of NEW."""
    waiting = {row.line: row for row in new.kernels}
    changes = [MeasuredChange(row, waiting.pop(lines.get(row.line, 0), None)) for row in old.kernels]
    changes += [MeasuredChange(None, row) for row in waiting.values()]
    return sorted(changes, key=lambda change: -abs(change.change_s))


MEASURED_CHANGES = TableSpec(
    "measured_changes", "Self times of a step by matched instructions, the largest change first", page_rows=15
).with_columns(
    Column("old_name", optional=True, get=lambda change: change.old and change.old.name),
    Column("new_name", optional=True, get=lambda change: change.new and change.new.name),
    Column("kind", detail=3, get=attrgetter("row.kind")),
    Column("old_self_s", "seconds", optional=True, get=lambda change: change.old and change.old.self_s),
    Column("new_self_s", "seconds", optional=True, get=lambda change: change.new and change.new.self_s),
    Column("change_s", "seconds", summed=True, signed=True),
    Column("percent", "share", optional=True, signed=True, get=attrgetter("share")),
    phase_column(lambda change: change.row.labels.phase, detail=4),
    Column("source", detail=2, width=16, get=lambda change: printed(change.row.labels.source)),
    Column("old_line", "number", detail=8, optional=True, get=lambda change: change.old and change.old.line),
    Column("new_line", "number", detail=8, optional=True, get=lambda change: change.new and change.new.line),
)


_NAMED = 2
"""Instructions in the first line."""


def measured_headline(old: MeasuredRows, new: MeasuredRows, changes: Sequence[MeasuredChange]) -> HeadlineRow:
    """Return the line for a review: the step before and after, and the instructions that changed most."""
    return HeadlineRow("measured", tuple(_words(old, new, changes)))


def _words(old: MeasuredRows, new: MeasuredRows, changes: Sequence[MeasuredChange]) -> Parts:
    before, after = old.times.step_quantiles()[0], new.times.step_quantiles()[0]
    yield from sentence("step {} → {}", Amount(before, "seconds"), Amount(after, "seconds"))
    if before:
        yield from _signed_share((after - before) / before)
    for index, change in enumerate([change for change in changes if change.change_s][:_NAMED]):
        yield "; self times: " if not index else ", "
        yield from _change_words(change)


def _change_words(change: MeasuredChange) -> Parts:
    names = [row.name for row in change if row is not None]
    yield from sentence("{} {}", " → ".join(dict.fromkeys(names)), Amount(_seconds(change.old), "seconds"))
    yield from sentence(" → {}", Amount(_seconds(change.new), "seconds"))
    if change.share is not None:
        yield from _signed_share(change.share)


def _signed_share(share: float) -> Parts:
    yield from sentence(" (+{})" if share > 0 else " ({})", Amount(share, "share"))

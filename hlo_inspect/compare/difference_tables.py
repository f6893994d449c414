"""Tables of sums before and after: bytes sent over each axis of the mesh, arrays at the peak of memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from hlo_inspect.analysis.memory.live_arrays import LiveArray
from hlo_inspect.lazy_pattern import lazy_pattern
from hlo_inspect.report.model import Column, Report, Table, Value

_AXIS = lazy_pattern(r"collectives\.axis\.(.+)\.executed_wire_bytes")


class _BeforeAndAfter(NamedTuple):
    """A figure of OLD and of NEW under a label."""

    label: tuple[str, ...]
    old: int | None
    new: int | None
    old_count: Value = None
    new_count: Value = None

    @property
    def more(self) -> int | None:
        return None if self.old is None or self.new is None else self.new - self.old


_SIZES = (
    Column("old_bytes", "bytes", get=lambda row: row.old),
    Column("new_bytes", "bytes", get=lambda row: row.new),
    Column("difference", "bytes", signed=True, get=lambda row: row.more),
)


def axes_table(old: Report, new: Report) -> Table:
    """Bytes that one device sends in a step over each axis; an axis is what its report calls so."""
    names = [match[0] for name in (*old.facts, *new.facts) if (match := _AXIS.fullmatch(name)) is not None]
    rows = []
    for name in dict.fromkeys(names):
        sizes = [report.facts.get(name, 0) for report in (old, new)]
        known = [size if isinstance(size, int) else None for size in sizes]
        rows.append(_BeforeAndAfter((name.split(".")[2],), known[0], known[1]))
    columns = (Column("axis", get=lambda row: row.label[0]), *_SIZES)
    return Table.of("axes", "Bytes sent in one step over each axis", columns, rows)


def peak_table(old: Sequence[LiveArray], new: Sequence[LiveArray]) -> Table:
    """Arrays that are live at the peak of one side and not of the other, equal ones together, those of the most bytes first."""
    before, after = _sums(old), _sums(new)
    rows = []
    for label in dict.fromkeys((*before, *after)):
        (old_count, old_size), (new_count, new_size) = before.get(label, (0, 0)), after.get(label, (0, 0))
        if (old_count, old_size) != (new_count, new_size):
            rows.append(_BeforeAndAfter(label, old_size, new_size, old_count, new_count))
    rows.sort(key=lambda row: -abs(row.more or 0))
    columns = (
        Column("role", get=lambda row: row.label[0]),
        Column("shape", get=lambda row: row.label[1]),
        Column("phase", detail=3, get=lambda row: row.label[2]),
        Column("old_arrays", "count", get=lambda row: row.old_count),
        Column("new_arrays", "count", get=lambda row: row.new_count),
        *_SIZES,
    )
    return Table.of("peak", "Arrays at the peak of memory that differ", columns, rows, page_rows=8)


def _sums(arrays: Iterable[LiveArray]) -> dict[tuple[str, ...], tuple[int, int]]:
    """How many arrays there are of each role, shape and phase, and their bytes."""
    found: dict[tuple[str, ...], tuple[int, int]] = {}
    for one in arrays:
        label = (one.role, "" if one.shape is None else str(one.shape), one.labels.phase)
        count, size = found.get(label, (0, 0))
        found[label] = (count + 1, size + one.bytes)
    return found

"""The facts that differ between two reports, the important ones first, and tables of sums before and after."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeGuard

from hlo_inspect.analysis.memory.live_arrays import LiveArray
from hlo_inspect.lazy_pattern import lazy_pattern
from hlo_inspect.report.facts import exact_name, find_spec
from hlo_inspect.report.model import Column, FactSpec, Report, Table, Unit, Value

IMPORTANCE = tuple(
    lazy_pattern(pattern)
    for pattern in (
        r"memory\.(?:needed|peak)_bytes",
        r"time\.(?:estimate_)?step_s",
        r"time\.(?:estimate_)?exposed_collective_s",
        r"cost\.executed_(?:matmul_)?flops",
        r"collectives\.executed_(?:count|wire_bytes|operand_bytes)",
        r"collectives\.count",
        r"params\.(?:bytes|donated_bytes)",
        r"optimizer\.name",
        r"optimizer\..*",
        r"cost\.executed_bytes_accessed",
        r"memory\.(?:temp|argument|output|alias|constant)_bytes",
        r"params\..*|outputs\..*",
        r"mesh\..*|module\.(?:devices|num_partitions|replica_count|is_scheduled|shapes)",
        r"time\..*",
        r"collectives\.(?:axis|phase)\..*executed_wire_bytes",
        r"collectives\.[a-z-]+\.(?:executed_count|count)",
        r"custom_calls\.(?:count|target\..*)|fusions\.count",
        r"memory\..*",
        r"cost\..*",
        r"collectives\..*",
        r"fusions\..*|custom_calls\..*",
        r"module\..*",
    )
)
"""Facts that people ask for first come first; what fits none of these, as the counts of opcodes, comes last."""


@dataclass(frozen=True, slots=True)
class FactChange:
    """A fact with another value. `difference` is NEW - OLD, and `share` the part of OLD that this is; `None` where one of the
    two is unknown or no number, `share` also where OLD is 0.
    """

    name: str
    unit: Unit
    old: Value
    new: Value

    @property
    def difference(self) -> int | float | None:
        return difference(self.old, self.new)

    @property
    def share(self) -> float | None:
        return share(self.old, self.new)


def difference(old: Value, new: Value) -> int | float | None:
    """NEW - OLD; `None` where one of the two is unknown, or no number."""
    return new - old if _is_number(old) and _is_number(new) else None


def share(old: Value, new: Value) -> float | None:
    """The part of OLD that NEW - OLD is: 0.05 is five percent more. `None` also where OLD is 0."""
    return (new - old) / abs(old) if _is_number(old) and _is_number(new) and old else None


def _is_number(value: Value) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def differ(old: Value, new: Value) -> bool:
    """Whether these are two values; what is not a number (NaN) is itself."""
    return old != new and not (old != old and new != new)  # noqa: PLR0124 - so that two NaN are equal


def shared_specs(old: Report, new: Report) -> tuple[FactSpec, ...]:
    """The facts that both reports answer."""
    names = {spec.name for spec in old.specs}
    return tuple(dict.fromkeys(spec for spec in new.specs if spec.name in names))


def fact_changes(old: Report, new: Report) -> list[FactChange]:
    """The facts of both reports that differ. A member of a family that does not occur is 0; a fact that only one of the
    reports can give is left out.
    """
    specs = shared_specs(old, new)
    found = list(_changes(old, new, specs))
    return sorted(found, key=_importance)


def _changes(old: Report, new: Report, specs: tuple[FactSpec, ...]) -> Iterator[FactChange]:
    for name in dict.fromkeys((*old.facts, *new.facts)):
        before, after = value_in(old, name), value_in(new, name)
        spec = find_spec(name, specs) if differ(before, after) else None
        if spec is not None:
            yield FactChange(name, spec[0].unit, before, after)


def value_in(report: Report, name: str) -> Value:
    """The value of a fact that the report answers: 0 for a member of a family that does not occur, and for a lower bound of a
    fact that is known its value.
    """
    if name in report.facts:
        return report.facts[name]
    exact = exact_name(name)
    if exact != name and exact in report.facts:
        return report.facts[exact]
    spec = find_spec(name, report.specs)
    return 0 if spec is not None and spec[1] is not None else None


def _importance(change: FactChange) -> tuple[float, ...]:
    """First what people ask for first, of these what changed most."""
    rank = next((number for number, one in enumerate(IMPORTANCE) if one.fullmatch(change.name)), len(IMPORTANCE))
    part, amount = change.share, change.difference
    size = math.inf if part is None else abs(part)
    return (rank, -size, -abs(amount or 0))


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

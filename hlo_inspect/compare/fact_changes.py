"""The facts that differ between two reports, the important ones first, and tables of sums before and after."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import NamedTuple, TypeGuard

from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.cost.figures import CostFigure, Tally
from hlo_inspect.analysis.memory.live_arrays import LiveArray
from hlo_inspect.figure import Figure, Number, Quantity, exact, subtract
from hlo_inspect.lazy_pattern import lazy_pattern
from hlo_inspect.report.facts import SpecIndex, exact_name
from hlo_inspect.report.model import Report
from hlo_inspect.report.table import Column, Plain, Table, Unit, Value, figure_of, plain
from hlo_inspect.report.table_spec import TableSpec

IMPORTANCE = tuple(
    lazy_pattern(pattern)
    for pattern in (
        r"measured\.step_s",
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
        r"measured\.(?:\w+_s|mfu|hfu|step_over_bound)",
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
"""Facts that people ask for first come first; others, such as counts of opcodes, come last."""


@dataclass(frozen=True, slots=True)
class FactChange:
    """A fact with another value.

    `difference` is NEW - OLD, `share` is it as a share of OLD. Both are None if a value is unknown or no number; `share` also
    if OLD is 0.
    """

    name: str
    unit: Unit
    old: Plain
    new: Plain

    @property
    def difference(self) -> Quantity | None:
        return difference(self.old, self.new)

    @property
    def share(self) -> float | None:
        return share(self.old, self.new)


def difference(old: Value, new: Value) -> Quantity | None:
    """Return NEW - OLD; None if nothing is known of one of the two, or if it is no number."""
    return subtract(new, old) if _is_quantity(old) and _is_quantity(new) else None


def share(old: Value, new: Value) -> float | None:
    """Return (NEW - OLD) / OLD: 0.05 is five percent more. Return None if one is unknown or no number, or if OLD is 0."""
    return (new - old) / abs(old) if _is_number(old) and _is_number(new) and old else None


def _is_quantity(value: Value) -> TypeGuard[Quantity]:
    return isinstance(value, Figure) or _is_number(value)


def _is_number(value: Value) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def differ(old: Value, new: Value) -> bool:
    """Return True if the values differ; NaN equals NaN."""
    return old != new and not (old != old and new != new)  # noqa: PLR0124 - so that two NaN are equal


def fact_changes(old: Report, new: Report) -> list[FactChange]:
    """Return the facts of both reports that differ. A member of a family that does not occur is 0."""
    return sorted(_changes(old, new), key=_importance)


def _changes(old: Report, new: Report) -> Iterator[FactChange]:
    names = {spec.name for spec in old.specs}
    common = tuple(dict.fromkeys(spec for spec in new.specs if spec.name in names))
    shared, of_old, of_new = (SpecIndex(specs) for specs in (common, old.specs, new.specs))
    for name in dict.fromkeys((*old.facts, *new.facts)):
        before, after = plain(value_in(old, name, of_old)), plain(value_in(new, name, of_new))
        spec = shared.find(name) if differ(before, after) else None
        if spec is not None:
            yield FactChange(name, spec[0].unit, before, after)


def value_in(report: Report, name: str, specs: SpecIndex | None = None) -> Value:
    """Return the value of a fact that the report answers. `specs` are those of the report, for many questions.

    It is 0 for a member of a family that does not occur, and a figure if only bounds are known. For a bound of a known fact it
    is the fact's value.
    """
    if name in report.facts:
        return figure_of(report.facts, name)
    exact = exact_name(name)
    if exact != name and exact in report.facts:
        return report.facts[exact]
    spec = (specs or SpecIndex(report.specs)).find(name)
    return 0 if spec is not None and spec[1] is not None else None


def _importance(change: FactChange) -> tuple[float, ...]:
    """Return the sort key: by `IMPORTANCE`, then the largest change first."""
    rank = next((number for number, pattern in enumerate(IMPORTANCE) if pattern.fullmatch(change.name)), len(IMPORTANCE))
    part, amount = change.share, exact(change.difference or 0)
    size = math.inf if part is None else abs(part)
    return (rank, -size, -abs(amount or 0))


_AXIS = lazy_pattern(r"collectives\.axis\.(.+)\.executed_wire_bytes")


class _FigurePair(NamedTuple):
    """A figure of OLD and of NEW under a label."""

    label: tuple[str, ...]
    old: Number | None
    new: Number | None
    old_count: Value = None
    new_count: Value = None

    @property
    def more(self) -> Number | None:
        return None if self.old is None or self.new is None else self.new - self.old


_SIZES = (
    Column("old_bytes", "bytes", get=attrgetter("old")),
    Column("new_bytes", "bytes", get=attrgetter("new")),
    Column("difference", "bytes", signed=True, get=attrgetter("more")),
)


_AXES = TableSpec("axes", "Bytes sent in one step by mesh axis").with_columns(
    Column("axis", get=lambda row: row.label[0]), *_SIZES
)
_PEAK = TableSpec("peak", "Arrays at the peak of memory that differ", page_rows=8).with_columns(
    Column("role", get=lambda row: row.label[0]),
    Column("shape", get=lambda row: row.label[1]),
    Column("phase", detail=3, get=lambda row: row.label[2]),
    Column("old_arrays", "count", meaning="arrays in OLD", get=attrgetter("old_count")),
    Column("new_arrays", "count", meaning="arrays in NEW", get=attrgetter("new_count")),
    *_SIZES,
)
_SCOPES = TableSpec("scopes", "Scopes whose work in one step differs", on_page=False).with_columns(
    Column("scope", get=lambda pairs: pairs[0].label[0]),
    Column("old_bytes", "bytes", get=lambda pairs: pairs[0].old),
    Column("new_bytes", "bytes", get=lambda pairs: pairs[0].new),
    Column("bytes_difference", "bytes", signed=True, meaning="NEW - OLD in bytes", get=lambda pairs: pairs[0].more),
    Column("old_flops", "flops", meaning="FLOPs in OLD", get=lambda pairs: pairs[1].old),
    Column("new_flops", "flops", meaning="FLOPs in NEW", get=lambda pairs: pairs[1].new),
    Column("flops_difference", "flops", signed=True, meaning="NEW - OLD in FLOPs", get=lambda pairs: pairs[1].more),
)
FACT_TABLES = (_AXES, _PEAK, _SCOPES)


def axes_table(old: Report, new: Report) -> Table:
    """Return the table of bytes that one device sends in a step over each axis, by the axis names of each report."""
    names = [match[0] for name in (*old.facts, *new.facts) if (match := _AXIS.fullmatch(name)) is not None]
    rows = []
    for name in dict.fromkeys(names):
        sizes = [report.facts.get(name, 0) for report in (old, new)]
        figures = [size if isinstance(size, int) else None for size in sizes]
        rows.append(_FigurePair((name.split(".")[2],), figures[0], figures[1]))
    return _AXES.of(rows)


def peak_table(old: Sequence[LiveArray], new: Sequence[LiveArray]) -> Table:
    """Return the table of arrays that are live at the peak of one side only, merged, the most bytes first."""
    before, after = _sums(old), _sums(new)
    rows = []
    for label in dict.fromkeys((*before, *after)):
        (old_count, old_size), (new_count, new_size) = before.get(label, (0, 0)), after.get(label, (0, 0))
        if (old_count, old_size) != (new_count, new_size):
            rows.append(_FigurePair(label, old_size, new_size, old_count, new_count))
    rows.sort(key=lambda row: -abs(row.more or 0))
    return _PEAK.of(rows)


def scopes_table(old: Context, new: Context) -> Table:
    """Return the table of scopes whose work in one step differs, the largest difference of bytes first."""
    before, after = (dict(context.cost.tally("scope").by_label()) for context in (old, new))
    rows = []
    for scope in dict.fromkeys((*before, *after)):
        pairs = [_pair(scope, figure, before.get(scope), after.get(scope)) for figure in ("bytes", "flops")]
        if any(pair.old != pair.new for pair in pairs):
            rows.append(pairs)
    rows.sort(key=lambda pairs: [-abs(pair.more or 0) for pair in pairs])
    return _SCOPES.of(rows)


def _pair(scope: str, figure: CostFigure, old: Tally | None, new: Tally | None) -> _FigurePair:
    """Return a figure of a scope on both sides; that of a scope which a side does not have is 0."""
    return _FigurePair((scope,), *(0 if tally is None else exact(tally.bounds(figure)) for tally in (old, new)))


def _sums(arrays: Iterable[LiveArray]) -> dict[tuple[str, ...], tuple[int, int]]:
    """Return the number of arrays of each role, shape and phase, and their bytes."""
    sums: dict[tuple[str, ...], tuple[int, int]] = {}
    for array in arrays:
        label = (array.role, "" if array.shape is None else str(array.shape), array.labels.phase)
        count, size = sums.get(label, (0, 0))
        sums[label] = (count + 1, size + array.bytes)
    return sums

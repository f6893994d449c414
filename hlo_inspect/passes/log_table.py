"""The measurements in the text around a module: one row each, and the series among them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

from hlo_inspect.hlo.module import LogEntry
from hlo_inspect.report.model import Column, Table

_ENTRIES = (
    Column("line", "number", get=lambda entry: entry.measurement.line),
    Column("key", get=lambda entry: entry.measurement.key),
    Column("value", "number", get=lambda entry: entry.measurement.value),
    Column("unit", optional=True, get=lambda entry: entry.measurement.unit or None),
    Column("element", "number", optional=True, detail=3, get=lambda entry: entry.measurement.element),
    Column("stands", get=lambda entry: "before" if entry.is_before else "behind"),
    Column("module", detail=4, get=lambda entry: entry.module),
)

Series = tuple[LogEntry, list[float]]

_SERIES = (
    Column("key", get=lambda series: series[0].measurement.key),
    Column("unit", optional=True, get=lambda series: series[0].measurement.unit or None),
    Column("stands", get=lambda series: "before" if series[0].is_before else "behind"),
    Column("count", "count", get=lambda series: len(series[1])),
    Column("median", "number", get=lambda series: median(series[1])),
    Column("minimum", "number", get=lambda series: min(series[1])),
    Column("maximum", "number", get=lambda series: max(series[1])),
)


def log_tables(log: Sequence[LogEntry]) -> Iterator[Table]:
    """The measurements around the module, and median, minimum and maximum of those that are several of one key. A list of
    numbers is a series of its own.
    """
    yield _verbose(Table.of("log", "Measurements around the module", _ENTRIES, log))
    series = _series(log)
    if series:
        yield _verbose(Table.of("log_series", "Series of measurements", _SERIES, series))


def _series(log: Sequence[LogEntry]) -> list[Series]:
    groups: dict[tuple[object, ...], Series] = {}
    for entry in log:
        one = entry.measurement
        label = one.key, one.unit, one.element is None, entry.is_before
        groups.setdefault(label, (entry, []))[1].append(one.value)
    return [series for series in groups.values() if len(series[1]) > 1]


def _verbose(table: Table) -> Table:
    return Table(table.name, table.title, table.columns, table.rows, page_rows=table.page_rows, only_verbose=True)

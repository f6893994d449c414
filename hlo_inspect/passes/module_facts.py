"""The facts of a module that every command gives: header, devices, unreadable lines, and the measurements around it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hlo_inspect.analysis.collectives.logical_collectives import OPCODES, TARGETS
from hlo_inspect.analysis.context import Context
from hlo_inspect.hlo.module import LogEntry, Module
from hlo_inspect.hlo.wants import Wants
from hlo_inspect.passes.base import FactSheet, Pass
from hlo_inspect.report.model import FactSpec, Section
from hlo_inspect.report.table import Column, Table
from hlo_inspect.report.table_spec import TableSpec

_LOG = TableSpec("log", "Measurements around the module", only_verbose=True).with_columns(
    Column("line", "number", get=lambda entry: entry.measurement.line),
    Column("key", get=lambda entry: entry.measurement.key),
    Column("value", "number", real=True, get=lambda entry: entry.measurement.value),
    Column("unit", optional=True, get=lambda entry: entry.measurement.unit or None),
    Column("element", "number", optional=True, detail=3, get=lambda entry: entry.measurement.element),
    Column("stands", get=lambda entry: "before" if entry.is_before else "behind"),
    Column("module", detail=4),
)

Series = tuple[LogEntry, list[float]]


def _median(series: Series) -> float:
    from statistics import median  # imported here: few texts need it

    return median(series[1])


_LOG_SERIES = TableSpec("log_series", "Statistics of measurements", only_verbose=True).with_columns(
    Column("key", get=lambda series: series[0].measurement.key),
    Column("unit", optional=True, get=lambda series: series[0].measurement.unit or None),
    Column("stands", get=lambda series: "before" if series[0].is_before else "behind"),
    Column("count", "count", get=lambda series: len(series[1])),
    Column("median", "number", real=True, get=_median),
    Column("minimum", "number", real=True, get=lambda series: min(series[1])),
    Column("maximum", "number", real=True, get=lambda series: max(series[1])),
)


def log_tables(log: Sequence[LogEntry]) -> Iterator[Table]:
    """Yield the measurements around the module, and median, minimum and maximum for several of one key.

    A list of numbers is a series of its own.
    """
    yield _LOG.of(log)
    series = _series(log)
    if series:
        yield _LOG_SERIES.of(series)


def _series(log: Sequence[LogEntry]) -> list[Series]:
    groups: dict[tuple[object, ...], Series] = {}
    for entry in log:
        measurement = entry.measurement
        label = measurement.key, measurement.unit, measurement.element is None, entry.is_before
        groups.setdefault(label, (entry, []))[1].append(measurement.value)
    return [series for series in groups.values() if len(series[1]) > 1]


class ModuleFacts(Pass):
    """Show the module's name, partitions, replicas and devices, and the lines that could not be read.

    The number of devices comes from the header, else from the ids in device groups and shardings.
    """

    name = "module_facts"
    wants = Wants(opcodes=OPCODES, targets=TARGETS)
    tables = (_LOG, _LOG_SERIES)
    specs = (
        FactSpec("module.name", "text", "the module's name"),
        FactSpec("module.is_scheduled", "bool", "true if the order of instructions is the schedule"),
        FactSpec("module.num_partitions", "count", "partitions of the program that the header prints, else 1"),
        FactSpec("module.replica_count", "count", "replicas that the header prints, else 1"),
        FactSpec(
            "module.shapes",
            "text",
            "shapes of the text: `per_device`, `global` or `mixed`",
            frozenset({"per_device", "global", "mixed"}),
        ),
        FactSpec(
            "module.devices",
            "count",
            "devices of the program over all slices, from the header or the ids in groups and shardings",
        ),
        FactSpec("module.slices", "count", "slices of the program, joined by a data-centre network"),
        FactSpec("module.unparsed_lines", "count", "lines inside the module that could not be read"),
    )

    def run(self, context: Context) -> Section:
        module, header, counts = context.module, context.module.header, context.device_counts
        missing = f"{module.origin} lacks it" if module.origin is not None else ""
        facts = FactSheet()
        facts.values |= dict.fromkeys(spec.name for spec in self.specs)  # notes have another order
        facts.put("module.name", module.name)
        facts.put("module.is_scheduled", header.is_scheduled)
        lines = module.unparsed_lines if module.counts_unparsed_lines else None
        facts.put("module.unparsed_lines", lines, "this command skips lines that it does not need; `summary` reads all of them")
        facts.put("module.devices", counts.devices, "neither the header nor a device group or sharding gives their number")
        facts.put("module.slices", counts.slices)
        facts.put("module.shapes", context.shapes_are, f"{_gap(module)}, so nothing says if shapes are per device")
        facts.put("module.num_partitions", None if missing else header.num_partitions, missing)
        facts.put("module.replica_count", None if missing else header.replica_count, missing)
        return Section(facts.values, notes=facts.notes)


def _gap(module: Module) -> str:
    return "the module is truncated" if module.problems.is_truncated and module.header.printed else "the header is missing"

"""Many modules in one report: a row each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import compress
from operator import attrgetter, itemgetter

from hlo_inspect.figure import at_least
from hlo_inspect.findings.reading_problems import is_truncated
from hlo_inspect.hlo.input.dump_directory import stage_of
from hlo_inspect.passes.partitioning import BEFORE_PARTITIONING, lacks_collectives
from hlo_inspect.report.model import HeadlineRow, Input, Report
from hlo_inspect.report.table import ALL_ROWS, Column, Row, Table, Value, figure_of, number_of, plain
from hlo_inspect.report.table_spec import TableSpec

COMMAND = "list"

_FACTS = {
    "devices": "module.devices",
    "flops": "cost.executed_flops",
    "collectives": "collectives.executed_count",
    "parameters": "params.leaf_count",
    "argument_bytes": "params.bytes",
}
"""Columns that show a fact. One is left out if no report has its fact."""


def _fact(column: str) -> Callable[[Report], Value]:
    """Return a getter of the fact of a column; None for a report that does not have it."""
    name = _FACTS[column]
    return lambda report: figure_of(report.facts, name) if name in report.facts else None


def _collectives(report: Report) -> Value:
    """Return the number of collectives, a lower bound before partitioning."""
    count = _fact("collectives")(report)
    return at_least(count, BEFORE_PARTITIONING) if isinstance(count, int) and lacks_collectives(report) else count


def _stage(report: Report) -> str | None:
    """Return the stage in the name of the file, else `optimized` if the module is scheduled or has fusions."""
    is_optimized = report.facts.get("module.is_scheduled") or report.facts.get("fusions.count")
    return stage_of(report.input.path) or ("optimized" if is_optimized else None)


def _counted(severity: str = "") -> Callable[[Report], Value]:
    """Return a getter of the number of findings, which is a lower bound if rules were left out."""

    def value(report: Report) -> Value:
        count = sum(severity in ("", finding.severity) for finding in report.findings)
        return at_least(count, "rules were left out") if report.left_out_rules else count

    return value


_MODULES = TableSpec("modules", "Modules", page_rows=ALL_ROWS).with_columns(
    Column("name", meaning="name of the module", get=attrgetter("module_name")),
    Column("stage", detail=4, optional=True, meaning="stage in the name of a dump's file", get=_stage),
    Column(
        "truncated",
        "bool",
        optional=True,
        meaning="true if the text ends inside the module",
        get=lambda report: is_truncated(report) or None,
    ),
    Column("lines", "count", summed=True, meaning="lines of the module's text", get=attrgetter("input.lines")),
    Column("devices", "count", detail=2, meaning="devices that run the program", get=_fact("devices")),
    Column("flops", "flops", summed=True, bounded=True, get=_fact("flops")),
    Column("collectives", "count", summed=True, bounded=True, meaning="collectives of one step", get=_collectives),
    Column("parameters", "count", summed=True, detail=3, meaning="arrays of the entry's parameters", get=_fact("parameters")),
    Column(
        "argument_bytes",
        "bytes",
        summed=True,
        detail=1,
        meaning="bytes of the parameters on one device",
        get=_fact("argument_bytes"),
    ),
    Column("findings", "count", summed=True, bounded=True, meaning="number of findings", get=_counted()),
    Column("errors", "count", summed=True, detail=5, bounded=True, meaning="findings that are errors", get=_counted("error")),
    Column(
        "warnings", "count", summed=True, detail=6, bounded=True, meaning="findings that are warnings", get=_counted("warning")
    ),
    Column("path", width=24, is_file=True, meaning="input that holds the module", get=attrgetter("input.place")),
)
TABLES = (_MODULES,)


class ModuleList:
    """The table `modules`. Each report becomes a row as it comes, so that reports need not be kept."""

    def __init__(self) -> None:
        self._rows: list[tuple[int, Row]] = []
        self._lines = self._bytes = 0
        self._known: set[str] = set()
        self._profile: str | None = None

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, report: Report) -> None:
        self._rows.append((-report.input.lines, tuple(column.get(report) for column in _MODULES.columns if column.get)))
        self._known.update(column for column, fact in _FACTS.items() if fact in report.facts)
        self._lines += report.input.lines
        self._bytes += report.input.bytes
        self._profile = report.profile

    def noting(self, reports: Iterable[Report]) -> Iterator[Report]:
        """Yield the reports, and add each when it comes."""
        for report in reports:
            self.add(report)
            yield report

    def report(self, path: str) -> Report:
        """Return the report, the module of most lines first. `path` names the source. Columns without values are left out."""
        shown = [column.name not in _FACTS or column.name in self._known for column in _MODULES.columns]
        rows = [tuple(compress(row, shown)) for _, row in sorted(self._rows, key=itemgetter(0))]
        table = replace(_MODULES.of((), columns=compress(_MODULES.columns, shown)), rows=tuple(rows))
        return Report(
            COMMAND,
            Input(path, first_line=1, lines=self._lines, bytes=self._bytes),
            facts={},
            tables=(table,),
            notes=tuple(_notes(table)),
            profile=self._profile,
            title=number_of(len(rows), "module"),
            headline=tuple(_warnings(table)),
        )


def _warnings(table: Table) -> Iterator[HeadlineRow]:
    """Yield a line with the first truncated module and the number of others, if there is one."""
    truncated = [record for record in table.records() if record["truncated"]]
    if truncated:
        first, others = truncated[0], f" and {len(truncated) - 1:,} more" if len(truncated) > 1 else ""
        text = f"TRUNCATED: {first['name']} in {first['path']}{others}; their counts are lower bounds"
        yield HeadlineRow("", (text,), severity="error")


def _notes(table: Table) -> Iterator[str]:
    """Yield the columns that hold unknown values: each module's own summary says why."""
    for index, column in enumerate(table.columns):
        unknown = sum(plain(row[index]) is None for row in table.rows)
        if unknown and not column.optional:
            yield f"{column.name}: unknown for {unknown} of {len(table.rows)} modules; run `summary -v` on one for the reason"

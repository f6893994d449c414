"""Many modules in one report: a row each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from operator import itemgetter

from hlo_inspect.figure import at_least
from hlo_inspect.findings.reading_problems import is_truncated
from hlo_inspect.hlo.input.dump_directory import stage_of
from hlo_inspect.report.model import HeadlineRow, Input, Report
from hlo_inspect.report.table import ALL_ROWS, Column, Row, Table, Unit, Value, figure_of, number_of, plain

COMMAND = "list"


class ModuleList:
    """The table `modules`. Each report becomes a row as it comes, so that reports need not be kept."""

    def __init__(self) -> None:
        self._columns = list(_columns())
        self._rows: list[tuple[int, Row]] = []
        self._lines = self._bytes = 0
        self._known: set[str] = set()
        self._profile: str | None = None

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, report: Report) -> None:
        self._rows.append((-report.input.lines, tuple(column.get(report) for column, _ in self._columns if column.get)))
        self._known.update(fact for _, fact in self._columns if fact in report.facts)
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
        chosen = [index for index, (_, fact) in enumerate(self._columns) if not fact or fact in self._known]
        rows = [tuple(row[index] for index in chosen) for _, row in sorted(self._rows, key=itemgetter(0))]
        columns = tuple(self._columns[index][0]._replace(get=None) for index in chosen)
        table = Table("modules", "Modules", columns, tuple(rows), page_rows=ALL_ROWS)
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


def _columns() -> Iterator[tuple[Column, str]]:
    """Yield the columns, each with the name of the fact that it shows, or ""."""
    yield Column("name", get=lambda report: report.module_name), ""
    yield Column("stage", detail=4, optional=True, get=_stage), ""
    yield Column("truncated", "bool", optional=True, get=lambda report: is_truncated(report) or None), ""
    yield Column("lines", "count", summed=True, get=lambda report: report.input.lines), ""
    yield Column("devices", "count", detail=2, get=_fact("module.devices")), "module.devices"
    yield _bounded("flops", "flops", "cost.executed_flops"), "cost.executed_flops"
    yield _bounded("collectives", "count", "collectives.executed_count"), "collectives.executed_count"
    yield Column("parameters", "count", summed=True, detail=3, get=_fact("params.leaf_count")), "params.leaf_count"
    yield Column("argument_bytes", "bytes", summed=True, detail=1, get=_fact("params.bytes")), "params.bytes"
    yield _counted("findings", lambda report: len(report.findings)), ""
    yield _counted("errors", _count_severity("error"), detail=5), ""
    yield _counted("warnings", _count_severity("warning"), detail=6), ""
    yield Column("path", width=24, is_file=True, get=lambda report: report.input.place), ""


def _counted(name: str, count: Callable[[Report], int], detail: int = 0) -> Column:
    """Return the column of a number of findings, which is a lower bound if rules were left out."""

    def value(report: Report) -> Value:
        return at_least(count(report), "rules were left out") if report.left_out_rules else count(report)

    return Column(name, "count", summed=True, detail=detail, bounded=True, get=value)


def _bounded(name: str, unit: Unit, fact: str) -> Column:
    return Column(name, unit, summed=True, bounded=True, get=_fact(fact))


def _fact(name: str) -> Callable[[Report], Value]:
    """Return a getter of a fact; None for a report that does not have it."""
    return lambda report: figure_of(report.facts, name) if name in report.facts else None


def _count_severity(severity: str) -> Callable[[Report], int]:
    return lambda report: sum(finding.severity == severity for finding in report.findings)


def _stage(report: Report) -> str | None:
    """Return the stage in the name of the file, else `optimized` if the module is scheduled or has fusions."""
    is_optimized = report.facts.get("module.is_scheduled") or report.facts.get("fusions.count")
    return stage_of(report.input.path) or ("optimized" if is_optimized else None)


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

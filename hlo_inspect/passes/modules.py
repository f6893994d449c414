"""Many modules in one report: a row each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from hlo_inspect.hlo.dump_directory import stage_of
from hlo_inspect.report.model import LOWER_BOUND, Column, Input, Report, Table, Value

COMMAND = "list"
PASSES = ("params", "fusions", "collectives")
"""The passes whose facts the table shows, beside those that the summary adds."""


def modules_report(reports: Sequence[Report], path: str) -> Report:
    """The table `modules`, a row for each report, the module with the most lines first; `path` names where they come from.

    Columns of facts that no report has are left out.
    """
    largest_first = sorted(reports, key=lambda report: -report.input.lines)
    columns = [column for column, fact in _columns() if not fact or any(fact in report.facts for report in reports)]
    table = Table.of("modules", "Modules", columns, largest_first, page_rows=0)
    lines, size = (sum(counts) for counts in zip(*((one.input.lines, one.input.bytes) for one in reports), strict=True))
    return Report(
        COMMAND,
        Input(path, first_line=1, lines=lines, bytes=size),
        facts={},
        tables=(table,),
        notes=tuple(_notes(table)),
        profile=reports[0].profile,
        title=f"{len(reports)} module{'' if len(reports) == 1 else 's'}",
    )


def _columns() -> Iterator[tuple[Column, str]]:
    """The columns, each with the fact that it shows where it is one."""
    yield Column("name", get=_fact("module.name")), "module.name"
    yield Column("stage", detail=4, optional=True, get=_stage), ""
    yield Column("lines", "count", summed=True, get=lambda report: report.input.lines), ""
    yield Column("devices", "count", detail=2, get=_fact("module.devices")), "module.devices"
    yield from _bounded(Column("flops", "flops", summed=True), "cost.executed_flops")
    yield from _bounded(Column("collectives", "count", summed=True), "collectives.executed_count")
    yield Column("parameters", "count", summed=True, detail=3, get=_fact("params.leaf_count")), "params.leaf_count"
    yield Column("argument_bytes", "bytes", summed=True, get=_fact("params.bytes")), "params.bytes"
    yield Column("findings", "count", summed=True, get=lambda report: len(report.findings)), ""
    yield Column("errors", "count", summed=True, detail=5, get=_of_severity("error")), ""
    yield Column("warnings", "count", summed=True, detail=6, get=_of_severity("warning")), ""
    yield Column("path", detail=1, width=24, is_file=True, get=_place), ""


def _bounded(column: Column, fact: str) -> Iterator[tuple[Column, str]]:
    yield Column(column.name, column.unit, column.summed, column.detail, get=_fact(fact)), fact
    yield column.lower_bound(_fact(fact + LOWER_BOUND, fact)), fact


def _fact(*names: str) -> Callable[[Report], Value]:
    """Takes the first of these facts that a report has."""
    return lambda report: next((report.facts[name] for name in names if name in report.facts), None)


def _of_severity(severity: str) -> Callable[[Report], Value]:
    return lambda report: sum(finding.severity == severity for finding in report.findings)


def _stage(report: Report) -> str | None:
    """The stage in the name of the file, else `optimized` where the text is scheduled or holds fusions."""
    is_optimized = report.facts.get("module.is_scheduled") or report.facts.get("fusions.count")
    return stage_of(report.input.path) or ("optimized" if is_optimized else None)


def _place(report: Report) -> str:
    source = report.input
    return source.path if source.first_line == 1 else f"{source.path}:{source.first_line}"


def _notes(table: Table) -> Iterator[str]:
    """Which columns hold unknown values: each module's own summary says why."""
    for at, column in enumerate(table.columns):
        unknown = sum(row[at] is None for row in table.rows)
        if unknown and not column.optional:
            yield f"{column.name}: unknown in {unknown} of {len(table.rows)}; `summary` with -v says why"

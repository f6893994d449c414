"""Reports without some of their parts, for an output with a limit: what a format shows, what comes first, what can lack."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Literal, NamedTuple

from hlo_inspect.report.formats import CI_FORMATS, FORMATS_FOR_PEOPLE, FORMATS_OF_ROWS, OWN_FORMATS
from hlo_inspect.report.formats.graphs import MOST_NODES, distance
from hlo_inspect.report.formats.perfetto import begin
from hlo_inspect.report.model import SEVERITIES, Report, most_severe_first
from hlo_inspect.report.page import shown_findings
from hlo_inspect.report.render_options import RenderOptions, shown_tables
from hlo_inspect.report.table import Plain, Table

Kind = Literal["module", "first line", "finding", "ignored finding", "fact", "row", "text", "note"]
"""Nouns of the items of a portion; the last line of an output counts those that it lacks."""

_JUNIT = "junit"
_CHECKS, _RULES = "checks", "rule_results"
_NODES, _EVENTS = "graph_nodes", ("time_events", "measured_events")

_ITEMS: Mapping[str, Sequence[str]] = {
    _JUNIT: (_CHECKS, _RULES),
    "perfetto": _EVENTS,
    **dict.fromkeys(("dot", "mermaid", "svg"), (_NODES,)),
}
"""Tables of a format whose rows are test cases, events or nodes: rows that are cut are summed in none."""

_FIRST: Mapping[str, Callable[[Mapping[str, Plain]], float]] = {
    _NODES: distance,
    _RULES: lambda case: case["status"] != "failed",
    **dict.fromkeys(_EVENTS, begin),
}
"""Keys by which such rows come first; others come in their order."""


class Portion(NamedTuple):
    """Items of one kind of the report at a position, which are cut from the end; those of a table are its rows.

    `least` more items are never cut. The one item of a portion of kind `module` is the report itself.
    """

    report: int
    kind: Kind
    size: int
    table: str = ""
    least: int = 0


@dataclass(frozen=True, slots=True)
class ReportCuts:
    """Reports cut for one format, with the user's choices."""

    form: str
    options: RenderOptions

    def prepared(self, report: Report) -> Report:
        """Return the report with the tables and findings that its format shows."""
        form, options = self.form, self.options
        if form in OWN_FORMATS or form == _JUNIT:
            return report
        if form in CI_FORMATS:
            findings = most_severe_first((*report.failed_checks, *report.findings))
            return replace(report, tables=(), failed_checks=(), findings=tuple(findings))
        tables = shown_tables(report, options, for_people=form in FORMATS_FOR_PEOPLE)
        shown = tuple(replace(table, page_as="", on_page=True, only_verbose=False) for table in tables)
        if form in FORMATS_OF_ROWS:
            shows_facts = options.table is None and report.command == "summary"
            shown = () if shows_facts else shown[:1]
        return replace(report, tables=shown)

    def portions(self, reports: Sequence[Report]) -> Iterator[Portion]:
        """Yield the portions of prepared reports, those first that an output has first. The first report is in every output."""
        if self.form == _JUNIT:
            yield from _portions_of_junit(reports)
        elif self.form in CI_FORMATS:
            yield from _portions_by_severity(reports)
        else:
            for index, report in enumerate(reports):
                yield from [Portion(index, "module", 1)] if index else []
                yield from self._portions(index, report)

    def _portions(self, index: int, report: Report) -> Iterator[Portion]:
        form, options = self.form, self.options
        facts = Portion(index, "fact", max(len(report.facts) - 1, 0), least=1)  # the first is the name of the module
        findings = Portion(index, "finding", len(report.findings))
        notes = Portion(index, "note", len(report.notes))
        tables = [_rows(index, table, least=0 if options.table is None else 1) for table in report.tables]
        if form in OWN_FORMATS:
            items = [_rows(index, table) for table in report.tables if table.name in _ITEMS[form]]
            yield from (
                items
                if form == "perfetto"
                else (nodes._replace(size=min(nodes.size, MOST_NODES) - 1, least=1) for nodes in items)
            )
        elif form in FORMATS_OF_ROWS:
            yield from [_rows(index, table, least=1) for table in report.tables] or [facts]
        elif form in FORMATS_FOR_PEOPLE:
            yield Portion(index, "first line", len(report.headline))
            remarks = [] if options.quiet else [findings._replace(size=len(shown_findings(report, options)))]
            yield from tables + remarks if report.answers_in_tables else remarks + tables
            yield from (Portion(index, "text", len(report.passages)), *([] if options.quiet else [notes]))
        else:
            others = (facts, findings)
            yield from (
                (*tables, *others, notes) if len(tables) == 1 else (*others, *tables, notes)
            )  # one table may be asked for

    def cut(self, reports: Sequence[Report], counts: Iterable[tuple[Portion, int]]) -> list[Report]:
        """Return the reports with so much of each portion as its count says."""
        cut: dict[int, list[tuple[Portion, int]]] = {}
        absent = set()
        for portion, count in counts:
            cut.setdefault(portion.report, []).append((portion, count))
            if portion.kind == "module" and not count:
                absent.add(portion.report)
        items = _ITEMS.get(self.form, ())
        return [_cut(report, cut.get(index, ()), items) for index, report in enumerate(reports) if index not in absent]


def _portions_by_severity(reports: Sequence[Report]) -> Iterator[Portion]:
    """Yield the findings of all reports, the most severe first; ignored findings last."""
    for severity in SEVERITIES:
        for index, report in enumerate(reports):
            yield Portion(index, "finding", sum(finding.severity == severity for finding in report.findings))
    for index, report in enumerate(reports):
        yield Portion(index, "ignored finding", len(report.ignored))


def _portions_of_junit(reports: Sequence[Report]) -> Iterator[Portion]:
    """Yield the failed test cases of all reports, what they print, and the other test cases."""
    for index, report in enumerate(reports):
        yield from _cases(index, report, failed=True)
    for index, report in enumerate(reports):
        yield Portion(index, "finding", len(report.findings))
        yield from (_rows(index, table) for table in report.tables if table.name.startswith("rows_"))
    for index, report in enumerate(reports):
        yield from _cases(index, report, failed=False)


def _cases(index: int, report: Report, *, failed: bool) -> Iterator[Portion]:
    for table in report.tables:
        if table.name in _ITEMS[_JUNIT]:
            yield Portion(index, "row", sum((case["status"] == "failed") == failed for case in table.records()), table.name)


def _rows(index: int, table: Table, *, least: int = 0) -> Portion:
    rows = len(table.rows) - (1 if table.others else 0)
    if table.page_rows == 0 and any(column.summed for column in table.columns):
        rows = 1  # its total needs all of its rows
    return Portion(index, "row", max(rows, 1) - least, table.name, least)


def _cut(report: Report, counts: Iterable[tuple[Portion, int]], tables_of_items: Collection[str]) -> Report:
    incomplete = [(portion, portion.least + count) for portion, count in counts if count < portion.size]
    rows = {portion.table: count for portion, count in incomplete if portion.kind == "row"}
    limits = {portion.kind: count for portion, count in incomplete if portion.kind != "row"}
    tables = [
        _cut_table(table, rows[table.name], has_items=table.name in tables_of_items) if table.name in rows else table
        for table in report.tables
    ]
    return replace(
        report,
        facts=dict(islice(report.facts.items(), limits["fact"])) if "fact" in limits else report.facts,
        tables=tuple(table for table in tables if table is not None),
        findings=report.findings[: limits.get("finding")],
        ignored=report.ignored[: limits.get("ignored finding")],
        headline=report.headline[: limits.get("first line")],
        passages=report.passages[: limits.get("text")],
        notes=report.notes[: limits.get("note")],
    )


def _cut_table(table: Table, rows: int, *, has_items: bool) -> Table | None:
    """Return the table with its first rows, and with the sum of the others unless it `has_items`; None without a row."""
    if has_items:
        return _first_items(table, rows)
    if not rows:
        return None
    return table.top(rows) if table.page_rows else replace(table, rows=table.rows[:rows])


def _first_items(table: Table, items: int) -> Table:
    """Return the table with the rows that come first by `_FIRST`, in their own order."""
    first = _FIRST.get(table.name)
    positions: Iterable[int] = range(items)
    if first is not None:
        records = table.records()
        positions = sorted(sorted(range(len(records)), key=lambda position: first(records[position]))[:items])
    return replace(table, rows=tuple(table.rows[position] for position in positions))

"""A view of a page in words: what its template shows beside pictures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from hlo_inspect.errors import printable
from hlo_inspect.report.html.model import Chart, PageSection, PageView
from hlo_inspect.report.layout import Grid, make_grid
from hlo_inspect.report.model import Finding, HeadlineRow, Passage, Report, Table, Value
from hlo_inspect.report.options import RenderOptions
from hlo_inspect.report.page import headline_text, input_details, module_details, reasons_of_unknown, split_headline

BEHIND_NAMES = frozenset({"instructions", "call_stacks"})
"""Tables that describe what other tables name."""

_LINES = "finding_lines"
_STATIC_ROWS = 40  # of a table that pages show whole, too: it can be long
_OVERVIEW = frozenset({"", "summary"})
"""The commands of the first lines that a view begins with."""


@dataclass(frozen=True, slots=True)
class SectionText:
    """A section with the tables that the view has, and the first lines above it."""

    section: PageSection
    pictures: tuple[Chart, ...]
    tables: tuple[Table, ...]
    lines: Sequence[tuple[str, str]]

    @property
    def is_empty(self) -> bool:
        return not self.pictures and not any(table.rows for table in self.tables)


@dataclass(frozen=True, slots=True)
class RuleText:
    """The findings of one rule with its documentation: its name, what it is in one line, and the passages."""

    code: str
    severity: str
    name: str
    findings: Sequence[Finding]
    passages: Sequence[Passage]


class ViewText:
    """What the template asks of a view, whose tables are `shown` with relative paths."""

    def __init__(
        self, view: PageView, shown: Mapping[str, Table], documentation: Mapping[str, Report], options: RenderOptions
    ) -> None:
        report = view.report
        self._options = options
        self._tables = shown
        self.view = view
        self.prefix = f"{view.name}/" if view.name else ""
        self.details = [*module_details(report), *input_details(report)]
        warnings, rows = split_headline(report)
        self.warnings = [headline_text(row, options.raw_bytes) for row in warnings]
        above = {section.command for section in view.sections} - _OVERVIEW
        self.headline = self._lines(row for row in rows if row.command not in above)
        self.sections = [self._section(section, rows) for section in view.sections]
        self.rules = list(_by_rule(report.findings, documentation))
        lines = self._tables.get(_LINES)
        self.line_texts: dict[Value, Value] = {row[0]: row[1] for row in lines.rows} if lines is not None else {}
        reasons = reasons_of_unknown(report)
        self.notes = [printable(note) for note in (*reasons, *(note for note in report.notes if note not in reasons))]
        self.passages = report.passages

    def _lines(self, rows: Iterable[HeadlineRow]) -> list[tuple[str, str]]:
        return [(printable(row.label), headline_text(row, self._options.raw_bytes)) for row in rows]

    def _section(self, section: PageSection, rows: Sequence[HeadlineRow]) -> SectionText:
        names = dict.fromkeys((*section.tables, *(picture.table for picture in section.pictures)))
        tables = tuple(self._tables[name] for name in names if name in self._tables)
        above = [row for row in rows if section.command and row.command == section.command]
        return SectionText(section, section.pictures, tables, self._lines(above))

    def quoted(self, rule: RuleText) -> list[str]:
        """The lines that the findings of a rule name, each once."""
        places = [finding.location for finding in rule.findings if finding.location is not None]
        numbers = dict.fromkeys(place.line for place in places if place.path == self.view.report.input.path)
        return [str(self.line_texts[number]) for number in numbers if number in self.line_texts]

    @property
    def copied(self) -> str:
        """The first lines as plain text."""
        title = " · ".join((printable(self.view.title), *self.details))
        width = max((len(label) for label, _ in self.headline), default=0)
        lines = [f"{label:{width}}  {text}" if label else text for label, text in self.headline]
        return "\n".join((title, *self.warnings, *lines)).replace("\u00a0", " ")

    def grid(self, table: Table) -> Grid:
        """The first rows, for paper and for browsers without scripts."""
        top = self._options.top
        rows = min((table.page_rows if top is None else top) or _STATIC_ROWS, _STATIC_ROWS)
        return make_grid(replace(table, page_rows=rows).top(rows), None, self._options.raw_bytes)


def _by_rule(findings: Iterable[Finding], documentation: Mapping[str, Report]) -> Iterator[RuleText]:
    """The findings by their rules, in the order of the first of each."""
    groups: dict[str, list[Finding]] = {}
    for finding in findings:
        groups.setdefault(finding.rule, []).append(finding)
    for code, found in groups.items():
        page = documentation.get(code)
        name = str(page.facts.get("rule.name", "")) if page is not None else ""
        yield RuleText(code, found[0].severity, name, found, page.passages if page is not None else ())

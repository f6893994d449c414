"""The texts of a view for the templates: its title, first lines, strips, findings and groups of tables."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from hlo_inspect.errors import printable
from hlo_inspect.report.finding_groups import FindingGroup
from hlo_inspect.report.formats.html.page_model import Chart, PageSection, PageView, TableGroup
from hlo_inspect.report.formats.html.strips import strips_of
from hlo_inspect.report.layout import Grid, make_grid
from hlo_inspect.report.model import Finding, HeadlineRow, Passage, Report
from hlo_inspect.report.page import (
    SUMMARY,
    headline_text,
    input_details,
    module_details,
    page_notes,
    saving_text,
    split_headline,
)
from hlo_inspect.report.render_options import RenderOptions
from hlo_inspect.report.table import Table, Value

_LINES = "finding_lines"
_STATIC_ROWS = 40  # also of a table that pages show whole, because it can be long
_OPEN_RULES = 3  # rules of the largest savings, which stand open though they be infos
_OVERVIEW = frozenset({"", "summary"})
"""The commands of the first lines that a view begins with."""


@dataclass(frozen=True, slots=True)
class GroupText:
    """A group of tables: the first is shown, and the others are chosen by their labels."""

    title: str
    choices: Sequence[tuple[str, Table]]

    @property
    def first(self) -> Table:
        return self.choices[0][1]


@dataclass(frozen=True, slots=True)
class SectionText:
    """A section with its groups of tables, and the first lines above it."""

    section: PageSection
    pictures: tuple[Chart, ...]
    groups: tuple[GroupText, ...]
    lines: Sequence[tuple[str, str]]

    @property
    def is_empty(self) -> bool:
        return not (self.pictures or self.groups or self.lines or self.section.text)


@dataclass(frozen=True, slots=True)
class RuleText:
    """The findings of one rule with its documentation: its name, its summary line, and the passages."""

    code: str
    severity: str
    name: str
    findings: Sequence[Finding]
    passages: Sequence[Passage]

    @property
    def saving(self) -> str:
        """The saving of all findings of the rule; empty if nothing is counted."""
        return saving_text(FindingGroup(tuple(self.findings)).merged)


class ViewText:
    """The texts of a view for the template. `shown` are its tables with relative paths."""

    def __init__(
        self, view: PageView, shown: Mapping[str, Table], documentation: Mapping[str, Report], options: RenderOptions
    ) -> None:
        report = view.report
        self._options = options
        self._tables = shown
        self.view = view
        self.prefix = f"{view.name}/" if view.name else ""
        self.details = [*module_details(report), *input_details(report, options)]
        warnings, rows = split_headline(report)
        self.title, self.subject = self._title(rows)
        self.strips = strips_of(shown)
        self.command = _command_with_profile(report) if "cost_by_phase" in shown and report.profile is None else ""
        self.warnings = [headline_text(row, options.raw_bytes) for row in warnings]
        above = {section.command for section in view.sections} - _OVERVIEW
        self.headline = self._lines(row for row in rows if row.command not in above and not self._is_title(row))
        sections = [self._section(section, rows) for section in view.sections]
        self.sections = [section for section in sections if not section.is_empty]
        self.empty = [section.section for section in sections if section.is_empty and section.section.nothing]
        self.rules = list(_by_rule(report.findings, documentation))
        opened = [rule for rule in self.rules[:_OPEN_RULES] if rule.saving]
        self.infos = [rule for rule in self.rules if rule.severity == "info" and rule not in opened]
        lines = self._tables.get(_LINES)
        self.line_texts: dict[Value, Value] = {row[0]: row[1] for row in lines.rows} if lines is not None else {}
        reasons, remarks = page_notes(report)
        self.notes = [printable(note) for note in (*reasons, *remarks)]
        self.passages = report.passages

    @staticmethod
    def _is_title(row: HeadlineRow) -> bool:
        return row.command == SUMMARY and not row.label

    def _title(self, rows: Sequence[HeadlineRow]) -> tuple[str, str]:
        """Return what the program is, and what it is about; the title of the view if no line says it."""
        said = next(filter(self._is_title, rows), None)
        if said is None:
            return printable(self.view.title), ""
        title, _, subject = headline_text(said, self._options.raw_bytes).partition(" (")
        return title[:1].upper() + title[1:], subject.removesuffix(")")

    def _lines(self, rows: Iterable[HeadlineRow]) -> list[tuple[str, str]]:
        return [(printable(row.label), headline_text(row, self._options.raw_bytes)) for row in rows]

    def _section(self, section: PageSection, rows: Sequence[HeadlineRow]) -> SectionText:
        above = [row for row in rows if section.command and row.command == section.command]
        return SectionText(section, section.pictures, tuple(map(self._group, section.groups)), self._lines(above))

    def _group(self, group: TableGroup) -> GroupText:
        choices = [(label, self._tables[name]) for name, label in group.choices.items()]
        return GroupText(group.title if len(choices) > 1 else choices[0][1].title, choices)

    def quoted(self, rule: RuleText) -> list[str]:
        """Return the lines that the findings of a rule name, each once."""
        places = [finding.location for finding in rule.findings if finding.location is not None]
        numbers = dict.fromkeys(place.line for place in places if place.path == self.view.report.input.path)
        return [str(self.line_texts[number]) for number in numbers if number in self.line_texts]

    @property
    def findings_first(self) -> bool:
        """True unless the view is about what differs."""
        return self.view.report.command != "diff"

    @property
    def copied(self) -> str:
        """The first lines as plain text."""
        title = " · ".join((printable(self.view.title), *self.details))
        width = max((len(label) for label, _ in self.headline), default=0)
        lines = [f"{label:{width}}  {text}" if label else text for label, text in self.headline]
        said = [f"{self.title} ({self.subject})" if self.subject else self.title] if self.title != self.view.title else []
        return "\n".join((title, *said, *self.warnings, *lines)).replace("\u00a0", " ")

    def grid(self, table: Table) -> Grid:
        """Return the first rows, for paper and for browsers without scripts."""
        top = self._options.top
        rows = min((table.page_rows if top is None else top) or _STATIC_ROWS, _STATIC_ROWS)
        return make_grid(replace(table, page_rows=rows).top(rows), None, self._options.raw_bytes)


def _command_with_profile(report: Report) -> str:
    """Return the command that adds times to the page of a module."""
    platform = next((str(row.parts[0]) for row in report.headline if row.label == "platform"), "")
    profile = "tpu-v5e" if platform.startswith("tpu") else "h100-sxm"
    return f"hlo-inspect report {shlex.quote(printable(report.input.path))} --profile {profile} -o report.html"


def _by_rule(findings: Iterable[Finding], documentation: Mapping[str, Report]) -> Iterator[RuleText]:
    """Yield the findings by their rules, in the order of the first of each."""
    groups: dict[str, list[Finding]] = {}
    for finding in findings:
        groups.setdefault(finding.rule, []).append(finding)
    for code, findings_of_rule in groups.items():
        page = documentation.get(code)
        name = str(page.facts.get("rule.name", "")) if page is not None else ""
        yield RuleText(code, findings_of_rule[0].severity, name, findings_of_rule, page.passages if page is not None else ())

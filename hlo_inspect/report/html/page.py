"""The page as HTML: templates, and blocks with the data of tables and pictures for the page's script."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from html import unescape
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TextIO

from hlo_inspect.errors import printable
from hlo_inspect.report.html import assets
from hlo_inspect.report.html.charts.palette import css_variables
from hlo_inspect.report.html.model import Chart, Measure, Page, PageSection, PageView, TableGroup
from hlo_inspect.report.html.strips import strips_of
from hlo_inspect.report.html.table_data import table_data
from hlo_inspect.report.layout import Grid, make_grid
from hlo_inspect.report.model import Finding, HeadlineRow, Passage, Report, Table, Value, number_of
from hlo_inspect.report.options import RenderOptions, naming, with_relative_paths
from hlo_inspect.report.page import (
    SUMMARY,
    headline_text,
    input_details,
    module_details,
    page_notes,
    paragraphs,
    split_headline,
)
from hlo_inspect.report.units import decimal_factors, format_value
from hlo_inspect.version import __version__

if TYPE_CHECKING:
    from jinja2 import Environment


def write_page(page: Page, stream: TextIO, options: RenderOptions) -> None:
    """Write the page piece by piece, so that only one block of data is in memory beside the reports.

    The views after the first are packed: the page's script makes them when they are shown.
    """
    script, libraries = assets.page_script(), assets.libraries(_kinds(page))
    styles = (assets.tables_style(), css_variables(), assets.read_asset("style.css"))
    title = printable(page.views[0].title) if page.views else ""
    policy = assets.policy((script, *libraries.values()))
    stream.write(render_template("head.html", title=title, policy=policy, styles=styles, version=__version__))
    for number, view in enumerate(page.views):
        pieces = _view(view, page, options)
        if number == 0:
            stream.writelines(pieces)
        else:
            stream.write(render_template("packed.html", name=view.name, text=assets.packed_pieces(pieces)))
    quantities = json_block(decimal_factors())
    stream.write(render_template("foot.html", version=__version__, quantities=quantities, script=script, libraries=libraries))


def _kinds(page: Page) -> set[str]:
    """Return the kinds of pictures that the page has."""
    charts = [chart for view in page.views for section in view.sections for chart in section.pictures if not chart.is_single]
    figures = [figure for chart in charts for figure in (chart.figure, *(measure.figure for measure in chart.measures))]
    return {trace["type"] for figure in figures for trace in figure["data"]}


def _view(view: PageView, page: Page, options: RenderOptions) -> Iterator[str]:
    """Yield a view and its data, piece by piece."""
    with naming(view.report):
        shown = {table.name: table for table in with_relative_paths(view.tables)}
        yield render_template("view.html", view=ViewText(view, shown, page.documentation, options))
        yield from _blocks(view, shown, options)


def _blocks(view: PageView, shown: Mapping[str, Table], options: RenderOptions) -> Iterator[str]:
    """Yield the data of a view's pictures and tables."""
    pictures = [picture for section in view.sections for picture in section.pictures if not picture.is_single]
    for picture in pictures:
        measures = picture.measures or (Measure("", picture.figure),)
        figures = [
            {"label": measure.label, "figure": measure.figure, "text": measure.text or picture.text} for measure in measures
        ]
        yield _block(view, "picture", picture.name, {"figures": figures, "height": picture.height, "table": picture.table})
    named = {name for section in view.sections for name in section.tables} | BEHIND_NAMES
    for whole in view.tables:
        if whole.name in named and whole.rows:
            table, others = whole.top(options.top or 0), shown[whole.name].top(options.top or 0)
            if table.name == _INSTRUCTIONS and table.columns[-1].name == _LINE:
                lines = assets.packed_pieces([json_block([row[-1] for row in table.rows])])
                yield render_template("lines.html", view=view.name, text=lines)
                table = replace(table, columns=table.columns[:-1], rows=[row[:-1] for row in table.rows])
            data = table_data(table, others, options.raw_bytes)
            links = view.links.get(table.name)
            yield _block(view, "table", table.name, {**data, "links": links} if links else data)


def _block(view: PageView, kind: str, name: str, data: Mapping[str, object]) -> str:
    tag = render_template("block.html", view=view.name, kind=kind, name=name, rows=data.get("rows"))
    return f"{tag}{json_block(data)}</script>\n"


def render_template(name: str, /, **values: object) -> str:
    """Return the text of the template of that name. Every value is escaped, except the files of this package and of its extra.

    A lone surrogate, which UTF-8 does not have, becomes a question mark.
    """
    return _environment().get_template(name).render(**values).encode("utf-8", "replace").decode("utf-8")


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=PackageLoader("hlo_inspect.report.html"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "asset": Markup,
        "packed": assets.packed,
        "printable": printable,
        "paragraphs": paragraphs,
        "counted": number_of,
    }
    return environment


_INSTRUCTIONS, _LINE = "instructions", "text"
"""The table of instructions, and its last column, which waits compressed."""

BEHIND_NAMES = frozenset({_INSTRUCTIONS, "call_stacks"})
"""Tables that describe what other tables name."""

_LINES = "finding_lines"
_STATIC_ROWS = 40  # also of a table that pages show whole, because it can be long
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
        self.details = [*module_details(report), *input_details(report)]
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
        self.infos = [rule for rule in self.rules if rule.severity == "info"]
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


LIMIT = 100_000_000
"""Bytes of a page that opens quickly and can be sent."""

_ROWS = (10_000, 3_000, 1_000, 300, 100, 30, 10)
"""Rows of each table that are offered."""

_TABLE = re.compile(r'<script type="application/json" data-view="([^"]*)" data-table="[^"]*" data-rows="(\d+)">')
_PACKED = re.compile(r'<script type="application/octet-stream" data-packed="[^"]*">([^<]*)')
_VIEW = re.compile(r'<main data-view="([^"]*)" data-title="([^"]*)"')


class _WrittenTable(NamedTuple):
    """A table of a page: the view that has it, its rows, and how many characters it takes."""

    view: str
    rows: int
    size: int


def advice(path: Path, limit: int = LIMIT) -> str:
    """Return the -n or --module that makes the page smaller, if it has more bytes than the limit, else ""."""
    size = path.stat().st_size
    if size <= limit:
        return ""
    titles: dict[str, str] = {}
    tables: list[_WrittenTable] = []
    with path.open(encoding="utf-8", newline="\n") as lines:
        for line, written in _unpacked_lines(lines):
            if (table := _TABLE.match(line)) is not None:
                tables.append(_WrittenTable(table[1], int(table[2]), written))
            elif (start := _VIEW.search(line)) is not None:
                titles[start[1]] = printable(unescape(start[2]))
    words = [*_fewer_rows(size, tables, limit), *_fewer_modules(tables, titles)]
    return f"the page has {format_value(size, 'bytes')}; browsers open it slowly: {'; '.join(words)}"


def _unpacked_lines(lines: Iterable[str]) -> Iterator[tuple[str, int]]:
    """Yield the lines of all views, each with the characters that it takes in the file."""
    for line in lines:
        if (view := _PACKED.match(line)) is None:
            yield line, len(line)
            continue
        text = assets.unpacked(view[1])
        for line_of_view in text.splitlines():
            yield line_of_view, len(line_of_view) * len(line) // len(text)


def _fewer_rows(size: int, tables: Sequence[_WrittenTable], limit: int) -> Iterable[str]:
    """Yield the most rows of each table with which the page is small enough, else the fewest that are offered."""
    largest = max((table.rows for table in tables), default=0)
    for rows in _ROWS:
        left_out = sum(table.size * (table.rows - rows) // table.rows for table in tables if table.rows > rows)
        if rows < largest and (size - left_out <= limit or rows == _ROWS[-1]):
            yield f"-n {rows} makes it about {format_value(size - left_out, 'bytes')}"
            return


def _fewer_modules(tables: Sequence[_WrittenTable], titles: dict[str, str]) -> Iterable[str]:
    """Yield the advice to leave out the module that takes most, if there are several."""
    if len(titles) > 1 and tables:
        sizes = {view: sum(table.size for table in tables if table.view == view) for view in titles}
        largest = max(sizes, key=lambda view: sizes[view])
        yield (f"--module REGEX leaves modules out; the largest is {titles[largest]}, {format_value(sizes[largest], 'bytes')}")


_ESCAPES = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


def json_block(value: object) -> str:
    """Return JSON for the inside of a script element.

    Unprintable characters are escapes: those that turn the direction of the text, or a lone surrogate of a file's name that is
    not UTF-8.
    """
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for character, escape in _ESCAPES.items():
        text = text.replace(character, escape)
    hidden = {
        ord(c): f"\\u{ord(c):04x}" for c in set(text) if not c.isprintable() and "\x7e" < c < "\U00010000" and c != "\u00a0"
    }
    return text.translate(hidden) if hidden else text

"""Reports → the views of a page.

The order of the reports says what belongs together. The history of compiler passes follows its module, and two modules
follow their comparison. The list of all is at the end.
"""

from __future__ import annotations

import heapq
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace

from hlo_inspect.errors import printable
from hlo_inspect.report.formats.html.charts.chart_rows import by_name
from hlo_inspect.report.formats.html.module_sections import module_sections
from hlo_inspect.report.formats.html.other_sections import difference_sections, history_section, index_section, is_index
from hlo_inspect.report.formats.html.page_model import Page, PageSection, PageView, TableGroup
from hlo_inspect.report.model import Report
from hlo_inspect.report.page import module_name
from hlo_inspect.report.render_options import naming
from hlo_inspect.report.table import Row, Table, Value

MOST_VIEWS = 300
"""At most this many modules or pairs have a view; the index has all."""

DOCUMENTATION, HISTORY, DIFFERENCE = "rule", "history", "diff"
"""The commands of three kinds of reports: documentation of findings, the history of a module, and a comparison."""

_SIDES = ("old", "new")
_STACKS = "call_stacks"


def page_of(reports: Iterable[Report]) -> Page:
    """Return a page with a view for each module or pair, after their index if there are several.

    Reports on rules are the documentation of the findings of the others.
    """
    entries = _ViewEntries()
    documentation: dict[str, Report] = {}
    index: Report | None = None
    for report in reports:
        if report.command == DOCUMENTATION:
            documentation[str(report.facts["rule.code"])] = report
        elif is_index(report):
            index = report
        else:
            entries.take(report)
    views = [] if index is None else [_index_view(index, entries)]
    several = views[:1] if index is not None else []
    for entry in entries.kept():
        with naming(entry.report):
            entry_views = list(entry.views(entry.name if views else ""))
        siblings = {view.name: view.title for view in (*several, *entry_views)}
        views += [replace(view, siblings=siblings if len(siblings) > 1 else {}) for view in entry_views]
    return Page(tuple(map(with_shown_tables, views)), documentation)


@dataclass(slots=True)
class _ViewEntry:
    """A module or a pair that has a view, with the reports that belong to it."""

    number: int
    report: Report
    others: list[Report] = field(default_factory=list)

    @property
    def name(self) -> str:
        return f"m{self.number}"

    @property
    def weight(self) -> tuple[int, int]:
        """The weight that decides which entries are kept: changes of a pair, lines of a module, then the earlier entry."""
        changes = self.report.facts.get("diff.change_count") if self.report.command == DIFFERENCE else None
        return changes if isinstance(changes, int) else self.report.input.lines, -self.number

    def takes(self, report: Report) -> bool:
        """Return True if a report belongs to this one."""
        if self.report.command == DIFFERENCE:
            return report.command != DIFFERENCE and len(self.others) < len(_SIDES)
        return report.command == HISTORY and not self.others

    def views(self, name: str) -> Iterator[PageView]:
        """Yield the views, the first of that name."""
        if self.report.command == DIFFERENCE:
            view = _view(name, self.report, difference_sections(self.report))
            yield replace(view, title=f"Changes in {view.title}")
            for side, report in zip(_SIDES, self.others, strict=False):
                view = _module_view(f"{name}-{side}" if name else side, report)
                yield replace(view, title=f"{side.upper()}: {view.title}")
        elif self.report.command == HISTORY:
            yield _view(name, self.report, (history_section(self.report),))
        else:
            view = _module_view(name, self.report)
            for history in self.others:
                view = replace(
                    view,
                    sections=(*view.sections, history_section(history)),
                    tables=(*view.tables, *history.tables),
                    report=replace(self.report, notes=(*self.report.notes, *history.notes)),
                )
            yield view


class _ViewEntries:
    """The modules or pairs of a page as they come; of too many the largest are kept."""

    def __init__(self) -> None:
        self.keys: list[tuple[tuple[Value, str], str]] = []
        """Name and place of each, and the name of its view if it is kept."""
        self._largest: list[tuple[tuple[int, int], _ViewEntry]] = []
        self._last: _ViewEntry | None = None

    def take(self, report: Report) -> None:
        if self._last is not None and self._last.takes(report):
            self._last.others.append(report)
            return
        entry = self._last = _ViewEntry(len(self.keys) + 1, report)
        self.keys.append(((report.module_name, report.input.place), entry.name))
        heapq.heappush(self._largest, (entry.weight, entry))
        if len(self._largest) > MOST_VIEWS:
            heapq.heappop(self._largest)

    def kept(self) -> list[_ViewEntry]:
        """Return the kept entries in the order in which they came."""
        return sorted((entry for _, entry in self._largest), key=lambda entry: entry.number)


def _view(name: str, report: Report, sections: Sequence[PageSection]) -> PageView:
    return PageView(name, module_name(report), report, tuple(sections), report.tables)


def _module_view(name: str, report: Report) -> PageView:
    tables = distinct_tables(report)
    view = PageView(name, module_name(report), report, module_sections(tables), tables)
    return view if "module.name" in report.facts else _without_module(view)


def _without_module(view: PageView) -> PageView:
    """Return the view of a text without a module: it says what the text holds, and not what a module would."""
    titles = [printable(table.title) for table in view.tables if table.rows and table.on_page]
    text = f"This text holds no module. It holds: {'; '.join(titles)}." if titles else "This text holds no module and no table."
    return replace(view, text=text, sections=tuple(replace(section, nothing="") for section in view.sections))


def distinct_tables(report: Report) -> tuple[Table, ...]:
    """Return the tables of a report. If several passes show a table, keep the one with the most columns.

    Call stacks are those of all. A table of single rows gets another title than that of merged rows.
    """
    distinct: dict[str, Table] = {}
    for table in report.tables:
        before = distinct.get(table.name)
        if before is None:
            distinct[table.name] = table
        elif table.name == _STACKS:
            distinct[table.name] = replace(before, rows=_joined(before.rows, table.rows))
        elif len(table.columns) > len(before.columns):
            distinct[table.name] = table
    return tuple(
        replace(table, title=f"{table.title}, all rows")
        if table.page_as in distinct and distinct[table.page_as].title == table.title
        else table
        for table in distinct.values()
    )


def _joined(first: Sequence[Row], second: Iterable[Row]) -> tuple[Row, ...]:
    """Return the stacks of both, each once: the rows of a stack follow each other, and begin with the same source."""
    sources = {row[0] for row in first}
    return (*first, *(row for row in second if row[0] not in sources))


def with_shown_tables(view: PageView) -> PageView:
    """Return the view with the tables of its groups that have rows.

    The table of a picture is among those of its section unless another section has it. A table is left out if another of its
    group has the same rows with the same columns or more.
    """
    named = {name: table for name, table in by_name(view.tables).items() if table.rows}
    pictured = {picture.table for section in view.sections for picture in section.pictures}
    planned = {name for section in view.sections for name in section.tables}
    sections = []
    for section in view.sections:
        others = [name for name in dict.fromkeys(picture.table for picture in section.pictures) if name not in planned]
        groups = [*section.groups, *map(TableGroup.of_one, others)]
        shown = [replace(group, choices=_choices(group, named, pictured)) for group in groups]
        sections.append(replace(section, groups=tuple(group for group in shown if group.choices)))
    return replace(view, sections=tuple(sections))


def _choices(group: TableGroup, named: Mapping[str, Table], pictured: Set[str]) -> Mapping[str, str]:
    choices = {name: label for name, label in group.choices.items() if name in named}
    for name in [name for name in choices if name not in pictured]:
        if any(_holds(named[other], named[name]) for other in choices if other != name):
            del choices[name]
    return choices


def _holds(table: Table, part: Table) -> bool:
    """Return True if a table has all rows and all columns of another, in any order, and no further rows."""
    positions = {column.name: index for index, column in enumerate(table.columns)}
    if len(table.rows) != len(part.rows) or not positions.keys() >= {column.name for column in part.columns}:
        return False
    chosen = [positions[column.name] for column in part.columns]

    def projected(row: Row) -> Row:
        return tuple(row[index] for index in chosen)

    return Counter(map(projected, table.rows)) == Counter(part.rows)


def _index_view(index: Report, entries: _ViewEntries) -> PageView:
    kept = {entry.name for entry in entries.kept()}
    section = index_section(index, len(kept), len(entries.keys))
    links = {table.name: tuple(_links(table, entries.keys, kept)) for table in index.tables}
    return PageView("", index.title, index, (section,), index.tables, links)


def _links(table: Table, keys: Iterable[tuple[tuple[Value, str], str]], kept: set[str]) -> Iterator[str]:
    """Yield the view that each row leads to. Rows that look alike are in the order in which their modules came."""
    waiting: dict[tuple[Value, Value], deque[str]] = {}
    for key, name in keys:
        waiting.setdefault(key, deque()).append(name)
    for record in table.records():
        names = waiting.get((record["name"], record["path"]))
        name = names.popleft() if names else ""
        yield f"#{name}" if name in kept else ""

"""Reports → the views of a page.

The order of the reports says what belongs together: after that of a module what compiler passes did to it, after that of a
comparison those of its two modules, and the list of all at the end.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from hlo_inspect.report.html.model import Page, PageSection, PageView
from hlo_inspect.report.html.sections import difference_sections, history_section, index_section, is_index, module_sections
from hlo_inspect.report.model import Report, Row, Table, Value
from hlo_inspect.report.page import module_name

MOST_VIEWS = 100
"""At most this many modules or pairs have a view; the index has all."""

DOCUMENTATION, HISTORY, DIFFERENCE = "rule", "history", "diff"
"""The commands of reports that are the documentation of findings, what passes did to a module, and a comparison."""

_SIDES = ("old", "new")
_STACKS = "call_stacks"


def page_of(reports: Iterable[Report]) -> Page:
    """A view for each module or pair, before them their index where there are several; reports on rules are the documentation
    of the findings of the others.
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
        found = list(entry.views(entry.name if views else ""))
        beside = {view.name: view.title for view in (*several, *found)}
        views += [replace(view, beside=beside if len(beside) > 1 else {}) for view in found]
    return Page(tuple(views), documentation)


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
        """What is kept where there are too many: pairs that differ in most, modules of most lines; of equal ones the first."""
        changes = self.report.facts.get("diff.change_count") if self.report.command == DIFFERENCE else None
        return changes if isinstance(changes, int) else self.report.input.lines, -self.number

    def takes(self, report: Report) -> bool:
        """Whether a report belongs to this one."""
        if self.report.command == DIFFERENCE:
            return report.command != DIFFERENCE and len(self.others) < len(_SIDES)
        return report.command == HISTORY and not self.others

    def views(self, name: str) -> Iterator[PageView]:
        """The views, the first of that name."""
        if self.report.command == DIFFERENCE:
            view = _view(name, self.report, difference_sections(self.report))
            yield replace(view, title=f"What changed in {view.title}")
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
        """Name and place of each, and the name that its view has where it is kept."""
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
        """In the order in which they came."""
        return sorted((entry for _, entry in self._largest), key=lambda entry: entry.number)


def _view(name: str, report: Report, sections: Sequence[PageSection]) -> PageView:
    return PageView(name, module_name(report), report, tuple(sections), report.tables)


def _module_view(name: str, report: Report) -> PageView:
    tables = distinct_tables(report)
    return PageView(name, module_name(report), report, module_sections(tables), tables)


def distinct_tables(report: Report) -> tuple[Table, ...]:
    """The tables of a report in which passes show the same table: it is there once, with the most columns that a pass gives
    it. Call stacks are those of all. A table of single rows has another title than that of equal ones together.
    """
    found: dict[str, Table] = {}
    for table in report.tables:
        before = found.get(table.name)
        if before is None:
            found[table.name] = table
        elif table.name == _STACKS:
            found[table.name] = replace(before, rows=_joined(before.rows, table.rows))
        elif len(table.columns) > len(before.columns):
            found[table.name] = table
    return tuple(
        replace(table, title=f"{table.title}, one by one")
        if table.page_as in found and found[table.page_as].title == table.title
        else table
        for table in found.values()
    )


def _joined(first: Sequence[Row], second: Iterable[Row]) -> tuple[Row, ...]:
    """The stacks of both, each once: the rows of a stack follow each other, and begin with the same source."""
    known = {row[0] for row in first}
    return (*first, *(row for row in second if row[0] not in known))


def _index_view(index: Report, entries: _ViewEntries) -> PageView:
    kept = {entry.name for entry in entries.kept()}
    section = index_section(index, len(kept), len(entries.keys))
    links = {table.name: tuple(_links(table, entries.keys, kept)) for table in index.tables}
    return PageView("", index.title, index, (section,), index.tables, links)


def _links(table: Table, keys: Iterable[tuple[tuple[Value, str], str]], kept: set[str]) -> Iterator[str]:
    """The view that each row leads to. Rows that look alike are in the order in which their modules came."""
    waiting: dict[tuple[Value, Value], deque[str]] = {}
    for key, name in keys:
        waiting.setdefault(key, deque()).append(name)
    for record in table.records():
        names = waiting.get((record["name"], record["path"]))
        name = names.popleft() if names else ""
        yield f"#{name}" if name in kept else ""

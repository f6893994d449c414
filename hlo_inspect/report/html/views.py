"""Reports → the views of a page.

The order of the reports says what belongs together. The history of compiler passes follows its module, and two modules
follow their comparison. The list of all is at the end.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from hlo_inspect.report.cells import cell, heading
from hlo_inspect.report.html.charts.collectives import axes_chart, largest_chart, mesh_chart, sizes_chart
from hlo_inspect.report.html.charts.differences import (
    before_after_chart,
    changes_chart,
    collectives_by_pass_chart,
    figures_by_pass_chart,
    peak_differences_chart,
)
from hlo_inspect.report.html.charts.measured import bounds_chart, measured_parts_chart, waits_chart
from hlo_inspect.report.html.charts.memory import curve_chart, fit_chart, parameters_chart
from hlo_inspect.report.html.charts.roofline import kernels_left_out, roofline_chart
from hlo_inspect.report.html.charts.rows import Tables
from hlo_inspect.report.html.charts.step import loops_chart, step_chart
from hlo_inspect.report.html.charts.timeline import timeline_chart
from hlo_inspect.report.html.charts.trees import live_chart, scopes_chart, sources_chart
from hlo_inspect.report.html.model import Chart, Page, PageSection, PageView
from hlo_inspect.report.model import Column, Report, Row, Table, Value
from hlo_inspect.report.options import naming, with_relative_paths
from hlo_inspect.report.page import module_name
from hlo_inspect.report.units import format_value

MOST_VIEWS = 100
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
    return PageView(name, module_name(report), report, module_sections(tables), tables)


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


PICTURES: Mapping[str, tuple[Callable[[Tables], Chart | None], ...]] = {
    "measured": (measured_parts_chart, bounds_chart, waits_chart),
    "step": (step_chart, timeline_chart),
    "kernels": (roofline_chart,),
    "scopes": (scopes_chart, sources_chart),
    "collectives": (axes_chart, mesh_chart, sizes_chart, largest_chart),
    "memory": (fit_chart, curve_chart, live_chart),
    "parameters": (parameters_chart,),
    "loops": (loops_chart,),
    "passes": (collectives_by_pass_chart, figures_by_pass_chart),
    "changes": (changes_chart,),
    "facts": (before_after_chart,),
    "peak": (peak_differences_chart,),
}
"""The pictures of the sections that have some."""


def _pictures(section: str, tables: Tables) -> tuple[Chart, ...]:
    """Return the charts of the section for which a report has rows."""
    return tuple(chart for chart in (draw(tables) for draw in PICTURES.get(section, ())) if chart is not None)


def _by_name(tables: Iterable[Table]) -> dict[str, Table]:
    return {table.name: table for table in tables}


# -- a module --------------------------------------------------------------------------------------------------------------

_TABLES_OF_MEASURED = "parts kernel_groups kernels collectives rates by_axis by_phase by_scope by_source by_device runs"
_MEASURED = PageSection(
    "measured",
    "Measured time of the step",
    tables=tuple(f"measured_{name}" for name in _TABLES_OF_MEASURED.split()),
    command="measured",
)
"""The first section of a module that ran in a recorded profile."""

_PLAN = (
    PageSection(
        "step",
        "Time of the step",
        tables=("step", "resources", "time_by_phase", "cost_by_phase"),
        nothing="No instruction of this module has a known time.",
        command="time",
    ),
    PageSection(
        "kernels",
        "Kernels",
        tables=("kernel_groups", "kernels", "matmuls_by_type", "cost_by_fusion_kind", "kernels_phase_differences"),
        nothing="This module has no kernel.",
    ),
    PageSection(
        "scopes",
        "Scopes",
        tables=("time_by_scope", "time_by_source", "cost_by_scope", "cost_by_source"),
        nothing="No instruction has an op_name or a source line.",
    ),
    PageSection(
        "collectives",
        "Collectives",
        tables=(
            "collective_groups",
            "collectives",
            "collectives_by_axis",
            "collectives_by_kind",
            "collectives_by_size",
            "collectives_by_phase",
            "collectives_by_kind_and_phase",
            "point_to_point",
            "collective_links",
            "exposed_collectives",
            "mesh_axes",
        ),
        nothing="This module has no collectives: its devices send nothing to each other.",
    ),
    PageSection(
        "memory",
        "Memory",
        tables=(
            "live_at_peak_groups",
            "live_at_peak",
            "live_by_role",
            "live_by_scope",
            "live_by_source",
            "largest_arrays",
            "parameter_copies",
            "live_bytes",
            "memory_fit",
        ),
        nothing="No array of this module has a known place in device memory.",
        command="memory",
    ),
    PageSection(
        "parameters",
        "Parameters",
        tables=("params_by_role", "buffers", "params_not_donated", "params_donated", "params", "output_groups", "outputs"),
        nothing="The entry computation has no parameters, or is not in the text.",
    ),
    PageSection(
        "optimizer",
        "Optimizer",
        tables=("optimizer_groups", "optimizer", "optimizer_update"),
        nothing="No update of a parameter matches an optimizer.",
    ),
    PageSection("loops", "Loops", tables=("loops",), nothing="This module has no loop."),
    PageSection(
        "fusions",
        "Fusions",
        tables=("fusion_groups", "fusions", "fusions_by_kind", "fusions_by_root", "fusion_content"),
        nothing="This module has no fusions: the compiler has not run fusion yet, or found nothing to fuse.",
    ),
    PageSection(
        "custom-calls",
        "Custom calls",
        tables=("custom_calls", "custom_calls_by_target"),
        nothing="This module has no custom calls.",
    ),
    PageSection(
        "program",
        "Program",
        tables=("cost", "opcodes", "flags", "call_stacks"),
        nothing="No instruction of this module could be read.",
    ),
)

"""In the order in which somebody reads who wants to know why a step is slow."""


def module_sections(tables: Sequence[Table]) -> tuple[PageSection, ...]:
    """Return the sections as planned with their pictures, and a last one with the tables that no other has."""
    named = _by_name(tables)
    words = {"optimizer": _optimizer_words(named)}
    drawn = named | _by_name(with_relative_paths([named[name] for name in _DRAWN_WITH_PATHS if name in named]))
    plan = (_MEASURED, *_PLAN) if _MEASURED.tables[0] in named else _PLAN
    pictures = {section.name: _pictures(section.name, drawn) for section in plan}
    if not pictures["kernels"]:
        words["kernels"] = _no_roofline(named)
    sections = tuple(replace(section, pictures=pictures[section.name], text=words.get(section.name, "")) for section in plan)
    planned = {name for section in sections for name in (*section.tables, *(chart.table for chart in section.pictures))}
    rest = tuple(table.name for table in tables if table.on_page and table.name not in planned and table.rows)
    return (*sections, PageSection("more", "More", tables=rest)) if rest else sections


def _no_roofline(tables: Tables) -> str:
    """Return why there is no picture of kernels; empty if there are no kernels."""
    left_out = kernels_left_out(tables)
    return f"No kernel has a point on the roofline: {left_out}." if left_out else ""


_DRAWN_WITH_PATHS = ("roofline", "source_tree", "timeline")
_MOST_RULES = 4
_NO_CONSTANTS = frozenset({"rule", "weights", "bytes", "fusions"})


def _optimizer_words(tables: Tables) -> str:
    """Return a sentence for each of the first rules; empty if nothing is updated."""
    groups = tables.get("optimizer_groups")
    if groups is None:
        return ""
    sentences = [_rule_in_words(groups.columns, row) for row in groups.rows[:_MOST_RULES]]
    left = len(groups.rows) - len(sentences)
    return " ".join([*sentences, f"The table has {left:,} more."] if left else sentences)


def _rule_in_words(columns: Iterable[Column], row: Row) -> str:
    texts = {
        column.name: (heading(column), cell(value, None, column, raw_bytes=False, of_sums=False))
        for column, value in zip(columns, row, strict=True)
        if value is not None and value != "" and column.unit != "bool"
    }
    rule, weights, size = (texts.get(name, ("", "?"))[1] for name in ("rule", "weights", "bytes"))
    constants = [f"{name} {text}" for key, (name, text) in texts.items() if key not in _NO_CONSTANTS]
    said = f"{rule} updates {weights} weight{'' if weights == '1' else 's'} of {size}"
    return f"{said}: {', '.join(constants)}." if constants else f"{said}."


# -- compiler passes -------------------------------------------------------------------------------------------------------


def history_section(report: Report) -> PageSection:
    """Return the section of a report of `history`."""
    return PageSection(
        "passes",
        "Compiler passes",
        pictures=_pictures("passes", _by_name(report.tables)),
        tables=tuple(table.name for table in report.tables),
        text=". ".join(_sentences(report)),
        nothing="No compiler pass changed the module.",
    )


def _sentences(report: Report) -> Iterator[str]:
    """Yield the first lines of the report."""
    for row in report.headline:
        text = "".join(part if isinstance(part, str) else format_value(part.value, part.unit) for part in row.parts)
        yield f"{row.label.capitalize()}: {text}" if row.label else text


# -- two modules -----------------------------------------------------------------------------------------------------------


def difference_sections(report: Report) -> tuple[PageSection, ...]:
    """Return the sections of a report of `diff`."""
    named = _by_name(report.tables)
    others = tuple(name for name in named if name not in ("facts", "changes", "flags", "peak", "axes", "measured_changes"))
    alone = "" if "facts" in named else "The other input has no module to compare with this one."
    measured = PageSection("measured", "Measured times", tables=("measured_changes",), opens_table=True)
    return (
        *([measured] if "measured_changes" in named else ()),
        PageSection(
            "changes",
            "What changed",
            pictures=_pictures("changes", named),
            tables=("changes", "flags"),
            nothing=alone or _nothing_changed(report),
            opens_table=True,
        ),
        PageSection(
            "facts",
            "Before and after",
            pictures=_pictures("facts", named),
            tables=("facts", "axes"),
            nothing=alone or "No fact differs.",
        ),
        PageSection(
            "peak",
            "Memory at the peak",
            pictures=_pictures("peak", named),
            tables=("peak",),
            nothing=alone or "The same arrays are live at the peak, or the arrays are unknown.",
        ),
        *([PageSection("more", "More", tables=others)] if others else ()),
    )


def _nothing_changed(report: Report) -> str:
    """Return why there are no changes: instructions of saved reports and of partial modules are not compared."""
    if report.facts.get("diff.same_program") is None:
        return "Instructions are not compared: that needs both texts, complete."
    return "No difference in instructions, parameters and settings."


# -- several modules or pairs ----------------------------------------------------------------------------------------------

LISTS = ("modules", "pairs")
"""The tables of reports that are an index."""


def index_section(report: Report, views: int, entries: int) -> PageSection:
    """Return the section of a list of `entries` modules or pairs, `views` of which have a view."""
    tables = tuple(table.name for table in report.tables)
    what = "pairs" if "pairs" in tables else "modules"
    text = f"Each of the {what} has a page in this file."
    if views < entries:
        text = f"The {views:,} largest of {entries:,} {what} have a page in this file; --module REGEX chooses others."
    return PageSection("modules", what.capitalize(), tables=tables, text=text, nothing="None.")


def is_index(report: Report) -> bool:
    """Return True if a report is a list of others."""
    return any(table.name in LISTS for table in report.tables)

"""The sections of a module's page: which tables and pictures are in each, and in which order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from hlo_inspect.report.cells import cell, heading
from hlo_inspect.report.formats.html.charts.chart_rows import Tables, by_name
from hlo_inspect.report.formats.html.charts.roofline_chart import kernels_left_out
from hlo_inspect.report.formats.html.page_model import PageSection, TableGroup
from hlo_inspect.report.formats.html.pictures import pictures_of
from hlo_inspect.report.render_options import with_relative_paths
from hlo_inspect.report.table import Column, Row, Table


def _groups(*titles: str) -> tuple[TableGroup, ...]:
    """Return groups of tables by their titles. Tables say which they are in (`TableSpec.place`)."""
    return tuple(TableGroup(title, {}) for title in titles)


_MEASURED = PageSection(
    "measured",
    "Measured time of the step",
    groups=_groups("Measured time", "Measured kernels", "Measured collectives"),
    command="measured",
)
"""The first section of a module that ran in a recorded profile."""

_PLAN = (
    PageSection(
        "step",
        "Time of the step",
        groups=_groups("Time of the step"),
        nothing="No instruction of this module has a known time.",
        command="time",
    ),
    PageSection("kernels", "Kernels", groups=_groups("Kernels"), nothing="This module has no kernel."),
    PageSection("work", "Work", groups=_groups("Work of the step"), nothing="No instruction of this module has a known cost."),
    PageSection(
        "collectives",
        "Collectives",
        groups=_groups("Collectives", "Mesh of devices"),
        nothing="This module has no collectives: its devices send nothing to each other.",
    ),
    PageSection(
        "memory",
        "Memory",
        groups=_groups("Live at the peak", "Live bytes over the schedule", "Device memory", "Host transfers"),
        nothing="No array of this module has a known place in device memory.",
        command="memory",
    ),
    PageSection(
        "parameters",
        "Parameters",
        groups=_groups("Parameters", "Outputs"),
        nothing="The entry computation has no parameters, or is not in the text.",
    ),
    PageSection(
        "optimizer",
        "Optimizer",
        groups=_groups("Updates"),
        nothing="No update of a parameter matches an optimizer.",
    ),
    PageSection("loops", "Loops", nothing="This module has no loop."),
    PageSection(
        "fusions",
        "Fusions",
        groups=_groups("Fusions"),
        nothing="This module has no fusions: the compiler has not run fusion yet, or found nothing to fuse.",
    ),
    PageSection("custom-calls", "Custom calls", groups=_groups("Custom calls"), nothing="This module has no custom calls."),
    PageSection("program", "Program", nothing="No instruction of this module could be read."),
)
"""In the order in which somebody reads who wants to know why a step is slow."""


def _with_tables(section: PageSection, tables: Iterable[Table]) -> PageSection:
    """Return the section with the tables whose place it is: in its groups, and those of no group last."""
    places = [(table.place, table.name) for table in tables if table.place is not None and table.place.section == section.name]
    choices: dict[str, dict[str, str]] = {group.title: {} for group in section.groups}
    for place, name in sorted(places, key=lambda placed: placed[0].rank):
        choices.setdefault(place.group, {})[name] = place.label
    alone = map(TableGroup.of_one, choices.pop("", ()))
    return replace(section, groups=(*(TableGroup(title, names) for title, names in choices.items()), *alone))


def module_sections(tables: Sequence[Table]) -> tuple[PageSection, ...]:
    """Return the sections as planned with their pictures, and a last one with the tables that no other has."""
    named = by_name(tables)
    words = {"optimizer": _optimizer_words(named)}
    drawn = named | by_name(with_relative_paths([named[name] for name in _DRAWN_WITH_PATHS if name in named]))
    filled = (_with_tables(section, tables) for section in (_MEASURED, *_PLAN))
    plan = [section for section in filled if section.tables or section.name != _MEASURED.name]
    pictures = {section.name: pictures_of(section.name, drawn) for section in plan}
    if not pictures["kernels"]:
        left_out = kernels_left_out(named)
        words["kernels"] = f"No kernel has a point on the roofline: {left_out}." if left_out else ""
    sections = tuple(replace(section, pictures=pictures[section.name], text=words.get(section.name, "")) for section in plan)
    planned = {name for section in sections for name in (*section.tables, *(chart.table for chart in section.pictures))}
    rest = [table.name for table in tables if table.on_page and table.name not in planned and table.rows]
    return (*sections, PageSection("more", "More", groups=tuple(map(TableGroup.of_one, rest)))) if rest else sections


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
        column.name: (heading(column), cell(value, column, raw_bytes=False, of_sums=False))
        for column, value in zip(columns, row, strict=True)
        if value is not None and value != "" and column.unit != "bool"
    }
    rule, weights, size = (texts.get(name, ("", "?"))[1] for name in ("rule", "weights", "bytes"))
    constants = [f"{name} {text}" for key, (name, text) in texts.items() if key not in _NO_CONSTANTS]
    said = f"{rule} updates {weights} weight{'' if weights == '1' else 's'} of {size}"
    return f"{said}: {', '.join(constants)}." if constants else f"{said}."

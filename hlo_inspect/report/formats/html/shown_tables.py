"""The tables that a view shows: those of its plan that have rows, each content once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Set
from dataclasses import replace

from hlo_inspect.report.formats.html.charts.chart_rows import by_name
from hlo_inspect.report.formats.html.page_model import PageView, TableGroup
from hlo_inspect.report.table import Row, Table


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

"""The sections of the other pages: two modules compared, the history of compiler passes, and the index of several modules."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from hlo_inspect.report.formats.html.charts.chart_rows import by_name
from hlo_inspect.report.formats.html.page_model import PageSection, TableGroup
from hlo_inspect.report.formats.html.pictures import pictures_of
from hlo_inspect.report.model import Report
from hlo_inspect.report.units import format_value

# -- compiler passes -------------------------------------------------------------------------------------------------------


def history_section(report: Report) -> PageSection:
    """Return the section of a report of `history`."""
    return PageSection(
        "passes",
        "Compiler passes",
        pictures=pictures_of("passes", by_name(report.tables)),
        groups=_each(*(table.name for table in report.tables)),
        text=". ".join(_sentences(report)),
        nothing="No compiler pass changed the module.",
    )


def _sentences(report: Report) -> Iterator[str]:
    """Yield the first lines of the report."""
    for row in report.headline:
        text = "".join(part if isinstance(part, str) else format_value(part.value, part.unit) for part in row.parts)
        yield f"{row.label.capitalize()}: {text}" if row.label else text


# -- two modules -----------------------------------------------------------------------------------------------------------


_OWN_PLACE = ("measured_changes", "facts", "axes", "changes", "flags", "peak", "scopes")


def difference_sections(report: Report) -> tuple[PageSection, ...]:
    """Return the sections of a report of `diff`: the facts first, then the changes that explain them."""
    named = by_name(report.tables)
    others = [name for name in named if name not in _OWN_PLACE]
    if "facts" not in named:
        return (PageSection("facts", "Facts that differ", nothing="The other input has no module to compare with this one."),)
    sections = (
        PageSection("measured", "Measured times", groups=_each("measured_changes")),
        PageSection("facts", "Facts that differ", groups=_each("facts", "axes"), nothing="No fact differs."),
        PageSection("changes", "What changed", groups=_each("changes", "flags"), nothing=_nothing_changed(report)),
        PageSection(
            "peak",
            "Memory at the peak",
            groups=_each("peak"),
            nothing="The same arrays are live at the peak, or the arrays are unknown.",
        ),
        PageSection(
            "scopes",
            "Scopes",
            groups=_each("scopes"),
            nothing="Each scope has the same work, or its work is unknown.",
        ),
        PageSection("more", "More", groups=_each(*others)),
    )
    return tuple(
        replace(section, pictures=pictures_of(section.name, named), begins_with_tables=section.name in _TABLES_FIRST)
        for section in sections
    )


_TABLES_FIRST = frozenset({"measured", "facts", "changes"})


def _each(*names: str) -> tuple[TableGroup, ...]:
    """Return a group for each table."""
    return tuple(map(TableGroup.of_one, names))


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
    return PageSection("modules", what.capitalize(), groups=_each(*tables), text=text, nothing="None.")


def is_index(report: Report) -> bool:
    """Return True if a report is a list of others."""
    return any(table.name in LISTS for table in report.tables)

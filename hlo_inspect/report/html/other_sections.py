"""The sections of the other pages: two modules compared, the history of compiler passes, and the index of several modules."""

from __future__ import annotations

from collections.abc import Iterator

from hlo_inspect.report.html.charts.rows import by_name
from hlo_inspect.report.html.model import PageSection, TableGroup
from hlo_inspect.report.html.pictures import pictures_of
from hlo_inspect.report.model import Report
from hlo_inspect.report.units import format_value

# -- compiler passes -------------------------------------------------------------------------------------------------------


def history_section(report: Report) -> PageSection:
    """Return the section of a report of `history`."""
    return PageSection(
        "passes",
        "Compiler passes",
        pictures=pictures_of("passes", by_name(report.tables)),
        groups=tuple(TableGroup.of_one(table.name) for table in report.tables),
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
    named = by_name(report.tables)
    others = tuple(name for name in named if name not in ("facts", "changes", "flags", "peak", "axes", "measured_changes"))
    alone = "" if "facts" in named else "The other input has no module to compare with this one."
    measured = PageSection("measured", "Measured times", groups=(TableGroup.of_one("measured_changes"),), opens_table=True)
    return (
        *([measured] if "measured_changes" in named else ()),
        PageSection(
            "changes",
            "What changed",
            pictures=pictures_of("changes", named),
            groups=(TableGroup.of_one("changes"), TableGroup.of_one("flags")),
            nothing=alone or _nothing_changed(report),
            opens_table=True,
        ),
        PageSection(
            "facts",
            "Before and after",
            pictures=pictures_of("facts", named),
            groups=(TableGroup.of_one("facts"), TableGroup.of_one("axes")),
            nothing=alone or "No fact differs.",
        ),
        PageSection(
            "peak",
            "Memory at the peak",
            pictures=pictures_of("peak", named),
            groups=(TableGroup.of_one("peak"),),
            nothing=alone or "The same arrays are live at the peak, or the arrays are unknown.",
        ),
        *([PageSection("more", "More", groups=tuple(map(TableGroup.of_one, others)))] if others else ()),
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
    return PageSection("modules", what.capitalize(), groups=tuple(map(TableGroup.of_one, tables)), text=text, nothing="None.")


def is_index(report: Report) -> bool:
    """Return True if a report is a list of others."""
    return any(table.name in LISTS for table in report.tables)

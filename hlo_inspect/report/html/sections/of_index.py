"""The index of a page about several modules or pairs of modules: a row each, which leads to its view."""

from __future__ import annotations

from hlo_inspect.report.html.model import PageSection
from hlo_inspect.report.model import Report

LISTS = ("modules", "pairs")
"""The tables of which a report is an index."""


def index_section(report: Report, views: int, entries: int) -> PageSection:
    """The section of a list, of which so many `entries` have one of the `views`."""
    tables = tuple(table.name for table in report.tables)
    what = "pairs" if "pairs" in tables else "modules"
    text = f"Each of the {what} has a page of its own in this file."
    if views < entries:
        text = (
            f"The {views:,} largest of {entries:,} {what} have a page of their own in this file; --module REGEX chooses others."
        )
    return PageSection("modules", what.capitalize(), tables=tables, text=text, nothing="There are none.")


def is_index(report: Report) -> bool:
    """Whether a report is a list of others."""
    return any(table.name in LISTS for table in report.tables)

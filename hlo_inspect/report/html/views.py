"""Reports → the views of a page."""

from __future__ import annotations

from collections.abc import Iterable

from hlo_inspect.report.html.model import Page, PageView
from hlo_inspect.report.html.sections.of_module import module_sections
from hlo_inspect.report.html.tables import distinct_tables
from hlo_inspect.report.model import Report
from hlo_inspect.report.page import module_name

DOCUMENTATION = "rule"
"""The command of reports that are the documentation of findings."""


def page_of(reports: Iterable[Report]) -> Page:
    """A view for each report; reports on rules are the documentation of the findings of the others."""
    views: list[PageView] = []
    documentation = {}
    for report in reports:
        if report.command == DOCUMENTATION:
            documentation[str(report.facts["rule.code"])] = report
        else:
            views.append(_view(f"m{len(views)}" if views else "", report))
    return Page(tuple(views), documentation)


def _view(name: str, report: Report) -> PageView:
    tables = distinct_tables(report)
    return PageView(name, module_name(report), report, module_sections(report, tables), tables)

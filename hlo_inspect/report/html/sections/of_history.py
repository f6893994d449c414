"""What compiler passes did to a module: its collectives behind each pass, and its fusions, copies and other figures."""

from __future__ import annotations

from collections.abc import Iterator

from hlo_inspect.report.html.charts.all_charts import history_charts
from hlo_inspect.report.html.model import PageSection
from hlo_inspect.report.model import Report
from hlo_inspect.report.units import format_value

NAME = "passes"


def history_section(report: Report) -> PageSection:
    """The section of a report of `history`."""
    return PageSection(
        NAME,
        "Compiler passes",
        pictures=history_charts(report.tables)[NAME],
        tables=tuple(table.name for table in report.tables),
        text=". ".join(_sentences(report)),
        nothing="No pass of the compiler changed anything.",
    )


def _sentences(report: Report) -> Iterator[str]:
    """The first lines of the report."""
    for row in report.headline:
        text = "".join(part if isinstance(part, str) else format_value(part.value, part.unit) for part in row.parts)
        yield f"{row.label.capitalize()}: {text}" if row.label else text

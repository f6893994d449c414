"""Two modules compared: what changed first, then facts before and after side by side, and differences by kind."""

from __future__ import annotations

from hlo_inspect.report.html.charts.all_charts import difference_charts
from hlo_inspect.report.html.model import PageSection
from hlo_inspect.report.model import Report


def difference_sections(report: Report) -> tuple[PageSection, ...]:
    """The sections of a report of `diff`."""
    names = [table.name for table in report.tables]
    pictures = difference_charts(report.tables)
    others = tuple(name for name in names if name not in ("facts", "changes", "peak", "axes"))
    alone = "" if "facts" in names else "The other side has no module that belongs to this one."
    return (
        PageSection(
            "changes",
            "What changed",
            pictures=pictures["changes"],
            tables=("changes",),
            nothing=alone or _nothing_changed(report),
            opens_table=True,
        ),
        PageSection(
            "facts",
            "Before and after",
            pictures=pictures["facts"],
            tables=("facts", "axes"),
            nothing=alone or "All facts are the same before and after.",
        ),
        PageSection(
            "peak",
            "Memory at the peak",
            pictures=pictures["peak"],
            tables=("peak",),
            nothing=alone or "The same arrays are live at the peak, or it is not known which.",
        ),
        *([PageSection("more", "More", tables=others)] if others else ()),
    )


def _nothing_changed(report: Report) -> str:
    """Why there are no changes: of saved reports and of parts of modules instructions are not compared."""
    if report.facts.get("diff.same_program") is None:
        return "Nothing is known of instructions: they are compared where both texts are there and whole."
    return "Nothing: all instructions, parameters and settings are the same."

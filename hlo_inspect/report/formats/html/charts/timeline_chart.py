"""The timeline of a step: the events of each stream, coloured by phase."""

from __future__ import annotations

from hlo_inspect.report.formats.html.charts.chart_rows import ChartRow, Tables, alt_text, rows_of
from hlo_inspect.report.formats.html.charts.palette import colour, rank
from hlo_inspect.report.formats.html.page_model import Chart

_WAITING, _LOOPS = "waiting", "iterations"
_COLOURS = {_WAITING: "$grid", _LOOPS: "$soft"}
_LINE, _AROUND = 36, 40


def timeline_chart(tables: Tables) -> Chart | None:
    """Draw a line for each stream: collectives and copies above, kernels below. The marks are the rows of the table."""
    rows = rows_of(tables, "timeline")
    if not rows:
        return None
    streams = sorted({str(row["stream"]) for row in rows}, key=lambda stream: (stream == "compute", stream))
    kinds = sorted({_kind(row) for row in rows}, key=lambda kind: (rank(kind), kind))
    trace = {
        "type": "timeline",
        "streams": streams,
        "names": kinds,
        "colors": [_COLOURS.get(kind) or colour(kind) for kind in kinds],
        "kinds": [kinds.index(_kind(row)) for row in rows],
    }
    return Chart(
        "timeline",
        tables["timeline"].title,
        "Estimated timeline of each stream, colored by phase. Gaps and waits on the compute stream are exposed collectives. "
        "The wheel zooms, a drag pans, and a click leads to the instruction.",
        alt_text((row["phase"], f"estimate {row.text('estimate_s')}") for row in rows_of(tables, "time_by_phase")),
        {"data": [trace], "layout": {}},
        "timeline",
        height=_AROUND + _LINE * len(streams),
    )


def _kind(row: ChartRow) -> str:
    if row["event"] == "wait":
        return _WAITING
    return _LOOPS if row["event"] == "iterations" else str(row["phase"] or "unknown")

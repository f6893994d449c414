"""The timeline: what each stream does when."""

from __future__ import annotations

from typing import Any

from hlo_inspect.report.html.charts.bars import bars_height, lines_axis
from hlo_inspect.report.html.charts.layout import amounts_axis, base_layout
from hlo_inspect.report.html.charts.palette import colour
from hlo_inspect.report.html.charts.rows import ChartRow, Tables, grouped, rows_of
from hlo_inspect.report.html.charts.texts import hover, in_words, plain
from hlo_inspect.report.html.model import Chart

_WAITING, _LOOPS = "waiting", "iterations"


def timeline_chart(tables: Tables) -> Chart | None:
    """A line for each stream, marks coloured by phase; the mouse zooms into a part of the time."""
    rows = rows_of(tables, "timeline")
    if not rows:
        return None
    streams = list(dict.fromkeys(str(row["stream"]) for row in rows))
    kinds = grouped(rows, _kind)
    layout = base_layout(
        barmode="overlay",
        dragmode="zoom",
        xaxis=amounts_axis([row["end_s"] for row in rows], "seconds"),
        yaxis=lines_axis(streams) | {"fixedrange": True},
        showlegend=True,
    )
    return Chart(
        "timeline",
        tables["timeline"].title,
        "What each stream does when, by the model, coloured by phase: gaps and waits on the compute stream are exposed "
        "collectives. Drag to zoom in, double-click to go back.",
        in_words((row["phase"], f"{row.text('estimate_s')} by the model") for row in rows_of(tables, "time_by_phase")),
        {"data": [_trace(name, of_kind, streams) for name, of_kind in kinds.items()], "layout": layout},
        "timeline",
        height=bars_height(len(streams) + 1),
    )


def _kind(row: ChartRow) -> str:
    if row["event"] == "wait":
        return _WAITING
    return _LOOPS if row["event"] == "iterations" else str(row["phase"] or "unknown")


def _trace(name: str, rows: list[ChartRow], streams: list[str]) -> dict[str, Any]:
    drawn = {_WAITING: "$grid", _LOOPS: "$soft"}.get(name) or colour(name)
    return {
        "type": "bar",
        "orientation": "h",
        "width": 0.75,
        "name": plain(name),
        "base": [row["begin_s"] for row in rows],
        "x": [row["span_s"] for row in rows],
        "y": [streams.index(str(row["stream"])) for row in rows],
        "hovertext": [_hover(row) for row in rows],
        "hoverinfo": "text",
        "customdata": [row.key for row in rows],
        "marker": {"color": drawn, "line": {"color": "$line" if drawn in ("$grid", "$soft") else drawn, "width": 0.5}},
    }


def _hover(row: ChartRow) -> str:
    name, many = str(row["name"]), row["events"] != 1
    what = {"wait": f"waits for {name}", "iterations": f"{row.text('iterations')} iterations of {name}"}.get(
        str(row["event"]), f"{row.text('events')} events, the longest {name}" if many else name
    )
    when = f"{row.text('begin_s')} to {row.text('end_s')}, busy {row.text('busy_s')}"
    return hover(what, when, row["kind"], row["source"])

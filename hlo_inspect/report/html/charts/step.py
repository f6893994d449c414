"""The step: its compute, memory and exposed time, and the events of each stream."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import nlargest
from operator import methodcaller
from typing import Any

from hlo_inspect.report.html.charts.figures import (
    Bar,
    BarSeries,
    amounts_axis,
    bars_figure,
    bars_height,
    base_layout,
    lines_axis,
    marks,
)
from hlo_inspect.report.html.charts.palette import colour, rank, series
from hlo_inspect.report.html.charts.rows import ChartRow, Tables, alt_text, grouped, hover, not_shown, plain, rows_of
from hlo_inspect.report.html.model import Chart, Measure
from hlo_inspect.report.model import Unit

_COLOURS = {
    "kernels bound by compute": "$compute",
    "kernels bound by memory": "$memory",
    "other kernels": "$other",
    "fixed costs of kernels": "$fixed",
}
_OF_AXES = ("$collective", *(series(number) for number in (2, 5, 4, 7, 6)))
_MEASURES: tuple[tuple[str, Unit, str], ...] = (("bytes_accessed", "bytes", "Bytes"), ("flops", "flops", "FLOPs"))


def step_chart(tables: Tables) -> Chart | None:
    """Draw the times of a step; without an accelerator its bytes and FLOPs by phase."""
    rows, alone = rows_of(tables, "step"), rows_of(tables, "kernel_seconds")
    if rows:
        return _times(rows, "One step", _STEP, "step")
    if alone:
        return _times(alone, "Kernels one after the other", _ALONE, "kernel_seconds")
    return _costs(rows_of(tables, "cost_by_phase"))


_STEP = (
    "Time of the step: kernels by their bound, and exposed collectives, which no kernel overlaps. Upper bar: bound, which no "
    "run in this order can beat. Lower bar: estimate of the model."
)
_ALONE = (
    "Time of the kernels by their bound. Upper bar: bound; lower bar: estimate of the model. The module is not scheduled, so "
    "overlap is unknown and collectives are left out."
)


def _times(rows: Sequence[ChartRow], title: str, sentence: str, table: str) -> Chart:
    parts = []
    axes = iter(_OF_AXES * len(rows))
    for row in rows:
        bar_colour = _COLOURS.get(str(row["part"])) or next(axes)
        least = Bar(0, row.least("bound_s"), _hover(row, "bound_s", "bound_share", "bound"), row.key)
        likely = Bar(1, row.least("estimate_s"), _hover(row, "estimate_s", "share", "estimate"), row.key)
        parts.append(BarSeries(str(row["part"]), bar_colour, (least, likely)))
    figure = bars_figure(["bound", "estimate"], parts, "seconds")
    return Chart(
        "step",
        title,
        sentence,
        alt_text((row["part"], f"bound {row.text('bound_s')}, estimate {row.text('estimate_s')}") for row in rows),
        figure,
        table,
        height=bars_height(3),
    )


def _hover(row: ChartRow, seconds: str, share: str, which: str) -> str:
    of_bar = f", {row.text(share)} of the bar" if row[share] is not None else ""
    return hover(row["part"], f"{row.text(seconds)} {which}{of_bar}")


def _costs(rows: Sequence[ChartRow]) -> Chart | None:
    """Draw each measure by phase, without times."""
    measures = []
    for column, unit, title in _MEASURES:
        shown = sorted((row for row in rows if row.least(column)), key=lambda row: rank(row["phase"]))
        if not shown:
            continue
        parts = [
            BarSeries(
                str(row["phase"]),
                colour(row["phase"]),
                [Bar(0, row.least(column), hover(row["phase"], row.text(column)), row.key)],
            )
            for row in shown
        ]
        figure = bars_figure(["one step"], parts, unit, has_legend=True)
        measures.append(Measure(title, figure, alt_text((row["phase"], row.text(column)) for row in shown)))
    if not measures:
        return None
    return Chart.of_measures(
        "step",
        "Step by phase",
        "Bytes and FLOPs of each phase of the step; with --profile the page shows times.",
        measures,
        "cost_by_phase",
        text=alt_text((row["phase"], f"{row.text('bytes_accessed')} moved, {row.text('flops')}") for row in rows),
        height=bars_height(2),
    )


# -- the timeline ------------------------------------------------------------------------------------------------------


_WAITING, _LOOPS = "waiting", "iterations"


def timeline_chart(tables: Tables) -> Chart | None:
    """Draw a line for each stream, marks coloured by phase; the mouse zooms into a part of the time."""
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
        "Estimated timeline of each stream, colored by phase. Gaps and waits on the compute stream are exposed collectives. "
        "Drag to zoom in, double-click to go back.",
        alt_text((row["phase"], f"estimate {row.text('estimate_s')}") for row in rows_of(tables, "time_by_phase")),
        {"data": [_marks_of(name, of_kind, streams) for name, of_kind in kinds.items()], "layout": layout},
        "timeline",
        height=bars_height(len(streams) + 1),
    )


def _kind(row: ChartRow) -> str:
    if row["event"] == "wait":
        return _WAITING
    return _LOOPS if row["event"] == "iterations" else str(row["phase"] or "unknown")


def _marks_of(name: str, rows: list[ChartRow], streams: list[str]) -> dict[str, Any]:
    drawn = {_WAITING: "$grid", _LOOPS: "$soft"}.get(name) or colour(name)
    return marks(
        "bar",
        map(_event_in_words, rows),
        (row.key for row in rows),
        orientation="h",
        width=0.75,
        name=plain(name),
        base=[row["begin_s"] for row in rows],
        x=[row["span_s"] for row in rows],
        y=[streams.index(str(row["stream"])) for row in rows],
        marker={"color": drawn, "line": {"color": "$line" if drawn in ("$grid", "$soft") else drawn, "width": 0.5}},
    )


def _event_in_words(row: ChartRow) -> str:
    name, many = str(row["name"]), row["events"] != 1
    what = {"wait": f"waits for {name}", "iterations": f"{row.text('iterations')} iterations of {name}"}.get(
        str(row["event"]), f"{row.text('events')} events, the longest {name}" if many else name
    )
    when = f"{row.text('begin_s')} to {row.text('end_s')}, busy {row.text('busy_s')}"
    return hover(what, when, row["kind"], row["source"])


_MOST = 15
_LOOP_MEASURES: tuple[tuple[str, Unit, str], ...] = (
    ("flops", "flops", "FLOPs"),
    ("bytes_accessed", "bytes", "Bytes"),
    ("executed_wire_bytes", "bytes", "Sent"),
    ("runs", "count", "Runs"),
)


def loops_chart(tables: Tables) -> Chart | None:
    """Draw a line for each loop; inner loops are included in those around them."""
    rows = rows_of(tables, "loops")
    measures = []
    for column, unit, title in _LOOP_MEASURES:
        largest = nlargest(_MOST, [row for row in rows if row.least(column)], key=methodcaller("least", column))
        if largest:
            bars = [
                Bar(line, row.least(column), _hover_loop(row), row.key, row.text(column)) for line, row in enumerate(largest)
            ]
            figure = bars_figure([row["loop"] for row in largest], [BarSeries("", series(0), bars)], unit)
            text = alt_text(
                (row["loop"], f"{row.text('trip_count')} iterations, {_amount_of_loop(row, column)}") for row in largest
            )
            measures.append((len(largest), Measure(title, figure, text)))
    if not measures:
        return None
    return Chart.of_measures(
        "loops",
        "Loops",
        "Work of all iterations of a loop in one step, inner loops included."
        + not_shown(sum(not any(row.least(column) for column, _, _ in _LOOP_MEASURES) for row in rows), "of unknown cost"),
        [measure for _, measure in measures],
        "loops",
        height=bars_height(max(count for count, _ in measures)),
    )


def _amount_of_loop(row: ChartRow, column: str) -> str:
    words = {"runs": " runs", "executed_wire_bytes": " sent"}.get(column, "")
    return f"{row.text(column)}{words}"


def _hover_loop(row: ChartRow) -> str:
    within = f", inside of {row['parent']}" if row["parent"] else ""
    return hover(
        f"{row['loop']}{within}",
        f"{row.text('trip_count')} iterations, its body runs {row.text('runs')} times",
        ", ".join(row.text(column) for column in ("flops", "bytes_accessed") if row[column] is not None),
        f"{row.text('executed_wire_bytes')} sent",
        row["source"],
    )

"""The step: its compute, memory and exposed time, and its loops."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import nlargest
from operator import methodcaller

from hlo_inspect.report.formats.html.charts.chart_rows import ChartRow, Tables, alt_text, hover, not_shown, rows_of
from hlo_inspect.report.formats.html.charts.drawings import Bar, BarSeries, bars_figure, bars_height
from hlo_inspect.report.formats.html.charts.palette import colour, rank, series
from hlo_inspect.report.formats.html.page_model import Chart, Measure
from hlo_inspect.report.table import Unit

_COLOURS = {
    "kernels bound by compute": "$compute",
    "kernels bound by memory": "$memory",
    "other kernels": "$other",
    "fixed costs of kernels": "$fixed",
    "kernels bound by the host link": series(0),
    "exposed copies, memory": series(1),
    "exposed copies, host link": series(3),
    "longer kernels or exposed work": "$other",
    "units busy on other streams": "$other",
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
    lines = [("bound", "bound_s", "bound_share"), ("estimate", "estimate_s", "share")]
    if all(row["bound_s"] == row["estimate_s"] for row in rows):
        lines = [("bound = estimate", "estimate_s", "share")]
    parts = []
    for row, drawn in zip(rows, colours_of_step(rows), strict=True):
        bars = [
            Bar(line, row.least(column), _hover(row, column, share, name), row.key, row.text(column))
            for line, (name, column, share) in enumerate(lines)
        ]
        parts.append(BarSeries(str(row["part"]), drawn, bars))
    figure = bars_figure([name for name, _, _ in lines], parts, "seconds")
    return Chart(
        "step",
        title,
        sentence,
        alt_text((row["part"], f"bound {row.text('bound_s')}, estimate {row.text('estimate_s')}") for row in rows),
        figure,
        table,
        height=bars_height(len(lines)),
    )


def colours_of_step(rows: Sequence[ChartRow]) -> list[str]:
    """Return the colours of the parts of a step: each axis of collectives has one of its own."""
    axes = iter(_OF_AXES * len(rows))
    return [_COLOURS.get(str(row["part"])) or next(axes) for row in rows]


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
                [Bar(0, row.least(column), hover(row["phase"], row.text(column)), row.key, row.text(column))],
            )
            for row in shown
        ]
        figure = bars_figure(["one step"], parts, unit)
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
        height=bars_height(1),
    )


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

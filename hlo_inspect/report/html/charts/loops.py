"""Loops, with what runs inside of them in one step."""

from __future__ import annotations

from heapq import nlargest
from operator import methodcaller

from hlo_inspect.report.html.charts.figures import Bar, BarSeries, bars_figure, bars_height
from hlo_inspect.report.html.charts.palette import series
from hlo_inspect.report.html.charts.rows import ChartRow, Tables, rows_of
from hlo_inspect.report.html.charts.texts import hover, in_words, not_shown
from hlo_inspect.report.html.model import Chart, Measure
from hlo_inspect.report.model import Unit

_MOST = 15
_MEASURES: tuple[tuple[str, Unit, str], ...] = (
    ("flops", "flops", "FLOPs"),
    ("bytes_accessed", "bytes", "Bytes"),
    ("executed_wire_bytes", "bytes", "Sent"),
    ("runs", "count", "Runs"),
)


def loops_chart(tables: Tables) -> Chart | None:
    """A line for each loop, inner ones included in those around them."""
    rows = rows_of(tables, "loops")
    measures = []
    for column, unit, title in _MEASURES:
        found = nlargest(_MOST, [row for row in rows if row.least(column)], key=methodcaller("least", column))
        if found:
            bars = [Bar(line, row.least(column), _hover(row), row.key, row.text(column)) for line, row in enumerate(found)]
            figure = bars_figure([row["loop"] for row in found], [BarSeries("", series(0), bars)], unit)
            text = in_words((row["loop"], f"{row.text('trip_count')} iterations, {_amount(row, column)}") for row in found)
            measures.append((len(found), Measure(title, figure, text)))
    if not measures:
        return None
    return Chart.of_measures(
        "loops",
        "Loops",
        "What all iterations of a loop do in one step, with the loops inside of it."
        + not_shown(sum(not any(row.least(column) for column, _, _ in _MEASURES) for row in rows), "of unknown cost"),
        [measure for _, measure in measures],
        "loops",
        height=bars_height(max(count for count, _ in measures)),
    )


def _amount(row: ChartRow, column: str) -> str:
    words = {"runs": " runs", "executed_wire_bytes": " sent"}.get(column, "")
    return f"{row.text(column)}{words}"


def _hover(row: ChartRow) -> str:
    within = f", inside of {row['parent']}" if row["parent"] else ""
    return hover(
        f"{row['loop']}{within}",
        f"{row.text('trip_count')} iterations, its body runs {row.text('runs')} times",
        ", ".join(row.text(column) for column in ("flops", "bytes_accessed") if row[column] is not None),
        f"{row.text('executed_wire_bytes')} sent",
        row["source"],
    )

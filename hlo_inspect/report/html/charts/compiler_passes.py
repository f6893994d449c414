"""Compiler passes from left to right: the collectives after each, and the other figures of the module."""

from __future__ import annotations

from collections.abc import Sequence

from hlo_inspect.report.html.charts.figures import Layout, amounts_axis, axis, base_layout, marks
from hlo_inspect.report.html.charts.palette import PALETTE, colour, series
from hlo_inspect.report.html.charts.rows import ChartRow, Tables, rows_of
from hlo_inspect.report.html.charts.texts import hover, in_words, plain
from hlo_inspect.report.html.model import Chart, Figure, Measure

_HISTORY = "history"
_SUMS = {
    "instructions": "Instructions",
    "fusions": "Fusions",
    "copies": "Copies",
    "flops": "FLOPs",
    "bytes": "Bytes accessed",
    "largest_array_bytes": "Largest array",
}
_MOST_TICKS, _MOST_WORDS = 16, 24


def collectives_by_pass_chart(tables: Tables) -> Chart | None:
    """Bars of the collectives after each pass."""
    rows = rows_of(tables, _HISTORY)
    kinds = [kind for kind in PALETTE if any(row[_column(kind)] for row in rows)]  # each kind of collective has a colour
    if not kinds:
        return None
    return Chart(
        "collectives-by-pass",
        "Collectives after each pass",
        "A step up is a pass that brings collectives in, a step down one that merges or removes them.",
        _changes(rows, "collectives", "Collectives"),
        _stacked(rows, kinds),
        _HISTORY,
    )


def figures_by_pass_chart(tables: Tables) -> Chart | None:
    """A line of each other figure of the module."""
    rows = rows_of(tables, _HISTORY)
    measures = tuple(
        Measure(label, _line(rows, name, label), _changes(rows, name, label))
        for name, label in _SUMS.items()
        if any(row.least(name) for row in rows)
    )
    if not measures:
        return None
    return Chart.of_measures(
        "figures-by-pass",
        "Size of the module after each pass",
        "Where the line is level a pass rewrote instructions without another figure. Grey marks are lower bounds.",
        measures,
        _HISTORY,
    )


def _column(kind: str) -> str:
    return kind.replace("-", "_")


def _stacked(rows: Sequence[ChartRow], kinds: Sequence[str]) -> Figure:
    """Bars of the collectives after each pass, stacked by kind. A kind that is not there has no bar."""
    traces = []
    for kind in kinds:
        name = _column(kind)
        numbers = [number for number, row in enumerate(rows) if row[name]]
        hovers = [_hover(rows[number], f"{kind}: {rows[number].text(name)}") for number in numbers]
        heights = [rows[number][name] for number in numbers]
        keys = [rows[number].key for number in numbers]
        traces.append(marks("bar", hovers, keys, name=kind, x=numbers, y=heights, marker={"color": colour(kind)}))
    counts = amounts_axis([row["collectives"] for row in rows], "count")
    layout = base_layout(barmode="stack", bargap=0.1, xaxis=_passes_axis(rows), yaxis=counts, showlegend=True)
    return {"data": traces, "layout": layout}


def _line(rows: Sequence[ChartRow], name: str, label: str) -> Figure:
    """A figure of the module from pass to pass: it stays until another pass changes it. Where it is unknown the line is at its
    lower bound, and breaks where there is none.
    """
    values = [row.least(name) or row[name] for row in rows]
    trace = marks(
        "scatter",
        (_hover(row, f"{label}: {row.text(name)}") for row in rows),
        (row.key for row in rows),
        mode="lines+markers",
        line={"shape": "hv", "color": series(0), "width": 2},
        marker={"size": 5, "color": [series(0) if row[name] is not None else "$unknown" for row in rows]},
        x=list(range(len(rows))),
        y=values,
    )
    layout = base_layout(xaxis=_passes_axis(rows), yaxis=amounts_axis(values, rows[0].units[name]), showlegend=False)
    return {"data": [trace], "layout": layout}


def _passes_axis(rows: Sequence[ChartRow]) -> Layout:
    """The passes in their order, some of them with the number of their file."""
    ticks = range(0, len(rows), max(1, -(-len(rows) // _MOST_TICKS)))
    return axis(
        "passes, by the number of their file",
        tickvals=list(ticks),
        ticktext=[plain(_file(rows[number])) for number in ticks],
        range=[-0.5, len(rows) - 0.5],
        showgrid=False,
        zeroline=False,
    )


def _file(row: ChartRow) -> str:
    return str(row["file"] or "start")


def _hover(row: ChartRow, figure: str) -> str:
    return hover(f"{_file(row)} {row['pass']}", figure, row["change"] or "no other counts")


def _changes(rows: Sequence[ChartRow], name: str, label: str) -> str:
    """The passes that changed a figure, in words."""
    found = [(row["pass"], row.text(name)) for row in rows]
    changed = [one for before, one in zip((None, *found), found, strict=False) if before is None or before[1] != one[1]]
    words = in_words(changed, _MOST_WORDS)
    return f"{label} after each pass that changed them: {words}."

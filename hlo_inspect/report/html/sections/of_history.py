"""What compiler passes did to a module: its collectives behind each pass, and its fusions, copies and other figures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hlo_inspect.report.cells import heading
from hlo_inspect.report.html.charts.layout import Layout, amounts_axis, axis, base_layout
from hlo_inspect.report.html.charts.palette import colour, series
from hlo_inspect.report.html.charts.texts import hover, plain
from hlo_inspect.report.html.model import Chart, Figure, Measure, PageSection
from hlo_inspect.report.model import Column, Report, Row, Table, Value
from hlo_inspect.report.units import format_value

NAME = "passes"
_HISTORY = "history"
_SUMS = {
    "instructions": "Instructions",
    "fusions": "Fusions",
    "copies": "Copies",
    "flops": "FLOPs",
    "bytes": "Bytes accessed",
    "largest_array_bytes": "Largest array",
}
_MOST_TICKS, _MOST_TOLD = 16, 24


def history_section(report: Report) -> PageSection:
    """The section of a report of `history`."""
    tables = {table.name: table for table in report.tables}
    history = tables.get(_HISTORY)
    return PageSection(
        NAME,
        "Compiler passes",
        pictures=() if history is None else tuple(_pictures(history)),
        tables=tuple(tables),
        text=". ".join(_sentences(report)),
        nothing="No pass of the compiler changed anything.",
    )


def _sentences(report: Report) -> Iterator[str]:
    """The first lines of the report."""
    for row in report.headline:
        text = "".join(part if isinstance(part, str) else format_value(part.value, part.unit) for part in row.parts)
        yield f"{row.label.capitalize()}: {text}" if row.label else text


def _pictures(table: Table) -> Iterator[Chart]:
    names = [column.name for column in table.columns]
    kinds = [
        table.columns[at]
        for at in range(names.index("collectives") + 1, names.index("async_count"))
        if any(row[at] for row in table.rows)
    ]
    if kinds:
        yield Chart(
            "collectives-by-pass",
            "Collectives behind each pass",
            "A step up is a pass that brings collectives in, a step down one that merges or removes them.",
            _told(table, "collectives"),
            _stacked(table, kinds),
            table.name,
        )
    measures = tuple(
        Measure(label, _line(table, table.columns[names.index(name)], label))
        for name, label in _SUMS.items()
        if any(row[names.index(name)] for row in table.rows)
    )
    if measures:
        yield Chart(
            "figures-by-pass",
            "Size of the module behind each pass",
            "Where the line is level a pass rewrote instructions without another figure.",
            _told(table, "instructions"),
            measures[0].figure,
            table.name,
            measures=measures,
        )


def _stacked(table: Table, kinds: Sequence[Column]) -> Figure:
    """Bars of the collectives behind each pass, one upon the other by kind. A kind that is not there has no bar."""
    names = [column.name for column in table.columns]
    traces = []
    for kind in kinds:
        at = names.index(kind.name)
        label = kind.name.replace("_", "-")
        rows = [number for number, row in enumerate(table.rows) if row[at]]
        traces.append(
            {
                "type": "bar",
                "name": label,
                "x": rows,
                "y": [table.rows[number][at] for number in rows],
                "hovertext": [_hover(table, number, f"{label}: {table.rows[number][at]:,}") for number in rows],
                "hoverinfo": "text",
                "customdata": [f"{table.name}:{number}" for number in rows],
                "marker": {"color": colour(label)},
            }
        )
    counts = amounts_axis([row[names.index("collectives")] for row in table.rows], "count")
    layout = base_layout(barmode="stack", bargap=0.1, xaxis=_passes_axis(table), yaxis=counts, showlegend=True)
    return {"data": traces, "layout": layout}


def _line(table: Table, column: Column, label: str) -> Figure:
    """A figure of the module from pass to pass: it stays until another pass changes it."""
    at = [one.name for one in table.columns].index(column.name)
    rows = range(len(table.rows))
    trace = {
        "type": "scatter",
        "mode": "lines+markers",
        "line": {"shape": "hv", "color": series(0), "width": 2},
        "marker": {"size": 5, "color": series(0)},
        "x": list(rows),
        "y": [table.rows[number][at] for number in rows],
        "hovertext": [
            _hover(table, number, f"{label}: {format_value(table.rows[number][at], column.unit)}") for number in rows
        ],
        "hoverinfo": "text",
        "customdata": [f"{table.name}:{number}" for number in rows],
    }
    values = amounts_axis([row[at] for row in table.rows], column.unit)
    layout = base_layout(xaxis=_passes_axis(table), yaxis=values, showlegend=False)
    return {"data": [trace], "layout": layout}


def _passes_axis(table: Table) -> Layout:
    """The passes in their order, some of them with the number of their file."""
    count = len(table.rows)
    ticks = range(0, count, max(1, -(-count // _MOST_TICKS)))
    return axis(
        "passes, by the number of their file",
        tickvals=list(ticks),
        ticktext=[plain(_file(table, table.rows[number])) for number in ticks],
        range=[-0.5, count - 0.5],
        showgrid=False,
        zeroline=False,
    )


def _file(table: Table, row: Row) -> str:
    return str(_cell(table, row, "file") or "start")


def _hover(table: Table, number: int, figure: str) -> str:
    row = table.rows[number]
    title = f"{_file(table, row)} {_cell(table, row, 'pass')}"
    return hover(title, figure, _cell(table, row, "change") or "no other counts")


def _cell(table: Table, row: Row, name: str) -> Value:
    return next((value for value, column in zip(row, table.columns, strict=True) if column.name == name), None)


def _told(table: Table, name: str) -> str:
    """The passes behind which a count is another, in words."""
    column = next(one for one in table.columns if one.name == name)
    changed = [
        row
        for before, row in zip((None, *table.rows), table.rows, strict=False)
        if before is None or _cell(table, before, name) != _cell(table, row, name)
    ]
    words = [
        f"{_cell(table, row, 'pass')}: {format_value(_cell(table, row, name), column.unit)}" for row in changed[:_MOST_TOLD]
    ]
    more = f"; {len(changed) - len(words):,} more changes" if len(changed) > len(words) else ""
    return f"{heading(column)} behind each pass that changed them: {'; '.join(words)}{more}."

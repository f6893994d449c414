"""Bars from left to right, one line for each label, stacked where a line has several."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from hlo_inspect.report.html.charts.layout import Layout, amounts_axis, axis, base_layout
from hlo_inspect.report.html.charts.palette import on
from hlo_inspect.report.html.charts.texts import plain
from hlo_inspect.report.model import Unit, Value

LINE = 30
NAME = 28
"""Characters of a name at an axis."""
_AROUND = 96


class Bar(NamedTuple):
    """A part of the bar in a line: how long it is, what is written in it and beside the mouse, and the row it is about."""

    line: int
    length: float
    hover: str
    key: str = ""
    text: str = ""


class BarSeries(NamedTuple):
    """Bars of one colour, with a line in the legend where they have a name."""

    name: str
    colour: str
    bars: Sequence[Bar]


def bars_figure(
    labels: Sequence[Value], series: Iterable[BarSeries], unit: Unit, *, has_legend: bool | None = None
) -> dict[str, Any]:
    """A figure with a line for each label, the first on top. By default it has a legend where several series have names."""
    found = [one for one in series if one.bars]
    lengths = [0.0] * len(labels)
    for one in found:
        for bar in one.bars:
            lengths[bar.line] += bar.length
    layout = base_layout(
        barmode="stack",
        xaxis=amounts_axis(lengths, unit),
        yaxis=lines_axis(labels),
        showlegend=sum(bool(one.name) for one in found) > 1 if has_legend is None else has_legend,
    )
    return {"data": [_trace(one) for one in found], "layout": layout}


def lines_axis(labels: Sequence[Value]) -> Layout:
    """An axis of names from top to bottom; equal names are lines of their own."""
    return axis(
        range=[len(labels) - 0.5, -0.5],
        tickvals=list(range(len(labels))),
        ticktext=[plain(text, NAME) for text in labels],
        tickfont={"color": "$text"},
        showgrid=False,
        zeroline=False,
    )


def bars_height(lines: int) -> int:
    """The height of a figure with `lines` lines, in pixels."""
    return _AROUND + LINE * max(2, lines)


def _trace(series: BarSeries) -> dict[str, Any]:
    return {
        "type": "bar",
        "orientation": "h",
        "width": 0.65,
        "name": plain(series.name),
        "x": [bar.length for bar in series.bars],
        "y": [bar.line for bar in series.bars],
        "hovertext": [bar.hover for bar in series.bars],
        "hoverinfo": "text",
        "text": [plain(bar.text) for bar in series.bars],
        "textposition": "inside",
        "insidetextanchor": "middle",
        "textangle": 0,
        "constraintext": "none",
        "insidetextfont": {"color": on(series.colour)},
        "customdata": [bar.key for bar in series.bars],
        "marker": {"color": series.colour, "line": {"color": "$paper", "width": 1}},
    }

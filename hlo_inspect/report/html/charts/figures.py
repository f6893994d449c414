"""The common parts of all figures: fonts, margins, legends, axes with the units of tables, and bars."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from hlo_inspect.report.html.charts.palette import text_on
from hlo_inspect.report.html.charts.rows import plain
from hlo_inspect.report.model import Unit, Value
from hlo_inspect.report.units import format_value

Layout = dict[str, Any]

_TICKS = 4
_STEPS = (1, 2, 5)


def base_layout(**more: Any) -> Layout:  # noqa: ANN401 - what Plotly takes
    """Return a layout as wide as its place. `more` adds to it or replaces its parts, and axes extend those of all figures."""
    return {
        "autosize": True,
        "paper_bgcolor": "$paper",
        "plot_bgcolor": "$paper",
        "font": {"color": "$text", "size": 12, "family": "system-ui, sans-serif"},
        "margin": {"l": 8, "r": 16, "t": 8, "b": 8, "pad": 4},
        "hovermode": "closest",
        "hoverlabel": {
            "align": "left",
            "namelength": -1,
            "bgcolor": "$soft",
            "bordercolor": "$line",
            "font": {"color": "$text", "size": 12},
        },
        "legend": {
            "orientation": "h",
            "traceorder": "normal",
            "itemsizing": "constant",
            "x": 0,
            "xanchor": "left",
            "y": 1.02,
            "yanchor": "bottom",
            "font": {"size": 12},
        },
        "dragmode": False,
    } | (more | {name: axis() | more.get(name, {}) for name in ("xaxis", "yaxis")})


def axis(title: str = "", **more: Any) -> Layout:  # noqa: ANN401 - what Plotly takes
    """Return an axis that makes room for its labels."""
    return {
        "automargin": True,
        "gridcolor": "$grid",
        "linecolor": "$line",
        "zerolinecolor": "$line",
        "tickcolor": "$line",
        "tickfont": {"color": "$quiet"},
        "title": {"text": plain(title), "font": {"color": "$quiet", "size": 12}, "standoff": 8},
    } | more


def amounts_axis(values: Iterable[Value], unit: Unit, title: str = "") -> Layout:
    """Return a linear axis from 0 with few ticks, in the units of tables."""
    greatest = max((value for value in values if isinstance(value, int | float)), default=0)
    ticks = _ticks(float(greatest), 1024 if unit == "bytes" else 1000, 1 if unit in ("bytes", "count", "flops") else 0)
    return axis(title, rangemode="tozero", tickvals=ticks, ticktext=[tick_text(tick, unit) for tick in ticks], tickangle=0)


def _ticks(greatest: float, base: int, least: float) -> list[float]:
    """Return round numbers up to the greatest, none smaller than `least`.

    Steps are 1, 2 or 5 times a power of ten, in multiples of the unit's base.
    """
    if greatest <= 0:
        return [0.0]
    scale = base ** math.floor(math.log(greatest, base) + 1e-9) if greatest >= 1 or base == 1000 else 1.0
    amount = greatest / scale
    power = 10.0 ** math.floor(math.log10(amount / _TICKS))
    step = max(
        least, next((power * factor for factor in (*_STEPS, 10) if amount / (power * factor) <= _TICKS), power * 10) * scale
    )
    return [number * step for number in range(int(greatest / step) + 1)]


def tick_text(value: float, unit: Unit) -> str:
    """Format a round value without decimals that say nothing."""
    number, _, suffix = format_value(int(value) if value == int(value) else value, unit).partition(" ")
    number = number.rstrip("0").rstrip(".") if "." in number else number
    return plain(f"{number} {suffix}".rstrip())


def log_axis(values: Iterable[float], unit: Unit, title: str) -> Layout:
    """Return a logarithmic axis with a tick for each power of ten, or of 32 for bytes; fewer if those are many."""
    base = 32 if unit == "bytes" else 10
    powers = [math.log(value, base) for value in values if value > 0]
    low, high = min(powers, default=0), max(powers, default=1)
    room = 0.04 * (high - low) + 0.1
    first, last = math.floor(low - room), math.ceil(high + room)
    ticks = [float(base) ** power for power in range(first, last + 1, max(1, math.ceil((last - first) / 6)))]
    texts = [tick_text(tick, unit) for tick in ticks]
    ends = [(low - room) * math.log10(base), (high + room) * math.log10(base)]
    return axis(title, type="log", range=ends, tickvals=ticks, ticktext=texts, zeroline=False)


# -- bars --------------------------------------------------------------------------------------------------------------


LINE = 30
NAME = 28
"""Characters of a name at an axis."""
_AROUND = 96


class Bar(NamedTuple):
    """A part of the bar in a line: its length, its text, its hover text, and its row."""

    line: int
    length: float
    hover: str
    key: str = ""
    text: str = ""


class BarSeries(NamedTuple):
    """Bars of one colour, with a line in the legend if they have a name."""

    name: str
    colour: str
    bars: Sequence[Bar]


def bars_figure(
    labels: Sequence[Value], series: Iterable[BarSeries], unit: Unit, *, has_legend: bool | None = None
) -> dict[str, Any]:
    """Draw a line for each label, the first on top. By default there is a legend if several series have names."""
    drawn = [bar_series for bar_series in series if bar_series.bars]
    lengths = [0.0] * len(labels)
    for bar_series in drawn:
        for bar in bar_series.bars:
            lengths[bar.line] += bar.length
    layout = base_layout(
        barmode="stack",
        xaxis=amounts_axis(lengths, unit),
        yaxis=lines_axis(labels),
        showlegend=sum(bool(bar_series.name) for bar_series in drawn) > 1 if has_legend is None else has_legend,
    )
    return {"data": [_trace(bar_series) for bar_series in drawn], "layout": layout}


def marks(kind: str, hovers: Iterable[str], keys: Iterable[str], **more: Any) -> dict[str, Any]:  # noqa: ANN401 - as above
    """Return a trace whose marks lead to rows: `hovers` are the texts beside the mouse, `keys` the rows."""
    return {"type": kind, **more, "hovertext": list(hovers), "hoverinfo": "text", "customdata": list(keys)}


def lines_axis(labels: Sequence[Value]) -> Layout:
    """Return an axis of names from top to bottom; equal names are lines of their own."""
    return axis(
        range=[len(labels) - 0.5, -0.5],
        tickvals=list(range(len(labels))),
        ticktext=[plain(text, NAME) for text in labels],
        tickfont={"color": "$text"},
        showgrid=False,
        zeroline=False,
    )


def bars_height(lines: int) -> int:
    """Return the height of a figure with `lines` lines, in pixels."""
    return _AROUND + LINE * max(2, lines)


def _trace(series: BarSeries) -> dict[str, Any]:
    return marks(
        "bar",
        (bar.hover for bar in series.bars),
        (bar.key for bar in series.bars),
        orientation="h",
        width=0.65,
        name=plain(series.name),
        x=[bar.length for bar in series.bars],
        y=[bar.line for bar in series.bars],
        text=[plain(bar.text) for bar in series.bars],
        textposition="inside",
        insidetextanchor="middle",
        textangle=0,
        constraintext="none",
        insidetextfont={"color": text_on(series.colour)},
        marker={"color": series.colour, "line": {"color": "$paper", "width": 1}},
    )

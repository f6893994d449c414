"""The common parts of all figures: axes with the units of tables, and bars."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from hlo_inspect.report.formats.html.charts.chart_rows import short
from hlo_inspect.report.table import Unit, Value
from hlo_inspect.report.units import format_value

Layout = dict[str, Any]

_TICKS = 4
_STEPS = (1, 2, 5)


def axis(title: str = "", **more: Any) -> Layout:  # noqa: ANN401 - values of JSON
    """Return an axis. `ticks` has the positions of its labels, `labels` their texts, and `range` its ends."""
    return ({"title": title} if title else {}) | more


def amounts_axis(values: Iterable[Value], unit: Unit, title: str = "") -> Layout:
    """Return a linear axis from 0 with few ticks, in the units of tables."""
    greatest = max((value for value in values if isinstance(value, int | float)), default=0)
    ticks = _ticks(float(greatest), 1024 if unit == "bytes" else 1000, 1 if unit in ("bytes", "count", "flops") else 0)
    return axis(title, ticks=ticks, labels=[tick_text(tick, unit) for tick in ticks])


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
    return f"{number} {suffix}".rstrip()


def log_axis(values: Iterable[float], unit: Unit, title: str) -> Layout:
    """Return a logarithmic axis with a tick for each power of ten, or of 32 for bytes; fewer if those are many."""
    base = 32 if unit == "bytes" else 10
    powers = [math.log(value, base) for value in values if value > 0]
    low, high = min(powers, default=0), max(powers, default=1)
    room = 0.04 * (high - low) + 0.1
    first, last = math.floor(low - room), math.ceil(high + room)
    ticks = [float(base) ** power for power in range(first, last + 1, max(1, math.ceil((last - first) / 6)))]
    texts = [tick_text(tick, unit) for tick in ticks]
    ends = [float(base) ** (low - room), float(base) ** (high + room)]
    return axis(title, is_log=True, range=ends, ticks=ticks, labels=texts)


# -- bars --------------------------------------------------------------------------------------------------------------


LINE = 32
NAME = 28
"""Characters of a name at an axis."""
_AROUND = 44


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


def bars_figure(labels: Sequence[Value], series: Iterable[BarSeries], unit: Unit) -> dict[str, Any]:
    """Draw a line for each label, the first on top."""
    drawn = [bar_series for bar_series in series if bar_series.bars]
    lengths = [0.0] * len(labels)
    for bar_series in drawn:
        for bar in bar_series.bars:
            lengths[bar.line] += bar.length
    layout = {"bars": "stacked", "x": amounts_axis(lengths, unit), "y": lines_axis(labels)}
    return {"data": [_trace(bar_series) for bar_series in drawn], "layout": layout}


def marks(kind: str, hovers: Iterable[str], keys: Iterable[str], **more: Any) -> dict[str, Any]:  # noqa: ANN401 - as above
    """Return a trace whose marks lead to rows: `hovers` are the texts beside the mouse, `keys` the rows."""
    return {"type": kind, **more, "hovers": list(hovers), "keys": list(keys)}


def lines_axis(labels: Sequence[Value]) -> Layout:
    """Return an axis of names from top to bottom; equal names are lines of their own."""
    return axis(
        range=[len(labels) - 0.5, -0.5],
        ticks=list(range(len(labels))),
        labels=[short(text, NAME) for text in labels],
        is_names=True,
    )


def bars_height(lines: int) -> int:
    """Return the height of a figure with `lines` lines, in pixels."""
    return _AROUND + LINE * lines


def _trace(series: BarSeries) -> dict[str, Any]:
    return marks(
        "bar",
        (bar.hover for bar in series.bars),
        (bar.key for bar in series.bars),
        name=short(series.name),
        color=series.colour,
        x=[bar.length for bar in series.bars],
        y=[bar.line for bar in series.bars],
        texts=[short(bar.text) for bar in series.bars],
    )

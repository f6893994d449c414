"""What all figures have in common: fonts, margins, legends, axes with the units of tables."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from hlo_inspect.report.html.charts.texts import plain
from hlo_inspect.report.model import Unit, Value
from hlo_inspect.report.units import format_value

Layout = dict[str, Any]

_TICKS = 4
_STEPS = (1, 2, 5)


def base_layout(**more: Any) -> Layout:  # noqa: ANN401 - what Plotly takes
    """A layout as wide as its place; what is given comes beside it, or in its place, and axes on top of what all axes have."""
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
    """An axis that makes room for its labels."""
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
    """A linear axis from 0 with few ticks, which have the unit that tables have."""
    greatest = max((value for value in values if isinstance(value, int | float)), default=0)
    ticks = _ticks(float(greatest), 1024 if unit == "bytes" else 1000, 1 if unit in ("bytes", "count", "flops") else 0)
    return axis(title, rangemode="tozero", tickvals=ticks, ticktext=[tick_text(tick, unit) for tick in ticks], tickangle=0)


def _ticks(greatest: float, base: int, least: float) -> list[float]:
    """Round numbers up to the greatest: steps of 1, 2 or 5 times a power of ten, in multiples of the unit's base, and no
    smaller ones than `least`.
    """
    if greatest <= 0:
        return [0.0]
    scale = base ** math.floor(math.log(greatest, base) + 1e-9) if greatest >= 1 or base == 1000 else 1.0
    amount = greatest / scale
    power = 10.0 ** math.floor(math.log10(amount / _TICKS))
    step = max(least, next((power * one for one in (*_STEPS, 10) if amount / (power * one) <= _TICKS), power * 10) * scale)
    return [number * step for number in range(int(greatest / step) + 1)]


def tick_text(value: float, unit: Unit) -> str:
    """A round value without decimals that say nothing."""
    number, _, suffix = format_value(int(value) if value == int(value) else value, unit).partition(" ")
    number = number.rstrip("0").rstrip(".") if "." in number else number
    return plain(f"{number} {suffix}".rstrip())


def log_axis(values: Iterable[float], unit: Unit, title: str) -> Layout:
    """A logarithmic axis with a tick for each power of ten, of bytes of 32; fewer where those are many."""
    base = 32 if unit == "bytes" else 10
    powers = [math.log(value, base) for value in values if value > 0]
    low, high = min(powers, default=0), max(powers, default=1)
    room = 0.04 * (high - low) + 0.1
    first, last = math.floor(low - room), math.ceil(high + room)
    ticks = [float(base) ** power for power in range(first, last + 1, max(1, math.ceil((last - first) / 6)))]
    texts = [tick_text(tick, unit) for tick in ticks]
    ends = [(low - room) * math.log10(base), (high + room) * math.log10(base)]
    return axis(title, type="log", range=ends, tickvals=ticks, ticktext=texts, zeroline=False)

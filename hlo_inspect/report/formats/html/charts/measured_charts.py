"""A recorded profile: measured times against their bounds, the step by what waits, and the waiting of devices."""

from __future__ import annotations

from collections.abc import Sequence
from operator import methodcaller
from typing import Any

from hlo_inspect.report.formats.html.charts.chart_rows import (
    ChartRow,
    Tables,
    alt_text,
    grouped,
    hover,
    not_shown,
    rows_of,
    short,
)
from hlo_inspect.report.formats.html.charts.drawings import Bar, BarSeries, bars_figure, bars_height, log_axis, marks
from hlo_inspect.report.formats.html.charts.palette import colour, series
from hlo_inspect.report.formats.html.page_model import Chart

_KERNELS = "measured_kernel_groups"
_COLOURS = {"kernels": "$compute", "idle": "$grid"}
_OF_COLLECTIVES = {"transfer of collectives": "$collective", "waiting of collectives": "$memory"}


def bounds_chart(tables: Tables) -> Chart | None:
    """Draw a mark for each kernel with a bound: its measured time by its bound, and a line for equal times."""
    rows = rows_of(tables, _KERNELS)
    shown = [row for row in rows if row.least("bound_s") and row.least("self_s")]
    if not shown:
        return None
    bounds, times = ([row.least(column) for row in shown] for column in ("bound_s", "self_s"))
    ends = [min(*bounds, *times), max(*bounds, *times)]
    line = {"type": "line", "x": ends, "y": ends, "color": "$quiet"}
    layout = {
        "x": log_axis(bounds, "seconds", "bound of one step"),
        "y": log_axis(times, "seconds", "measured self time of one step"),
    }
    phases = grouped(shown, lambda row: str(row["phase"] or "unknown"))
    unknown = not_shown(len(rows) - len(shown), "loops, asynchronous work and kernels of unknown cost")
    return Chart(
        "measured-bounds",
        "Measured against bound",
        "Kernels at the line reach their bound; the further above it, the more time they lose. One below the line means that "
        f"the hardware profile or the bound is wrong.{unknown}",
        alt_text((row["name"], f"{row.text('self_s')} measured, bound {row.text('bound_s')}") for row in shown),
        {"data": [line, *(_kernels(phase, of_phase) for phase, of_phase in phases.items())], "layout": layout},
        _KERNELS,
        height=480,
    )


def _kernels(phase: str, rows: Sequence[ChartRow]) -> dict[str, Any]:
    return marks(
        "points",
        (
            hover(
                row["name"],
                f"{row.text('self_s')} measured, bound {row.text('bound_s')}",
                (f"{row.text('ratio')} × the bound, " if row["ratio"] is not None else "") + f"{row.text('runs')} runs",
                row["source"],
            )
            for row in rows
        ),
        (row.key for row in rows),
        name=short(phase),
        color=colour(phase),
        x=[row.least("bound_s") for row in rows],
        y=[row.least("self_s") for row in rows],
    )


def colour_of_measured(part: str) -> str:
    """Return the colour of a part of a measured step."""
    return _COLOURS.get(part) or _OF_COLLECTIVES.get(part.partition(",")[0], "$other")


def measured_parts_chart(tables: Tables) -> Chart | None:
    """Draw the parts of a measured step as one bar."""
    rows = [row for row in rows_of(tables, "measured_parts") if row.least("time_s")]
    if not rows:
        return None
    parts = []
    for row in rows:
        name = str(row["part"])
        drawn = colour_of_measured(name)
        bar = Bar(0, row.least("time_s"), hover(name, row.text("time_s"), f"{row.text('share')} of the parts"), row.key)
        parts.append(BarSeries(name, drawn, (bar,)))
    return Chart(
        "measured-parts",
        "Parts of the measured step",
        "Mean of a step on one device: kernels, transfer of collectives, their waiting for the slowest device, and idle time.",
        alt_text((row["part"], row.text("time_s")) for row in rows),
        bars_figure(["measured"], parts, "seconds"),
        "measured_parts",
        height=bars_height(1),
    )


_MOST_DEVICES = 32


def waits_chart(tables: Tables) -> Chart | None:
    """Draw for each device how long it waits for others, and how long others wait for it."""
    rows = [row for row in rows_of(tables, "measured_by_device") if row["wait_s"] is not None]
    shown = sorted(rows, key=methodcaller("least", "held_s"), reverse=True)[:_MOST_DEVICES]
    if len(shown) < 2 or not any(row.least("held_s") for row in shown):
        return None
    parts = [
        BarSeries(words, series(number), [_wait(line, row, column) for line, row in enumerate(shown)])
        for number, (column, words) in enumerate((("wait_s", "waits for others"), ("held_s", "others wait for it")))
    ]
    unknown = not_shown(len(rows) - len(shown), "devices that others wait for less")
    return Chart(
        "measured-waits",
        "Waiting by device",
        f"Time of a step in which a device waits in collectives, and in which others wait because it begins last.{unknown}",
        alt_text((row["device"], f"waits {row.text('wait_s')}, holds others up {row.text('held_s')}") for row in shown),
        bars_figure([f"device {row['device']}" for row in shown], parts, "seconds"),
        "measured_by_device",
        height=bars_height(len(shown)),
    )


def _wait(line: int, row: ChartRow, column: str) -> Bar:
    words = f"waits {row.text('wait_s')}, others wait {row.text('held_s')} for it"
    return Bar(line, row.least(column), hover(f"device {row['device']}", words), row.key)

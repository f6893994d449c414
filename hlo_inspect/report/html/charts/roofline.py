"""Kernels on the roofline of an accelerator; without one, by their bytes and FLOPs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import nlargest
from typing import Any

from hlo_inspect.report.html.charts.figures import base_layout, log_axis, marks
from hlo_inspect.report.html.charts.palette import colour
from hlo_inspect.report.html.charts.rows import ChartRow, Tables, alt_text, grouped, hover, plain, rows_of
from hlo_inspect.report.html.model import Chart, Measure
from hlo_inspect.report.model import Unit

_NAMED = 5
_WITH_PROFILE = "With --profile the page shows how far each is from what the accelerator can."
_HIGH, _RIGHT = 0.75, 0.4  # shares of the picture: a name hangs below a higher point, and ends at a point further right
# width and height of a neighbourhood as shares of the picture, and the number of names in it
_WIDE, _TALL, _STACKED = 0.25, 0.2, 2
_APART = 0.4  # powers of ten between the names of roofs
_LARGEST_MARK = 36
_MEASURES = (
    ("estimate_flops_per_s", "Estimate"),
    ("bound_flops_per_s", "Bound"),
    ("compiler_flops_per_s", "Compiler"),
)


def roofline_chart(tables: Tables) -> Chart | None:
    """Draw a mark for each row of the table that has the measure; the largest and those far from their roof are named."""
    rows = rows_of(tables, "roofline")
    left_out = kernels_left_out(tables)
    remark = f" Not shown: {left_out}." if left_out else ""
    roofs = rows_of(tables, "roofs")
    if not rows:
        return None
    if not roofs:
        return _without_roofs(rows, remark)
    measures = []
    for column, title in _MEASURES:
        shown = [row for row in rows if row.least(column)]
        if shown:
            figure = _figure(shown, "flop_per_memory_byte", column, "flops_per_s", roofs)
            measures.append(Measure(title, figure, _alt_text(shown, column)))
    if not measures:
        return _without_roofs(rows, remark)
    return Chart.of_measures(
        "roofline",
        "Kernels on the roofline",
        "Kernels below the line take longer than the accelerator needs for their work; size is their time, and those that "
        f"lose most time are named. Under the slope memory binds, under the flat part computing.{remark}",
        measures,
        "kernel_groups",
        height=480,
    )


def _alt_text(rows: Iterable[ChartRow], column: str) -> str:
    return alt_text((row["name"], f"{row.text(column)} at {row.text('flop_per_memory_byte')} FLOP a byte") for row in rows)


def kernels_left_out(tables: Tables) -> str:
    """Return the number of kernels without a place on the roofline, by reason; empty if all have one."""
    return ", ".join(_left_out(row) for row in rows_of(tables, "roofline_left_out") if row["sites"])


def _left_out(row: ChartRow) -> str:
    what = "" if row["reason"] == "collectives" else "kernel " if row["sites"] == 1 else "kernels "
    return f"{row.text('sites')} {what}{row['reason']}"


def _without_roofs(rows: Sequence[ChartRow], remark: str) -> Chart:
    has_times = any(row.least("bound_s") for row in rows)
    size = "time" if has_times else "bytes"
    why = "Before fusion it is unknown which of these bytes reach memory." if has_times else _WITH_PROFILE
    return Chart(
        "roofline",
        "Kernels by bytes and FLOPs",
        f"The further up, the more a kernel computes; the further right, the more it moves. Size is its {size}. {why}{remark}",
        alt_text((row["name"], f"{row.text('flops')}, {row.text('bytes')}") for row in rows),
        _figure(rows, "bytes", "flops", "flops", ()),
        "kernel_groups",
        height=480,
    )


def _figure(rows: Sequence[ChartRow], x: str, y: str, unit: Unit, roofs: Sequence[ChartRow]) -> dict[str, Any]:
    named = {row.key for row in nlargest(_NAMED, rows, key=_weight(rows))}
    size = _size(rows)
    largest = max(row.least(size) for row in rows)
    phases = grouped(rows, lambda row: str(row["phase"] or "unknown"))
    marks = [_trace(phase, of_phase, (x, y, size), largest) for phase, of_phase in phases.items()]
    xs = [*(row.least(x) for row in rows), *_ends(roofs, "from_flop_per_byte", "to_flop_per_byte")]
    ys = [*(row.least(y) for row in rows), *_ends(roofs, "from_flops_per_s", "flops_per_s")]
    layout = base_layout(
        xaxis=log_axis(
            xs, "number" if roofs else "bytes", "FLOP per byte of device memory" if roofs else "bytes moved in one step"
        ),
        yaxis=log_axis(ys, unit, "FLOP/s" if roofs else "FLOPs of one step"),
        showlegend=True,
    )
    layout["annotations"] = [
        *_names([row for row in rows if row.key in named], (x, y), (layout["xaxis"]["range"], layout["yaxis"]["range"])),
        *_peaks(roofs),
    ]
    return {"data": [*map(_roof, roofs), *marks], "layout": layout}


def _names(
    rows: Iterable[ChartRow], columns: tuple[str, str], ends: tuple[Sequence[float], Sequence[float]]
) -> Iterator[dict[str, Any]]:
    """Yield the names of marks: below those near the top, above the others. Names near each other are in several lines."""
    taken: list[tuple[float, float, bool]] = []
    for row in sorted(rows, key=lambda row: row.least(columns[1])):
        x, y = (math.log10(row.least(column)) for column in columns)
        along, up = ((position - low) / (high - low) for position, (low, high) in zip((x, y), ends, strict=True))
        is_below = up > _HIGH
        near = sum(
            abs(along - across) < _WIDE and abs(up - other) < _TALL and below == is_below for across, other, below in taken
        )
        taken.append((along, up, is_below))
        if near >= _STACKED:
            continue
        yield {
            "x": x,
            "y": y,
            "text": plain(row["name"], 22),
            "showarrow": True,
            "arrowhead": 0,
            "arrowwidth": 1,
            "arrowcolor": "$quiet",
            "ax": 0,
            "ay": (26 + 15 * near) * (1 if is_below else -1),
            "xanchor": "right" if along > _RIGHT else "left",
            "font": {"size": 11, "color": "$text"},
        }


def _peaks(roofs: Iterable[ChartRow]) -> Iterator[dict[str, Any]]:
    """Yield a label for the flat part of each roof, the highest first; of those near each other only the highest."""
    lowest = math.inf
    for roof in roofs:
        if math.log10(roof.least("flops_per_s")) > lowest - _APART:
            continue
        lowest = math.log10(roof.least("flops_per_s"))
        yield {
            "x": math.log10(roof.least("to_flop_per_byte")),
            "y": math.log10(roof.least("flops_per_s")),
            "text": plain(f"{roof['unit']} {roof.text('flops_per_s')}"),
            "showarrow": False,
            "xanchor": "right",
            "yanchor": "bottom",
            "font": {"size": 11, "color": "$quiet"},
        }


def _ends(roofs: Iterable[ChartRow], *columns: str) -> Iterable[float]:
    return (roof.least(column) for roof in roofs for column in columns)


def _size(rows: Iterable[ChartRow]) -> str:
    """Return the column for the size of marks: the time, else the bytes. One unknown value leaves all shares unknown."""
    return "bound_s" if any(row.least("bound_s") for row in rows) else "bytes"


def _weight(rows: Sequence[ChartRow]) -> Callable[[ChartRow], float]:
    """Return the weight that makes a kernel worth naming: its time above the bound, else its size."""
    by_loss = any(row.least("above_bound_s") for row in rows)
    return lambda row: row.least("above_bound_s" if by_loss else _size(rows))


def _trace(name: str, rows: Sequence[ChartRow], columns: tuple[str, str, str], largest: float) -> dict[str, Any]:
    x, y, size = columns
    marker = {
        "color": colour(name),
        "opacity": 0.75,
        "line": {"color": "$paper", "width": 0.5},
        "size": [row.least(size) for row in rows],
        "sizemode": "area",
        "sizeref": 2 * largest / _LARGEST_MARK**2 if largest else 1,
        "sizemin": 3,
    }
    return marks(
        "scatter",
        map(_hover, rows),
        (f"kernel_groups:{row['group']}" for row in rows),
        mode="markers",
        name=plain(name),
        x=[row.least(x) for row in rows],
        y=[row.least(y) for row in rows],
        cliponaxis=False,
        marker=marker,
    )


def _hover(row: ChartRow) -> str:
    times = [("bound_s", "bound"), ("estimate_s", "estimate"), ("compiler_s", "compiler")]
    times_text = ", ".join(f"{row.text(column)} {words}" for column, words in times if row[column] is not None)
    reached = "" if row["estimate_flops_per_s"] is None else f", {row.text('estimate_flops_per_s')}"
    return hover(
        row["name"],
        row["shape"],
        f"{row.text('flops')}, {row.text('bytes')}",
        f"{row.text('flop_per_byte')} FLOP a byte{reached}",
        times_text,
        row["phase"]
        if row["share"] is None
        else f"{row.text('share')} of the {'time' if times_text else 'bytes'}, {row['phase']}",
        row["source"],
    )


def _roof(roof: ChartRow) -> dict[str, Any]:
    """Draw the line of a unit: along the memory's bandwidth up to its peak."""
    hover_text = hover(
        roof["unit"],
        f"{roof.text('flops_per_s')} from {roof.text('ridge_flop_per_byte')} FLOP a byte on",
        f"memory {roof.text('bytes_per_s')}",
    )
    return {
        "type": "scatter",
        "mode": "lines",
        "name": plain(f"roof {roof['unit']}"),
        "x": [roof["from_flop_per_byte"], roof["ridge_flop_per_byte"], roof["to_flop_per_byte"]],
        "y": [roof["from_flops_per_s"], roof["flops_per_s"], roof["flops_per_s"]],
        "hovertext": [hover_text] * 3,
        "hoverinfo": "text",
        "showlegend": False,
        "line": {"color": "$quiet", "width": 1.5},
    }

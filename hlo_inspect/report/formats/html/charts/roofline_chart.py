"""Kernels on the roofline of an accelerator; without one, by their bytes and FLOPs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from heapq import nlargest
from typing import Any

from hlo_inspect.report.formats.html.charts.chart_rows import ChartRow, Tables, alt_text, grouped, hover, rows_of, short
from hlo_inspect.report.formats.html.charts.drawings import log_axis, marks
from hlo_inspect.report.formats.html.charts.palette import colour
from hlo_inspect.report.formats.html.page_model import Chart, Measure
from hlo_inspect.report.table import Unit, Value

_NAMED = 5
_WITH_PROFILE = "With --profile the page shows how far each is from what the accelerator can."
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
    named = nlargest(_NAMED, rows, key=_weight(rows))
    size = _size(rows)
    largest = max(row.least(size) for row in rows)
    equal = _equal_roofs(roofs)
    phases = grouped(rows, lambda row: str(row["phase"] or "unknown"))
    marks = [_trace(phase, of_phase, (x, y, size), largest) for phase, of_phase in phases.items()]
    xs = [*(row.least(x) for row in rows), *_ends(roofs, "from_flop_per_byte", "to_flop_per_byte")]
    ys = [*(row.least(y) for row in rows), *_ends(roofs, "from_flops_per_s", "flops_per_s")]
    layout = {
        "x": log_axis(
            xs, "number" if roofs else "bytes", "FLOP per byte of device memory" if roofs else "bytes moved in one step"
        ),
        "y": log_axis(ys, unit, "FLOP/s" if roofs else "FLOPs of one step"),
        "notes": [
            *({"x": row.least(x), "y": row.least(y), "text": short(row["name"], 22)} for row in named),
            *map(_peak, equal),
        ],
    }
    return {"data": [*map(_roof, equal), *marks], "layout": layout}


def _equal_roofs(roofs: Iterable[ChartRow]) -> list[list[ChartRow]]:
    """Return the roofs with one peak together: they are one line."""
    groups: dict[Value, list[ChartRow]] = {}
    for roof in roofs:
        groups.setdefault(roof["flops_per_s"], []).append(roof)
    return list(groups.values())


def _units(roofs: Sequence[ChartRow]) -> str:
    return ", ".join(str(roof["unit"]) for roof in roofs)


def _peak(roofs: Sequence[ChartRow]) -> dict[str, Any]:
    """Return the label of the flat part of equal roofs."""
    text = short(f"{_units(roofs)} {roofs[0].text('flops_per_s')}")
    return {"x": roofs[0]["to_flop_per_byte"], "y": roofs[0]["flops_per_s"], "text": text, "is_line": True}


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
    return marks(
        "points",
        map(_hover, rows),
        (f"kernel_groups:{row['group']}" for row in rows),
        name=short(name),
        color=colour(name),
        x=[row.least(x) for row in rows],
        y=[row.least(y) for row in rows],
        sizes=[_LARGEST_MARK * math.sqrt(row.least(size) / largest) if largest else 0 for row in rows],
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


def _roof(roofs: Sequence[ChartRow]) -> dict[str, Any]:
    """Draw the line of units with one peak: along the memory's bandwidth up to that."""
    roof = roofs[0]
    hover_text = hover(
        _units(roofs),
        f"{roof.text('flops_per_s')} from {roof.text('ridge_flop_per_byte')} FLOP a byte on",
        f"memory {roof.text('bytes_per_s')}",
    )
    return marks(
        "line",
        [hover_text] * 3,
        (),
        color="$quiet",
        x=[roof["from_flop_per_byte"], roof["ridge_flop_per_byte"], roof["to_flop_per_byte"]],
        y=[roof["from_flops_per_s"], roof["flops_per_s"], roof["flops_per_s"]],
    )

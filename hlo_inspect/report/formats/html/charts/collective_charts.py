"""Collectives: the bytes sent along each axis of the mesh, their sizes, and the largest of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from hlo_inspect.report.formats.html.charts.chart_rows import (
    ChartRow,
    Tables,
    alt_text,
    counted,
    grouped,
    hover,
    not_shown,
    rows_of,
    short,
)
from hlo_inspect.report.formats.html.charts.drawings import (
    Bar,
    BarSeries,
    amounts_axis,
    axis,
    bars_figure,
    bars_height,
    marks,
    tick_text,
)
from hlo_inspect.report.formats.html.charts.palette import colour
from hlo_inspect.report.formats.html.page_model import Chart, Measure
from hlo_inspect.report.table import Unit, Value

_LARGEST = 12
_CLASSES = 5  # the least number of classes that the axis has room for


def axes_chart(tables: Tables) -> Chart | None:
    """Draw the bytes that one device sends in one step, by axis and kind."""
    listed = rows_of(tables, "collectives_by_axis_and_kind")
    rows = [row for row in listed if row.least("executed_wire_bytes")]
    if not rows:
        return None
    axes = list(dict.fromkeys(row["axis"] for row in rows))
    parts = [
        BarSeries(kind, colour(kind), [_bar(row, axes.index(row["axis"])) for row in of_kind])
        for kind, of_kind in _by_kind(rows).items()
    ]
    figure = bars_figure([_axis_name(label) for label in axes], parts, "bytes")
    return Chart(
        "collectives-by-axis",
        "Sent in one step, by mesh axis",
        f"Bytes that one device sends along each mesh axis, by kind of collective.{_unknown(listed)}",
        alt_text((f"{row['kind']} along {_axis_name(row['axis'])}", row.text("executed_wire_bytes")) for row in rows),
        figure,
        "collectives_by_axis_and_kind",
        height=bars_height(len(axes)),
    )


def _unknown(rows: Iterable[ChartRow]) -> str:
    """Count the collectives without a bar, whose sent bytes are unknown."""
    without = [row for row in rows if row["executed_wire_bytes"] is None and not row.least("executed_wire_bytes")]
    return not_shown(sum(int(row.least("sites")) or 1 for row in without), "of unknown size")


def _bar(row: ChartRow, line: int) -> Bar:
    hover_text = hover(
        f"{row['kind']} along {_axis_name(row['axis'])}", f"{row.text('executed_wire_bytes')} sent in {_runs(row)}"
    )
    return Bar(line, row.least("executed_wire_bytes"), hover_text, row.key)


def _runs(row: ChartRow) -> str:
    return f"{counted(row.text('runs'), 'run')} of {counted(row.text('sites'), 'collective')}"


def _axis_name(axis_of: object) -> str:
    return "axes unknown" if axis_of is None else str(axis_of) or "each device alone"


def _by_kind(rows: Iterable[ChartRow]) -> dict[str, list[ChartRow]]:
    return grouped(rows, lambda row: str(row["kind"]))


def sizes_chart(tables: Tables) -> Chart | None:
    """Draw a histogram of sizes, by runs and by bytes."""
    rows = rows_of(tables, "collective_sizes")
    classes = list(dict.fromkeys(None if row["up_to_bytes"] is None else row.least("up_to_bytes") for row in rows))
    measures = []
    for column, unit, title in (("executed_wire_bytes", "bytes", "Bytes sent"), ("runs", "count", "Collectives")):
        shown = [row for row in rows if row.least(column)]
        if shown:
            figure = _histogram(shown, column, "count" if unit == "count" else "bytes", classes)
            measures.append(Measure(title, figure, alt_text((_class(row), _amount(row, column)) for row in shown)))
    if not measures:
        return None
    return Chart.of_measures(
        "collective-sizes",
        "Sizes of collectives",
        "Collectives of one step by the size of their array: many small ones cost latency, few large ones bandwidth."
        + _unknown(rows).replace("Not shown", "Without bytes"),
        measures,
        "collective_sizes",
        height=320,
    )


def _class(row: ChartRow) -> str:
    return f"{row['kind']} up to {row.text('up_to_bytes')}"


def _amount(row: ChartRow, column: str) -> str:
    return _runs(row) if column == "runs" else f"{row.text(column)} sent"


def _histogram(rows: Sequence[ChartRow], column: str, unit: Unit, classes: Sequence[float | None]) -> dict[str, Any]:
    heights = [0.0] * len(classes)
    for row in rows:
        heights[classes.index(row["up_to_bytes"])] += row.least(column)
    traces = [
        marks(
            "bar",
            (hover(_class(row), f"{_runs(row)}, {row.text('executed_wire_bytes')} sent") for row in of_kind),
            (row.key for row in of_kind),
            name=short(kind),
            color=colour(kind),
            is_vertical=True,
            x=[classes.index(row["up_to_bytes"]) for row in of_kind],
            y=[row.least(column) for row in of_kind],
        )
        for kind, of_kind in _by_kind(rows).items()
    ]
    xaxis = axis(
        "size of the whole array",
        ticks=list(range(len(classes))),
        labels=["unknown" if size is None else f"≤ {tick_text(size, 'bytes')}" for size in classes],
        range=[-0.5, max(_CLASSES, len(classes)) - 0.5],
        is_names=True,
    )
    return {"data": traces, "layout": {"bars": "stacked", "x": xaxis, "y": amounts_axis(heights, unit)}}


def largest_chart(tables: Tables) -> Chart | None:
    """Draw the collectives that send most, with their groups; the table has them first."""
    listed = rows_of(tables, "collectives")
    rows = [row for row in listed[:_LARGEST] if row.least("executed_wire_bytes")]
    if not rows:
        return None
    parts = [
        BarSeries(
            kind,
            colour(kind),
            [Bar(rows.index(row), row.least("executed_wire_bytes"), _groups(row), row.key) for row in of_kind],
        )
        for kind, of_kind in _by_kind(rows).items()
    ]
    return Chart(
        "largest-collectives",
        "Largest collectives",
        "The collectives that send most in one step. Hover shows between which devices, a click leads to the row."
        + _unknown(listed),
        alt_text((row["name"], f"{row.text('executed_wire_bytes')} among {_devices_text(row)}") for row in rows),
        bars_figure([row["name"] for row in rows], parts, "bytes"),
        "collectives",
        height=bars_height(len(rows)),
    )


def _devices_text(row: ChartRow) -> str:
    """Return the devices that communicate."""
    return str(row["replica_groups"] or row["source_target_pairs"] or "all devices")


def _groups(row: ChartRow) -> str:
    return hover(
        row["name"],
        row["shape"],
        f"{row.text('executed_wire_bytes')} sent in {counted(row.text('runs'), 'run')}",
        f"along {_axis_name(row['axis'])}: {short(_devices_text(row), 90)}",
        f"{row['phase']} {row['source']}",
    )


# -- the mesh ----------------------------------------------------------------------------------------------------------


_NUMBERED = 256
_CELL = 24


def mesh_chart(tables: Tables) -> Chart | None:
    """Draw a cell for each device: the most minor axis from left to right, the others from top to bottom."""
    devices, axes = rows_of(tables, "mesh_devices"), rows_of(tables, "mesh_axes")
    if not devices or not axes:
        return None
    rows = max(int(device.least("row")) for device in devices) + 1
    columns = max(int(device.least("column")) for device in devices) + 1
    trace = marks(
        "cells",
        (hover(f"device {device['device']}", device["coordinates"]) for device in devices),
        (device.key for device in devices),
        color="$series-4",
        x=[int(device.least("column")) for device in devices],
        y=[int(device.least("row")) for device in devices],
        texts=[short(device["device"]) if len(devices) <= _NUMBERED else "" for device in devices],
    )
    sent = {row["axis"]: row.text("executed_wire_bytes") for row in rows_of(tables, "collectives_by_axis")}
    named = [_named(mesh_axis["axis"], mesh_axis["size"], sent) for mesh_axis in axes]
    outer = ", ".join(named[:-1])
    layout = {"x": axis(short(f"{named[-1]} →"), size=columns), "y": axis(short(f"↓ {outer}") if outer else "", size=rows)}
    return Chart(
        "mesh",
        tables["mesh_devices"].title,
        "The devices in the order of the mesh: along the last axis from left to right. Each axis says what one device sends "
        "along it alone in one step.",
        alt_text((f"axis {mesh_axis['axis']}", f"{mesh_axis['size']} devices") for mesh_axis in axes),
        {"data": [trace], "layout": layout},
        "mesh_devices",
        height=min(420, 84 + rows * _CELL),
    )


def _named(name: Value, size: Value, sent: dict[Value, str]) -> str:
    return f"{name} = {size}, {sent[name]} sent" if name in sent else f"{name} = {size}"

"""The device mesh with its axes."""

from __future__ import annotations

from hlo_inspect.report.html.charts.layout import axis, base_layout
from hlo_inspect.report.html.charts.palette import on
from hlo_inspect.report.html.charts.rows import Tables, rows_of
from hlo_inspect.report.html.charts.texts import hover, in_words, plain
from hlo_inspect.report.html.model import Chart
from hlo_inspect.report.model import Value

_NUMBERED = 256
_CELL = 24


def mesh_chart(tables: Tables) -> Chart | None:
    """A cell for each device: the most minor axis from left to right, the others from top to bottom."""
    devices, axes = rows_of(tables, "mesh_devices"), rows_of(tables, "mesh_axes")
    if not devices or not axes:
        return None
    rows = max(int(device.least("row")) for device in devices) + 1
    columns = max(int(device.least("column")) for device in devices) + 1
    texts: list[list[str]] = [[""] * columns for _ in range(rows)]
    hovers: list[list[str]] = [[""] * columns for _ in range(rows)]
    cells: list[list[int | None]] = [[None] * columns for _ in range(rows)]
    keys: list[list[str | None]] = [[None] * columns for _ in range(rows)]
    for device in devices:
        row, column = int(device.least("row")), int(device.least("column"))
        texts[row][column] = plain(device["device"])
        hovers[row][column] = hover(f"device {device['device']}", device["coordinates"])
        cells[row][column] = 0
        keys[row][column] = device.key
    trace = {
        "type": "heatmap",
        "z": cells,
        "text": texts,
        "texttemplate": "%{text}" if len(devices) <= _NUMBERED else "",
        "textfont": {"size": 11, "color": on("$series-4")},
        "hovertext": hovers,
        "hoverinfo": "text",
        "customdata": keys,
        "zmin": 0,
        "zmax": 1,
        "showscale": False,
        "colorscale": [[0, "$series-4"], [1, "$series-4"]],
        "xgap": 2,
        "ygap": 2,
    }
    sent = {row["axis"]: row.text("executed_wire_bytes") for row in rows_of(tables, "collectives_by_axis")}
    named = [_named(one["axis"], one["size"], sent) for one in axes]
    outer = ", ".join(named[:-1])
    blank = {"ticks": "", "showgrid": False, "zeroline": False, "showticklabels": False}
    layout = base_layout(
        xaxis=axis(f"{named[-1]} →", fixedrange=True, **blank),
        yaxis=axis("", range=[rows - 0.5, -0.5], fixedrange=True, **blank),
        annotations=[_heading(f"↓ {outer}")] if outer else [],
        margin={"l": 8, "r": 8, "t": 28 if outer else 8, "b": 8, "pad": 0},
    )
    return Chart(
        "mesh",
        tables["mesh_devices"].title,
        "The devices in the order of the mesh: along the last axis from left to right. Each axis says what one device sends "
        "along it alone in one step.",
        in_words((f"axis {one['axis']}", f"{one['size']} devices") for one in axes),
        {"data": [trace], "layout": layout},
        "mesh_devices",
        height=min(420, 84 + rows * _CELL),
    )


def _named(name: Value, size: Value, sent: dict[Value, str]) -> str:
    return f"{name} = {size}, {sent[name]} sent" if name in sent else f"{name} = {size}"


def _heading(text: str) -> dict[str, object]:
    """A text over the left upper corner."""
    place = {"xref": "paper", "yref": "paper", "x": 0, "y": 1, "xanchor": "left", "yanchor": "bottom"}
    return {"text": plain(text), "showarrow": False, "font": {"size": 12, "color": "$quiet"}, **place}

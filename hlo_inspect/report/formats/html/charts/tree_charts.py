"""Icicles and treemaps: costs of a step by scope and by source line, and live arrays at the peak."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any

from hlo_inspect.report.formats.html.charts.chart_rows import ChartRow, Tables, alt_text, hover, role_words, rows_of, short
from hlo_inspect.report.formats.html.charts.drawings import marks
from hlo_inspect.report.formats.html.charts.palette import colour_of_role, series
from hlo_inspect.report.formats.html.page_model import Chart, Measure

_MEASURES = (("estimate_s", "Time"), ("bound_s", "Time at least"), ("bytes_accessed", "Bytes"), ("flops", "FLOPs"))
_MOST = 0.4
_DEPTH, _LEVEL = 5, 64  # levels shown, and pixels per level
_ALONE = "Time is that of the kernels, one after the other: the module is not scheduled."
_WITHOUT_NAME = ("(no named scope)", "(not printed)")


def scopes_chart(tables: Tables) -> Chart | None:
    """Draw the costs of a step by scope."""
    return _icicle(
        tables,
        "scope_tree",
        "scope",
        "A step by scope of the program",
        "The wider a scope, the more of the step it is; what is below it are the scopes inside. Click on one to enter it, "
        "on the top to leave it.",
    )


def sources_chart(tables: Tables) -> Chart | None:
    """Draw the costs of a step by file and line."""
    return _icicle(
        tables,
        "source_tree",
        "source",
        "A step by line of source",
        "The wider a file, the more of the step comes from its lines, which are below it. Click on one to enter it.",
    )


def _icicle(tables: Tables, name: str, path: str, title: str, sentence: str) -> Chart | None:
    rows = rows_of(tables, name)
    if len(rows) < 2 or all(row["label"] in _WITHOUT_NAME for row in rows[1:]):
        return None
    sentence += "" if "step" in tables or not rows[0].least("estimate_s") else f" {_ALONE}"
    drawn = [(column, words) for column, words in _MEASURES if rows[0].least(column)]
    if not drawn:
        return None
    colours = _colours(rows, drawn[0][0])
    top = [row for row in rows if row["inside"] == 0]
    measures = [
        Measure(
            words,
            _figure("icicle", rows, column, path, colours),
            alt_text((row["label"], row.text(column)) for row in top),
        )
        for column, words in drawn
    ]
    return Chart.of_measures(
        name.replace("_", "-"),
        title,
        sentence,
        measures,
        f"cost_by_{path}",
        height=_LEVEL * min(_DEPTH, 1 + max(_levels(rows))),
    )


def _levels(rows: Sequence[ChartRow]) -> Sequence[int]:
    """Return the number of nodes around each node; they come before it."""
    levels: dict[object, int] = {}
    for row in rows:
        levels[row["node"]] = 0 if row["inside"] is None else levels[row["inside"]] + 1
    return list(levels.values())


def live_chart(tables: Tables) -> Chart | None:
    """Draw the live arrays at the peak, by role and scope."""
    rows = rows_of(tables, "live_tree")
    if len(rows) < 2:
        return None
    roles = {row["node"]: colour_of_role(row["label"]) for row in rows if row["inside"] == 0}
    colours = _inherited(rows, {rows[0]["node"]: "$soft"} | roles)
    return Chart(
        "live-tree",
        "Live at the peak",
        "Area shows bytes at the peak, by role, then scope, then array. Click on an area to enter it.",
        alt_text((_label(row, "path"), row.text("bytes")) for row in rows if row["inside"] == 0),
        _figure("treemap", rows, "bytes", "path", colours),
        "live_at_peak_groups",
        height=460,
    )


def _colours(rows: Sequence[ChartRow], column: str) -> Sequence[str]:
    """Return the colours of the nodes; those without a name are grey.

    A node that is most of the whole has no colour of its own, so that those inside of it differ.
    """
    chosen: dict[object, str] = {rows[0]["node"]: "$soft"}
    most = {rows[0]["node"]}
    numbers = count()
    for row in rows[1:]:
        if row["inside"] in most:
            if row["label"] in _WITHOUT_NAME:
                chosen[row["node"]] = "$unknown"
            elif row.least(column) > _MOST * rows[0].least(column):
                most.add(row["node"])
                chosen[row["node"]] = "$line"
            else:
                chosen[row["node"]] = series(next(numbers))
    return _inherited(rows, chosen)


def _inherited(rows: Sequence[ChartRow], chosen: Mapping[Any, str]) -> Sequence[str]:
    """Return the colour of each node: its own, else that of the node around it, which comes before it."""
    colour_of_node = dict(chosen)
    for row in rows:
        if row["node"] not in colour_of_node:
            colour_of_node[row["node"]] = colour_of_node[row["inside"]]
    return [colour_of_node[row["node"]] for row in rows]


def _figure(kind: str, rows: Sequence[ChartRow], column: str, path: str, colours: Sequence[str]) -> dict[str, Any]:
    """Draw the nodes. Values are the parts outside children: the areas add up to the whole without rounded sums in between."""
    parents = {row["node"]: number for number, row in enumerate(rows)}
    trace = marks(
        kind,
        (hover(row[path] or row["label"], row.text(column), _share_of_root(row, column)) for row in rows),
        (),
        parents=[None if row["inside"] is None else parents[row["inside"]] for row in rows],
        labels=[short(_label(row, path), 40) for row in rows],
        values=[row[f"{column}_own"] for row in rows],
        texts=[short(row.text(column)) for row in rows],
        colors=list(colours),
    )
    return {"data": [trace], "layout": {}}


def _share_of_root(row: ChartRow, column: str) -> str:
    """Return the share of the root, if both are known."""
    return "" if row[f"{column}_share"] is None else f"{row.text(f'{column}_share')} of the whole"


def _label(row: ChartRow, path: str) -> str:
    """Return the last part of a path; for a line of source the name of the file too. A role is in words."""
    text = str(row["label"])
    if path == "path" and row["inside"] == 0:
        return role_words(text)
    if path != "source":
        return text
    return str(row[path] or text).rpartition("/")[2] or text

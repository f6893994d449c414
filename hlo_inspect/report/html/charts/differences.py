"""Differences of two modules by kind: what NEW has more of to the right, what it has less of to the left."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from hlo_inspect.report.html.charts.bars import bars_height, lines_axis
from hlo_inspect.report.html.charts.layout import Layout, amounts_axis, base_layout
from hlo_inspect.report.html.charts.rows import Tables, is_number
from hlo_inspect.report.html.charts.texts import hover
from hlo_inspect.report.html.model import Chart, Figure, Measure
from hlo_inspect.report.model import Table, Unit, Value
from hlo_inspect.report.units import as_unit, format_value

_MOST_WORDS = 24


class _DifferenceBar(NamedTuple):
    """A difference, by what it is of, with its row in the table."""

    kind: str
    more: int | float
    text: str
    row: int


def changes_chart(tables: Tables) -> Chart | None:
    """The changes by what they are of, each a part of a bar."""
    table = tables.get("changes")
    if table is None:
        return None
    measures = []
    for name, label, unit in (("bytes", "Bytes", "bytes"), ("flops", "FLOPs", "flops"), ("sites", "Places", "count")):
        bars = [
            _DifferenceBar(str(record["area"]), more, _in_words(record), number)
            for number, record in enumerate(table.records())
            if is_number(more := record[name]) and more
        ]
        if bars:
            text = f"{label}: " + "; ".join(f"{bar.kind}, {bar.text}" for bar in bars[:_MOST_WORDS])
            measures.append(Measure(label, _by_kind(table, bars, as_unit(unit), is_signed=name != "sites"), text))
    if not measures:
        return None
    return Chart.of_measures(
        "differences-by-kind",
        "Differences by kind",
        "Each part of a bar is one row of the table: to the right a step has more of it, to the left less.",
        measures,
        table.name,
        text=". ".join(measure.text for measure in measures),
        height=bars_height(1),
    )


def _in_words(record: dict[str, Value]) -> str:
    what = " ".join(str(record[name]) for name in ("change", "kind", "name", "aspect") if record[name])
    sizes = [format_value(value, unit) for name, unit in _SIZES if is_number(value := record[name]) and value]
    return ", ".join([what, *sizes])


_SIZES: tuple[tuple[str, Unit], ...] = (("bytes", "bytes"), ("flops", "flops"))


def _by_kind(table: Table, bars: Sequence[_DifferenceBar], unit: Unit, *, is_signed: bool) -> Figure:
    """Bars one after the other: more to the right, less to the left."""
    kinds = list(dict.fromkeys(bar.kind for bar in bars))
    traces = []
    for name, color, sign in (("more", "$more", 1), ("less", "$less", -1)):
        chosen = [bar for bar in bars if bar.more * sign > 0]
        if chosen:
            traces.append(
                {
                    "type": "bar",
                    "orientation": "h",
                    "name": name,
                    "y": [kinds.index(bar.kind) for bar in chosen],
                    "x": [bar.more for bar in chosen],
                    "hovertext": [hover(bar.kind, bar.text) for bar in chosen],
                    "hoverinfo": "text",
                    "customdata": [f"{table.name}:{bar.row}" for bar in chosen],
                    "marker": {"color": color, "line": {"color": "$paper", "width": 1}},
                }
            )
    layout = base_layout(
        barmode="relative",
        xaxis=_signed_axis(bars, unit) if is_signed else amounts_axis(_sums(bars), unit),
        yaxis=lines_axis(kinds),
        showlegend=is_signed,
        height=bars_height(len(kinds)),
    )
    return {"data": traces, "layout": layout}


def peak_differences_chart(tables: Tables) -> Chart | None:
    """Arrays at the peak by role, each a part of a bar."""
    table = tables.get("peak")
    if table is None:
        return None
    bars = [
        _DifferenceBar(str(record["role"]), more, _array_in_words(record), number)
        for number, record in enumerate(table.records())
        if is_number(more := record["difference"]) and more
    ]
    if not bars:
        return None
    return Chart(
        "peak-differences",
        "Arrays at the peak, NEW - OLD",
        "Each part of a bar is one kind of array: to the right more bytes of it are live at the peak, to the left fewer.",
        "; ".join(f"{bar.kind}, {bar.text}" for bar in bars[:_MOST_WORDS]),
        _by_kind(table, bars, "bytes", is_signed=True),
        table.name,
        height=bars_height(1),
    )


def _array_in_words(record: dict[str, Value]) -> str:
    sizes = (format_value(record[name], "bytes") for name in ("old_bytes", "new_bytes"))
    return f"{record['shape']} {' → '.join(sizes)}"


def _signed_axis(bars: Sequence[_DifferenceBar], unit: Unit) -> Layout:
    """An axis with what is less to the left of 0, and with the same ticks on both sides."""
    less, more = (_sums([bar for bar in bars if bar.more * sign > 0]) for sign in (-1, 1))
    found = amounts_axis([abs(length) for length in (*less, *more)], unit, "NEW - OLD")
    ticks = list(zip(found["tickvals"], found["ticktext"], strict=True))[:: 2 if less and more else 1]
    mirrored = [(-value, f"-{text}") for value, text in reversed(ticks) if value]
    both = [*(mirrored if less else []), *(ticks if more else ticks[:1])]
    return found | {"tickvals": [value for value, _ in both], "ticktext": [text for _, text in both], "zeroline": True}


def _sums(bars: Sequence[_DifferenceBar]) -> list[int | float]:
    """How long the bars of each kind are together, for an axis."""
    found: dict[str, int | float] = {}
    for bar in bars:
        found[bar.kind] = found.get(bar.kind, 0) + bar.more
    return list(found.values())

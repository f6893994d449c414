"""Two modules compared: what changed first, then facts before and after side by side, and differences by kind."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeGuard

from hlo_inspect.report.html.charts.bars import bars_height, lines_axis
from hlo_inspect.report.html.charts.layout import Layout, amounts_axis, base_layout
from hlo_inspect.report.html.charts.texts import hover
from hlo_inspect.report.html.model import Chart, Figure, Measure, PageSection
from hlo_inspect.report.model import Report, Table, Unit, Value
from hlo_inspect.report.units import as_unit, format_value

_FAMILIES = (
    ("Bytes sent by kind", re.compile(r"collectives\.([a-z-]+)\.executed_wire_bytes")),
    ("Bytes sent by axis", re.compile(r"collectives\.axis\.(.+)\.executed_wire_bytes", re.DOTALL)),
    ("Collectives by kind", re.compile(r"collectives\.([a-z-]+)\.executed_count")),
    ("Memory", re.compile(r"memory\.(.+)_bytes")),
    ("Parameters and state", re.compile(r"((?:params|outputs|optimizer)\..+)_bytes")),
    ("Time", re.compile(r"time\.(.+)_s")),
    ("FLOPs", re.compile(r"cost\.(executed_(?:.*_)?flops)")),
    ("Instructions", re.compile(r"opcode\.(.+)", re.DOTALL)),
    ("Fusions", re.compile(r"fusions\.kind\.(.+)", re.DOTALL)),
    ("Custom calls", re.compile(r"custom_calls\.target\.(.+)", re.DOTALL)),
)
"""Facts that are drawn beside each other, each family on an axis of its own: what it is called, and how its members are."""

_MOST_BARS, _MOST_TOLD = 24, 24


class _FactPair(NamedTuple):
    """A figure of OLD and of NEW, and the row of the table that has it."""

    label: str
    old: Value
    new: Value
    unit: Unit
    row: int


class _DifferenceBar(NamedTuple):
    """A difference, by what it is of, with its row in the table."""

    kind: str
    more: int | float
    told: str
    row: int


def difference_sections(report: Report) -> tuple[PageSection, ...]:
    """The sections of a report of `diff`."""
    tables = {table.name: table for table in report.tables}
    facts, changes, peak = tables.get("facts"), tables.get("changes"), tables.get("peak")
    others = tuple(name for name in tables if name not in ("facts", "changes", "peak", "axes"))
    alone = "" if facts is not None else "The other side has no module that belongs to this one."
    return (
        PageSection(
            "changes",
            "What changed",
            pictures=() if changes is None else tuple(_changes_pictures(changes)),
            tables=("changes",),
            nothing=alone or _nothing_changed(report),
        ),
        PageSection(
            "facts",
            "Before and after",
            pictures=() if facts is None else tuple(_facts_pictures(facts)),
            tables=("facts", "axes"),
            nothing=alone or "All facts are the same before and after.",
        ),
        PageSection(
            "peak",
            "Memory at the peak",
            pictures=() if peak is None else tuple(_peak_pictures(peak)),
            tables=("peak",),
            nothing=alone or "The same arrays are live at the peak, or it is not known which.",
        ),
        *([PageSection("more", "More", tables=others)] if others else ()),
    )


def _nothing_changed(report: Report) -> str:
    """Why there are no changes: of saved reports and of parts of modules instructions are not compared."""
    if report.facts.get("diff.same_program") is None:
        return "Nothing is known of instructions: they are compared where both texts are there and whole."
    return "Nothing: no instruction, parameter or setting is new, gone or otherwise."


def _facts_pictures(table: Table) -> Iterator[Chart]:
    families = [(name, pairs) for name, form in _FAMILIES if (pairs := _pairs(table, form))]
    if not families:
        return
    measures = tuple(Measure(name, _before_and_after(table, pairs)) for name, pairs in families)
    told = "; ".join(f"{name}: {_told(pairs)}" for name, pairs in families)
    yield Chart(
        "before-and-after",
        "Before and after",
        "Two bars for each fact that differs: what is the same has none.",
        told,
        measures[0].figure,
        table.name,
        measures=measures,
        height=min(_height_of_pairs(pairs) for _, pairs in families),
    )


def _height_of_pairs(pairs: Sequence[_FactPair]) -> int:
    """In pixels: two bars take more than a line, but not two."""
    return bars_height(min(len(pairs), _MOST_BARS) * 3 // 2)


def _pairs(table: Table, form: re.Pattern[str]) -> list[_FactPair]:
    """The members of a family, numbers before or after."""
    found = []
    for number, record in enumerate(table.records()):
        match = form.fullmatch(str(record["fact"]))
        if match is not None and (_is_number(record["old"]) or _is_number(record["new"])):
            found.append(_FactPair(match[1], record["old"], record["new"], as_unit(record["unit"]), number))
    return found


def _before_and_after(table: Table, pairs: Sequence[_FactPair]) -> Figure:
    """A bar of OLD and one of NEW for each fact, on one axis. An unknown figure has no bar."""
    shown = pairs[:_MOST_BARS]
    traces = []
    for side, values in (("OLD", [pair.old for pair in shown]), ("NEW", [pair.new for pair in shown])):
        traces.append(
            {
                "type": "bar",
                "orientation": "h",
                "name": side,
                "y": list(range(len(shown))),
                "x": [value if _is_number(value) else None for value in values],
                "text": [format_value(value, pair.unit) for value, pair in zip(values, shown, strict=True)],
                "textposition": "auto",
                "hovertext": [_hover(pair) for pair in shown],
                "hoverinfo": "text",
                "customdata": [f"{table.name}:{pair.row}" for pair in shown],
                "marker": {"color": f"${side.lower()}"},
            }
        )
    layout = base_layout(
        barmode="group",
        xaxis=amounts_axis([value for pair in shown for value in (pair.old, pair.new)], shown[0].unit),
        yaxis=lines_axis([pair.label for pair in shown]),
        showlegend=True,
        height=_height_of_pairs(shown),
    )
    return {"data": traces, "layout": layout}


def _hover(pair: _FactPair) -> str:
    values = (f"OLD {format_value(pair.old, pair.unit)}", f"NEW {format_value(pair.new, pair.unit)}")
    return hover(pair.label, *values)


def _told(pairs: Sequence[_FactPair]) -> str:
    """Figures before and after in words."""
    words = [
        f"{pair.label} {format_value(pair.old, pair.unit)} before, {format_value(pair.new, pair.unit)} after"
        for pair in pairs[:_MOST_TOLD]
    ]
    return ", ".join(words) + (f", and {len(pairs) - len(words):,} more" if len(pairs) > len(words) else "")


def _changes_pictures(table: Table) -> Iterator[Chart]:
    """The changes by what they are of, each a part of a bar."""
    measures = []
    told = []
    for name, label, unit in (("bytes", "Bytes", "bytes"), ("flops", "FLOPs", "flops"), ("sites", "Places", "count")):
        bars = [
            _DifferenceBar(str(record["area"]), more, _in_words(record), number)
            for number, record in enumerate(table.records())
            if _is_number(more := record[name]) and more
        ]
        if bars:
            measures.append(Measure(label, _by_kind(table, bars, as_unit(unit), is_signed=name != "sites")))
            told.append(f"{label}: " + "; ".join(f"{bar.kind}, {bar.told}" for bar in bars[:_MOST_TOLD]))
    if measures:
        yield Chart(
            "differences-by-kind",
            "Differences by kind",
            "Each part of a bar is one row of the table: to the right a step has more of it, to the left less.",
            ". ".join(told),
            measures[0].figure,
            table.name,
            measures=tuple(measures),
            height=bars_height(1),
        )


def _in_words(record: dict[str, Value]) -> str:
    what = " ".join(str(record[name]) for name in ("change", "kind", "name", "aspect") if record[name])
    sizes = [format_value(value, unit) for name, unit in _SIZES if _is_number(value := record[name]) and value]
    return ", ".join([what, *sizes])


_SIZES: tuple[tuple[str, Unit], ...] = (("bytes", "bytes"), ("flops", "flops"))


def _by_kind(table: Table, bars: Sequence[_DifferenceBar], unit: Unit, *, is_signed: bool) -> Figure:
    """Bars that lie behind each other: what is more to the right, what is less to the left."""
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
                    "hovertext": [hover(bar.kind, bar.told) for bar in chosen],
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


def _peak_pictures(table: Table) -> Iterator[Chart]:
    bars = [
        _DifferenceBar(str(record["role"]), more, _array_in_words(record), number)
        for number, record in enumerate(table.records())
        if _is_number(more := record["difference"]) and more
    ]
    if bars:
        yield Chart(
            "peak-differences",
            "Arrays at the peak, NEW - OLD",
            "Each part of a bar is one kind of array: to the right more bytes of it are live at the peak, to the left fewer.",
            "; ".join(f"{bar.kind}, {bar.told}" for bar in bars[:_MOST_TOLD]),
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


def _is_number(value: Value) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)

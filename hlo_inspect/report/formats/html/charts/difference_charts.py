"""Two modules: increases to the right, decreases to the left, and facts before and after."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from hlo_inspect.figure import at_least
from hlo_inspect.report.formats.html.charts.chart_rows import ChartRow, Tables, alt_text, hover, is_number, rows_of, short
from hlo_inspect.report.formats.html.charts.drawings import Layout, amounts_axis, axis, bars_height, lines_axis, marks
from hlo_inspect.report.formats.html.charts.palette import PALETTE, colour, series
from hlo_inspect.report.formats.html.page_model import Chart, Drawing, Measure
from hlo_inspect.report.table import LOWER_BOUND, Table, Unit, Value, lower_bound, plain
from hlo_inspect.report.units import as_unit, format_value

_MOST_WORDS = 24


class _DifferenceBar(NamedTuple):
    """A difference with its subject and the key of its row."""

    kind: str
    more: int | float
    text: str
    key: str


def changes_chart(tables: Tables) -> Chart | None:
    """Draw the changes by subject, each a part of a bar."""
    measures = []
    for name, label, unit in (("bytes", "Bytes", "bytes"), ("flops", "FLOPs", "flops"), ("sites", "Places", "count")):
        bars = _bars(tables, "changes", "area", name, _alt_text)
        measures += _measure(label, bars, as_unit(unit), is_signed=name != "sites")
    sentence = "Each part of a bar is one row of the table. Right: NEW has more; left: NEW has less."
    return _of_measures("differences-by-kind", "Differences by kind", sentence, measures, "changes")


def _measure(label: str, bars: Sequence[_DifferenceBar], unit: Unit, *, is_signed: bool = True) -> list[Measure]:
    """Return the bars as a measure, none without bars."""
    return [Measure(label, _by_kind(bars, unit, is_signed=is_signed), f"{label}: {_listed(bars)}")] if bars else []


def _of_measures(name: str, title: str, sentence: str, measures: Sequence[Measure], table: str) -> Chart | None:
    """Return a picture of several measures that is described by all of them; None without one."""
    if not measures:
        return None
    text = ". ".join(measure.text for measure in measures)
    return Chart.of_measures(name, title, sentence, measures, table, text=text, height=bars_height(1))


def _bars(tables: Tables, table: str, kind: str, column: str, words: Callable[[ChartRow], str]) -> list[_DifferenceBar]:
    """Return a bar for each row of a table with more or less of a column."""
    rows = rows_of(tables, table)
    return [_DifferenceBar(str(row[kind]), row.least(column), words(row), row.key) for row in rows if row.least(column)]


def _alt_text(row: ChartRow) -> str:
    what = " ".join(str(row[name]) for name in ("change", "kind", "name", "aspect") if row[name])
    return ", ".join([what, *(row.text(name) for name in ("bytes", "flops") if row[name])])


def _listed(bars: Sequence[_DifferenceBar]) -> str:
    return "; ".join(f"{bar.kind}, {bar.text}" for bar in bars[:_MOST_WORDS])


def _by_kind(bars: Sequence[_DifferenceBar], unit: Unit, *, is_signed: bool) -> Drawing:
    """Draw bars one after the other: increases to the right, decreases to the left."""
    kinds = list(dict.fromkeys(bar.kind for bar in bars))
    traces = []
    for name, color, sign in (("more", "$more", 1), ("less", "$less", -1)):
        chosen = [bar for bar in bars if bar.more * sign > 0]
        if chosen:
            trace = marks(
                "bar",
                (hover(bar.kind, bar.text) for bar in chosen),
                (bar.key for bar in chosen),
                name=name,
                color=color,
                y=[kinds.index(bar.kind) for bar in chosen],
                x=[bar.more for bar in chosen],
            )
            traces.append(trace)
    layout = {
        "bars": "stacked",
        "x": _signed_axis(bars, unit) if is_signed else amounts_axis(_sums(bars), unit),
        "y": lines_axis(kinds),
        "height": bars_height(len(kinds)),
    }
    return {"data": traces, "layout": layout}


def peak_differences_chart(tables: Tables) -> Chart | None:
    """Draw the arrays at the peak by role, each a part of a bar."""
    bars = _visible(_bars(tables, "peak", "role", "difference", _array_in_words))
    if not bars:
        return None
    return Chart(
        "peak-differences",
        "Arrays at the peak, NEW - OLD",
        "Each part of a bar is one kind of array. Right: NEW has more bytes at the peak; left: fewer.",
        _listed(bars),
        _by_kind(bars, "bytes", is_signed=True),
        "peak",
        height=bars_height(1),
    )


def scope_differences_chart(tables: Tables) -> Chart | None:
    """Draw the work of scopes that has become more or less."""
    measures = []
    for name, label, unit in (("bytes", "Bytes accessed", "bytes"), ("flops", "FLOPs", "flops")):
        bars = _visible(_bars(tables, "scopes", "scope", f"{name}_difference", partial(_work_in_words, name)))[:_MOST_BARS]
        measures += _measure(label, bars, as_unit(unit))
    sentence = (
        "Right: a scope has more work in NEW; left: it has less. Scopes without a visible difference are in the table only."
    )
    return _of_measures("scope-differences", "Work of scopes, NEW - OLD", sentence, measures, "scopes")


def _work_in_words(name: str, row: ChartRow) -> str:
    return f"{row.text(f'old_{name}')} → {row.text(f'new_{name}')}"


_VISIBLE = 0.005
"""The least part of an axis that is seen: some pixels of the widest page."""


def _visible(bars: Sequence[_DifferenceBar]) -> list[_DifferenceBar]:
    """Return the bars that can be seen beside the longest."""
    longest = max((abs(bar.more) for bar in bars), default=0)
    return [bar for bar in bars if abs(bar.more) >= _VISIBLE * longest]


def _array_in_words(row: ChartRow) -> str:
    return f"{row['shape']} {row.text('old_bytes')} → {row.text('new_bytes')}"


def _signed_axis(bars: Sequence[_DifferenceBar], unit: Unit) -> Layout:
    """Return an axis with decreases to the left of 0, and with the same ticks on both sides."""
    less, more = (_sums([bar for bar in bars if bar.more * sign > 0]) for sign in (-1, 1))
    positive = amounts_axis([abs(length) for length in (*less, *more)], unit, "NEW - OLD")
    ticks = list(zip(positive["ticks"], positive["labels"], strict=True))[:: 2 if less and more else 1]
    mirrored = [(-value, f"-{text}") for value, text in reversed(ticks) if value]
    both = [*(mirrored if less else []), *(ticks if more else ticks[:1])]
    return positive | {"ticks": [value for value, _ in both], "labels": [text for _, text in both]}


def _sums(bars: Sequence[_DifferenceBar]) -> list[int | float]:
    """Return the total length of the bars of each kind, for an axis."""
    totals: dict[str, int | float] = {}
    for bar in bars:
        totals[bar.kind] = totals.get(bar.kind, 0) + bar.more
    return list(totals.values())


# -- facts -------------------------------------------------------------------------------------------------------------


_AT_LEAST = rf"(?P<bound>{re.escape(LOWER_BOUND)})?"
"""In the name of a fact whose value can be unknown and have a lower bound. Other names end as the dump spells them."""
_FAMILIES = (
    ("Bytes sent by kind", re.compile(r"collectives\.([a-z-]+)\.executed_wire_bytes" + _AT_LEAST)),
    ("Bytes sent by axis", re.compile(r"collectives\.axis\.(.+)\.executed_wire_bytes" + _AT_LEAST, re.DOTALL)),
    ("Collectives by kind", re.compile(r"collectives\.([a-z-]+)\.executed_count" + _AT_LEAST)),
    ("Memory", re.compile(r"memory\.(.+)_bytes" + _AT_LEAST)),
    ("Parameters and state", re.compile(r"((?:params|outputs|optimizer)\..+)_bytes" + _AT_LEAST)),
    ("Time", re.compile(r"time\.(.+)_s" + _AT_LEAST)),
    ("FLOPs", re.compile(r"cost\.(executed_(?:.*_)?flops)" + _AT_LEAST)),
    ("Instructions", re.compile(r"opcode\.(.+)", re.DOTALL)),
    ("Fusions", re.compile(r"fusions\.kind\.(.+)", re.DOTALL)),
    ("Custom calls", re.compile(r"custom_calls\.target\.(.+)", re.DOTALL)),
)
"""Facts that are drawn beside each other, each family on an axis of its own: its title and the form of its members."""

_MOST_BARS = 24


class _SideFigure(NamedTuple):
    """A figure of OLD or NEW."""

    value: Value
    unit: Unit

    @property
    def is_known(self) -> bool:
        return plain(self.value) is not None

    @property
    def text(self) -> str:
        return format_value(self.value, self.unit)

    @property
    def length(self) -> int | float:
        """The length of its bar: that of an unknown figure is its lower bound."""
        length = lower_bound(self.value)
        return length if is_number(length) else 0


class _FactPair(NamedTuple):
    """A figure of OLD and of NEW, and the row of the table that has it."""

    label: str
    old: _SideFigure
    new: _SideFigure
    row: int


def before_after_chart(tables: Tables) -> Chart | None:
    """Draw two bars for each fact, by family."""
    table = tables.get("facts")
    if table is None:
        return None
    families = [(name, pairs) for name, form in _FAMILIES if (pairs := _visible_pairs(_pairs(table, form)))]
    if not families:
        return None
    measures = [Measure(name, _before_and_after(table, pairs), _pairs_in_words(pairs)) for name, pairs in families]
    words = "; ".join(f"{measure.label}: {measure.text}" for measure in measures)
    return Chart.of_measures(
        "before-and-after",
        "Before and after",
        "Two bars for each fact whose difference can be seen; the table has the others.",
        measures,
        table.name,
        text=words,
        height=min(_height_of_pairs(pairs) for _, pairs in families),
    )


def _height_of_pairs(pairs: Sequence[_FactPair]) -> int:
    """Return the height in pixels: two bars take more than a line, but less than two."""
    return bars_height(min(len(pairs), _MOST_BARS) * 3 // 2)


def _pairs(table: Table, form: re.Pattern[str]) -> list[_FactPair]:
    """Return the members of a family with numbers before or after, or at least with lower bounds of them."""
    exact: dict[str, int] = {}
    bounds: dict[str, int] = {}
    records = table.records()
    for number, record in enumerate(records):
        match = form.fullmatch(str(record["fact"]))
        if match is not None and (is_number(record["old"]) or is_number(record["new"])):
            (bounds if match.groupdict().get("bound") else exact)[match[1]] = number
    pairs = []
    for label, row in (bounds | exact).items():
        unit = as_unit(records[row]["unit"])
        # if only lower bounds differ, the figures themselves are unknown on both sides
        values, least = (records[positions[label]] if label in positions else {} for positions in (exact, bounds))
        old, new = (_SideFigure(_with_bound(values.get(side), least.get(side)), unit) for side in ("old", "new"))
        pairs.append(_FactPair(label, old, new, row))
    return sorted(pairs, key=lambda pair: pair.row)


def _with_bound(value: Value, bound: Value) -> Value:
    """Return the value; a figure if only its lower bound is known."""
    return at_least(bound, "") if value is None and is_number(bound) else value


def _visible_pairs(pairs: Sequence[_FactPair]) -> list[_FactPair]:
    """Return the pairs whose bars differ visibly on their common axis."""
    longest = max((abs(side.length) for pair in pairs for side in (pair.old, pair.new)), default=0)
    return [pair for pair in pairs if abs(pair.new.length - pair.old.length) > _VISIBLE * longest]


def _before_and_after(table: Table, pairs: Sequence[_FactPair]) -> Drawing:
    """Draw a bar of OLD and one of NEW for each fact, on one axis. That of an unknown figure is its lower bound, in grey."""
    shown = pairs[:_MOST_BARS]
    sides = {"OLD": [pair.old for pair in shown], "NEW": [pair.new for pair in shown]}
    traces = [_side(table, shown, side, figures, is_known=True) for side, figures in sides.items()]
    traces += [
        _side(table, shown, side, figures, is_known=False)
        for side, figures in sides.items()
        if not all(figure.is_known for figure in figures)
    ]
    layout = {
        "bars": "grouped",
        "x": amounts_axis([figure.length for figures in sides.values() for figure in figures], shown[0].old.unit),
        "y": lines_axis([pair.label for pair in shown]),
        "height": _height_of_pairs(shown),
    }
    return {"data": traces, "layout": layout}


def _side(
    table: Table, shown: Sequence[_FactPair], side: str, figures: Sequence[_SideFigure], *, is_known: bool
) -> dict[str, object]:
    """Return the bars of OLD or NEW, either of the known figures or of the lower bounds of unknown ones."""
    chosen = [index for index, figure in enumerate(figures) if figure.is_known is is_known]
    pairs = [shown[index] for index in chosen]
    return marks(
        "bar",
        (hover(pair.label, f"OLD {pair.old.text}", f"NEW {pair.new.text}") for pair in pairs),
        (f"{table.name}:{pair.row}" for pair in pairs),
        name=side if is_known else f"{side}, lower bound",
        color=f"${side.lower()}" if is_known else "$unknown",
        group=side,
        y=chosen,
        x=[figures[index].length for index in chosen],
        texts=[figures[index].text for index in chosen],
    )


def _pairs_in_words(pairs: Sequence[_FactPair]) -> str:
    """Return the figures before and after in words."""
    words = [f"{pair.label} {pair.old.text} before, {pair.new.text} after" for pair in pairs[:_MOST_WORDS]]
    return ", ".join(words) + (f", and {len(pairs) - len(words):,} more" if len(pairs) > len(words) else "")


_HISTORY = "history"
_SUMS = {
    "instructions": "Instructions",
    "fusions": "Fusions",
    "copies": "Copies",
    "flops": "FLOPs",
    "bytes": "Bytes accessed",
    "largest_array_bytes": "Largest array",
}
_MOST_TICKS, _MOST_WORDS = 16, 24


def collectives_by_pass_chart(tables: Tables) -> Chart | None:
    """Draw bars of the collectives after each pass."""
    rows = rows_of(tables, _HISTORY)
    kinds = [kind for kind in PALETTE if any(row[_column(kind)] for row in rows)]  # most kinds of collectives have a colour
    if not any(row["collectives"] for row in rows):
        return None
    return Chart(
        "collectives-by-pass",
        "Collectives after each pass",
        "A step up is a pass that brings collectives in, a step down one that merges or removes them.",
        _changes(rows, "collectives", "Collectives"),
        _stacked(rows, kinds),
        _HISTORY,
    )


def figures_by_pass_chart(tables: Tables) -> Chart | None:
    """Draw a line of each other figure of the module."""
    rows = rows_of(tables, _HISTORY)
    measures = tuple(
        Measure(label, _line(rows, name, label), _changes(rows, name, label))
        for name, label in _SUMS.items()
        if any(row.least(name) for row in rows)
    )
    if not measures:
        return None
    return Chart.of_measures(
        "figures-by-pass",
        "Size of the module after each pass",
        "A level line: the pass rewrote instructions but changed no figure. Grey marks are lower bounds.",
        measures,
        _HISTORY,
    )


def _column(kind: str) -> str:
    return kind.replace("-", "_")


def _stacked(rows: Sequence[ChartRow], kinds: Sequence[str]) -> Drawing:
    """Draw bars of the collectives after each pass, stacked by kind. An absent kind has no bar."""
    traces = []
    for kind in kinds:
        name = _column(kind)
        numbers = [number for number, row in enumerate(rows) if row[name]]
        hovers = [_hover(rows[number], f"{kind}: {rows[number].text(name)}") for number in numbers]
        heights = [rows[number][name] for number in numbers]
        keys = [rows[number].key for number in numbers]
        traces.append(marks("bar", hovers, keys, name=kind, color=colour(kind), is_vertical=True, x=numbers, y=heights))
    others = {number: count for number, row in enumerate(rows) if (count := _other_kinds(row, kinds))}
    if others:
        hovers = [_hover(rows[number], f"other kinds: {count}") for number, count in others.items()]
        keys, places, heights = [rows[number].key for number in others], [*others], [*others.values()]
        traces.append(marks("bar", hovers, keys, name="other kinds", color="$unknown", is_vertical=True, x=places, y=heights))
    counts = amounts_axis([row["collectives"] for row in rows], "count")
    return {"data": traces, "layout": {"bars": "stacked", "x": _passes_axis(rows), "y": counts}}


def _other_kinds(row: ChartRow, kinds: Sequence[str]) -> int:
    """Return the number of collectives of kinds without a colour."""
    values = (row[name] for name in ("collectives", *map(_column, kinds)))
    whole, *counts = (value if isinstance(value, int) else 0 for value in values)
    return whole - sum(counts)


def _line(rows: Sequence[ChartRow], name: str, label: str) -> Drawing:
    """Draw a figure of the module from pass to pass: it stays until another pass changes it.

    The line of an unknown figure is at its lower bound, and breaks if there is none.
    """
    values = [row.least(name) or row[name] for row in rows]
    trace = marks(
        "line",
        (_hover(row, f"{label}: {row.text(name)}") for row in rows),
        (row.key for row in rows),
        color=series(0),
        colors=[series(0) if row[name] is not None else "$unknown" for row in rows],
        is_stepped=True,
        x=list(range(len(rows))),
        y=values,
    )
    return {"data": [trace], "layout": {"x": _passes_axis(rows), "y": amounts_axis(values, rows[0].units[name])}}


def _passes_axis(rows: Sequence[ChartRow]) -> Layout:
    """Return the passes in their order, some of them with the number of their file."""
    ticks = range(0, len(rows), max(1, -(-len(rows) // _MOST_TICKS)))
    return axis(
        "passes, by the number of their file",
        ticks=list(ticks),
        labels=[short(_file(rows[number])) for number in ticks],
        range=[-0.5, len(rows) - 0.5],
        is_names=True,
    )


def _file(row: ChartRow) -> str:
    return str(row["file"] or "start")


def _hover(row: ChartRow, figure: str) -> str:
    return hover(f"{_file(row)} {row['pass']}", figure, row["change"] or "no other counts")


def _changes(rows: Sequence[ChartRow], name: str, label: str) -> str:
    """Return the passes that changed a figure, in words."""
    values = [(row["pass"], row.text(name)) for row in rows]
    changed = [after for before, after in zip((None, *values), values, strict=False) if before is None or before[1] != after[1]]
    words = alt_text(changed, _MOST_WORDS)
    return f"{label} after each pass that changed them: {words}."

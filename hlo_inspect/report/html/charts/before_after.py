"""Facts before and after, side by side: OLD and NEW of a comparison."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from hlo_inspect.report.html.charts.bars import bars_height, lines_axis
from hlo_inspect.report.html.charts.layout import amounts_axis, base_layout
from hlo_inspect.report.html.charts.rows import Tables, is_number
from hlo_inspect.report.html.charts.texts import hover
from hlo_inspect.report.html.model import Chart, Figure, Measure
from hlo_inspect.report.model import LOWER_BOUND, Table, Unit, Value
from hlo_inspect.report.units import as_unit, format_bounded

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
"""Facts that are drawn beside each other, each family on an axis of its own: what it is called, and how its members are."""

_MOST_BARS, _MOST_WORDS = 24, 24


class _Figure(NamedTuple):
    """A figure of OLD or NEW; `at_least` is a lower bound of one that is unknown."""

    value: Value
    at_least: Value
    unit: Unit

    @property
    def text(self) -> str:
        return format_bounded(self.value, self.at_least, self.unit)

    @property
    def length(self) -> int | float:
        """Of its bar: that of an unknown figure is its lower bound."""
        length = self.at_least if self.value is None else self.value
        return length if is_number(length) else 0


class _FactPair(NamedTuple):
    """A figure of OLD and of NEW, and the row of the table that has it."""

    label: str
    old: _Figure
    new: _Figure
    row: int


def before_after_chart(tables: Tables) -> Chart | None:
    """Two bars for each fact, by family."""
    table = tables.get("facts")
    if table is None:
        return None
    families = [(name, pairs) for name, form in _FAMILIES if (pairs := _pairs(table, form))]
    if not families:
        return None
    measures = [Measure(name, _before_and_after(table, pairs), _pairs_in_words(pairs)) for name, pairs in families]
    words = "; ".join(f"{measure.label}: {measure.text}" for measure in measures)
    return Chart.of_measures(
        "before-and-after",
        "Before and after",
        "Two bars for each fact that differs: what is the same has none.",
        measures,
        table.name,
        text=words,
        height=min(_height_of_pairs(pairs) for _, pairs in families),
    )


def _height_of_pairs(pairs: Sequence[_FactPair]) -> int:
    """In pixels: two bars take more than a line, but not two."""
    return bars_height(min(len(pairs), _MOST_BARS) * 3 // 2)


def _pairs(table: Table, form: re.Pattern[str]) -> list[_FactPair]:
    """The members of a family, numbers before or after, or at least lower bounds of them."""
    exact: dict[str, int] = {}
    bounds: dict[str, int] = {}
    records = table.records()
    for number, record in enumerate(records):
        match = form.fullmatch(str(record["fact"]))
        if match is not None and (is_number(record["old"]) or is_number(record["new"])):
            (bounds if match.groupdict().get("bound") else exact)[match[1]] = number
    found = []
    for label, row in (bounds | exact).items():
        unit = as_unit(records[row]["unit"])
        # where only lower bounds differ the figures themselves are unknown on both sides
        known, least = (records[at[label]] if label in at else {} for at in (exact, bounds))
        old, new = (_Figure(known.get(side), least.get(side), unit) for side in ("old", "new"))
        found.append(_FactPair(label, old, new, row))
    return sorted(found, key=lambda pair: pair.row)


def _before_and_after(table: Table, pairs: Sequence[_FactPair]) -> Figure:
    """A bar of OLD and one of NEW for each fact, on one axis. That of an unknown figure is its lower bound, in grey."""
    shown = pairs[:_MOST_BARS]
    sides = {"OLD": [pair.old for pair in shown], "NEW": [pair.new for pair in shown]}
    traces = [_side(table, shown, side, figures, is_known=True) for side, figures in sides.items()]
    traces += [
        _side(table, shown, side, figures, is_known=False)
        for side, figures in sides.items()
        if any(one.value is None for one in figures)
    ]
    layout = base_layout(
        barmode="group",
        xaxis=amounts_axis([one.length for figures in sides.values() for one in figures], shown[0].old.unit),
        yaxis=lines_axis([pair.label for pair in shown]),
        showlegend=True,
        height=_height_of_pairs(shown),
    )
    return {"data": traces, "layout": layout}


def _side(
    table: Table, shown: Sequence[_FactPair], side: str, figures: Sequence[_Figure], *, is_known: bool
) -> dict[str, object]:
    """The bars of OLD or NEW with their figures; of unknown ones in the same place those of their lower bounds."""
    chosen = [at for at, one in enumerate(figures) if (one.value is not None) is is_known]
    fill = {"color": f"${side.lower()}"} if is_known else {"color": "$unknown", "pattern": {"shape": "/", "fgcolor": "$paper"}}
    return {
        "type": "bar",
        "orientation": "h",
        "name": side if is_known else f"{side}, lower bound",
        "offsetgroup": side,
        "y": chosen,
        "x": [figures[at].length for at in chosen],
        "text": [figures[at].text for at in chosen],
        "textposition": ["auto" if figures[at].length else "outside" for at in chosen],
        "hovertext": [_hover(shown[at]) for at in chosen],
        "hoverinfo": "text",
        "customdata": [f"{table.name}:{shown[at].row}" for at in chosen],
        "marker": fill,
    }


def _hover(pair: _FactPair) -> str:
    return hover(pair.label, f"OLD {pair.old.text}", f"NEW {pair.new.text}")


def _pairs_in_words(pairs: Sequence[_FactPair]) -> str:
    """Figures before and after in words."""
    words = [f"{pair.label} {pair.old.text} before, {pair.new.text} after" for pair in pairs[:_MOST_WORDS]]
    return ", ".join(words) + (f", and {len(pairs) - len(words):,} more" if len(pairs) > len(words) else "")

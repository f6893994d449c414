"""Device memory: the capacity, the live bytes over the schedule, and the donated parameters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hlo_inspect.report.formats.html.charts.chart_rows import (
    LONGEST,
    ChartRow,
    Tables,
    alt_text,
    hover,
    role_words,
    rows_of,
    short,
)
from hlo_inspect.report.formats.html.charts.drawings import Bar, BarSeries, amounts_axis, bars_figure, bars_height, marks
from hlo_inspect.report.formats.html.charts.palette import colour, rank
from hlo_inspect.report.formats.html.page_model import Chart, Measure

_UNKNOWN = "unknown"
_PARTS = {
    "arguments": "$input",
    "outputs beside arguments": "$output",
    "constants": "$constant",
    "temporaries": "$temporary",
}


def colour_of_part(part: str) -> str:
    """Return the colour of a part of the memory that a program needs."""
    return _PARTS[part]


def fit_chart(tables: Tables) -> Chart | None:
    """Draw the memory that the program needs, and that of the accelerator if it is known."""
    listed = [row for row in rows_of(tables, "memory_parts") if row["bytes"] != 0]
    rows = [row for row in listed if row["bytes"] is not None]
    missing = " and ".join(str(row["part"]) for row in listed if row["bytes"] is None)
    fit = next(iter(rows_of(tables, "memory_fit")), None)
    if not rows:
        return None
    parts = [
        BarSeries(
            str(row["part"]),
            colour_of_part(str(row["part"])),
            [Bar(0, row.least("bytes"), hover(row["part"], row.text("bytes")), row.key)],
        )
        for row in rows
    ]
    labels, sentence = ["needed"], "Device memory that the program needs, in parts that add up."
    if missing:
        sentence = f"Device memory that the program needs, or more: {missing} are unknown."
    figure = bars_figure(labels, parts, "bytes")
    measures = [Measure("In parts", figure, alt_text((row["part"], row.text("bytes")) for row in listed))]
    if fit is not None:
        labels = [f"needed, {fit.text('needed_bytes')}", f"{fit['profile']}, {fit.text('capacity_bytes')}"]
        hover_text = hover(fit["profile"], f"{fit.text('capacity_bytes')} of memory")
        parts.append(
            BarSeries("memory of the accelerator", "$grid", [Bar(1, fit.least("capacity_bytes"), hover_text, fit.key)])
        )
        fits = f"it fits, {fit.text('left_bytes')} left" if fit["fits"] else "it does not fit"
        sentence = f"Need of the program beside the {fit.text('capacity_bytes')} of {fit['profile']}: {fits}."
        compared = bars_figure(labels, parts, "bytes")
        measures.insert(0, Measure("Beside the accelerator", compared, "; ".join(labels)))
    height = bars_height(len(labels))
    return Chart.of_measures("memory-fit", "Does it fit", sentence, measures, "memory_parts", height=height)


def curve_chart(tables: Tables) -> Chart | None:
    """Draw the live bytes over the schedule, with the phases behind them and the peak marked."""
    rows = rows_of(tables, "live_curve")
    if not rows:
        return None
    peak = max(rows, key=lambda row: row.least("bytes"))
    runs = [run for run in _phases(rows) if run[0] != _UNKNOWN]
    curve = marks(
        "line",
        map(_hover, rows),
        (row.key for row in rows),
        color="$text",
        is_stepped=True,
        x=[row["first"] for row in rows],
        y=[row["bytes"] for row in rows],
    )
    last = rows[-1].least("last")
    layout = {
        "x": amounts_axis([last], "count", "instructions of the schedule") | {"range": [0, last]},
        "y": amounts_axis([row["bytes"] for row in rows], "bytes"),
        "hover": "x",
        "bands": [
            {"name": short(phase), "color": colour(phase), "from": first, "to": last}
            for phase, first, last in sorted(runs, key=lambda run: rank(run[0]))
        ],
        "notes": [{"x": peak["highest_at"], "y": peak["bytes"], "text": short(f"peak {peak.text('bytes')}")}],
    }
    return Chart(
        "live-bytes",
        "Live bytes over the schedule",
        "Live bytes at each schedule position, with the phases behind the curve. The peak decides how much memory the program "
        "needs. Hover shows the largest arrays of a position.",
        _peak_in_words(peak),
        {"data": [curve], "layout": layout},
        "live_curve",
        height=360,
    )


def _peak_in_words(peak: ChartRow) -> str:
    if not peak.least("temporaries"):
        return f"{peak.text('bytes')} are live all the time, none of them temporaries."
    where = f"instruction {peak['highest_at']}, {short(str(peak['highest_name']), LONGEST)}"
    return f"The peak of {peak.text('bytes')} is at {where}: {', '.join(_largest(peak))}"


def _phases(rows: Sequence[ChartRow]) -> Iterator[tuple[str, float, float]]:
    """Yield stretches of one phase: from the first instruction to the one after the last."""
    begin = rows[0]
    for row, following in zip(rows, [*rows[1:], None], strict=True):
        if following is None or following["phase"] != begin["phase"]:
            yield str(begin["phase"]), begin.least("first"), following.least("first") if following else row.least("last")
            begin = following or begin


def _hover(row: ChartRow) -> str:
    where = f"instructions {row['first']} to {row['last']}" if row["first"] != row["last"] else f"instruction {row['first']}"
    loop = f" in {row['loop']}" if row["loop"] else ""
    return hover(
        f"{row.text('bytes')}, {where}, {row['phase']}{loop}",
        f"{row.text('static_bytes')} all the time, {row.text('temporaries')} temporaries",
        *_largest(row),
    )


def _largest(row: ChartRow) -> list[str]:
    """Return the largest temporaries with their sizes."""
    ranks = [rank for rank in (1, 2, 3) if row[f"name_{rank}"] is not None]
    return [f"{short(str(row[f'name_{rank}']), 60)} {row.text(f'bytes_{rank}')}" for rank in ranks]


# -- parameters --------------------------------------------------------------------------------------------------------


_DONATION = (("donated_bytes", "donated", "$donated"), ("not_donated_bytes", "not donated", "$not-donated"))


def parameters_chart(tables: Tables) -> Chart | None:
    """Draw a line for each role; if its donation is unknown the line has a third colour."""
    rows = [row for row in rows_of(tables, "params_by_role") if row.least("bytes")]
    if not rows:
        return None
    parts = [
        BarSeries(
            name,
            drawn,
            [
                Bar(line, row.least(column), hover(f"{role_words(row['role'])}, {name}", row.text(column)), row.key)
                for line, row in enumerate(rows)
                if row.least(column)
            ],
        )
        for column, name, drawn in _DONATION
    ]
    unknown = [
        Bar(line, row.least("bytes"), hover(role_words(row["role"]), row.text("bytes")), row.key)
        for line, row in enumerate(rows)
        if row["donated_bytes"] is None
    ]
    parts.append(BarSeries("unknown", "$unknown", unknown))
    figure = bars_figure([role_words(row["role"]) for row in rows], parts, "bytes")
    return Chart(
        "parameters",
        "Parameters by role",
        "Bytes of parameters by role, and the donated part. A parameter that is not donated needs memory beside the outputs.",
        alt_text((role_words(row["role"]), f"{row.text('bytes')}, {row.text('donated_bytes')} donated") for row in rows),
        figure,
        "params_by_role",
        height=bars_height(len(rows)),
    )

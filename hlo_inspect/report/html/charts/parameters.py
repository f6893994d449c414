"""Parameters by role: what of them is donated."""

from __future__ import annotations

from hlo_inspect.report.html.charts.bars import Bar, BarSeries, bars_figure, bars_height
from hlo_inspect.report.html.charts.rows import Tables, rows_of
from hlo_inspect.report.html.charts.texts import hover, in_words, role_words
from hlo_inspect.report.html.model import Chart

_PARTS = (("donated_bytes", "donated", "$donated"), ("not_donated_bytes", "not donated", "$not-donated"))


def parameters_chart(tables: Tables) -> Chart | None:
    """A line for each role; where it is not known what is donated the whole has a third colour."""
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
        for column, name, drawn in _PARTS
    ]
    unknown = [
        Bar(line, row.least("bytes"), hover(role_words(row["role"]), row.text("bytes")), row.key)
        for line, row in enumerate(rows)
        if row["donated_bytes"] is None
    ]
    parts.append(BarSeries("not known", "$unknown", unknown))
    figure = bars_figure([role_words(row["role"]) for row in rows], parts, "bytes", has_legend=True)
    return Chart(
        "parameters",
        "Parameters by role",
        "What the program takes in, and how much of it is donated: what is not keeps its memory beside the outputs.",
        in_words((role_words(row["role"]), f"{row.text('bytes')}, {row.text('donated_bytes')} donated") for row in rows),
        figure,
        "params_by_role",
        height=bars_height(len(rows) + 1),
    )

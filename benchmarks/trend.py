"""The trend of all figures over the measured commits, as one picture: `benchmarks/trend.svg`.

    python -m benchmarks.trend

Each figure has a small picture of its own, with a line for each dump. The required value is a dashed line. The scale is
logarithmic, so that a change to half looks the same everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path

from benchmarks.figures import FIGURES, Figure
from benchmarks.history import Run, read_history
from benchmarks.measure import ROOT

TREND = ROOT / "benchmarks/trend.svg"
_COLUMNS, _WIDTH, _HEIGHT = 3, 320, 150
_LEFT, _RIGHT, _TOP, _BOTTOM = 48, 12, 34, 22
_COLOURS = ("#2563a8", "#c2571a", "#3b7d3b", "#7a4fa3")


def draw(runs: Sequence[Run], path: Path = TREND) -> None:
    """Write the picture."""
    path.write_text(picture(runs), encoding="utf-8")


def picture(runs: Sequence[Run]) -> str:
    """Return the picture as SVG."""
    dumps = list(dict.fromkeys(dump for run in runs for dump in run.figures))
    measured = [figure for figure in FIGURES if any(figure.name in values for run in runs for values in run.figures.values())]
    lines = -(-len(measured) // _COLUMNS)
    width, height = _COLUMNS * _WIDTH, lines * _HEIGHT + 24
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" font-size="11">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        *_legend(dumps),
    ]
    for number, figure in enumerate(measured):
        line, column = divmod(number, _COLUMNS)
        parts.append(f'<g transform="translate({column * _WIDTH},{line * _HEIGHT + 24})">')
        parts += _panel(figure, runs, dumps)
        parts.append("</g>")
    return "\n".join([*parts, "</svg>"]) + "\n"


def _legend(dumps: Sequence[str]) -> Iterator[str]:
    left = _LEFT
    for number, dump in enumerate(dumps):
        yield f'<text x="{left}" y="15" fill="{_colour(number)}">{escape(dump)}</text>'
        left += 9 * len(dump) + 16


def _colour(number: int) -> str:
    return _COLOURS[number % len(_COLOURS)]


def _panel(figure: Figure, runs: Sequence[Run], dumps: Sequence[str]) -> Iterator[str]:
    """Yield the SVG of a figure: values upwards, commits from left to right."""
    values = {dump: [run.figures.get(dump, {}).get(figure.name) for run in runs] for dump in dumps}
    positive = [value for of_dump in values.values() for value in of_dump if value is not None and value > 0]
    limits = [limit for limit in (figure.owed, figure.aim) if limit is not None]
    low, high = min([*positive, *limits]), max([*positive, *limits])
    low, high = (low / 1.2, high * 1.2) if low == high else (low, high)

    def y(value: float) -> float:
        share = math.log(value / low) / math.log(high / low)
        return _HEIGHT - _BOTTOM - share * (_HEIGHT - _TOP - _BOTTOM)

    def x(column: int) -> float:
        return _LEFT + (column + 0.5) * (_WIDTH - _LEFT - _RIGHT) / len(runs)

    better = "larger" if figure.larger_is_better else "smaller"
    yield f'<text x="{_LEFT}" y="16" font-weight="bold">{escape(figure.name)}</text>'
    yield f'<text x="{_LEFT}" y="28" fill="#666">{escape(figure.unit)}, {better} is better</text>'
    for limit, word in ((figure.owed, "owed"), (figure.aim, "aim")):
        if limit is not None:
            yield f'<path d="M{_LEFT},{y(limit):.1f}H{_WIDTH - _RIGHT}" stroke="#999" stroke-dasharray="4 3"/>'
            yield f'<text x="4" y="{y(limit) + 4:.1f}" fill="#666">{word} {limit:g}</text>'
    for number, dump in enumerate(dumps):
        points = [(x(column), y(value), value) for column, value in enumerate(values[dump]) if value is not None and value > 0]
        if points:
            line = " ".join(f"{left:.1f},{top:.1f}" for left, top, _ in points)
            yield f'<polyline points="{line}" fill="none" stroke="{_colour(number)}" stroke-width="1.5"/>'
            for column, (left, top, value) in enumerate(points):
                title = f"<title>{escape(dump)} {value:g}</title>"
                yield f'<circle cx="{left:.1f}" cy="{top:.1f}" r="2.5" fill="{_colour(number)}">{title}</circle>'
                if column == len(points) - 1:
                    yield f'<text x="{left + 4:.1f}" y="{top - 4:.1f}" fill="{_colour(number)}">{value:g}</text>'
    for column in {0, len(runs) - 1}:
        anchor = "start" if column == 0 else "end"
        commit = escape(runs[column].commit)
        yield f'<text x="{x(column):.1f}" y="{_HEIGHT - 6}" fill="#666" text-anchor="{anchor}">{commit}</text>'


if __name__ == "__main__":
    draw(read_history())

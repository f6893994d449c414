"""A table drawn as a curve: one column of bytes from left to right, and bands of text below it.

The rows of the table are parts of an axis, in order. The column of bytes is drawn in eight lines from 0 to its highest value.
If there are more rows than columns of the terminal, a column shows the highest of its rows. Each column of text is a band:
equal neighbours share a label.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from hlo_inspect.errors import printable
from hlo_inspect.report.render_options import RenderOptions
from hlo_inspect.report.table import Table, Value
from hlo_inspect.report.units import format_value

HEIGHT = 8
WIDEST = 120
_LEAST_ROOM = 4  # for a bar and the start of a label
AXIS_WORDS = "position in the schedule"
UNKNOWN_LABEL = "unknown"
_EIGHTHS = " ▁▂▃▄▅▆▇█"
_AXIS, _TICK, _CORNER, _LINE = "│", "┤", "└", "─"


def is_drawn(table: Table, options: RenderOptions) -> bool:
    """Return True if a page draws the table: a table selected by name is shown as rows."""
    return table.is_curve and options.table is None


def curve_lines(table: Table, width: int, raw_bytes: bool = False) -> Iterator[str]:
    """Yield the lines of the curve without the title, none wider than `width`."""
    values = _column(table, next(c.name for c in table.columns if c.unit == "bytes"))
    sizes = [value if isinstance(value, int | float) else 0 for value in values]
    highest = max(sizes, default=0)
    if not highest:
        yield "none"
        return
    labels = [format_value(highest, "bytes", raw_bytes), format_value(highest / 2, "bytes", raw_bytes), "0"]
    margin = max(map(len, labels)) + 1
    count = max(1, min(width - margin - 1, WIDEST, max(len(sizes), 40)))
    parts = [_part(number, count, len(sizes)) for number in range(count)]
    heights = [max(sizes[first:last]) * HEIGHT * 8 / highest for first, last in parts]
    for line in range(HEIGHT - 1, -1, -1):
        label = labels[0] if line == HEIGHT - 1 else labels[1] if line == HEIGHT // 2 - 1 else ""
        tick = _TICK if label else _AXIS
        yield f"{label:>{margin - 1}} {tick}" + "".join(_EIGHTHS[_eighths(height, line)] for height in heights)
    yield f"{labels[2]:>{margin - 1}} {_CORNER}{_LINE * count}"
    yield " " * (margin + 1) + _positions(table, count)
    for column in table.columns:
        if column.unit == "text":
            band = [str(value or "") for value in _column(table, column.name)]
            if any(band):
                yield " " * (margin + 1) + _band([band[first] for first, _ in parts])


def _positions(table: Table, count: int) -> str:
    """Return the axis: the first and the last position, and what they count."""
    names = [column.name for column in table.columns if column.unit == "number"]
    first, last = f"{_column(table, names[0])[0]}", f"{_column(table, names[-1])[-1]}"
    room = max(count - len(first) - len(last), 0)
    return f"{first}{AXIS_WORDS:^{room}}{last}" if room > len(AXIS_WORDS) else f"{first}{' ' * room}{last}"


def _eighths(height: float, line: int) -> int:
    """Return the filled eighths of a cell of a line; a value that is not 0 is never invisible."""
    filled = round(height) - 8 * line
    return max(0, min(8, filled)) if line or round(height) or not height else 1


def _part(number: int, count: int, rows: int) -> tuple[int, int]:
    """Return the first row of a column of the terminal, and the end of its rows."""
    first = number * rows // count
    return first, max(first + 1, (number + 1) * rows // count)


def _column(table: Table, name: str) -> Sequence[Value]:
    index = [column.name for column in table.columns].index(name)
    return [row[index] for row in table.rows]


def _band(texts: Sequence[str]) -> str:
    """Return equal neighbours as one label after a bar, cut to its room.

    Unknown texts, and labels without room, belong to the label before them.
    """
    line = ""
    for text, room in _runs(texts):
        line += f"|{printable(text)}"[:room].ljust(room) if text else " " * room
    return line.rstrip()


def _runs(texts: Sequence[str]) -> list[tuple[str, int]]:
    runs: list[tuple[str, int]] = []
    for text, group in groupby(texts):
        room = len(list(group))
        before = runs[-1] if runs else None
        if before is not None and (text in {before[0], UNKNOWN_LABEL} or (text and room < _LEAST_ROOM)):
            runs[-1] = (before[0], before[1] + room)
        else:
            runs.append(("" if text == UNKNOWN_LABEL else text, room))
    return runs

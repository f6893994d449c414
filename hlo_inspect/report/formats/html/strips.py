"""The strips on the first screen: the step by what binds, and the memory of the accelerator, as bars without a script."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from hlo_inspect.figure import at_least
from hlo_inspect.report.formats.html.charts.chart_rows import ChartRow, Tables, rows_of
from hlo_inspect.report.formats.html.charts.measured_charts import colour_of_measured
from hlo_inspect.report.formats.html.charts.memory import colour_of_part
from hlo_inspect.report.formats.html.charts.palette import colour, rank
from hlo_inspect.report.formats.html.charts.step import colours_of_step
from hlo_inspect.report.units import format_value

_SHOWN = 0.005
"""A part of less than this share has no words."""


class StripPart(NamedTuple):
    """A part of a bar; `share` is that of the whole bar."""

    name: str
    color: str
    share: float
    text: str

    @property
    def is_named(self) -> bool:
        return self.share >= _SHOWN

    @property
    def percent(self) -> str:
        """The share as CSS takes it."""
        return f"{100 * self.share:.3f}%"


class Strip(NamedTuple):
    """A bar with a title, which leads to a section."""

    section: str
    title: str
    parts: Sequence[StripPart]


def strips_of(tables: Tables) -> list[Strip]:
    """Return the strips that the tables of a module have rows for."""
    return [strip for strip in (_measured(tables) or _step(tables) or _costs(tables), _memory(tables)) if strip is not None]


def _measured(tables: Tables) -> Strip | None:
    rows = rows_of(tables, "measured_parts")
    whole = sum(row.least("time_s") for row in rows)
    if not whole:
        return None
    parts = [_part(str(row["part"]), colour_of_measured(str(row["part"])), row, "time_s", whole) for row in rows]
    return Strip("measured", f"Measured step, {_sum_text(rows, 'time_s', whole)}", _without_nothing(parts))


def _step(tables: Tables) -> Strip | None:
    rows = rows_of(tables, "step")
    whole = sum(row.least("estimate_s") for row in rows)
    if not whole:
        return None
    shown = zip(rows, colours_of_step(rows), strict=True)
    parts = [_part(str(row["part"]), color, row, "estimate_s", whole) for row, color in shown]
    return Strip("step", f"Step, estimate {_sum_text(rows, 'estimate_s', whole)}", _without_nothing(parts))


def _costs(tables: Tables) -> Strip | None:
    """Return FLOPs by phase, or bytes if there are none."""
    rows = sorted(rows_of(tables, "cost_by_phase"), key=lambda row: rank(row["phase"]))
    column = next((name for name in ("flops", "bytes_accessed") if any(row.least(name) for row in rows)), None)
    if column is None:
        return None
    whole = sum(row.least(column) for row in rows)
    title = "FLOPs by phase" if column == "flops" else "Bytes accessed by phase"
    parts = [_part(str(row["phase"]), colour(row["phase"]), row, column, whole) for row in rows]
    return Strip("step", f"{title}, {_sum_text(rows, column, whole)}", _without_nothing(parts))


def _sum_text(rows: Sequence[ChartRow], column: str, whole: float) -> str:
    is_known = all(row[column] is not None for row in rows)
    return format_value(whole if is_known else at_least(whole, "a part is unknown"), rows[0].units[column])


def _memory(tables: Tables) -> Strip | None:
    """Return the memory that the program needs, as parts of that of the accelerator if it is known."""
    rows = [row for row in rows_of(tables, "memory_parts") if row.least("bytes")]
    needed = sum(row.least("bytes") for row in rows)
    if not needed:
        return None
    fit = next(iter(rows_of(tables, "memory_fit")), None)
    usable = fit.least("usable_bytes") if fit is not None else 0
    whole = max(needed, usable)
    parts = [_part(str(row["part"]), colour_of_part(str(row["part"])), row, "bytes", whole) for row in rows]
    title = f"Memory needed, {format_value(needed, 'bytes')}"
    if fit is not None and usable:
        title += f" of {format_value(usable, 'bytes')}: {'it fits' if fit['fits'] else 'it does not fit'}"
        parts.append(StripPart("left", "$grid", 1 - needed / whole, fit.text("left_bytes")))
    return Strip("memory", title, _without_nothing(parts))


def _part(name: str, color: str, row: ChartRow, column: str, whole: float) -> StripPart:
    return StripPart(name, color, row.least(column) / whole, row.text(column))


def _without_nothing(parts: Iterable[StripPart]) -> list[StripPart]:
    return [part for part in parts if part.share > 0]

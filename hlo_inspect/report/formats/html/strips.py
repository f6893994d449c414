"""The strips on the first screen: the step by what binds, and the memory of the accelerator, as bars without a script."""

from __future__ import annotations

from collections.abc import Sequence
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
    """Return the strips that the tables of a module have rows for: the time of the step, else its costs; and its memory."""
    measured, step = rows_of(tables, "measured_parts"), rows_of(tables, "step")
    of_measured = [colour_of_measured(str(row["part"])) for row in measured]
    strips = (
        _strip("measured", "Measured step,", measured, "time_s", "part", of_measured)
        or _strip("step", "Step, estimate", step, "estimate_s", "part", colours_of_step(step))
        or _costs(tables),
        _memory(tables),
    )
    return [strip for strip in strips if strip is not None]


def _costs(tables: Tables) -> Strip | None:
    """Return FLOPs by phase, or bytes if there are none."""
    rows = sorted(rows_of(tables, "cost_by_phase"), key=lambda row: rank(row["phase"]))
    colours = [colour(row["phase"]) for row in rows]
    flops = _strip("step", "FLOPs by phase,", rows, "flops", "phase", colours)
    return flops or _strip("step", "Bytes accessed by phase,", rows, "bytes_accessed", "phase", colours)


def _strip(section: str, title: str, rows: Sequence[ChartRow], column: str, name: str, colours: Sequence[str]) -> Strip | None:
    """Return the parts of a sum, which follows the title; None if the sum is 0."""
    whole = sum(row.least(column) for row in rows)
    if not whole:
        return None
    is_known = all(row[column] is not None for row in rows)
    text = format_value(whole if is_known else at_least(whole, "a part is unknown"), rows[0].units[column])
    return Strip(section, f"{title} {text}", _parts(rows, column, name, colours, whole))


def _memory(tables: Tables) -> Strip | None:
    """Return the memory that the program needs, as parts of that of the accelerator if it is known."""
    rows = [row for row in rows_of(tables, "memory_parts") if row.least("bytes")]
    needed = sum(row.least("bytes") for row in rows)
    if not needed:
        return None
    fit = next(iter(rows_of(tables, "memory_fit")), None)
    usable = fit.least("usable_bytes") if fit is not None else 0
    whole = max(needed, usable)
    parts = _parts(rows, "bytes", "part", [colour_of_part(str(row["part"])) for row in rows], whole)
    title = f"Memory needed, {format_value(needed, 'bytes')}"
    if fit is not None and usable:
        title += f" of {format_value(usable, 'bytes')}: {'it fits' if fit['fits'] else 'it does not fit'}"
        if needed < whole:
            parts.append(StripPart("left", "$grid", 1 - needed / whole, fit.text("left_bytes")))
    return Strip("memory", title, parts)


def _parts(rows: Sequence[ChartRow], column: str, name: str, colours: Sequence[str], whole: float) -> list[StripPart]:
    """Return a part for each row that has a value."""
    return [
        StripPart(str(row[name]), drawn, row.least(column) / whole, row.text(column))
        for row, drawn in zip(rows, colours, strict=True)
        if row.least(column) > 0
    ]

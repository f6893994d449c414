"""The measured step beside its bound and its estimate."""

from __future__ import annotations

import math
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.time.step_times import StepTimes
from hlo_inspect.figure import Figure, Quantity
from hlo_inspect.passes.base import bounded
from hlo_inspect.report.model import Amount, Parts, sentence
from hlo_inspect.report.table import Column, Table, number_of
from hlo_inspect.report.table_spec import TableSpec

if TYPE_CHECKING:
    from hlo_inspect.passes.measured.measured_rows import MeasuredRows
    from hlo_inspect.profiler.measurements import ProgramMeasurements


class _MeasuredPart(NamedTuple):
    part: str
    bound: Quantity | None
    estimate: Quantity | None
    measured: float

    def ratio(self, time: Quantity | None) -> float | None:
        """Return measured / time with 4 digits; None if the time is unknown or 0."""
        return float(f"{self.measured / time:.4g}") if time and not isinstance(time, Figure) else None


def measured_step_table(context: Context, rows: MeasuredRows, times: StepTimes) -> Table:
    """Return the step and its parts: bound, estimate and measured time. The parts are means of self times."""
    collectives = math.fsum(row.self_s for row in rows.collectives)
    parts = [
        _MeasuredPart("step, median", times.step, times.estimate_step, rows.times.step_quantiles()[0]),
        _MeasuredPart("kernels", times.kernels, times.estimate_kernels, rows.kernels_s - collectives),
    ]
    if context.collectives:
        parts.append(_MeasuredPart("exposed collectives", times.exposed, times.estimate_exposed, collectives))
    parts.append(_MeasuredPart("idle, median", None, None, rows.times.step_quantiles()[0] - rows.times.busy_s))
    return MEASURED_STEP.of(parts)


MEASURED_STEP = TableSpec("measured_step", "The step: bound, estimate and measured time", page_rows=0).with_columns(
    Column("part", width=20),
    bounded("bound_s", "seconds", attrgetter("bound"), optional=True, summed=False),
    bounded("estimate_s", "seconds", attrgetter("estimate"), optional=True, summed=False),
    Column("measured_s", "seconds", get=attrgetter("measured")),
    Column("over_bound", "number", page_name="measured/bound", optional=True, get=lambda row: row.ratio(row.bound)),
    Column("over_estimate", "number", page_name="measured/estimate", optional=True, get=lambda row: row.ratio(row.estimate)),
)


def measured_words(measured: ProgramMeasurements, times: StepTimes) -> Parts:
    """Yield the measured step and its ratios to bound and estimate."""
    step = measured.step_quantiles()[0]
    runs = f"{number_of(measured.runs, 'run')} on {number_of(len(measured.devices), 'device')}"
    yield from sentence("{} median of {}", Amount(step, "seconds"), runs)
    for time, words in ((times.step, "bound"), (times.estimate_step, "estimate")):
        if time and not isinstance(time, Figure):
            yield from sentence(f", {{}} × the {words}", Amount(round(step / time, 2), "number"))

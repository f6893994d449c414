"""The parts of the time of a step, as bound and as estimate."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from operator import attrgetter
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from hlo_inspect.analysis.collectives.logical_collectives import KERNEL_WANTS
from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.cost.roofline import share_of
from hlo_inspect.analysis.phases import phases
from hlo_inspect.analysis.time.step_times import StepTimes, compiler_cycles, compiler_seconds, sum_of
from hlo_inspect.analysis.time.utilization import longest_parts
from hlo_inspect.figure import Figure, Quantity, exact, greatest, least, reason
from hlo_inspect.passes.base import Pass, bounded
from hlo_inspect.passes.collectives.row_times import LINKS, link_table
from hlo_inspect.passes.cost.step_facts import step_words
from hlo_inspect.passes.time import time_tables as tables
from hlo_inspect.passes.time.profile_comparison import COMPARED, comparison
from hlo_inspect.passes.time.time_tables import (
    EXPOSED_COPIES,
    RESOURCE_WORDS,
    TimePart,
    breakdowns,
    counted,
    exposed_table,
    parts_and_resources,
    resources_table,
    step_table,
    time_parts,
    total_seconds,
)
from hlo_inspect.passes.top import hidden_words, kernel_groups, kernels_table, measured_rows
from hlo_inspect.report.model import Amount, HeadlineRow, Parts, Section, sentence
from hlo_inspect.report.table import Column, Table, number_of
from hlo_inspect.report.table_spec import TableSpec

if TYPE_CHECKING:
    from hlo_inspect.passes.measured.measured_rows import MeasuredRows
    from hlo_inspect.profiler.measurements import ProgramMeasurements


_KERNEL_ROWS = 10
_AXES = 4
"""At most this many mesh axes are named with their exposed time."""


# -- tables -----------------------------------------------------------------------------------------------------------------


def _tables(context: Context, parts_of: Callable[[], Sequence[TimePart]]) -> Iterator[Table]:
    """Yield the step, its resources, the costliest kernels, the exposed collectives, and the step by phase, scope and source.

    `parts_of` returns the parts of the step.
    """
    times, timelines = context.on_machine.step_times, context.on_machine.timelines
    if times is None or timelines is None:
        return
    if context.module.entry is None:  # so it is unknown which computations run
        yield kernels_table(context)
        return
    compared = comparison(context)
    if compared is not None:
        yield compared
    measured = measured_rows(context)
    if measured is not None:
        yield _measured_step_table(context, measured, times)
    if timelines.is_scheduled:
        yield step_table(parts_of(), timelines.estimate.timeline.reason)
    yield resources_table(context.on_machine.busy, times.step, context.on_machine.known_step)
    yield replace(kernels_table(context), page_rows=_KERNEL_ROWS)
    yield replace(kernel_groups(context), page_rows=_KERNEL_ROWS)
    if context.collectives:
        yield link_table(context)
    if timelines.is_scheduled:
        exposed = exposed_table(context, timelines)
        yield from [exposed] if exposed.rows else []
        yield from breakdowns(parts_of(), timelines.estimate.timeline.reason, has_phases=not context.request.skips_graph_phases)


def _notes(context: Context) -> Iterator[str]:
    """Yield of what shares are, if kernels have no estimate."""
    times, step = context.on_machine.step_times, context.on_machine.known_step
    if times is not None and step is not None and reason(times.estimate_step) and not reason(step):
        yield f"share: shares are of the known part of the step's estimate, because {reason(times.estimate_step)}"


class _MeasuredPart(NamedTuple):
    part: str
    bound: Quantity | None
    estimate: Quantity | None
    measured: float

    def ratio(self, time: Quantity | None) -> float | None:
        """Return measured / time with 4 digits; None if the time is unknown or below a nanosecond."""
        from hlo_inspect.passes.measured.measured_rows import ratio_to

        ratio = None if isinstance(time, Figure) else ratio_to(self.measured, time)
        return None if ratio is None else float(f"{ratio:.4g}")


def _measured_step_table(context: Context, rows: MeasuredRows, times: StepTimes) -> Table:
    """Return the step and its parts: bound, estimate and the mean of measured times."""
    collectives, busy = rows.collectives_s, rows.mean_busy_s
    parts = [
        _MeasuredPart("step", times.step, times.estimate_step, rows.mean_step_s),
        _MeasuredPart("kernels", times.kernels, times.estimate_kernels, busy - collectives),
    ]
    if context.collectives:
        parts.append(_MeasuredPart("exposed collectives", times.exposed, times.estimate_exposed, collectives))
    parts.append(_MeasuredPart("idle", None, None, rows.mean_step_s - busy))
    return _MEASURED_STEP.of(parts)


_MEASURED_STEP = TableSpec("measured_step", "The step: bound, estimate and mean measured time", page_rows=0).with_columns(
    Column("part", width=20),
    bounded("bound_s", "seconds", attrgetter("bound"), optional=True, summed=False),
    bounded("estimate_s", "seconds", attrgetter("estimate"), optional=True, summed=False),
    Column("measured_s", "seconds", get=attrgetter("measured")),
    Column("over_bound", "number", page_name="measured/bound", optional=True, get=lambda row: row.ratio(row.bound)),
    Column("over_estimate", "number", page_name="measured/estimate", optional=True, get=lambda row: row.ratio(row.estimate)),
)


def _measured_words(measured: ProgramMeasurements, times: StepTimes) -> Parts:
    """Yield the measured step and its ratios to bound and estimate."""
    step = measured.step_quantiles()[0]
    runs = f"{number_of(measured.runs, 'run')} on {number_of(len(measured.devices), 'device')}"
    yield from sentence("{} median of {}", Amount(step, "seconds"), runs)
    for time, words in ((times.step, "bound"), (times.estimate_step, "estimate")):
        if time and not isinstance(time, Figure):
            yield from sentence(f", {{}} × the {words}", Amount(round(step / time, 2), "number"))


# -- first lines ------------------------------------------------------------------------------------------------------------


def _headline(context: Context, parts_of: Callable[[], Sequence[TimePart]]) -> Iterator[HeadlineRow]:
    """Yield the time of a step, its exposed part and its bottleneck. `parts_of` returns the parts of the step."""
    times, timelines = context.on_machine.step_times, context.on_machine.timelines
    if times is None or timelines is None:
        why = "; ".join(context.on_machine.profile_choice.notes)
        yield HeadlineRow("", (f"no times: {why}; `hlo-inspect profiles` lists the profiles",))
        return
    if context.module.entry is None:
        yield HeadlineRow("step", (f"unknown: {reason(times.step)}",))
        return
    step = context.on_machine.known_step
    yield HeadlineRow("step", tuple(step_words(context, times)))
    yield from hidden_words(context, times)
    if context.measured is not None:
        yield HeadlineRow("measured", tuple(_measured_words(context.measured.times, times)))
    if step is not None:
        yield HeadlineRow("kernels", tuple(_kernels(times, step, parts_of())))
        if context.collectives:
            yield HeadlineRow("exposed", tuple(_exposed(times, step, parts_of())))
    expected = context.on_machine.expected_collective_seconds
    if expected is not None and least(expected) < least(times.collectives):
        seconds = Amount(times.collectives, "seconds"), Amount(expected, "seconds")
        words = sentence("collectives {} as written, {} once XLA has made reduce-scatters of sliced all-reduces", *seconds)
        yield HeadlineRow("as written", tuple(words))
    binding = tuple(_binding(context, parts_of() if step is not None else ()))
    yield from [HeadlineRow("bottleneck", binding)] if binding else []
    compiler = tuple(_compiler(context))
    yield from [HeadlineRow("compiler", compiler)] if compiler else []


def _share_of_step(part: Quantity, step: Quantity) -> Parts:
    """Yield the share of the estimate of the step that a part takes, if both are known."""
    share = share_of(part, step)
    if share is not None:
        yield from sentence(" ({} of the step)", Amount(share, "share"))


def _kernels(times: StepTimes, step: Quantity, parts: Iterable[TimePart]) -> Parts:
    """Yield the estimate of the kernels and the shares bound by memory and by compute."""
    yield from sentence("estimate {}", Amount(times.estimate_kernels, "seconds"))
    whole = exact(times.estimate_kernels)
    if not whole:
        return
    yield from _share_of_step(times.estimate_kernels, step)
    kernels = [part for part in parts if part.collective is None]
    shares = {"fixed costs": sum(least(part.fixed) for part in kernels)}
    for bound_by, words in _BOUND_WORDS.items():
        shares[words] = sum(least(part.estimate) - least(part.fixed) for part in kernels if part.bound_by == bound_by)
    ordered = sorted(((seconds, words) for words, seconds in shares.items() if seconds), reverse=True)
    for index, (seconds, words) in enumerate(ordered):
        yield from sentence(", {} {}" if index else ": {} {}", Amount(seconds / whole, "share"), words)


_BOUND_WORDS = {name: f"bound by {resource}" for name, resource in RESOURCE_WORDS.items()} | {
    name: name for name in EXPOSED_COPIES
}


def _exposed(times: StepTimes, step: Quantity, parts: Iterable[TimePart]) -> Parts:
    """Yield the estimate of exposed collectives, and their axes."""
    collectives = [part for part in parts if part.collective is not None]
    if reason(times.estimate_exposed) and not least(times.estimate_exposed) and greatest(times.estimate_exposed) is None:
        yield f"unknown: {reason(times.estimate_exposed)}"
        return
    busy = total_seconds(counted(collectives), lambda part: part.estimate_busy)
    yield from sentence("estimate {} of {} of collectives", Amount(times.estimate_exposed, "seconds"), Amount(busy, "seconds"))
    yield from _share_of_step(times.estimate_exposed, step)
    axes: dict[str, Quantity] = {}
    for part in collectives:
        axes[part.axis or ""] = sum_of(axes.get(part.axis or "", 0.0), part.estimate)
    ordered = sorted(axes.items(), key=lambda item: -least(item[1]))
    for index, (axis, seconds) in enumerate(ordered[:_AXES] if len(axes) > 1 else []):
        yield from sentence(", {} {}" if index else ": {} {}", axis, Amount(seconds, "seconds"))
    if len(ordered) > _AXES:
        yield ", …"


def _binding(context: Context, parts: Sequence[TimePart]) -> Parts:
    """Yield the longest part of the step, and the next one."""
    busy, step = context.on_machine.busy, context.on_machine.known_step
    times = parts_and_resources(context, parts)
    for index, name in enumerate(longest_parts(times)[:2]):
        words = "; next: {}, {}" if index else "{}, busy for {} at its peak rate" if name in busy else "{}, {}"
        yield from sentence(words, name, Amount(least(times[name]), "seconds"))
        share = None if step is None else share_of(times[name], step)
        if share is not None:
            yield from sentence(" ({} of the step's estimate)" if not index else " ({})", Amount(share, "share"))


def _compiler(context: Context) -> Parts:
    """Yield the compiler's own estimates, if it states some in cycles."""
    times = context.on_machine.kernel_times
    if times is None:
        return
    kernels = context.kernels.launched
    cycles, seconds = compiler_cycles(kernels, times), compiler_seconds(kernels, times)
    if not least(cycles):
        return
    stated = Amount(cycles, "count", "cycle")
    if least(seconds):
        clock = ", at an inferred clock" if times.profile.clock_is_inferred else ""
        yield from sentence("{} by the compiler's own estimates ({}{})", Amount(seconds, "seconds"), stated, clock)
    else:
        yield stated
    count = sum(time.compiler_cycles is not None for time in times.for_each(kernels))
    yield from sentence(" of {}", Amount(count, "count", "kernel"))


class Time(Pass):
    """Show the time of a step by part: compute, memory, exposed communication; and its bottleneck.

    A step is one run of the program on one device. Each time is given twice. No execution beats the bound: FLOPs at the dense
    peak, bytes at the memory bandwidth, sent bytes over the links. The estimate is that of a model. It adds a fixed cost per
    kernel, padding to tiles, and latencies. It takes the rates that kernels and links reach in practice.

    A scheduled module is put on a timeline: kernels one after the other in schedule order, collectives and copies on streams
    beside them. A collective is exposed while the step waits for its result; a step takes the time of its kernels and the
    exposed time. Loops count every run. A conditional counts its fastest branch.

    Without a schedule, overlap is unknown. Then the bound of the step is the longest of three times: all FLOPs, all bytes, or
    all collectives.

    `--format perfetto` writes the estimated timeline as a trace for ui.perfetto.dev and chrome://tracing.

    With --measured PROFILE the tables have the measured times of a recorded profile too. The trace has one of its runs.
    """

    name = "time"
    includes = ("cost",)
    asks_phases = True
    compares_profiles = True
    findings_of = "all"
    uses_profile = True
    takes_recorded = True
    formats = ("perfetto",)
    passes_of_formats: ClassVar[Mapping[str, str]] = {"perfetto": "time-events"}
    wants = KERNEL_WANTS | phases.WANTS
    tables = (COMPARED, _MEASURED_STEP, *tables.TABLES, LINKS)

    def run(self, context: Context) -> Section:
        parts_of = cache(partial(time_parts, context))  # tables and headlines are made only when they are shown
        return Section({}, _tables(context, parts_of), _notes(context), _headline(context, parts_of))

"""The tables of `time`: the parts of a step, the busy time of resources, exposed collectives, and times by label.

The labels are phase, scope and source line.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, repeat
from operator import attrgetter
from typing import NamedTuple

from hlo_inspect.analysis.collectives import Collective
from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.cost.roofline import share_of
from hlo_inspect.analysis.provenance import NOT_PRINTED, scope_label
from hlo_inspect.analysis.time.timelines import IndependentCompute, Timelines, independent_computes
from hlo_inspect.analysis.time.utilization import resource_seconds
from hlo_inspect.figure import Quantity, first_reason, known_part, least, reason
from hlo_inspect.hlo.values.op_names import UNKNOWN
from hlo_inspect.passes.base import bounded
from hlo_inspect.passes.collectives.times import TimedSite, timed_sites
from hlo_inspect.passes.instruction_rows import group_rows
from hlo_inspect.report.table import Column, Table

MOST_EXPOSED = 10
"""At most this many collectives have a row, with the compute that could hide them."""


class TimePart(NamedTuple):
    """A kernel or a collective: the bound and estimate that it adds to the step, and how long it takes.

    `fixed` is the part of the estimate that every run of a kernel costs besides its work.
    """

    collective: Collective | None
    bound_by: str | None
    axis: str | None
    phase: str
    scope: str
    source: str
    bound: Quantity
    estimate: Quantity
    estimate_busy: Quantity
    fixed: Quantity = 0.0


def time_parts(context: Context) -> list[TimePart]:
    """Return the parts of the step; they add up to it. Kernels with equal labels and times share an object."""
    on_machine = context.on_machine
    times, timelines, in_step = on_machine.kernel_times, on_machine.timelines, on_machine.times_in_step
    if times is None or timelines is None or in_step is None:
        return []
    parts: list[TimePart] = []
    part_of_kernel: dict[tuple[int, int], TimePart] = {}
    for kernel in context.own_kernels:
        labels, row = kernel.labels, in_step.for_kernel(kernel)
        key = id(row), id(labels)  # both live as long as the times and the labeller
        part = part_of_kernel.get(key)
        if part is None:
            time, runs = times.for_kernel(kernel), timelines.estimate.timeline.runs(kernel.place)
            fixed = (times.profile.kernel_overhead or 0.0) * runs if time.estimate_s > time.bound_s else 0.0
            of_model = known_part(min(fixed, least(row.estimate) - least(row.bound)), reason(kernel.runs))
            said = (labels.phase, labels.scope, labels.source)
            part = TimePart(None, time.bound_by, None, *said, row.bound, row.estimate, row.estimate, of_model)
            part_of_kernel[key] = part
        parts.append(part)
    collectives = zip(context.collectives, context.axes, context.collective_phases, on_machine.collective_times, strict=True)
    for collective, axis, phase, time_of in collectives:
        at_least, likely = timed_sites(context, timelines, collective, time_of)
        metadata = collective.inner.attr("metadata")
        scope = scope_label(None if metadata is None else context.provenances.get(metadata))
        labels_of = (None, axis or "no axis", phase, scope, collective.origin.source or NOT_PRINTED)
        parts.append(TimePart(collective, *labels_of, at_least.exposed, likely.exposed, likely.busy))
    return parts


Counted = tuple[TimePart, int]
"""A part, and how many kernels or collectives it is."""


def counted(parts: Sequence[TimePart]) -> list[Counted]:
    """Return the distinct parts with their counts."""
    part_of_id = {id(part): part for part in parts}
    return [(part_of_id[key], count) for key, count in Counter(map(id, parts)).items()]


def total_seconds(parts: Iterable[Counted], time: Callable[[TimePart], Quantity]) -> Quantity:
    """Return the sum of a time over several parts."""
    times = [(time(part), count) for part, count in parts]
    whole = math.fsum(chain.from_iterable(repeat(least(seconds), count) for seconds, count in times))
    return known_part(whole, first_reason(seconds for seconds, _ in times))


# -- what a step is made of -------------------------------------------------------------------------------------------------


class _Share(NamedTuple):
    """Parts of a step with the sum of their times, and the whole step, both as bound and estimate."""

    label: str
    parts: Sequence[Counted]
    bound: Quantity
    estimate: Quantity
    whole_bound: Quantity
    whole_estimate: Quantity


def _shares(parts: Sequence[Counted], label: Callable[[TimePart], str], unknown_runs: str) -> list[_Share]:
    """Return the parts by label, with the known part of the step as the whole, unless some runs are unknown."""
    whole = [known_part(least(seconds), unknown_runs) for seconds in _bound_and_estimate(parts)]
    groups = group_rows(parts, lambda item: label(item[0]))
    return [_Share(label(group[0][0]), group, *_bound_and_estimate(group), *whole) for group in groups]


def _bound_and_estimate(parts: Sequence[Counted]) -> tuple[Quantity, Quantity]:
    """Return the bound and the estimate that parts add to the step."""
    return total_seconds(parts, attrgetter("bound")), total_seconds(parts, attrgetter("estimate"))


_KERNELS = {"compute": "kernels bound by compute", "memory": "kernels bound by memory"}
_OTHER_KERNELS, FIXED = "other kernels", "fixed costs of kernels"
_ORDER = (*_KERNELS.values(), _OTHER_KERNELS, FIXED)


def _kind_of_part(part: TimePart) -> str:
    if part.collective is not None:
        return f"exposed collectives, {part.axis}"
    return _KERNELS.get(part.bound_by or "", _OTHER_KERNELS)


def _subtract(whole: Quantity, part: Quantity) -> Quantity:
    return known_part(least(whole) - least(part), reason(whole))


_SHARE_OF_ESTIMATE = Column(
    "share",
    "share",
    page_name="share_of_estimate",
    width=32,
    bar="stacked",
    get=lambda row: share_of(row.estimate, row.whole_estimate),
)


def step_table(parts: Sequence[TimePart], unknown_runs: str) -> Table:
    """Return the parts of the step: kernels by bound, their fixed costs, and exposed collectives by axis.

    `unknown_runs` says why runs of kernels are unknown, if they are: there are no shares then.
    """
    distinct = counted(parts)
    work = [(part._replace(estimate=_subtract(part.estimate, part.fixed)), count) for part, count in distinct]
    fixed = TimePart(None, None, None, "", "", "", 0.0, total_seconds(distinct, attrgetter("fixed")), 0.0)
    rows = _shares([*work, (fixed, 1)], lambda part: FIXED if part is fixed else _kind_of_part(part), unknown_runs)
    rows = [row for row in rows if least(row.bound) or least(row.estimate)]
    rows.sort(key=lambda row: (_ORDER.index(row.label) if row.label in _ORDER else len(_ORDER), -least(row.estimate)))
    columns = (
        Column("part", width=30, get=lambda row: row.label),
        bounded("bound_s", "seconds", lambda row: row.bound),
        Column(
            "bound_share",
            "share",
            page_name="share_of_bound",
            detail=2,
            get=lambda row: share_of(row.bound, row.whole_bound),
        ),
        bounded("estimate_s", "seconds", lambda row: row.estimate),
        _SHARE_OF_ESTIMATE,
    )
    return Table.of("step", "Parts of the step: bound and estimate", columns, rows, page_rows=0)


# -- by phase, scope and source ---------------------------------------------------------------------------------------------


def _time_by(
    name: str, title: str, parts: Sequence[Counted], label: Callable[[TimePart], str], rows: int, unknown_runs: str
) -> Table:
    """Return the step by a label; a collective counts its exposed part. The largest estimate comes first."""
    shares = _shares(parts, label, unknown_runs)
    shares.sort(key=lambda row: (least(row.estimate), least(row.bound)), reverse=True)
    detail = (1, 3) if any(part.collective is not None for part, _ in parts) else (9, 9)
    columns = (
        Column(name, width=9 if name == "phase" else 34, get=lambda row: row.label),
        bounded("bound_s", "seconds", lambda row: row.bound),
        bounded("estimate_s", "seconds", lambda row: row.estimate),
        bounded("exposed_s", "seconds", partial(_collective_estimate, busy=False), detail[0]),
        bounded("collective_s", "seconds", partial(_collective_estimate, busy=True), detail[1]),
        _SHARE_OF_ESTIMATE,
    )
    return Table.of(f"time_by_{name}", title, columns, shares, page_rows=rows, on_page=len(shares) > 1)


def _collective_estimate(row: _Share, *, busy: bool) -> Quantity:
    """Return the estimate of the exposed part of collectives, or of their whole duration."""
    collectives = [item for item in row.parts if item[0].collective is not None]
    return total_seconds(collectives, attrgetter("estimate_busy" if busy else "estimate"))


def breakdowns(parts: Sequence[TimePart], unknown_runs: str, *, has_phases: bool) -> Iterator[Table]:
    """Yield the step by phase, if it `has_phases`, by scope of the program and by line of source."""
    distinct = counted(parts)
    if has_phases:
        yield _time_by("phase", "Time by phase", distinct, lambda part: part.phase or UNKNOWN, 0, unknown_runs)
    yield _time_by("scope", "Time by scope of the program", distinct, attrgetter("scope"), 10, unknown_runs)
    yield _time_by("source", "Time by source line", distinct, attrgetter("source"), 10, unknown_runs)


# -- resources --------------------------------------------------------------------------------------------------------------


def busy_resources(context: Context) -> Mapping[str, Quantity]:
    """Return the busy time of each resource; nothing without a profile."""
    on_machine = context.on_machine
    times, timelines = on_machine.kernel_times, on_machine.timelines
    if times is None or timelines is None:
        return {}
    collectives = zip(context.collectives, on_machine.collective_times, strict=True)
    return resource_seconds(context.cost.opcodes, times, timelines.bound, collectives, on_machine.collective_seconds)


def is_longer(busy: Quantity, step: Quantity) -> bool:
    """Return True if a resource is busy longer than the bound of the step, so that this bound is too low."""
    return least(busy) > least(step) * (1 + 1e-9)


def resources_table(busy: Mapping[str, Quantity], step: Quantity, estimate: Quantity | None) -> Table:
    """Return the busy time of each resource and its shares of the step's bound and estimate; the bottleneck comes first.

    A share is left out if the step's time is unknown, or too low: a resource is busy for longer.
    """

    def share(busy: Quantity, whole: Quantity) -> float | None:
        return None if is_longer(busy, whole) else share_of(busy, whole)

    of_bound = Column("of_bound", "share", page_name="share_of_bound", get=lambda row: share(row[1], step))
    columns = [
        Column("resource", width=14, get=lambda row: row[0]),
        bounded("busy_s", "seconds", lambda row: row[1], summed=False),
        of_bound if estimate is not None else of_bound._replace(width=32, bar="alone"),
    ]
    if estimate is not None:
        columns.append(
            Column(
                "of_estimate",
                "share",
                page_name="share_of_estimate",
                width=32,
                bar="alone",
                get=lambda row: share(row[1], estimate),
            )
        )
    rows = sorted(busy.items(), key=lambda row: -least(row[1]))
    return Table.of("resources", "Busy time of each resource at its peak rate", columns, rows, page_rows=0)


# -- exposed collectives ----------------------------------------------------------------------------------------------------


class _ExposedCollective(NamedTuple):
    collective: Collective
    axis: str | None
    phase: str
    level: str | None
    bound: TimedSite
    estimate: TimedSite
    independent: IndependentCompute | None


def exposed_table(context: Context, timelines: Timelines) -> Table:
    """Return the collectives with the longest exposed time in the estimate, with the compute that could hide each."""
    labels = zip(context.collectives, context.axes, context.collective_phases, context.on_machine.collective_times, strict=True)
    exposed = []
    for collective, axis, phase, time in labels:
        sites = timed_sites(context, timelines, collective, time)
        if any(least(site.exposed) for site in sites):
            exposed.append(_ExposedCollective(collective, axis, phase, time.level, *sites, None))
    exposed.sort(key=lambda row: (least(row.estimate.exposed), least(row.bound.exposed)), reverse=True)
    longest = exposed[:MOST_EXPOSED]
    independent = independent_computes(timelines.estimate, context.views, [row.collective for row in longest])
    rows = [row._replace(independent=compute) for row, compute in zip(longest, independent, strict=True)]
    columns = (
        Column("name", detail=2, get=lambda row: row.collective.start.name),
        Column("kind", get=lambda row: row.collective.kind),
        Column("axis", detail=2, optional=True, get=lambda row: row.axis),
        bounded("runs", "count", lambda row: row.estimate.runs, 3, summed=False),
        bounded("exposed_s", "seconds", lambda row: row.estimate.exposed, summed=False),
        bounded("estimate_s", "seconds", lambda row: row.estimate.busy, 2, summed=False),
        bounded("window_s", "seconds", lambda row: row.estimate.window, 1, summed=False),
        Column("could_hide_s", "seconds", detail=1, get=lambda row: row.independent and row.independent.seconds),
        Column("longest", detail=5, optional=True, get=lambda row: (row.independent and row.independent.longest) or None),
        Column("level", detail=6, optional=True, width=8, get=lambda row: row.level),
        bounded("bound_exposed_s", "seconds", lambda row: row.bound.exposed, 7, summed=False),
        Column("phase", detail=4, get=lambda row: row.phase),
        Column("source", detail=1, width=20, get=lambda row: row.collective.origin.source),
        Column("line", "number", detail=7, get=lambda row: row.collective.start.line),
    )
    more = f", {MOST_EXPOSED} of {len(exposed):,}" if len(exposed) > MOST_EXPOSED else ""
    title = f"Collectives by exposed time of the estimate{more}, and the compute that could hide each"
    return Table.of("exposed_collectives", title, columns, rows)

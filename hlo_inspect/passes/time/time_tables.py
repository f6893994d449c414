"""The tables of `time`: the parts of a step, the busy time of resources, exposed collectives, and times by label.

The labels are phase, scope and source line.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, repeat
from operator import attrgetter
from typing import Any, NamedTuple

from hlo_inspect.analysis.collectives.logical_collectives import Collective
from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.cost.roofline import share_of
from hlo_inspect.analysis.provenance import NOT_PRINTED, scope_label
from hlo_inspect.analysis.time.kernel_times import HOST_LINK
from hlo_inspect.analysis.time.program_steps import COPYING
from hlo_inspect.analysis.time.step_times import StepTimes
from hlo_inspect.analysis.time.timelines import IndependentCompute, Timelines, independent_computes
from hlo_inspect.analysis.time.utilization import MATRIX_UNIT, MEMORY, VECTOR_UNIT
from hlo_inspect.figure import Number, Quantity, between, first_reason, greatest, known_part, least, reason, subtract
from hlo_inspect.hlo.values.op_names import UNKNOWN
from hlo_inspect.passes.base import bounded
from hlo_inspect.passes.collectives.row_times import TimedSite, timed_sites
from hlo_inspect.passes.instruction_rows import group_rows
from hlo_inspect.report.table import Column, Table, TablePlace
from hlo_inspect.report.table_spec import TableSpec

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
        labels, row = kernel.shared_labels, in_step.for_kernel(kernel)
        key = id(row), id(labels)  # both live as long as the times and the labeller
        part = part_of_kernel.get(key)
        if part is None:
            time, runs = times.for_kernel(kernel), timelines.estimate.timeline.runs(kernel.place)
            has_fixed = row.exposed is None and time.estimate_s > time.bound_s
            fixed = (times.profile.kernel_overhead or 0.0) * runs if has_fixed else 0.0
            of_model = known_part(max(0.0, min(fixed, least(row.estimate) - least(row.bound))), reason(kernel.runs))
            bound_by = time.bound_by
            if row.exposed is not None and kernel.kind in COPYING:
                bound_by = EXPOSED_COPIES[bound_by == HOST_LINK]
            said = (labels.phase, labels.scope, labels.source)
            part = TimePart(None, bound_by, None, *said, row.bound, row.estimate, row.estimate, of_model)
            part_of_kernel[key] = part
        parts.append(part)
    collectives = zip(context.collectives, context.axes, context.collective_phases, on_machine.collective_times, strict=True)
    for collective, axis, phase, time_of in collectives:
        at_least, likely = timed_sites(context, timelines, collective, time_of)
        metadata = collective.inner.attr("metadata")
        scope = scope_label(None if metadata is None else context.provenances.get(metadata))
        labels_of = (None, axis or "no axis", phase, scope, collective.origin.source or NOT_PRINTED)
        parts.append(TimePart(collective, *labels_of, at_least.exposed, likely.exposed, likely.busy))
    if timelines.is_scheduled and on_machine.step_times is not None:
        parts += _rest_of_step(on_machine.step_times, parts)
    return parts


def _rest_of_step(step: StepTimes, parts: Sequence[TimePart]) -> Iterator[TimePart]:
    """Yield what the step takes beyond its parts.

    It is the time of units and links that work for several streams. If lengths are unknown, kernels are longer or something
    is exposed for longer, by that time or more.
    """
    bound, estimate = (_rest(whole, parts, name) for whole, name in ((step.step, "bound"), (step.estimate_step, "estimate")))
    if least(bound) or least(estimate):
        label = EITHER if reason(bound) or reason(estimate) else BESIDE
        yield TimePart(None, label, None, UNKNOWN, NOT_PRINTED, NOT_PRINTED, bound, estimate, estimate)


def _rest(whole: Quantity, parts: Sequence[TimePart], time: str) -> Quantity:
    seconds = least(whole) - math.fsum(least(getattr(part, time)) for part in parts)
    return known_part(seconds, reason(whole)) if seconds > _ROUNDING * least(whole) else 0.0


Counted = tuple[TimePart, int]
"""A part, and how many kernels or collectives it is."""


def counted(parts: Sequence[TimePart]) -> list[Counted]:
    """Return the distinct parts with their counts."""
    part_of_id = {id(part): part for part in parts}
    return [(part_of_id[key], count) for key, count in Counter(map(id, parts)).items()]


def total_seconds(parts: Iterable[Counted], time: Callable[[TimePart], Quantity]) -> Quantity:
    """Return the sum of a time over several parts."""
    times = [(time(part), count) for part, count in parts]
    whole, why = _sum_times(least, times), first_reason(seconds for seconds, _ in times)
    has_limits = bool(why) and all(greatest(seconds) is not None for seconds, _ in times)
    return (
        between(whole, _sum_times(lambda seconds: greatest(seconds) or 0, times) if has_limits else None, why) if why else whole
    )


def _sum_times(end: Callable[[Quantity], Number], times: Iterable[tuple[Quantity, int]]) -> float:
    return math.fsum(chain.from_iterable(repeat(end(seconds), count) for seconds, count in times))


def fixed_seconds(context: Context) -> Quantity:
    """Return the part of the step's estimate that runs of kernels cost besides their work."""
    return total_seconds(counted(time_parts(context)), attrgetter("fixed"))


# -- what a step is made of -------------------------------------------------------------------------------------------------


class _Share(NamedTuple):
    """Parts of a step with the sum of their times, and the whole step, both as bound and estimate."""

    label: str
    parts: Sequence[Counted]
    bound: Quantity
    estimate: Quantity
    whole_bound: Quantity
    whole_estimate: Quantity

    @property
    def exposed_s(self) -> Quantity:
        return self._of_collectives("estimate")

    @property
    def collective_s(self) -> Quantity:
        return self._of_collectives("estimate_busy")

    def _of_collectives(self, time: str) -> Quantity:
        """Return the sum of a time of the collectives among the parts."""
        return total_seconds([item for item in self.parts if item[0].collective is not None], attrgetter(time))


def _shares(parts: Sequence[Counted], label: Callable[[TimePart], str], unknown_runs: str) -> list[_Share]:
    """Return the parts by label, with the known part of the step as the whole, unless some runs are unknown."""
    whole = [known_part(least(seconds), unknown_runs) for seconds in _bound_and_estimate(parts)]
    groups = group_rows(parts, lambda item: label(item[0]))
    return [_Share(label(group[0][0]), group, *_bound_and_estimate(group), *whole) for group in groups]


def _bound_and_estimate(parts: Sequence[Counted]) -> tuple[Quantity, Quantity]:
    """Return the bound and the estimate that parts add to the step."""
    return total_seconds(parts, attrgetter("bound")), total_seconds(parts, attrgetter("estimate"))


RESOURCE_WORDS = {"compute": "compute", "memory": "memory", HOST_LINK: "the host link"}
_KERNELS = {name: f"kernels bound by {words}" for name, words in RESOURCE_WORDS.items()}
_OTHER_KERNELS, FIXED, BESIDE = "other kernels", "fixed costs of kernels", "units busy on other streams"
EITHER = "longer kernels or exposed work"
"""The part of a step in which kernels of unknown length run, or the step waits for what these would hide."""
EXPOSED_COPIES = ("exposed copies, memory", "exposed copies, host link")
_OWN_PARTS = (*EXPOSED_COPIES, EITHER, BESIDE)
_ORDER = (*_KERNELS.values(), _OTHER_KERNELS, FIXED, *_OWN_PARTS)


def _kind_of_part(part: TimePart) -> str:
    if part.collective is not None:
        return f"{_EXPOSED_COLLECTIVES}, {part.axis}"
    return part.bound_by if part.bound_by in _OWN_PARTS else _KERNELS.get(part.bound_by or "", _OTHER_KERNELS)


_BOUND, _ESTIMATE = (bounded(f"{name}_s", "seconds", attrgetter(name)) for name in ("bound", "estimate"))


def _without_fixed(part: TimePart) -> Quantity:
    return subtract(part.estimate, least(part.fixed))


def parts_and_resources(context: Context, parts: Sequence[TimePart]) -> Mapping[str, Quantity]:
    """Return the seconds of all that can be the bottleneck: fixed costs, exposed times, and each unit and link.

    Of a link and the collectives or copies that are exposed on it only the longer one counts.
    """
    busy, distinct = context.on_machine.busy, counted(parts)
    if context.on_machine.known_step is None:
        return busy
    links = busy.keys() - {MATRIX_UNIT, VECTOR_UNIT, MEMORY, HOST_LINK}
    seconds = dict(busy) | {FIXED: total_seconds(distinct, attrgetter("fixed"))}
    for name, holds, resources in (
        (_EXPOSED_COLLECTIVES, lambda part: part.collective is not None, links),
        (EITHER, lambda part: part.bound_by == EITHER, ()),
        (EXPOSED_COPIES[0], lambda part: part.bound_by == EXPOSED_COPIES[0], (MEMORY,)),
        (EXPOSED_COPIES[1], lambda part: part.bound_by == EXPOSED_COPIES[1], (HOST_LINK,)),
    ):
        time = total_seconds([item for item in distinct if holds(item[0])], attrgetter("estimate"))
        if least(time) > (1 + _ROUNDING) * max((least(busy.get(resource, 0)) for resource in resources), default=0):
            seconds[name] = time
    return {name: time for name, time in seconds.items() if name not in links or _EXPOSED_COLLECTIVES not in seconds}


_EXPOSED_COLLECTIVES = "exposed collectives"
_ROUNDING = 1e-9


def _share(name: str, whole: str, get: Callable[[Any], float | None], **more: Any) -> Column:  # noqa: ANN401 - those of Column
    """Return the column of shares of the step's bound or estimate."""
    return Column(name, "share", page_name=f"share_of_{whole}", meaning=f"share of the step's {whole}", get=get, **more)


def _seconds(name: str, time: str, detail: int = 0, meaning: str = "") -> Column:
    """Return the column of a time that has no total."""
    return bounded(name, "seconds", attrgetter(time), detail, summed=False, meaning=meaning)


_SHARE_OF_ESTIMATE = _share(
    "share", "estimate", lambda row: share_of(row.estimate, row.whole_estimate), width=32, bar="stacked"
)
STEP = TableSpec(
    "step", "Parts of the step: bound and estimate", TablePlace("step", "Time of the step", "by part"), page_rows=0
).with_columns(
    Column("part", width=26, wraps=True, meaning="part of the step", get=attrgetter("label")),
    _BOUND,
    _share("bound_share", "bound", lambda row: share_of(row.bound, row.whole_bound), detail=2),
    _ESTIMATE,
    _SHARE_OF_ESTIMATE,
)


def step_table(parts: Sequence[TimePart], unknown_runs: str, spec: TableSpec = STEP) -> Table:
    """Return the parts of the step: kernels by bound, their fixed costs, and exposed collectives by axis.

    `unknown_runs` says why runs of kernels are unknown, if they are: there are no shares then.
    """
    distinct = counted(parts)
    work = [(part._replace(estimate=_without_fixed(part)), count) for part, count in distinct]
    fixed = TimePart(None, None, None, "", "", "", 0.0, total_seconds(distinct, attrgetter("fixed")), 0.0)
    rows = _shares([*work, (fixed, 1)], lambda part: FIXED if part is fixed else _kind_of_part(part), unknown_runs)
    largest = greatest if spec is STEP else least  # of kernels alone no row is unknown as a whole
    rows = [row for row in rows if largest(row.bound) != 0 or largest(row.estimate) != 0]
    rows.sort(key=lambda row: (_ORDER.index(row.label) if row.label in _ORDER else len(_ORDER), -least(row.estimate)))
    return spec.of(rows)


# -- by phase, scope and source ---------------------------------------------------------------------------------------------


def _time_by(label: str, title: str, words: str, rank: int) -> TableSpec:
    """Return the table of the step by a label; a collective counts its exposed part."""
    return TableSpec(
        f"time_by_{label}", title, TablePlace("step", "Time of the step", words, rank), page_rows=0 if label == "phase" else 10
    ).with_columns(
        Column(label, width=9 if label == "phase" else 34, get=attrgetter("label")),
        _BOUND,
        _ESTIMATE,
        bounded("exposed_s", "seconds", detail=1, meaning="exposed time of its collectives and copies in the estimate"),
        bounded("collective_s", "seconds", detail=3, meaning="whole time of its collectives in the estimate"),
        _SHARE_OF_ESTIMATE,
    )


BY_PHASE = _time_by("phase", "Time by phase", "by phase", 2)
BY_SCOPE = _time_by("scope", "Time by scope of the program", "by scope", 3)
BY_SOURCE = _time_by("source", "Time by source line", "by source line", 4)


def breakdowns(parts: Sequence[TimePart], unknown_runs: str, *, has_phases: bool) -> Iterator[Table]:
    """Yield the step by phase, if it `has_phases`, by scope of the program and by line of source."""
    distinct = counted(parts)
    if has_phases:
        yield _breakdown(BY_PHASE, distinct, lambda part: part.phase or UNKNOWN, unknown_runs)
    yield _breakdown(BY_SCOPE, distinct, attrgetter("scope"), unknown_runs)
    yield _breakdown(BY_SOURCE, distinct, attrgetter("source"), unknown_runs)


def _breakdown(spec: TableSpec, parts: Sequence[Counted], label: Callable[[TimePart], str], unknown_runs: str) -> Table:
    """Return the step by a label, the largest estimate first."""
    shares = _shares(parts, label, unknown_runs)
    shares.sort(key=lambda row: (least(row.estimate), least(row.bound)), reverse=True)
    has_collectives = any(part.collective is not None for part, _ in parts)
    flags = {} if has_collectives else {name: {"detail": 9} for name in ("exposed_s", "collective_s")}
    return spec.of(shares, columns=spec.with_flags(flags), on_page=len(shares) > 1)


# -- resources --------------------------------------------------------------------------------------------------------------


class _Resource(NamedTuple):
    """A resource, its busy time, and the bound and the estimate of the step."""

    name: str
    busy: Quantity
    step: Quantity
    estimate: Quantity | None


RESOURCES = TableSpec(
    "resources",
    "Busy time of each resource at its peak rate",
    TablePlace("step", "Time of the step", "by resource", 1),
    page_rows=0,
).with_columns(
    Column("resource", wraps=True, width=14, meaning="unit, memory or link", get=attrgetter("name")),
    _seconds("busy_s", "busy", meaning="time that the work needs at the peak rate of the resource"),
    _share("of_bound", "bound", lambda row: share_of(row.busy, row.step)),
    _share("of_estimate", "estimate", lambda row: share_of(row.busy, row.estimate), width=32, bar="alone"),
)


def resources_table(busy: Mapping[str, Quantity], step: Quantity, estimate: Quantity | None) -> Table:
    """Return the busy time of each resource and its shares of the step's bound and estimate; the bottleneck comes first."""
    rows = [_Resource(*item, step, estimate) for item in sorted(busy.items(), key=lambda item: -least(item[1]))]
    if estimate is not None:
        return RESOURCES.of(rows)
    columns = RESOURCES.with_flags({"of_bound": {"width": 32, "bar": "alone"}})
    return RESOURCES.of(rows, columns=columns, without=("of_estimate",))


# -- exposed collectives ----------------------------------------------------------------------------------------------------


class _ExposedCollective(NamedTuple):
    collective: Collective
    axis: str | None
    phase: str
    level: str | None
    bound: TimedSite
    estimate: TimedSite
    independent: IndependentCompute | None

    @property
    def could_hide_s(self) -> float | None:
        return self.independent and self.independent.seconds

    @property
    def longest(self) -> str | None:
        return (self.independent and self.independent.longest) or None


EXPOSED = TableSpec(
    "exposed_collectives",
    "Collectives by exposed time of the estimate, and the compute that could hide each",
    TablePlace("collectives", "Collectives", "exposed", 10),
).with_columns(
    Column("name", detail=2, get=attrgetter("collective.start.name")),
    Column("kind", get=attrgetter("collective.kind")),
    Column("axis", detail=2, optional=True),
    bounded("runs", "count", attrgetter("estimate.runs"), 3, summed=False),
    _seconds("exposed_s", "estimate.exposed", meaning="time of the estimate that the step waits for it"),
    _seconds("estimate_s", "estimate.busy", 2),
    _seconds("window_s", "estimate.window", 1, "time of the estimate between start and done that hides it"),
    Column("could_hide_s", "seconds", detail=1, meaning="time of compute that does not depend on it and could hide it"),
    Column("longest", detail=5, optional=True, meaning="longest kernel of that compute"),
    Column("level", detail=6, optional=True, width=8),
    _seconds("bound_exposed_s", "bound.exposed", 7, "exposed time at bounds"),
    Column("phase", detail=4),
    Column("source", detail=1, width=20, get=attrgetter("collective.origin.source")),
    Column("line", "number", detail=7, get=attrgetter("collective.start.line")),
)


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
    more = f", {MOST_EXPOSED} of {len(exposed):,}" if len(exposed) > MOST_EXPOSED else ""
    title = f"Collectives by exposed time of the estimate{more}, and the compute that could hide each"
    return EXPOSED.of(rows, title=title)


TABLES = (STEP, RESOURCES, EXPOSED, BY_PHASE, BY_SCOPE, BY_SOURCE)

"""The kernels that run on the device, the most expensive first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from hlo_inspect.analysis.collectives.logical_collectives import KERNEL_WANTS
from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.cost.figures import countable
from hlo_inspect.analysis.cost.kernels import Kernel
from hlo_inspect.analysis.cost.roofline import share_of
from hlo_inspect.analysis.phases import phases
from hlo_inspect.analysis.provenance import NOT_FUSED, Labels, printed
from hlo_inspect.analysis.time.costings import Costing, StepCost
from hlo_inspect.analysis.time.kernel_times import KernelTimes, no_bytes_reason
from hlo_inspect.analysis.time.step_times import estimate_gaps
from hlo_inspect.figure import Number, Quantity, least, reason, total
from hlo_inspect.hlo.values.op_names import UNKNOWN
from hlo_inspect.hlo.values.shapes import array_leaves
from hlo_inspect.passes.base import Fact, FactSheet, Pass, bounded, specs_of
from hlo_inspect.passes.cost.step_facts import bytes_name, inferred_clock, step_words
from hlo_inspect.passes.instruction_rows import (
    CALL_STACKS,
    KERNELS_DIFFERENCES,
    differences,
    joined_name,
    joined_sources,
    phase_column,
    phase_notes,
    phase_source,
    stacks_of,
)
from hlo_inspect.report.model import Amount, HeadlineRow, Parts, Section, sentence
from hlo_inspect.report.table import Column, Table, TablePlace
from hlo_inspect.report.table_spec import TableSpec

if TYPE_CHECKING:
    from hlo_inspect.analysis.time.step_times import StepTimes
    from hlo_inspect.passes.measured.measured_rows import MeasuredRows

_FACTS = (
    Fact("kernels.count", "count", "kernels: instructions that the device launches by themselves", len),
    Fact(
        "kernels.executed_count",
        "count",
        "runs of kernels in one step",
        lambda kernels: countable(total(k.runs for k in kernels)),
    ),
)


def _headline(context: Context) -> Iterator[HeadlineRow]:
    """Yield the time of the step, and the time of rows that is hidden beside others."""
    times = context.on_machine.step_times
    if times is None or context.module.entry is None:
        return
    yield HeadlineRow("step", tuple(step_words(context, times)))
    yield from hidden_words(context, times)


def hidden_words(context: Context, times: StepTimes) -> Iterator[HeadlineRow]:
    """Yield the difference between the sum of all rows and a scheduled step, at bounds and at estimates."""
    rows = [row.cost.time for row in context.on_machine.costing_groups if row.cost.time is not None]
    if context.on_machine.known_step is None:
        return
    sums = (
        ("bounds", sum(least(row.bound) for row in rows) - least(times.step), least(times.step)),
        ("estimates", sum(least(row.estimate) for row in rows) - least(times.estimate_step), least(times.estimate_step)),
    )
    more = [(name, seconds) for name, seconds, step in sums if seconds > _ROUNDING * step]
    less = [(name, -seconds) for name, seconds, step in sums if seconds < -_ROUNDING * step]
    if more:
        yield HeadlineRow("rows", tuple(_difference(more, "more", "that time is hidden behind other rows")))
    if less:
        cause = "some lengths are unknown" if reason(times.step) else "a unit or a link is busy for several streams"
        yield HeadlineRow("rows", tuple(_difference(less, "less", cause)))


_ROUNDING = 1e-4
"""Share of the step that no printed digit shows."""


def _difference(sums: Sequence[tuple[str, Number]], relation: str, cause: str) -> Parts:
    for index, (name, seconds) in enumerate(sums):
        text = f", {{}} {{}} {relation}" if index else f"{{}} add up to {{}} {relation} than the step"
        yield from sentence(text, name, Amount(seconds, "seconds"))
    yield f": {cause}"


def _about_times(context: Context, times: KernelTimes) -> Iterator[str]:
    """Yield the kernels without an estimate, and the basis of the compiler's seconds."""
    missing = estimate_gaps(context.own_kernels, times)
    if missing:
        shares = "; shares are of the known part of the step" if context.module.header.is_scheduled else ""
        yield f"estimates are lower bounds, because {missing}{shares}"
    if any(time.compiler_cycles is not None for time in times.for_each(context.kernels.launched)):
        yield from filter(None, [inferred_clock(context)])


def _tables(context: Context) -> Iterator[Table]:
    yield kernels_table(context)
    yield kernel_groups(context)
    kernels = context.kernels.launched
    yield from differences(context, [kernel.instruction for kernel in kernels], KERNELS_DIFFERENCES)
    yield from stacks_of((kernel.view.metadata(kernel.row) for kernel in kernels), context.module.frames)


T = TypeVar("T")

NO_KERNEL = "(no kernel)"
"""The row of costs that XLA's model counts outside kernels: tables of pointers, barriers."""


# -- values -----------------------------------------------------------------------------------------------------------------


class _KernelRow(NamedTuple):
    """A row of costs, the known time of the step, and the recorded times of the module."""

    kernels: Sequence[Kernel]
    cost: StepCost
    step: Quantity | None
    measured: MeasuredRows | None

    @property
    def step_share(self) -> float | None:
        """The share of the known part of the step's estimate."""
        if self.cost.time is None or self.cost.time.in_step is None or self.step is None:
            return None
        return share_of(self.cost.time.in_step, self.step)

    @property
    def bound_by(self) -> str | None:
        return self.cost.time and self.cost.time.bound_by

    @property
    def measured_s(self) -> float | None:
        return None if self.measured is None else self.measured.seconds_of(self.kernels)


def _name(row: _KernelRow) -> str:
    """Return the name of a kernel; for several the common part of their names, else their kind."""
    if not row.kernels:
        return NO_KERNEL
    name = joined_name([kernel.name for kernel in row.kernels])
    return f"{_kind(row)} {name.removeprefix('* ')}" if name.startswith("* ") else name


def _kind(row: _KernelRow) -> str:
    return row.kernels[0].kind if row.kernels else NO_KERNEL


def _shape(row: _KernelRow) -> str | None:
    shape = row.kernels[0].shape if row.kernels else None
    return None if shape is None else str(shape)


def _short_shape(row: _KernelRow) -> str | None:
    """Return the shape; for a tuple its first array and the number of the others."""
    leaves = array_leaves(row.kernels[0].shape) if row.kernels else ()
    if len(leaves) < 2:
        return _shape(row)
    return f"{leaves[0][1]} + {len(leaves) - 1} more"


def _label_getter(get: Callable[[Labels], T], otherwise: T) -> Callable[[_KernelRow], T]:
    """Return a getter of a label of a row's first kernel."""
    return lambda row: get(row.kernels[0].labels) if row.kernels else otherwise


# -- tables -----------------------------------------------------------------------------------------------------------------


_KIND = Column("kind", detail=1, meaning="opcode of the kernel", get=_kind)
_FUSION_KIND = Column(
    "fusion_kind",
    detail=9,
    optional=True,
    meaning="kind that XLA prints, such as `kLoop`",
    get=_label_getter(lambda labels: None if labels.kind == NOT_FUSED else labels.kind, None),
)
_COSTS = (
    bounded("runs", "count", attrgetter("cost.runs"), detail=2),
    bounded("flops", "flops", attrgetter("cost.flops"), detail=1),
    bounded("matmul_flops", "flops", attrgetter("cost.matmul_flops"), detail=8),
    bounded("bytes", "bytes", attrgetter("cost.size"), detail=1, meaning="bytes read and written by all runs in one step"),
    Column(
        "flop_per_byte",
        "number",
        detail=3,
        optional=True,
        rounded=True,
        meaning="FLOPs divided by bytes",
        real=True,
        get=attrgetter("cost.intensity"),
    ),
)


def _time(name: str, time: str, **more: Any) -> Column:  # noqa: ANN401 - those of `bounded`
    return bounded(name, "seconds", attrgetter(f"cost.time.{time}"), **more)


_EXPOSED = "exposed part of a collective or copy"
_TIMES = (
    _time("bound_s", "bound", detail=1),
    _time("estimate_s", "estimate", optional=True),
    _time("estimate_exposed_s", "exposed", detail=1, optional=True, summed=False, page_name="exposed", meaning=_EXPOSED),
    _time("compiler_s", "compiler", detail=5, optional=True, meaning="the compiler's own estimate, if the text has it"),
)
_SHARES = (
    Column("step_share", "share", page_name="share_of_step", optional=True, meaning="share of the step's estimate"),
    Column("share", "share", optional=True, meaning="share of the bounds of all kernels", get=attrgetter("cost.share")),
    Column("bound_by", detail=4, optional=True, meaning="what decides the bound: compute, memory, host link or collective"),
    phase_column(_label_getter(attrgetter("phase"), UNKNOWN), detail=2),
)
_SOURCE = Column("source", width=14, get=_label_getter(lambda labels: printed(labels.source), ""))

KERNELS = TableSpec(
    "kernels",
    "Kernels of one step",
    TablePlace("kernels", "Kernels", "single", 1),
    in_store=True,
    assertable=True,
    page_as="kernel_groups",
).with_columns(
    Column("name", get=lambda row: row.kernels[0].name if row.kernels else NO_KERNEL),
    _KIND,
    _FUSION_KIND,
    Column("shape", detail=9, get=_shape),
    Column("computation", detail=8, get=lambda row: row.kernels[0].place[0] if row.kernels else None),
    *_COSTS,
    *_TIMES,
    *_SHARES,
    phase_source(_label_getter(attrgetter("phase_from"), "")),
    Column("op_name", detail=6, get=_label_getter(attrgetter("op_name"), None)),
    _SOURCE,
    Column("line", "number", detail=7, get=lambda row: row.kernels[0].place[1] if row.kernels else None),
)
KERNEL_GROUPS = TableSpec(
    "kernel_groups", "Kernels of one step, merged", TablePlace("kernels", "Kernels", "merged")
).with_columns(
    Column("name", get=_name, width=16),
    _KIND._replace(detail=4),
    _FUSION_KIND,
    Column("shape", get=_short_shape, width=14),
    Column("sites", "count", summed=True, detail=3, get=lambda row: len(row.kernels)),
    *_COSTS,
    *_TIMES,
    *_SHARES,
    phase_source(lambda row: joined_sources(kernel.shared_labels.phase_from for kernel in row.kernels)),
    Column("scope", detail=6, get=_label_getter(attrgetter("scope"), None)),
    _SOURCE,
)


def _with_measured(spec: TableSpec) -> TableSpec:
    """Return the table with the measured times of a recorded profile."""
    place = [column.name for column in spec.columns].index("step_share")
    measured = Column("measured_s", "seconds", summed=True, optional=True)
    return replace(spec.with_columns(*spec.columns[:place], measured, *spec.columns[place:]), in_store=False)


MEASURED_KERNELS, MEASURED_KERNEL_GROUPS = map(_with_measured, (KERNELS, KERNEL_GROUPS))


def kernels_table(context: Context) -> Table:
    """Return one row per kernel."""
    spec = KERNELS if context.measured is None else MEASURED_KERNELS
    return _table(context, spec, lambda: context.on_machine.costings)


def kernel_groups(context: Context) -> Table:
    """Return the kernels as merged rows."""
    spec = KERNEL_GROUPS if context.measured is None else MEASURED_KERNEL_GROUPS
    return _table(context, spec, lambda: context.on_machine.costing_groups)


def _table(context: Context, spec: TableSpec, costings: Callable[[], Sequence[Costing]]) -> Table:
    """Return a table of kernels. Shares are of the scheduled step, of all bounds, bytes or FLOPs."""
    step, measured = context.on_machine.known_step, measured_rows(context)
    without = {column.name for column in _TIMES} if context.on_machine.profile is None else set()
    return spec.of(
        lambda: [_KernelRow(*row, step, measured) for row in costings()],
        title=f"{spec.title}, {_order(context)}",
        columns=spec.with_flags(_flags(context)),
        without=without | ({"step_share"} if step is None else set()),
    )


def measured_rows(context: Context) -> MeasuredRows | None:
    """Return the recorded times of the module; None without a recorded profile."""
    if context.measured is None:
        return None
    from hlo_inspect.passes.measured.measured_rows import MeasuredRows  # profiles are not imported without need

    return MeasuredRows(context, context.measured)


def _flags(context: Context) -> Mapping[str, Mapping[str, object]]:
    """Return the flags of columns, of which a page has fewer without a profile."""
    detail, heading = 0 if context.on_machine.known_step is None else 9, {"page_name": bytes_name(context)}
    if context.on_machine.profile is not None:
        return {"bytes": heading, "share": {"detail": detail, "page_name": "share_of_bound"}}
    of_what = "share_of_flops" if no_bytes_reason(context.module) else "share_of_bytes"
    share = {"detail": detail, "page_name": of_what}
    return {"bytes": heading, "share": share, "bound_by": {"detail": 9}, "phase": {"detail": 1}}


def _order(context: Context) -> str:
    """Return the order of the rows, and which of their times is in the step."""
    profile = context.on_machine.profile
    if profile is None:
        return "by FLOPs, before fusion" if no_bytes_reason(context.module) else "by bytes accessed"
    if context.on_machine.known_step is None:
        return f"by bound on {profile.name}"
    return f"by share of the step on {profile.name}; collectives and copies count their exposed time"


class Top(Pass):
    """List kernels by cost: runs, FLOPs, bytes, FLOP per byte, phase, source; with --profile bound and estimate.

    A kernel is an instruction that the device launches by itself: a fusion, a dot, a custom call, a collective or a copy. A
    start and its done are one kernel. Figures are those of all runs in a step. FLOPs and bytes follow XLA's cost model: a
    fusion reads its operands and writes its results; of an array that is sliced or updated in place, only that slice counts.
    Rows are sorted by bytes accessed, before fusion by FLOPs. With --profile they are sorted by share of the step, without a
    schedule by bound. Equal kernels share a row; --sites gives each its own.

    With --profile there are two times. The bound of a kernel is the longer of its FLOPs at the peak and its bytes at the
    memory bandwidth; of a collective, its sent bytes over the links. Bytes in on-chip memory take no time. The estimate is
    that of `time`. The compiler's own estimate is shown if the text has it. Both times of an asynchronous copy are its
    exposed time. Its bound can exceed its estimate, because kernels at their bound hide less of it.
    """

    name = "top"
    uses_profile = True
    wants = KERNEL_WANTS | phases.WANTS
    specs = specs_of(_FACTS)
    tables = (KERNELS, KERNEL_GROUPS, KERNELS_DIFFERENCES, CALL_STACKS)

    def run(self, context: Context) -> Section:
        kernels, facts = context.kernels.launched, FactSheet()
        facts.put_all(_FACTS, kernels)
        times = context.on_machine.kernel_times
        if times is not None:
            facts.notes += [f"kernels: {reason}" for reason in _about_times(context, times)]
        of_phases = phase_notes(context, (kernel.shared_labels for kernel in kernels))
        return Section(facts.values, _tables(context), chain(facts.notes, of_phases), _headline(context))

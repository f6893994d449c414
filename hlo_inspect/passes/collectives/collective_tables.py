"""The tables of collectives: bytes of one step by site, merged, and by kind, mesh axis and phase."""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import compress
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

from hlo_inspect.analysis.collectives.executed_collectives import NOT_EXECUTED, ExecutedTotals
from hlo_inspect.analysis.collectives.logical_collectives import Collective, leaf_dtype
from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.provenance import InstructionPhase
from hlo_inspect.figure import Number, Quantity, exact, least
from hlo_inspect.graph.calls import CallGraph
from hlo_inspect.hlo.opcodes import COLLECTIVE_KINDS, POINT_TO_POINT
from hlo_inspect.hlo.values.shapes import total
from hlo_inspect.passes.base import bounded
from hlo_inspect.passes.instruction_rows import joined_name, joined_sources, loop_names, phase_column, phase_source
from hlo_inspect.report.table import Column, Table, TablePlace, Value
from hlo_inspect.report.table_spec import CountedRows, TableSpec, is_member, is_set

if TYPE_CHECKING:
    from hlo_inspect.analysis.time.timelines import Timelines
    from hlo_inspect.passes.collectives.row_times import CollectiveRowTimes

Label = TypeVar("Label", bound=Hashable)


# -- one row a site ---------------------------------------------------------------------------------------------------------


class _Site(NamedTuple):
    """A collective, its mesh axes and phase, the runs of its computation, and the loops around it."""

    collective: Collective
    axis: str | None
    phase: InstructionPhase
    runs: Quantity
    loop: str
    times: CollectiveRowTimes | None


def _step_column(name: str, page_name: str, size: Callable[[Collective], int | None], detail: int = 0) -> Column:
    """Return a column of the bytes of all runs; send and recv are in no total."""

    def executed(site: _Site) -> Value:
        once = _total_bytes(site.collective, size(site.collective))
        if site.runs == 1:
            return once  # a shared object: a large module has many
        return 0 if site.runs == 0 else None if once is None else site.runs * once

    return Column(name, "bytes", page_name=page_name, summed=True, detail=detail, bounded=True, get=executed)


def _total_bytes(collective: Collective, size: int | None) -> int | None:
    """Return the bytes that a collective adds to the total of its column: send and recv are in none."""
    return 0 if collective.is_point_to_point else size


KINDS = frozenset((*COLLECTIVE_KINDS, *POINT_TO_POINT))

_TIMES = (
    bounded("bound_s", "seconds", lambda row: row.times.bound, 3),
    bounded("estimate_s", "seconds", lambda row: row.times.estimate, 1),
    bounded("estimate_window_s", "seconds", lambda row: row.times.estimate_window, 6, optional=True, page_name="window"),
    bounded("estimate_exposed_s", "seconds", lambda row: row.times.estimate_exposed, 2, optional=True, page_name="exposed"),
    bounded("window_s", "seconds", lambda row: row.times.bound_window, 9, optional=True, page_name="bound_window"),
    bounded("exposed_s", "seconds", lambda row: row.times.bound_exposed, 9, optional=True, page_name="bound_exposed"),
    Column("bus_bandwidth", "bytes_per_s", detail=3, optional=True, get=lambda row: row.times.bus_bandwidth),
    Column("level", detail=5, optional=True, width=8, get=lambda row: row.times.level),
)
"""Columns that a hardware profile adds. Pages show windows and exposed times by estimate."""


def _is_collective(value: Value, _: str) -> bool:
    return value not in POINT_TO_POINT  # totals leave their rows out


_COUNTED = (("kind", _is_collective),)
SITES = TableSpec(
    "collectives",
    "Collectives, by bytes sent in one step",
    TablePlace("collectives", "Collectives", "single", 1),
    in_store=True,
    assertable=True,
    counts=(
        CountedRows(r"collectives\.async_count", (("is_async", is_set),), among=_COUNTED, could_be=True),
        CountedRows(r"collectives\.executed_count", _COUNTED, value="runs"),
        CountedRows(r"collectives\.\w+", _COUNTED),
        CountedRows(r"collectives\.group_size\.(.+)\.\w+", (("group_size", is_member),)),
        CountedRows(r"collectives\.phase\.(.+)\.executed_count", (("phase", is_member),), value="runs"),
        CountedRows(r"collectives\.phase\.(.+)\.\w+", (("phase", is_member),)),
        CountedRows(r"collectives\.axis\.(.+)\.executed_count", (("axis", is_member),), value="runs"),
        CountedRows(r"collectives\.axis\.(.+)\.\w+", (("axis", is_member),)),
        CountedRows(r"collectives\.(.+)\.executed_count", (("kind", is_member),), value="runs"),
        CountedRows(r"collectives\.(.+)\.\w+", (("kind", is_member),)),
    ),
    page_as="collective_groups",
).with_columns(
    Column("name", detail=1, get=lambda site: site.collective.start.name),
    Column("kind", members=KINDS, get=lambda site: site.collective.kind),
    bounded("runs", "count"),
    _step_column("executed_operand_bytes", "operands", lambda collective: collective.operand_bytes, detail=2),
    _step_column("executed_wire_bytes", "sent", lambda collective: collective.wire_bytes),
    *_TIMES,
    Column("dtype", detail=9, get=lambda site: leaf_dtype(site.collective.result_shape)),
    Column("shape", detail=4, get=lambda site: _shape(site.collective)),
    Column(
        "operand_bytes",
        "bytes",
        True,
        5,
        page_name="operands_a_run",
        get=lambda site: _total_bytes(site.collective, site.collective.operand_bytes),
    ),
    Column("result_bytes", "bytes", True, 7, get=lambda site: _total_bytes(site.collective, site.collective.result_bytes)),
    Column(
        "wire_bytes",
        "bytes",
        True,
        6,
        page_name="sent_a_run",
        get=lambda site: _total_bytes(site.collective, site.collective.wire_bytes),
    ),
    Column("group_size", "number", detail=1, optional=True, get=lambda site: site.collective.group_size),
    Column("replica_groups", detail=6, get=lambda site: site.collective.replica_groups),
    Column("source_target_pairs", detail=9, get=lambda site: site.collective.source_target_pairs),
    Column("trip_count", "count", detail=9, get=lambda site: exact(site.runs)),
    Column("axis", detail=2, optional=True),
    phase_column(lambda site: site.phase.phase, detail=3),
    phase_source(lambda site: site.phase.phase_from),
    Column("also_phase", detail=9, optional=True, only_verbose=True, get=lambda site: site.phase.also_phase or None),
    Column("channel_id", "number", detail=9, optional=True, get=lambda site: site.collective.channel_id),
    Column("reduction", detail=3, get=lambda site: site.collective.reduction),
    Column("is_async", "bool", detail=5, get=lambda site: site.collective.is_async),
    Column("form", detail=9, get=lambda site: site.collective.start.opcode),
    Column("computation", detail=8, get=lambda site: site.collective.start.computation.name),
    Column("loop", detail=5, optional=True, get=lambda site: site.loop or None),
    Column("op_name", detail=6, get=lambda site: site.collective.origin.op_name),
    Column("source", detail=2, get=lambda site: site.collective.origin.source),
    Column("line", "number", detail=7, get=lambda site: site.collective.start.line),
)


def _shape(collective: Collective) -> str | None:
    return sys.intern(str(collective.result_shape)) if collective.result_shape is not None else None


def sites(context: Context) -> Table:
    """Return one row per collective, those first that send most in one step."""
    graph, timed = context.call_graph, _timed(context)
    rows = [
        _Site(
            collective,
            axis,
            phase,
            graph.runs(collective.inner.computation.name),
            _loop(graph, collective),
            timed((collective,)),
        )
        for collective, axis, phase in zip(context.collectives, context.axes, context.phases.of_collectives, strict=True)
    ]
    rows.sort(key=lambda site: _weight(least(site.runs), site.collective), reverse=True)
    columns = SITES.columns
    if any(site.collective.is_point_to_point for site in rows):  # they run, but are in no total
        columns = tuple(column._replace(summed=False) if "runs" in column.name else column for column in columns)
    return _made(SITES, rows, context, columns)


def _loop(graph: CallGraph, collective: Collective) -> str:
    return sys.intern(loop_names(graph, collective.inner.computation.name)) if graph.loops else ""


def _weight(runs: Number, collective: Collective) -> tuple[Number, Number]:
    """Return the bytes of a collective, for the order only: an unknown size counts nothing."""
    return runs * (collective.wire_bytes or 0), runs * (collective.operand_bytes or 0)


# -- equal ones together ----------------------------------------------------------------------------------------------------


class _CollectiveGroup(NamedTuple):
    """The properties that the collectives of one row share."""

    kind: str
    shape: str | None
    operand_bytes: int | None
    group_size: int | None
    axis: str | None
    phase: str
    reduction: str
    is_async: bool
    source: str


class _CollectiveRow(NamedTuple):
    """The collectives of one row of a table, their figures of one step, the loops around them and their times."""

    label: Hashable
    members: Sequence[Collective]
    executed: ExecutedTotals
    graph: CallGraph
    times: CollectiveRowTimes | None
    phase_sources: frozenset[str] = frozenset()

    @property
    def loop(self) -> str | None:
        """The loops around the collectives, or their number if they differ."""
        loops = {_loop(self.graph, collective) for collective in self.members} - {""}
        return loops.pop() if len(loops) == 1 else f"{len(loops)} loops" if loops else None


_SITE_COUNT = Column("sites", "count", summed=True, get=lambda row: len(row.members))
_FIGURES_OF_STEP = (
    bounded("runs", "count", lambda row: row.executed.count),
    bounded("executed_operand_bytes", "bytes", lambda row: row.executed.operand_bytes, 4, page_name="operands"),
    bounded("executed_wire_bytes", "bytes", lambda row: row.executed.wire_bytes, page_name="sent"),
)
_OF_ONE_STEP = (_SITE_COUNT, *_FIGURES_OF_STEP)
GROUPS = TableSpec(
    "collective_groups", "Collectives of one step, merged, by bytes sent", TablePlace("collectives", "Collectives", "merged")
).with_columns(
    Column("kind", members=KINDS, get=lambda row: row.label.kind),
    Column("shape", detail=1, get=lambda row: row.label.shape),
    _SITE_COUNT._replace(detail=3),  # at 80 columns the phase says more: without it rows of one shape look equal
    *_FIGURES_OF_STEP,
    *_TIMES,
    Column("group_size", "number", detail=4, optional=True, get=lambda row: row.label.group_size),
    Column("axis", detail=2, optional=True, get=lambda row: row.label.axis),
    phase_column(lambda row: row.label.phase, detail=2),
    phase_source(lambda row: joined_sources(row.phase_sources)),
    Column("reduction", detail=4, get=lambda row: row.label.reduction),
    Column("is_async", "bool", detail=5, get=lambda row: row.label.is_async),
    Column("names", detail=7, get=lambda row: joined_name([collective.start.name for collective in row.members])),
    Column("source", detail=1, get=lambda row: row.label.source),
    Column("loop", detail=3, optional=True),
)


def groups(context: Context) -> Table:
    """Return the merged collectives, without send and recv, which are in no total."""
    shared: dict[_CollectiveGroup, _CollectiveGroup] = {}  # equal labels share one object
    labels = []
    for c, axis, phase in zip(context.collectives, context.axes, context.collective_phases, strict=True):
        label = _CollectiveGroup(
            c.kind, _shape(c), c.operand_bytes, c.group_size, axis, phase, c.reduction, c.is_async, c.origin.source
        )
        labels.append(shared.setdefault(label, label))
    sources: dict[_CollectiveGroup, set[str]] = {}
    for label, source in zip(labels, context.phases.of_collectives, strict=True):
        sources.setdefault(label, set()).add(source.phase_from)
    rows = [
        row._replace(phase_sources=frozenset(sources[cast("_CollectiveGroup", row.label)]))
        for row in _group_collectives(context, labels)
    ]
    return _made(GROUPS, rows, context)


def point_to_point(context: Context) -> Table:
    """Return the collectives between two devices and the traffic between slices, which are in no total.

    A recv between slices is left out: it is the other end of a send.
    """
    chosen = [c.is_point_to_point and (c.transfer is None or c.sends_to_slices) for c in context.collectives]
    labels = [
        (c.kind, c.transfer.text if c.transfer is not None else "", axis if c.transfer is not None else "")
        for c, axis in zip(context.collectives, context.axes, strict=True)
    ]
    return POINT_TO_POINT_ROWS.of(_group_collectives(context, labels, chosen=chosen))


POINT_TO_POINT_ROWS = TableSpec(
    "point_to_point", "send and recv of one step (in no total)", TablePlace("collectives", "Collectives", "point to point", 12)
).with_columns(
    Column("kind", get=lambda row: row.label[0]),
    Column("transfer", get=lambda row: row.label[1]),
    Column("axis", get=lambda row: row.label[2]),
    *_OF_ONE_STEP,
)


def _group_collectives(
    context: Context,
    labels: Sequence[Label],
    executed: Mapping[Label, ExecutedTotals] | None = None,
    chosen: Sequence[bool] | None = None,
) -> list[_CollectiveRow]:
    """Group all collectives but send and recv, or those `chosen`, by their labels; those that send most in one step come first.

    `executed` holds their figures of one step, if known by these labels.
    """
    if chosen is None:
        chosen = [not collective.is_point_to_point for collective in context.collectives]
    members: dict[Label, list[Collective]] = {}
    for collective, label in compress(zip(context.collectives, labels, strict=True), chosen):
        members.setdefault(label, []).append(collective)
    if executed is None:
        executed = context.executed.by_label(labels, chosen)
    timed = _timed(context)
    rows = [
        _CollectiveRow(label, collectives, executed.get(label, NOT_EXECUTED), context.call_graph, timed(collectives))
        for label, collectives in members.items()
    ]
    rows.sort(key=lambda row: (least(row.executed.wire_bytes), least(row.executed.operand_bytes)), reverse=True)
    return rows


# -- by kind, axis and phase ------------------------------------------------------------------------------------------------

_AS_PRINTED = (
    Column(
        "async_count", "count", page_name="async", summed=True, detail=3, get=lambda row: sum(c.is_async for c in row.members)
    ),
    Column("operand_bytes", "bytes", summed=True, detail=9, get=lambda row: total(c.operand_bytes for c in row.members)),
    Column("wire_bytes", "bytes", summed=True, detail=9, get=lambda row: total(c.wire_bytes for c in row.members)),
)


def _by_label(name: str, by: str, columns: Sequence[Column], rank: int, label: str = "") -> TableSpec:
    """Return the table of the collectives of a step by a label; `columns` are those of the label."""
    place = TablePlace("collectives", "Collectives", label or f"by {by}", rank)
    return TableSpec(name, f"Collectives of one step by {by}", place).with_columns(
        *columns, *_OF_ONE_STEP, *_TIMES, *_AS_PRINTED
    )


BY_KIND = _by_label(
    "collectives_by_kind",
    "kind and group",
    (
        Column("kind", get=lambda row: row.label[0]),
        Column("group_size", "number", optional=True, get=lambda row: row.label[1]),
    ),
    4,
    "by kind",
)


def by_kind(context: Context) -> Table:
    """Return one row per kind and group size."""
    labels = [(collective.kind, collective.group_size) for collective in context.collectives]
    return _made(BY_KIND, _group_collectives(context, labels), context)


BY_AXIS = replace(
    _by_label("collectives_by_axis", "mesh axis", (Column("axis", get=lambda row: row.label),), 2, "by axis"), in_store=True
)


def by_axis(context: Context) -> Table:
    """Return one row per mesh axis or combination of axes, and one for traffic between slices, which is in no total."""
    chosen = [c.sends_to_slices or not c.is_point_to_point for c in context.collectives]
    rows = _group_collectives(context, context.axes, context.executed.axes, chosen)
    table = _made(BY_AXIS, rows, context)
    if not any(c.sends_to_slices for c in context.collectives):
        return table
    return replace(table, columns=tuple(column._replace(summed=False) for column in table.columns))


BY_PHASE = _by_label("collectives_by_phase", "phase", (Column("phase", get=lambda row: row.label),), 5)


def by_phase(context: Context) -> Table:
    """Return one row per phase of the training step; none if --quick leaves the phase of a collective open."""
    executed = {} if context.leaves_phases_open else context.executed.phases
    rows = [] if context.leaves_phases_open else _group_collectives(context, context.collective_phases, executed)
    met = {row.label for row in rows}
    timed = _timed(context)
    rows += [
        _CollectiveRow(phase, [], figures, context.call_graph, timed([]))
        for phase, figures in executed.items()
        if phase not in met
    ]
    return _made(BY_PHASE, rows, context)


BY_KIND_AND_PHASE = _by_label(
    "collectives_by_kind_and_phase",
    "kind and phase",
    (Column("kind", get=lambda row: row.label[0]), Column("phase", get=lambda row: row.label[1])),
    6,
)


def by_kind_and_phase(context: Context) -> Table:
    """Return one row per kind and phase; none if --quick leaves the phase of a collective open."""
    phases = context.collective_phases
    labels = [(collective.kind, phase) for collective, phase in zip(context.collectives, phases, strict=True)]
    rows = [] if context.leaves_phases_open else _group_collectives(context, labels)
    return _made(BY_KIND_AND_PHASE, rows, context)


_KIND = Column("kind", get=lambda row: row.label[0])
_SIZE = Column("up_to_bytes", "bytes", optional=True, get=lambda row: row.label[1])
BY_SIZE = _by_label("collectives_by_size", "kind and size", (_KIND, _SIZE), 8)


def by_size(context: Context) -> Table:
    """Return one row per kind and size class.

    Classes are up to 4 KiB, 16 KiB, 64 KiB, … of the whole array, as nccl-tests counts it: for an all-gather, its result.
    """
    rows = _sized_rows(context)
    rows.sort(key=_kind_and_size)
    return _made(BY_SIZE, rows, context)


BY_AXIS_AND_KIND = _by_label(
    "collectives_by_axis_and_kind",
    "mesh axis and kind",
    (Column("axis", get=lambda row: row.label[0]), Column("kind", get=lambda row: row.label[1])),
    3,
    "by axis and kind",
)


def by_axis_and_kind(context: Context) -> Table:
    """Return one row per kind and mesh axis or combination of axes."""
    labels = [(axis, collective.kind) for axis, collective in zip(context.axes, context.collectives, strict=True)]
    return _made(BY_AXIS_AND_KIND, _group_collectives(context, labels), context)


SIZES = _by_label("collective_sizes", "size", (_SIZE, _KIND), 7)


def sizes(context: Context) -> Table:
    """Return one row per size class and kind, the smallest sizes first; the classes are those of `by_size`."""
    rows = _sized_rows(context)
    rows.sort(key=lambda row: _kind_and_size(row)[::-1])
    return _made(SIZES, rows, context)


def _sized_rows(context: Context) -> list[_CollectiveRow]:
    return _group_collectives(context, [(collective.kind, _size_class(collective)) for collective in context.collectives])


def _kind_and_size(row: _CollectiveRow) -> tuple[str, int]:
    kind, size = cast("tuple[str, int | None]", row.label)
    return kind, size or 0


_SMALLEST_CLASS = 1 << 12


def _size_class(collective: Collective) -> int | None:
    size = collective.whole_bytes
    limit = _SMALLEST_CLASS
    while size is not None and limit < size:
        limit *= 4
    return None if size is None else limit


_TIME_NAMES = frozenset(column.name for column in _TIMES)


def _made(spec: TableSpec, rows: Sequence[Any], context: Context, columns: Sequence[Column] | None = None) -> Table:
    """Return a table without the columns of times if there are none; else its title says by which times they are exposed."""
    timelines = _timelines(context)
    is_scheduled = timelines is not None and timelines.is_scheduled
    title = f"{spec.title}; exposed time by the estimate" if is_scheduled else spec.title
    return spec.of(rows, columns=columns, without=() if timelines is not None else _TIME_NAMES, title=title)


def _timelines(context: Context) -> Timelines | None:
    """Return the times of the step if the user names a hardware profile; --quick leaves them out."""
    return context.on_machine.timelines if context.on_machine.profile_is_named and not context.request.quick else None


def _timed(context: Context) -> Callable[[Sequence[Collective]], CollectiveRowTimes | None]:
    """Return a function from the collectives of a row to their times."""
    timelines = _timelines(context)
    if timelines is None:
        return lambda _: None
    from hlo_inspect.passes.collectives.row_times import CollectiveRowTimes, TimedCollectives

    return partial(CollectiveRowTimes, TimedCollectives(context, timelines))


TABLES = (
    SITES,
    GROUPS,
    BY_KIND,
    POINT_TO_POINT_ROWS,
    BY_AXIS,
    BY_SIZE,
    BY_PHASE,
    BY_KIND_AND_PHASE,
    BY_AXIS_AND_KIND,
    SIZES,
)

"""The tables of collectives of one step: merged, and by kind, size, mesh axis and phase."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import compress
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from hlo_inspect.analysis.collectives.executed_collectives import NOT_EXECUTED, ExecutedTotals
from hlo_inspect.analysis.collectives.logical_collectives import Collective
from hlo_inspect.analysis.context import Context
from hlo_inspect.figure import least
from hlo_inspect.graph.calls import CallGraph
from hlo_inspect.hlo.values.shapes import total
from hlo_inspect.passes.base import bounded
from hlo_inspect.passes.collectives.collective_sites import KINDS, TIMES, loop_of, made, shape_of, timed
from hlo_inspect.passes.instruction_rows import joined_name, joined_sources, phase_column, phase_source
from hlo_inspect.report.table import Column, Table, TablePlace
from hlo_inspect.report.table_spec import TableSpec

if TYPE_CHECKING:
    from hlo_inspect.passes.collectives.row_times import CollectiveRowTimes


class _Label(NamedTuple):
    """The properties that the collectives of a row share; each table tells some of them apart."""

    kind: str = ""
    axis: str | None = None
    phase: str = ""
    group_size: int | None = None
    up_to_bytes: int | None = None
    transfer: str = ""
    shape: str | None = None
    operand_bytes: int | None = None
    reduction: str = ""
    is_async: bool = False
    source: str = ""


class _CollectiveRow(NamedTuple):
    """The collectives of one row of a table, their figures of one step, the loops around them and their times."""

    label: _Label
    members: Sequence[Collective]
    executed: ExecutedTotals
    graph: CallGraph
    times: CollectiveRowTimes | None
    phase_sources: frozenset[str] = frozenset()

    @property
    def loop(self) -> str | None:
        """The loops around the collectives, or their number if they differ."""
        loops = {loop_of(self.graph, collective) for collective in self.members} - {""}
        return loops.pop() if len(loops) == 1 else f"{len(loops)} loops" if loops else None


def _rows(
    context: Context,
    labels: Sequence[_Label],
    executed: Mapping[_Label, ExecutedTotals] | None = None,
    chosen: Sequence[bool] | None = None,
) -> list[_CollectiveRow]:
    """Group all collectives but send and recv, or those `chosen`, by their labels; those that send most in one step come first.

    `executed` holds their figures of one step, if known by these labels.
    """
    if chosen is None:
        chosen = [not collective.is_point_to_point for collective in context.collectives]
    members: dict[_Label, list[Collective]] = {}
    for collective, label in compress(zip(context.collectives, labels, strict=True), chosen):
        members.setdefault(label, []).append(collective)
    if executed is None:
        executed = context.executed.by_label(labels, chosen)
    times_of = timed(context)
    rows = [
        _CollectiveRow(label, collectives, executed.get(label, NOT_EXECUTED), context.call_graph, times_of(collectives))
        for label, collectives in members.items()
    ]
    rows.sort(key=lambda row: (least(row.executed.wire_bytes), least(row.executed.operand_bytes)), reverse=True)
    return rows


# -- merged -----------------------------------------------------------------------------------------------------------------

_KIND, _AXIS, _TRANSFER = (Column(name, get=attrgetter(f"label.{name}")) for name in ("kind", "axis", "transfer"))
_GROUP_SIZE = Column("group_size", "number", optional=True, get=attrgetter("label.group_size"))
_SITE_COUNT = Column("sites", "count", summed=True, get=lambda row: len(row.members))
_FIGURES_OF_STEP = (
    bounded("runs", "count", attrgetter("executed.count")),
    bounded("executed_operand_bytes", "bytes", attrgetter("executed.operand_bytes"), 4, page_name="operands"),
    bounded("executed_wire_bytes", "bytes", attrgetter("executed.wire_bytes"), page_name="sent"),
)
GROUPS = TableSpec(
    "collective_groups", "Collectives of one step, merged, by bytes sent", TablePlace("collectives", "Collectives", "merged")
).with_columns(
    _KIND._replace(members=KINDS),
    Column("shape", detail=1, get=attrgetter("label.shape")),
    _SITE_COUNT._replace(detail=3),  # at 80 columns the phase says more: without it rows of one shape look equal
    *_FIGURES_OF_STEP,
    *TIMES,
    _GROUP_SIZE._replace(detail=4),
    _AXIS._replace(detail=2, optional=True),
    phase_column(attrgetter("label.phase"), detail=2),
    phase_source(lambda row: joined_sources(row.phase_sources)),
    Column("reduction", detail=4, get=attrgetter("label.reduction")),
    Column("is_async", "bool", detail=5, get=attrgetter("label.is_async")),
    Column("names", detail=7, get=lambda row: joined_name([collective.start.name for collective in row.members])),
    Column("source", detail=1, get=attrgetter("label.source")),
    Column("loop", detail=3, optional=True),
)


def groups(context: Context) -> Table:
    """Return the merged collectives, without send and recv, which are in no total."""
    shared: dict[_Label, _Label] = {}  # equal labels share one object
    sources: dict[_Label, set[str]] = {}
    labels = []
    for c, axis, phase, source in zip(
        context.collectives, context.axes, context.collective_phases, context.phases.of_collectives, strict=True
    ):
        label = _Label(
            c.kind,
            axis,
            phase,
            c.group_size,
            shape=shape_of(c),
            operand_bytes=c.operand_bytes,
            reduction=c.reduction,
            is_async=c.is_async,
            source=c.origin.source,
        )
        labels.append(shared.setdefault(label, label))
        sources.setdefault(label, set()).add(source.phase_from)
    rows = [row._replace(phase_sources=frozenset(sources[row.label])) for row in _rows(context, labels)]
    return made(GROUPS, rows, context)


POINT_TO_POINT_ROWS = TableSpec(
    "point_to_point", "send and recv of one step (in no total)", TablePlace("collectives", "Collectives", "point to point", 12)
).with_columns(_KIND, _TRANSFER, _AXIS, _SITE_COUNT, *_FIGURES_OF_STEP)


def point_to_point(context: Context) -> Table:
    """Return the collectives between two devices and the traffic between slices, which are in no total.

    A recv between slices is left out: it is the other end of a send.
    """
    chosen = [c.is_point_to_point and (c.transfer is None or c.sends_to_slices) for c in context.collectives]
    labels = [
        _Label(c.kind, axis, transfer=c.transfer.text) if c.transfer is not None else _Label(c.kind, "")
        for c, axis in zip(context.collectives, context.axes, strict=True)
    ]
    return POINT_TO_POINT_ROWS.of(_rows(context, labels, chosen=chosen))


# -- by kind, axis and phase ------------------------------------------------------------------------------------------------

_AS_PRINTED = (
    Column("async_count", "count", True, 3, page_name="async", get=lambda row: sum(c.is_async for c in row.members)),
    Column("operand_bytes", "bytes", summed=True, detail=9, get=lambda row: total(c.operand_bytes for c in row.members)),
    Column("wire_bytes", "bytes", summed=True, detail=9, get=lambda row: total(c.wire_bytes for c in row.members)),
)
_PHASE = Column("phase", get=attrgetter("label.phase"))
_SIZE = Column("up_to_bytes", "bytes", optional=True, get=attrgetter("label.up_to_bytes"))


def _by_label(name: str, by: str, rank: int, *columns: Column, label: str = "") -> TableSpec:
    """Return the table of the collectives of a step by a label; `columns` are those of the label."""
    place = TablePlace("collectives", "Collectives", label or f"by {by}", rank)
    return TableSpec(name, f"Collectives of one step by {by}", place).with_columns(
        *columns, _SITE_COUNT, *_FIGURES_OF_STEP, *TIMES, *_AS_PRINTED
    )


BY_KIND = _by_label("collectives_by_kind", "kind and group", 4, _KIND, _GROUP_SIZE, label="by kind")
BY_AXIS = replace(_by_label("collectives_by_axis", "mesh axis", 2, _AXIS, label="by axis"), in_store=True)
BY_AXIS_AND_KIND = _by_label("collectives_by_axis_and_kind", "mesh axis and kind", 3, _AXIS, _KIND, label="by axis and kind")
BY_PHASE = _by_label("collectives_by_phase", "phase", 5, _PHASE)
BY_KIND_AND_PHASE = _by_label("collectives_by_kind_and_phase", "kind and phase", 6, _KIND, _PHASE)
SIZES = _by_label("collective_sizes", "size", 7, _SIZE, _KIND)
BY_SIZE = _by_label("collectives_by_size", "kind and size", 8, _KIND, _SIZE)


def by_kind(context: Context) -> Table:
    """Return one row per kind and group size."""
    return made(BY_KIND, _rows(context, [_Label(c.kind, group_size=c.group_size) for c in context.collectives]), context)


def by_axis(context: Context) -> Table:
    """Return one row per mesh axis or combination of axes, and one for traffic between slices, which is in no total."""
    chosen = [c.sends_to_slices or not c.is_point_to_point for c in context.collectives]
    executed = {_Label(axis=axis): figures for axis, figures in context.executed.axes.items()}
    table = made(BY_AXIS, _rows(context, [_Label(axis=axis) for axis in context.axes], executed, chosen), context)
    if not any(c.sends_to_slices for c in context.collectives):
        return table
    return replace(table, columns=tuple(column._replace(summed=False) for column in table.columns))


def by_axis_and_kind(context: Context) -> Table:
    """Return one row per kind and mesh axis or combination of axes."""
    labels = [_Label(c.kind, axis) for axis, c in zip(context.axes, context.collectives, strict=True)]
    return made(BY_AXIS_AND_KIND, _rows(context, labels), context)


def by_phase(context: Context) -> Table:
    """Return one row per phase of the training step; none if --quick leaves the phase of a collective open."""
    if context.leaves_phases_open:
        return made(BY_PHASE, [], context)
    executed = {_Label(phase=phase): figures for phase, figures in context.executed.phases.items()}
    rows = _rows(context, [_Label(phase=phase) for phase in context.collective_phases], executed)
    met = {row.label for row in rows}
    no_times = timed(context)([])
    rows += [
        _CollectiveRow(label, [], figures, context.call_graph, no_times)
        for label, figures in executed.items()
        if label not in met
    ]
    return made(BY_PHASE, rows, context)


def by_kind_and_phase(context: Context) -> Table:
    """Return one row per kind and phase; none if --quick leaves the phase of a collective open."""
    labels = [_Label(c.kind, phase=phase) for c, phase in zip(context.collectives, context.collective_phases, strict=True)]
    return made(BY_KIND_AND_PHASE, [] if context.leaves_phases_open else _rows(context, labels), context)


def by_size(context: Context) -> Table:
    """Return one row per kind and size class.

    Classes are up to 4 KiB, 16 KiB, 64 KiB, … of the whole array, as nccl-tests counts it: for an all-gather, its result.
    """
    return made(BY_SIZE, sorted(_sized_rows(context), key=lambda row: (row.label.kind, row.label.up_to_bytes or 0)), context)


def sizes(context: Context) -> Table:
    """Return one row per size class and kind, the smallest sizes first; the classes are those of `by_size`."""
    return made(SIZES, sorted(_sized_rows(context), key=lambda row: (row.label.up_to_bytes or 0, row.label.kind)), context)


def _sized_rows(context: Context) -> list[_CollectiveRow]:
    return _rows(context, [_Label(c.kind, up_to_bytes=_size_class(c.whole_bytes)) for c in context.collectives])


_SMALLEST_CLASS = 1 << 12


def _size_class(size: int | None) -> int | None:
    limit = _SMALLEST_CLASS
    while size is not None and limit < size:
        limit *= 4
    return None if size is None else limit


TABLES = (GROUPS, BY_KIND, POINT_TO_POINT_ROWS, BY_AXIS, BY_SIZE, BY_PHASE, BY_KIND_AND_PHASE, BY_AXIS_AND_KIND, SIZES)

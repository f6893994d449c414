"""The table with a row for each collective: bytes of one run and of one step; and the columns of times that a profile adds."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from hlo_inspect.analysis.collectives.logical_collectives import Collective, leaf_dtype
from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.provenance import InstructionPhase
from hlo_inspect.figure import Number, Quantity, exact, least
from hlo_inspect.graph.calls import CallGraph
from hlo_inspect.hlo.opcodes import COLLECTIVE_KINDS, POINT_TO_POINT
from hlo_inspect.passes.base import bounded
from hlo_inspect.passes.instruction_rows import loop_names, phase_column, phase_source
from hlo_inspect.report.table import Column, Table, TablePlace, Value
from hlo_inspect.report.table_spec import CountedRows, TableSpec, is_member, is_set

if TYPE_CHECKING:
    from hlo_inspect.analysis.time.timelines import Timelines
    from hlo_inspect.passes.collectives.row_times import CollectiveRowTimes

KINDS = frozenset((*COLLECTIVE_KINDS, *POINT_TO_POINT))

# -- times ------------------------------------------------------------------------------------------------------------------


def _seconds(
    name: str, time: Literal["bound", "estimate"], part: Literal["busy", "window", "exposed"], detail: int, page_name: str = ""
) -> Column:
    """Return the column of a part of the time of all runs; windows and exposed times need a schedule."""
    return bounded(
        name, "seconds", lambda row: row.times.seconds(time, part), detail, optional=part != "busy", page_name=page_name
    )


TIMES = (
    _seconds("bound_s", "bound", "busy", 3),
    _seconds("estimate_s", "estimate", "busy", 1),
    _seconds("estimate_window_s", "estimate", "window", 6, "window"),
    _seconds("estimate_exposed_s", "estimate", "exposed", 2, "exposed"),
    _seconds("window_s", "bound", "window", 9, "bound_window"),
    _seconds("exposed_s", "bound", "exposed", 9, "bound_exposed"),
    Column("bus_bandwidth", "bytes_per_s", detail=3, optional=True, get=attrgetter("times.bus_bandwidth")),
    Column("level", detail=5, optional=True, width=8, get=attrgetter("times.level")),
)
"""Columns that a hardware profile adds. Pages show windows and exposed times by estimate."""
_TIME_NAMES = frozenset(column.name for column in TIMES)


def made(spec: TableSpec, rows: Sequence[Any], context: Context, columns: Sequence[Column] | None = None) -> Table:
    """Return a table without the columns of times if there are none; else its title says by which times they are exposed."""
    timelines = _timelines(context)
    is_scheduled = timelines is not None and timelines.is_scheduled
    title = f"{spec.title}; exposed time by the estimate" if is_scheduled else spec.title
    return spec.of(rows, columns=columns, without=() if timelines is not None else _TIME_NAMES, title=title)


def _timelines(context: Context) -> Timelines | None:
    """Return the times of the step if the user names a hardware profile; --quick leaves them out."""
    return context.on_machine.timelines if context.on_machine.profile_is_named and not context.request.quick else None


def timed(context: Context) -> Callable[[Sequence[Collective]], CollectiveRowTimes | None]:
    """Return a function from the collectives of a row to their times."""
    timelines = _timelines(context)
    if timelines is None:
        return lambda _: None
    from hlo_inspect.passes.collectives.row_times import CollectiveRowTimes, TimedCollectives

    return partial(CollectiveRowTimes, TimedCollectives(context, timelines))


# -- sites ------------------------------------------------------------------------------------------------------------------


class _Site(NamedTuple):
    """A collective, its mesh axes and phase, the runs of its computation, and the loops around it."""

    collective: Collective
    axis: str | None
    phase: InstructionPhase
    runs: Quantity
    loop: str
    times: CollectiveRowTimes | None


def _of_run(size: str) -> Callable[[_Site], int | None]:
    """Return a getter of the bytes that one run adds to the total of its column: send and recv are in none."""
    return lambda site: 0 if site.collective.is_point_to_point else getattr(site.collective, size)


def _of_step(name: str, page_name: str, size: str, detail: int = 0) -> Column:
    """Return a column of the bytes of all runs."""
    of_run = _of_run(size)

    def executed(site: _Site) -> Value:
        once = of_run(site)
        if site.runs == 1:
            return once  # a shared object: a large module has many
        return 0 if site.runs == 0 else None if once is None else site.runs * once

    return Column(name, "bytes", page_name=page_name, summed=True, detail=detail, bounded=True, get=executed)


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
    _of_step("executed_operand_bytes", "operands", "operand_bytes", detail=2),
    _of_step("executed_wire_bytes", "sent", "wire_bytes"),
    *TIMES,
    Column("dtype", detail=9, get=lambda site: leaf_dtype(site.collective.result_shape)),
    Column("shape", detail=4, get=lambda site: shape_of(site.collective)),
    Column("operand_bytes", "bytes", summed=True, detail=5, page_name="operands_a_run", get=_of_run("operand_bytes")),
    Column("result_bytes", "bytes", summed=True, detail=7, get=_of_run("result_bytes")),
    Column("wire_bytes", "bytes", summed=True, detail=6, page_name="sent_a_run", get=_of_run("wire_bytes")),
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


def sites(context: Context) -> Table:
    """Return one row per collective, those first that send most in one step; an unknown size counts nothing."""
    graph, times_of = context.call_graph, timed(context)
    rows = [
        _Site(
            collective,
            axis,
            phase,
            graph.runs(collective.inner.computation.name),
            loop_of(graph, collective),
            times_of((collective,)),
        )
        for collective, axis, phase in zip(context.collectives, context.axes, context.phases.of_collectives, strict=True)
    ]

    def sent(site: _Site) -> tuple[Number, Number]:
        runs = least(site.runs)
        return runs * (site.collective.wire_bytes or 0), runs * (site.collective.operand_bytes or 0)

    rows.sort(key=sent, reverse=True)
    columns = SITES.columns
    if any(site.collective.is_point_to_point for site in rows):  # they run, but are in no total
        columns = tuple(column._replace(summed=False) if "runs" in column.name else column for column in columns)
    return made(SITES, rows, context, columns)


def shape_of(collective: Collective) -> str | None:
    """Return the text of the result's shape; equal texts share one object."""
    return sys.intern(str(collective.result_shape)) if collective.result_shape is not None else None


def loop_of(graph: CallGraph, collective: Collective) -> str:
    """Return the loops around a collective, innermost first; equal texts share one object."""
    return sys.intern(loop_names(graph, collective.inner.computation.name)) if graph.loops else ""

"""The collectives of a module: kind, bytes, devices, reduction, source line."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from operator import attrgetter
from typing import NamedTuple, TypeVar

from hlo_inspect.analysis.collectives import KERNEL_WANTS, WANTS, Collective
from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.executed_collectives import NOT_EXECUTED
from hlo_inspect.figure import Quantity, add, exact, greatest, least, multiply, or_unknown, reason
from hlo_inspect.graph.loops import Loop
from hlo_inspect.hlo.instruction import Instruction
from hlo_inspect.hlo.opcodes import COLLECTIVE_KINDS, POINT_TO_POINT
from hlo_inspect.hlo.values.op_names import PHASES, origin_of
from hlo_inspect.hlo.values.shapes import total
from hlo_inspect.passes.base import Pass, bounded, unknown, with_lower_bound
from hlo_inspect.passes.collectives import tables
from hlo_inspect.passes.compiler_warnings import warnings_notes, warnings_rows, warnings_table
from hlo_inspect.passes.instruction_rows import call_stacks, differences, phase_notes
from hlo_inspect.report.model import FactSpec, Section
from hlo_inspect.report.table import LOWER_BOUND, Column, Table, Value

Label = TypeVar("Label", bound=Hashable)

_GROUPED_KINDS = frozenset(COLLECTIVE_KINDS)
_KINDS = tables.KINDS
_PHASES = frozenset(PHASES)
_PHASE_FACTS = "collectives.phase."


class Collectives(Pass):
    """List collectives: kind, bytes, groups, mesh axis, reduction, async or not, runs, phase and source line.

    A start/done pair, an async wrapper and TPU's copies of one all-gather are one collective each. Operand bytes are those of
    one device. Sent bytes are what one device sends with a bandwidth-optimal algorithm. Groups are those of
    XLA's group mode: cross-replica, cross-partition, both, or flattened ids. Totals leave out send and recv, which have rows
    and counts.
    """

    name = "collectives"
    asks_phases = True
    profile_wants = KERNEL_WANTS
    wants = WANTS
    specs = (
        FactSpec("collectives.count", "count", "logical collectives, without send and recv"),
        FactSpec("collectives.operand_bytes", "bytes", "operand bytes, each site once"),
        FactSpec("collectives.result_bytes", "bytes", "result bytes, each site once"),
        FactSpec("collectives.wire_bytes", "bytes", "bytes that one device sends, each site once"),
        FactSpec("collectives.async_count", "count", "asynchronous collectives (separate start and done)"),
        FactSpec("collectives.executed_count", "count", "runs of collectives in one step"),
        FactSpec("collectives.executed_operand_bytes", "bytes", "operand bytes of all runs in one step"),
        FactSpec("collectives.executed_wire_bytes", "bytes", "bytes that one device sends in one step"),
        FactSpec("collectives.<kind>.count", "count", "collectives of a kind", _KINDS),
        FactSpec("collectives.<kind>.operand_bytes", "bytes", "operand bytes, each site once", _GROUPED_KINDS),
        FactSpec("collectives.<kind>.executed_count", "count", "runs of a kind in one step", _KINDS),
        FactSpec("collectives.<kind>.executed_operand_bytes", "bytes", "operand bytes of all runs in one step", _GROUPED_KINDS),
        FactSpec(
            "collectives.<kind>.executed_wire_bytes",
            "bytes",
            "sent bytes of all runs in one step",
            _GROUPED_KINDS,
        ),
        FactSpec("collectives.axis.<axis>.executed_count", "count", "runs along a mesh axis in one step"),
        FactSpec("collectives.axis.<axis>.executed_operand_bytes", "bytes", "operand bytes of all runs in one step"),
        FactSpec("collectives.axis.<axis>.executed_wire_bytes", "bytes", "sent bytes of all runs in one step"),
        FactSpec("collectives.group_size.<n>.count", "count", "collectives over groups of n devices"),
        FactSpec("collectives.group_size.<n>.operand_bytes", "bytes", "operand bytes, each site once"),
        FactSpec("collectives.phase.<phase>.count", "count", "collectives of a phase of the step", _PHASES),
        FactSpec("collectives.phase.<phase>.operand_bytes", "bytes", "operand bytes, each site once", _PHASES),
        FactSpec("collectives.phase.<phase>.executed_count", "count", "runs of a phase in one step", _PHASES),
        FactSpec("collectives.phase.<phase>.executed_operand_bytes", "bytes", "operand bytes of all runs in one step", _PHASES),
        FactSpec(
            "collectives.phase.<phase>.executed_wire_bytes",
            "bytes",
            "sent bytes of all runs in one step",
            _PHASES,
        ),
        FactSpec("mesh.shape", "text", "sizes of the device mesh that fits all groups and shardings, for example 2x8"),
        FactSpec("mesh.order", "text", "`iota`, or the devices in the mesh's row-major order"),
    )

    def run(self, context: Context) -> Section:
        facts = _facts(context)
        notes = phase_notes(context, context.phases.of_collectives)
        missing = unknown(facts)
        said = [*(_notes(context, missing) if missing else ()), *notes]
        if not context.module.warnings:
            return Section(facts, _tables(context), said)
        return Section(facts, _tables(context), [*said, *warnings_notes(context)], warnings_rows(context))


def _tables(context: Context) -> Iterator[Table]:
    yield tables.sites(context)
    yield tables.groups(context)
    yield tables.by_kind(context)
    others = (
        *((tables.point_to_point,) if any(collective.is_point_to_point for collective in context.collectives) else ()),
        tables.by_axis,
        tables.by_size,
        tables.by_phase,
        *((tables.by_kind_and_phase,) if len(set(context.collective_phases)) > 1 else ()),
        *((loops,) if context.call_graph.loops else ()),
    )
    yield from (table for table in (make_table(context) for make_table in others) if table.rows)
    if context.module.warnings:
        yield warnings_table(context)
    yield from call_stacks(collective.origin for collective in context.collectives)
    if any(phase.phase_from == "graph" for phase in context.phases.of_collectives):
        yield from differences(context, [collective.inner for collective in context.collectives], "collectives")


def _facts(context: Context) -> dict[str, Value]:
    collectives = [c for c in context.collectives if not c.is_point_to_point]
    facts: dict[str, Value] = {
        "collectives.count": len(collectives),
        "collectives.operand_bytes": total(c.operand_bytes for c in collectives),
        "collectives.result_bytes": total(c.result_bytes for c in collectives),
        "collectives.wire_bytes": total(c.wire_bytes for c in collectives),
        "collectives.async_count": sum(c.is_async for c in collectives),
    }
    kinds = _grouped(context, [c.kind for c in context.collectives])
    sizes = _grouped(context, [c.group_size for c in context.collectives])
    phases = _grouped(context, context.collective_phases)
    for kind in COLLECTIVE_KINDS:
        facts |= _figures(f"collectives.{kind}", kinds.get(kind, []))
    for kind in POINT_TO_POINT:
        facts[f"collectives.{kind}.count"] = sum(c.kind == kind for c in context.collectives)
    for size in sorted(size for size in sizes if size is not None):
        facts |= _figures(f"collectives.group_size.{size}", sizes[size])
    for phase in PHASES:
        facts |= _figures(f"collectives.phase.{phase}", phases.get(phase, []))
    for name, figure in _executed_figures(context):
        with_lower_bound(facts, name, exact(figure), least(figure) or None)
    if context.leaves_phases_open:
        facts = _with_open_phases(facts)
    mesh = context.mesh
    is_whole = not mesh.partial_reason
    return facts | {
        "mesh.shape": mesh.shape_text if is_whole else None,
        "mesh.order": mesh.order_text if is_whole else None,
    }


def _with_open_phases(facts: dict[str, Value]) -> dict[str, Value]:
    """Return the facts, those of a phase as lower bounds: --quick leaves the phase of some collectives open."""
    bounded: dict[str, Value] = {}
    for name, value in facts.items():
        if name.startswith(_PHASE_FACTS) and not name.endswith(LOWER_BOUND):
            with_lower_bound(bounded, name, None, value or None)
        else:
            bounded[name] = value
    return bounded


def _executed_figures(context: Context) -> Iterator[tuple[str, Quantity]]:
    """Yield the facts of one step by name: of all collectives, of each kind, axis and phase."""
    executed = context.executed
    for kind in POINT_TO_POINT:
        yield f"collectives.{kind}.executed_count", executed.kinds.get(kind, NOT_EXECUTED).count
    groups = {"collectives": executed.total}
    groups |= {f"collectives.{kind}": executed.kinds.get(kind, NOT_EXECUTED) for kind in COLLECTIVE_KINDS}
    groups |= {f"collectives.axis.{axis}": executed.axes[axis] for axis in sorted(filter(None, executed.axes))}
    groups |= {f"collectives.phase.{phase}": executed.phases.get(phase, NOT_EXECUTED) for phase in PHASES}
    for name, group in groups.items():
        for figure, amount in group.figures().items():
            yield f"{name}.executed_{figure}", amount


def _notes(context: Context, facts: Sequence[str]) -> list[str]:
    """Return a note for each unknown fact; it names the first collective that keeps the fact unknown."""
    executed = dict(_executed_figures(context))
    notes = []
    for fact in facts:
        if fact.startswith(_PHASE_FACTS) and context.leaves_phases_open:
            notes.append(f"{fact}: names leave this phase open, and --quick skips the graph of values; run without --quick")
        elif fact.startswith("mesh."):
            notes.append(f"{fact}: {context.mesh.reason or context.mesh.partial_reason}")
        else:
            notes.append(
                f"{fact}: {_not_executed_reason(executed[fact]) if fact in executed else _unknown_reason(fact, context)}"
            )
    return notes


def _not_executed_reason(figure: Quantity) -> str:
    """Return the reason; if the branches of a conditional bound the figure, add both bounds."""
    between = f": {least(figure):,} to {greatest(figure):,}" if greatest(figure) is not None else ""
    return reason(figure) + between


def _grouped(context: Context, labels: Sequence[Label]) -> dict[Label, list[Collective]]:
    """Group the collectives by label, without send and recv. There is a label for each of the context's."""
    groups: dict[Label, list[Collective]] = {}
    for collective, label in zip(context.collectives, labels, strict=True):
        if not collective.is_point_to_point:
            groups.setdefault(label, []).append(collective)
    return groups


def _figures(name: str, members: Sequence[Collective]) -> dict[str, Value]:
    return {f"{name}.count": len(members), f"{name}.operand_bytes": total(c.operand_bytes for c in members)}


def _unknown_reason(fact: str, context: Context) -> str:
    """Return the first collective of a kind, group size or phase whose bytes are unknown, and why."""
    figure = fact.rpartition(".")[2]
    member = fact.split(".")[-2]
    for collective, phase in zip(context.collectives, context.collective_phases, strict=True):
        belongs = member in {"collectives", collective.kind, str(collective.group_size), phase}
        if belongs and not collective.is_point_to_point and getattr(collective, figure) is None:
            return collective.reason_unknown
    return "the text does not say"


class _InsideOfLoop(NamedTuple):
    """The work inside of a loop in one step."""

    collectives: Quantity
    wire_bytes: Quantity
    flops: Quantity
    bytes_accessed: Quantity


_NOTHING = _InsideOfLoop(0, 0, 0, 0)


class _Row(NamedTuple):
    """A loop, the loop around it, the runs of its body in one step, and the figures of all runs."""

    loop: Loop
    parent: str
    runs: Quantity
    source: str
    inside: _InsideOfLoop


_FIRST = (
    Column("loop", get=lambda row: row.loop.instruction.name),
    Column("parent", detail=2, get=lambda row: row.parent),
    Column("trip_count", "count", get=lambda row: row.loop.trip_count),
    bounded("runs", "count", lambda row: row.runs, summed=False),
)
_COST = (
    bounded("flops", "flops", attrgetter("inside.flops"), summed=False),
    bounded("bytes_accessed", "bytes", attrgetter("inside.bytes_accessed"), 1, summed=False),
)
_LAST = (
    bounded("collectives", "count", attrgetter("inside.collectives"), 2, summed=False),
    bounded("executed_wire_bytes", "bytes", attrgetter("inside.wire_bytes"), 1, summed=False, page_name="sent"),
    Column("known_from", detail=3, get=lambda row: row.loop.source or f"not known: it {row.loop.reason}"),
    Column("source", detail=2, get=lambda row: row.source),
    Column("line", "number", detail=4, get=lambda row: row.loop.instruction.line),
)


def loops(context: Context, *, with_cost: bool = False) -> Table:
    """Return one row per loop: the work inside in one step, inner loops included. FLOPs and bytes need the whole graph."""
    columns = (*_FIRST, *(_cost_columns(context) if with_cost else ()), *_LAST)
    return Table.of("loops", "Loops, with the work inside them in one step", columns, _loop_rows(context, with_cost=with_cost))


def _cost_columns(context: Context) -> Iterator[Column]:
    from hlo_inspect.passes.cost.times import bytes_name  # costs are not imported without need

    flops, size = _COST
    yield flops
    yield size._replace(page_name=bytes_name(context))


def _loop_rows(context: Context, *, with_cost: bool) -> Iterator[_Row]:
    graph = context.call_graph
    inside = _loop_figures(context, with_cost=with_cost) if graph.loops else {}
    for loop in graph.loops:
        instruction = loop.instruction
        parent = next(graph.loops_around(instruction.computation.name), None)
        source = origin_of(instruction.attr("metadata"), context.module.frames).source
        parent_name = parent.instruction.name if parent is not None else ""
        yield _Row(loop, parent_name, graph.runs_of_loop(loop), source, inside[instruction])


def _loop_figures(context: Context, *, with_cost: bool) -> dict[Instruction, _InsideOfLoop]:
    """Return the figures of each loop: computations of which it is the innermost loop, plus the loops directly inside of it.

    Inner loops are complete before the computation that contains the outer loop comes.
    """
    graph = context.call_graph
    shared: dict[_InsideOfLoop, _InsideOfLoop] = {}  # equal figures share one object: a large module has many loops
    own: dict[str, _InsideOfLoop] = {}
    for computation, amounts in _amounts(context, with_cost=with_cost):
        figures = _plus(own.get(computation, _NOTHING), amounts)
        own[computation] = shared.setdefault(figures, figures)
    inside = dict.fromkeys([loop.instruction for loop in graph.loops], _NOTHING)
    loops_in: defaultdict[str, list[Instruction]] = defaultdict(list)
    for instruction in inside:
        loops_in[instruction.computation.name].append(instruction)
    for computation in reversed(graph.order):
        around = next(graph.loops_around(computation), None)
        if around is not None:
            for more in (own.get(computation, _NOTHING), *map(inside.__getitem__, loops_in[computation])):
                figures = _plus(inside[around.instruction], more)
                inside[around.instruction] = shared.setdefault(figures, figures)
    return inside


def _plus(before: _InsideOfLoop, more: _InsideOfLoop) -> _InsideOfLoop:
    return _InsideOfLoop(*map(add, before, more))


def _amounts(context: Context, *, with_cost: bool) -> Iterator[tuple[str, _InsideOfLoop]]:
    """Yield computations in loops with the figures that they add to the loops around them."""
    graph = context.call_graph
    in_loops = {name for name in graph.order if next(graph.loops_around(name), None) is not None}
    for collective in context.collectives:
        name = collective.inner.computation.name
        if name in in_loops and not collective.is_point_to_point:
            sent = or_unknown(collective.wire_bytes, collective.reason_unknown)
            runs = graph.runs(name)
            yield name, _InsideOfLoop(runs, multiply(sent, runs), 0, 0)
    for kernel in context.kernels.launched if with_cost and in_loops else ():
        if kernel.place[0] in in_loops:
            figures = _InsideOfLoop(0, 0, kernel.of_step("flops"), kernel.of_step("bytes"))
            yield kernel.place[0], figures

"""The collectives of a module: kind, bytes, devices, reduction, source line."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import NamedTuple, TypeVar, cast

from hlo_inspect.analysis.collectives.executed_collectives import NOT_EXECUTED
from hlo_inspect.analysis.collectives.logical_collectives import KERNEL_WANTS, WANTS, Collective
from hlo_inspect.analysis.context import Context
from hlo_inspect.figure import Quantity, add, at_least, least, multiply, total
from hlo_inspect.graph.loops import Loop
from hlo_inspect.hlo.instruction import Instruction
from hlo_inspect.hlo.opcodes import COLLECTIVE_KINDS, POINT_TO_POINT
from hlo_inspect.hlo.values.op_names import PHASES, origin_of
from hlo_inspect.passes.base import Fact, FactSheet, Pass, bounded, specs_of
from hlo_inspect.passes.collectives import collectives_by_label as tables
from hlo_inspect.passes.collectives.collective_sites import KINDS, SITES, sites
from hlo_inspect.passes.instruction_rows import CALL_STACKS, COLLECTIVES_DIFFERENCES, call_stacks, differences, phase_notes
from hlo_inspect.passes.partitioning import BEFORE_PARTITIONING, is_before_partitioning
from hlo_inspect.passes.warning_tables import WARNINGS, warnings_notes, warnings_rows, warnings_table
from hlo_inspect.report.model import FactSpec, HeadlineRow, Section
from hlo_inspect.report.table import Column, Table, TablePlace
from hlo_inspect.report.table_spec import TableSpec

Label = TypeVar("Label", bound=Hashable)

_GROUPED_KINDS = frozenset(COLLECTIVE_KINDS)
_PHASES = frozenset(PHASES)


def _number(collectives: Sequence[Collective]) -> Quantity:
    """Return the number of collectives: a lower bound if one has an unknown opcode."""
    unknown = next((collective for collective in collectives if not collective.properties.is_known), None)
    return len(collectives) if unknown is None else at_least(len(collectives), unknown.reason_unknown)


def _asynchronous(collectives: Sequence[Collective]) -> Quantity:
    return _number([collective for collective in collectives if collective.is_async])


def _operands(collectives: Sequence[Collective]) -> Quantity:
    return total(collective.operands for collective in collectives)


def _results(collectives: Sequence[Collective]) -> Quantity:
    return total(collective.results for collective in collectives)


def _sent(collectives: Sequence[Collective]) -> Quantity:
    return total(collective.sent for collective in collectives)


_TOTALS = (
    Fact("collectives.count", "count", "logical collectives, without send and recv", _number),
    Fact("collectives.operand_bytes", "bytes", "operand bytes, each site once", _operands),
    Fact("collectives.result_bytes", "bytes", "result bytes, each site once", _results),
    Fact("collectives.wire_bytes", "bytes", "bytes that one device sends, each site once", _sent),
    Fact("collectives.async_count", "count", "asynchronous collectives (separate start and done)", _asynchronous),
)
_RUNS, _RUN_OPERANDS, _RUN_SENT = map(attrgetter, ("count", "operand_bytes", "wire_bytes"))
_EXECUTED = (
    Fact("collectives.executed_count", "count", "runs of collectives in one step", _RUNS),
    Fact("collectives.executed_operand_bytes", "bytes", "operand bytes of all runs in one step", _RUN_OPERANDS),
    Fact("collectives.executed_wire_bytes", "bytes", "bytes that one device sends in one step", _RUN_SENT),
)
_NOT_READ = "XLA's collective passes follow, and --quick skips the graph that tells what they change"
_EXPECTED = (
    Fact(
        "collectives.expected_reduce_scatter_count",
        "count",
        "runs of reduce-scatters in one step, those included that XLA will make of sliced all-reduces",
        lambda expected: expected and expected.kinds.get("reduce-scatter", NOT_EXECUTED).count,
        absent=_NOT_READ,
    ),
    Fact(
        "collectives.expected_wire_bytes",
        "bytes",
        "bytes that one device then sends in one step: those of the text once XLA's collective passes ran. "
        "Passes that join gathers or narrow their type can make it less",
        lambda expected: expected and expected.total.wire_bytes,
        absent=_NOT_READ,
    ),
)
_OF_KIND = (
    Fact("collectives.<kind>.count", "count", "collectives of a kind", _number, KINDS),
    Fact("collectives.<kind>.operand_bytes", "bytes", "operand bytes, each site once", _operands, _GROUPED_KINDS),
)
_OF_SIZE = (
    Fact("collectives.group_size.<n>.count", "count", "collectives over groups of n devices", _number),
    Fact("collectives.group_size.<n>.operand_bytes", "bytes", "operand bytes, each site once", _operands),
)
_OF_PHASE = (
    Fact("collectives.phase.<phase>.count", "count", "collectives of a phase of the step", _number, _PHASES),
    Fact("collectives.phase.<phase>.operand_bytes", "bytes", "operand bytes, each site once", _operands, _PHASES),
)


def _executed(
    label: str, runs: str, members: frozenset[str] | None = None, of_bytes: frozenset[str] | None = None
) -> tuple[Fact, ...]:
    """Return the facts of all runs of a label: number, operand bytes and sent bytes; `of_bytes` are members that have bytes."""
    name, of_bytes = f"collectives.{label}.executed", of_bytes or members
    return (
        Fact(f"{name}_count", "count", f"{runs} in one step", _RUNS, members),
        Fact(f"{name}_operand_bytes", "bytes", "operand bytes of all runs in one step", _RUN_OPERANDS, of_bytes),
        Fact(f"{name}_wire_bytes", "bytes", "sent bytes of all runs in one step", _RUN_SENT, of_bytes),
    )


_EXECUTED_OF_KIND = _executed("<kind>", "runs of a kind", KINDS, _GROUPED_KINDS)
_OF_AXIS = _executed("axis.<axis>", "runs along a mesh axis")
_EXECUTED_OF_PHASE = _executed("phase.<phase>", "runs of a phase", _PHASES)


def _tables(context: Context) -> Iterator[Table]:
    yield sites(context)
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
        yield from differences(context, [collective.inner for collective in context.collectives], COLLECTIVES_DIFFERENCES)


_OPEN_PHASE = "names leave this phase open, and --quick skips the graph of values; run without --quick"


def _put_sites(facts: FactSheet, context: Context) -> None:
    """Set the facts of collectives as printed: in total, by kind, group size and phase."""
    facts.put_all(_TOTALS, [c for c in context.collectives if not c.is_point_to_point])
    kinds = _grouped(context, [c.kind for c in context.collectives])
    sizes = _grouped(context, [c.group_size for c in context.collectives])
    phases = _grouped(context, context.collective_phases)
    for kind in COLLECTIVE_KINDS:
        facts.put_all(_OF_KIND, kinds.get(kind, []), kind)
    for kind in POINT_TO_POINT:
        facts.put_all(_OF_KIND[:1], [c for c in context.collectives if c.kind == kind], kind)
    for size in sorted(size for size in sizes if size is not None):
        facts.put_all(_OF_SIZE, sizes[size], str(size))
    _put_phases(facts, context, _OF_PHASE, {phase: phases.get(phase, []) for phase in PHASES})


def _put_executed(facts: FactSheet, context: Context) -> None:
    """Set the facts of one step: in total, by kind, axis and phase."""
    executed = context.executed
    for kind in POINT_TO_POINT:
        facts.put_all(_EXECUTED_OF_KIND[:1], executed.kinds.get(kind, NOT_EXECUTED), kind)
    facts.put_all(_EXECUTED, executed.total)
    facts.put_all(_EXPECTED, context.expected)
    for kind in COLLECTIVE_KINDS:
        facts.put_all(_EXECUTED_OF_KIND, executed.kinds.get(kind, NOT_EXECUTED), kind)
    for axis in sorted(filter(None, executed.axes)):
        facts.put_all(_OF_AXIS, executed.axes[axis], axis)
    _put_phases(facts, context, _EXECUTED_OF_PHASE, {phase: executed.phases.get(phase, NOT_EXECUTED) for phase in PHASES})


def _put_phases(facts: FactSheet, context: Context, of_phase: Sequence[Fact], sources: Mapping[str, object]) -> None:
    """Set the facts of each phase: lower bounds if --quick leaves the phase of some collectives open."""
    for phase, source in sources.items():
        if not context.leaves_phases_open:
            facts.put_all(of_phase, source, phase)
            continue
        for fact in of_phase:
            value = cast("Quantity", fact.get(source))
            facts.put(fact.named(phase), at_least(least(value), _OPEN_PHASE))


def _grouped(context: Context, labels: Sequence[Label]) -> dict[Label, list[Collective]]:
    """Group the collectives by label, without send and recv. There is a label for each of the context's."""
    groups: dict[Label, list[Collective]] = {}
    for collective, label in zip(context.collectives, labels, strict=True):
        if not collective.is_point_to_point:
            groups.setdefault(label, []).append(collective)
    return groups


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


LOOPS = TableSpec(
    "loops", "Loops, with the work inside them in one step", TablePlace("loops", ""), in_store=True, assertable=True
).with_columns(
    Column("loop", get=lambda row: row.loop.instruction.name),
    Column("parent", detail=2),
    Column("trip_count", "count", get=lambda row: row.loop.trip_count),
    bounded("runs", "count", summed=False),
    bounded("collectives", "count", attrgetter("inside.collectives"), 2, summed=False),
    bounded("executed_wire_bytes", "bytes", attrgetter("inside.wire_bytes"), 1, summed=False, page_name="sent"),
    Column("known_from", detail=3, get=lambda row: row.loop.source or f"not known: it {row.loop.reason}"),
    Column("source", detail=2),
    Column("line", "number", detail=4, get=lambda row: row.loop.instruction.line),
)
_COSTS = (
    bounded("flops", "flops", attrgetter("inside.flops"), summed=False),
    bounded("bytes_accessed", "bytes", attrgetter("inside.bytes_accessed"), 1, summed=False),
)
LOOPS_WITH_COSTS = replace(LOOPS.with_columns(*LOOPS.columns[:4], *_COSTS, *LOOPS.columns[4:]), in_store=False)


def loops(context: Context) -> Table:
    """Return one row per loop: the work inside in one step, inner loops included."""
    return LOOPS.of(_loop_rows(context, with_cost=False))


def loops_with_costs(context: Context) -> Table:
    """Return the loops with their FLOPs and bytes, which need the whole graph."""
    from hlo_inspect.passes.cost.step_facts import bytes_name  # costs are not imported without need

    columns = LOOPS_WITH_COSTS.with_flags({"bytes_accessed": {"page_name": bytes_name(context)}})
    return LOOPS_WITH_COSTS.of(_loop_rows(context, with_cost=True), columns=columns)


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
            sent = collective.sent
            runs = graph.runs(name)
            yield name, _InsideOfLoop(runs, multiply(sent, runs), 0, 0)
    for kernel in context.kernels.launched if with_cost and in_loops else ():
        if kernel.place[0] in in_loops:
            figures = _InsideOfLoop(0, 0, kernel.of_step("flops"), kernel.of_step("bytes"))
            yield kernel.place[0], figures


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
        *specs_of(
            _TOTALS, _EXECUTED, _EXPECTED, _OF_KIND, _EXECUTED_OF_KIND, _OF_AXIS, _OF_SIZE, _OF_PHASE, _EXECUTED_OF_PHASE
        ),
        FactSpec("mesh.shape", "text", "sizes of the device mesh that fits all groups and shardings, for example 2x8"),
        FactSpec("mesh.order", "text", "`iota`, or the devices in the mesh's row-major order"),
    )
    tables = (SITES, *tables.TABLES, LOOPS, WARNINGS, COLLECTIVES_DIFFERENCES, CALL_STACKS)

    def run(self, context: Context) -> Section:
        facts = FactSheet()
        _put_sites(facts, context)
        _put_executed(facts, context)
        mesh = context.mesh
        for name, text in (("mesh.shape", mesh.shape_text), ("mesh.order", mesh.order_text)):
            facts.put(name, None if mesh.partial_reason else text, mesh.reason or mesh.partial_reason)
        notes = [*facts.notes, *phase_notes(context, context.phases.of_collectives)]
        headline, shown = [] if context.collectives else _not_added_yet(context), _tables(context)
        if headline:
            shown = (replace(table, nothing="? before partitioning") for table in shown)
        if not context.module.warnings:
            return Section(facts.values, shown, notes, headline)
        warned = [*headline, *warnings_rows(context)]
        return Section(facts.values, shown, [*notes, *warnings_notes(context)], warned)


def _not_added_yet(context: Context) -> list[HeadlineRow]:
    """Return the line that says why a program of several devices has no collectives yet; nothing if that is not known."""
    if not is_before_partitioning(context.shapes_are, context.device_counts.devices):
        return []
    return [HeadlineRow("collectives", (f"?: {BEFORE_PARTITIONING}",))]

"""The collectives of a module: kind, bytes, devices, reduction, source line."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import NamedTuple, TypeVar

from hlo_inspect.analysis import calls
from hlo_inspect.analysis.collectives import (
    OPCODES,
    RESIZING_OPCODES,
    TARGETS,
    Collective,
    leaf_dtype,
)
from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.executed_collectives import ALL, NOT_EXECUTED, ExecutedFigure, Group
from hlo_inspect.analysis.op_names import PHASES
from hlo_inspect.hlo.opcodes import COLLECTIVE_KINDS, POINT_TO_POINT
from hlo_inspect.hlo.shapes import total
from hlo_inspect.hlo.wants import Wants
from hlo_inspect.passes.base import Pass, unknown, with_lower_bound
from hlo_inspect.report.model import Column, FactSpec, Section, Table, Value

Label = TypeVar("Label", bound=Hashable)

_GROUPED_KINDS = frozenset(COLLECTIVE_KINDS)
_KINDS = frozenset((*COLLECTIVE_KINDS, *POINT_TO_POINT))
_PHASES = frozenset(PHASES)


class Collectives(Pass):
    """Every collective: kind, bytes, groups, mesh axis, reduction, asynchronous or not, how often it runs, phase, source line.

    A start/done pair, an async wrapper and TPU's copies of one all-gather are one collective each. Operand bytes are those of
    one device; wire bytes are what it has to send with a bandwidth-optimal algorithm. Groups follow XLA's four group modes.
    send and recv are listed and counted, but are in no total.
    """

    name = "collectives"
    wants = Wants(opcodes=OPCODES, operands=RESIZING_OPCODES, targets=TARGETS) | calls.WANTS
    specs = (
        FactSpec("collectives.count", "count", "logical collectives, without send and recv"),
        FactSpec("collectives.operand_bytes", "bytes", "bytes of their operands"),
        FactSpec("collectives.result_bytes", "bytes", "bytes of their results"),
        FactSpec("collectives.wire_bytes", "bytes", "bytes that one device has to send for them"),
        FactSpec("collectives.async_count", "count", "those whose start and done are apart"),
        FactSpec("collectives.executed_count", "count", "how often they run in one step, a run of the entry"),
        FactSpec("collectives.executed_operand_bytes", "bytes", "bytes of their operands in one step"),
        FactSpec("collectives.executed_wire_bytes", "bytes", "bytes that one device has to send for them in one step"),
        FactSpec("collectives.<kind>.count", "count", "collectives of a kind", _KINDS),
        FactSpec("collectives.<kind>.operand_bytes", "bytes", "bytes of their operands", _GROUPED_KINDS),
        FactSpec("collectives.<kind>.executed_count", "count", "how often those of a kind run in one step", _KINDS),
        FactSpec("collectives.<kind>.executed_operand_bytes", "bytes", "bytes of their operands in one step", _GROUPED_KINDS),
        FactSpec("collectives.<kind>.executed_wire_bytes", "bytes", "bytes sent for them in one step", _GROUPED_KINDS),
        FactSpec("collectives.axis.<axis>.executed_count", "count", "how often those along a mesh axis run in one step"),
        FactSpec("collectives.axis.<axis>.executed_operand_bytes", "bytes", "bytes of their operands in one step"),
        FactSpec("collectives.axis.<axis>.executed_wire_bytes", "bytes", "bytes sent for them in one step"),
        FactSpec("collectives.group_size.<n>.count", "count", "collectives over groups of n devices"),
        FactSpec("collectives.group_size.<n>.operand_bytes", "bytes", "bytes of their operands"),
        FactSpec("collectives.phase.<phase>.count", "count", "collectives of a phase of the step", _PHASES),
        FactSpec("collectives.phase.<phase>.operand_bytes", "bytes", "bytes of their operands", _PHASES),
        FactSpec("collectives.phase.<phase>.executed_count", "count", "how often those of a phase run in one step", _PHASES),
        FactSpec("collectives.phase.<phase>.executed_operand_bytes", "bytes", "bytes of their operands in one step", _PHASES),
        FactSpec("collectives.phase.<phase>.executed_wire_bytes", "bytes", "bytes sent for them in one step", _PHASES),
        FactSpec("mesh.shape", "text", "sizes of the device mesh that all groups and shardings fit, as 2x8"),
        FactSpec("mesh.order", "text", "iota, or the devices in the mesh's row-major order"),
    )

    def run(self, context: Context) -> Section:
        facts = _facts(context)
        return Section(facts, _tables(context), _notes(context, unknown(facts)))


def _tables(context: Context) -> Iterator[Table]:
    yield _listed(context)
    yield by_kind(context)
    yield from (table for table in (by_axis(context), by_phase(context), loops(context)) if table.rows)


def _facts(context: Context) -> dict[str, Value]:
    found = _counted(context)
    facts: dict[str, Value] = {
        "collectives.count": len(found),
        "collectives.operand_bytes": total(c.operand_bytes for c in found),
        "collectives.result_bytes": total(c.result_bytes for c in found),
        "collectives.wire_bytes": total(c.wire_bytes for c in found),
        "collectives.async_count": sum(c.is_async for c in found),
    }
    kinds = _grouped(context, [c.kind for c in context.collectives])
    sizes = _grouped(context, [c.group_size for c in context.collectives])
    phases = _grouped(context, context.phases)
    for kind in COLLECTIVE_KINDS:
        facts |= _figures(f"collectives.{kind}", kinds.get(kind, []))
    for kind in POINT_TO_POINT:
        facts[f"collectives.{kind}.count"] = sum(c.kind == kind for c in context.collectives)
    for size in sorted(size for size in sizes if size is not None):
        facts |= _figures(f"collectives.group_size.{size}", sizes[size])
    for phase in PHASES:
        facts |= _figures(f"collectives.phase.{phase}", phases.get(phase, []))
    for name, figure in _executed_figures(context):
        with_lower_bound(facts, name, figure.value, figure.least or None)
    return facts | {"mesh.shape": context.mesh.shape_text, "mesh.order": context.mesh.order_text}


def _executed_figures(context: Context) -> Iterator[tuple[str, ExecutedFigure]]:
    """The facts of one step by name: of all collectives, of each kind, axis and phase."""
    executed = context.executed
    for kind in POINT_TO_POINT:
        yield f"collectives.{kind}.executed_count", executed.get(("kind", kind), NOT_EXECUTED).count
    axes = sorted({label for group, label in executed if group == "axis" and label})
    groups: list[tuple[str, Group]] = [("collectives", ALL)]
    groups += [(f"collectives.{kind}", ("kind", kind)) for kind in COLLECTIVE_KINDS]
    groups += [(f"collectives.axis.{axis}", ("axis", axis)) for axis in axes]
    groups += [(f"collectives.phase.{phase}", ("phase", phase)) for phase in PHASES]
    for name, group in groups:
        for figure, amount in executed.get(group, NOT_EXECUTED).figures().items():
            yield f"{name}.executed_{figure}", amount


def _notes(context: Context, facts: Sequence[str]) -> list[str]:
    """One line for each fact that is not known, naming the first collective that keeps it from being known."""
    executed = dict(_executed_figures(context))
    notes = []
    for fact in facts:
        if fact.startswith("mesh."):
            notes.append(f"{fact}: {context.mesh.reason}")
        else:
            notes.append(f"{fact}: {executed[fact].reason if fact in executed else _why(fact, context)}")
    return notes


def _counted(context: Context) -> list[Collective]:
    return [c for c in context.collectives if not c.is_point_to_point]


def _grouped(context: Context, labels: Sequence[Label]) -> dict[Label, list[Collective]]:
    """The collectives of each label, without send and recv; there is a label for each of the context's."""
    groups: dict[Label, list[Collective]] = {}
    for collective, label in zip(context.collectives, labels, strict=True):
        if not collective.is_point_to_point:
            groups.setdefault(label, []).append(collective)
    return groups


def _figures(name: str, members: Sequence[Collective]) -> dict[str, Value]:
    return {f"{name}.count": len(members), f"{name}.operand_bytes": total(c.operand_bytes for c in members)}


def _why(fact: str, context: Context) -> str:
    """The first collective whose bytes are not known, and why: it may be one of a kind, a group size or a phase."""
    figure = fact.rpartition(".")[2]
    member = fact.split(".")[-2]
    for collective, phase in zip(context.collectives, context.phases, strict=True):
        belongs = member in {"collectives", collective.kind, str(collective.group_size), phase}
        if belongs and not collective.is_point_to_point and getattr(collective, figure) is None:
            return collective.why_unknown
    return "the text does not say"


class _Occurrence(NamedTuple):
    """A row of the table: a collective, the axes that it runs over, its phase, and how often its computation runs."""

    collective: Collective
    axis: str | None
    phase: str
    runs: int | None


_LISTED = (
    Column("name", detail=1, get=lambda o: o.collective.start.name),
    Column("kind", get=lambda o: o.collective.kind),
    Column("dtype", detail=4, get=lambda o: leaf_dtype(o.collective.result_shape)),
    Column("shape", detail=4, get=lambda o: str(o.collective.result_shape) if o.collective.result_shape else None),
    Column("operand_bytes", "bytes", summed=True, get=lambda o: _in_total(o.collective, o.collective.operand_bytes)),
    Column("result_bytes", "bytes", summed=True, detail=6, get=lambda o: _in_total(o.collective, o.collective.result_bytes)),
    Column("wire_bytes", "bytes", summed=True, detail=3, get=lambda o: _in_total(o.collective, o.collective.wire_bytes)),
    Column("group_size", "number", optional=True, get=lambda o: o.collective.group_size),
    Column("replica_groups", detail=5, get=lambda o: o.collective.replica_groups),
    Column("source_target_pairs", detail=9, get=lambda o: o.collective.source_target_pairs),
    Column("trip_count", "count", detail=5, get=lambda o: o.runs),
    Column("axis", detail=2, optional=True, get=lambda o: o.axis),
    Column("phase", detail=3, get=lambda o: o.phase),
    Column("channel_id", "number", detail=9, optional=True, get=lambda o: o.collective.channel_id),
    Column("reduction", detail=3, get=lambda o: o.collective.reduction),
    Column("is_async", "bool", detail=5, get=lambda o: o.collective.is_async),
    Column("form", detail=9, get=lambda o: o.collective.start.opcode),
    Column("computation", detail=8, get=lambda o: o.collective.start.computation.name),
    Column("op_name", detail=6, get=lambda o: o.collective.origin.op_name),
    Column("source", detail=2, get=lambda o: o.collective.origin.source),
    Column("line", "number", detail=7, get=lambda o: o.collective.start.line),
)


def _in_total(collective: Collective, size: int | None) -> int | None:
    """The bytes that a collective adds to the total of its column: send and recv are in none."""
    return 0 if collective.is_point_to_point else size


def _listed(context: Context) -> Table:
    runs = context.call_graph.executions
    found = [
        _Occurrence(collective, axis, phase, runs.get(collective.inner.computation.name))
        for collective, axis, phase in zip(context.collectives, context.axes, context.phases, strict=True)
    ]
    found.sort(key=lambda o: o.collective.operand_bytes or 0, reverse=True)
    return Table.of("collectives", "Collectives, by operand bytes", _LISTED, found)


def loops(context: Context) -> Table:
    """The loops that collectives run in, with their trip counts."""
    columns = (
        Column("loop", get=lambda loop: loop.instruction.name),
        Column("trip_count", "count", get=lambda loop: loop.trip_count),
        Column("known_from", detail=1, get=lambda loop: loop.source or ""),
        Column("line", "number", detail=2, get=lambda loop: loop.instruction.line),
    )
    return Table.of("loops", "Loops", columns, context.call_graph.loops)


def by_axis(context: Context) -> Table:
    """One row an axis of the mesh, or several together."""
    return _by("axis", "Collectives by mesh axis", context.axes, context)


def by_phase(context: Context) -> Table:
    """One row a phase of the training step."""
    return _by("phase", "Collectives by phase", context.phases, context)


_Group = tuple[Hashable, list[Collective]]


def _operand_bytes(group: _Group) -> int | None:
    return total(c.operand_bytes for c in group[1])


_SUMS = (
    Column("count", "count", summed=True, get=lambda group: len(group[1])),
    Column("async_count", "count", summed=True, detail=2, get=lambda group: sum(c.is_async for c in group[1])),
    Column("operand_bytes", "bytes", summed=True, get=_operand_bytes),
    Column("wire_bytes", "bytes", summed=True, detail=1, get=lambda group: total(c.wire_bytes for c in group[1])),
)


def _by(name: str, title: str, labels: Sequence[str | None], context: Context) -> Table:
    columns = (Column(name, get=lambda group: group[0]), *(column for column in _SUMS if column.name != "async_count"))
    groups = _grouped(context, labels).items()
    return Table.of(f"collectives_by_{name}", title, columns, sorted(groups, key=lambda group: -(_operand_bytes(group) or 0)))


def by_kind(context: Context) -> Table:
    """One row a kind and group size."""
    columns = (
        Column("kind", get=lambda group: group[0][0]),
        Column("group_size", "number", optional=True, get=lambda group: group[0][1]),
        *_SUMS,
    )
    groups = _grouped(context, [(c.kind, c.group_size) for c in context.collectives]).items()
    largest_first = sorted(groups, key=lambda group: (-(_operand_bytes(group) or 0), group[0][0]))
    return Table.of("collectives_by_kind", "Collectives by kind and group", columns, largest_first)

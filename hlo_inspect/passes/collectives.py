"""What communicates: kind, bytes, devices, reduction, source line."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TypeVar

from hlo_inspect.analysis import calls
from hlo_inspect.analysis.collectives import (
    KINDS,
    OPCODES,
    POINT_TO_POINT,
    RESIZING_OPCODES,
    TARGETS,
    Collective,
    leaf_dtype,
)
from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.device_faults import device_faults
from hlo_inspect.analysis.scopes import PHASES
from hlo_inspect.hlo.module import Wants
from hlo_inspect.hlo.shapes import total
from hlo_inspect.passes.base import Pass
from hlo_inspect.passes.loops import loop_findings
from hlo_inspect.report.model import Column, FactSpec, Finding, Row, Table, Value

Label = TypeVar("Label", bound=Hashable)


class Collectives(Pass):
    """One row a logical collective: a start/done pair, an async wrapper and TPU's copies of one all-gather are one each.

    Operand bytes are those of one device; wire bytes what it has to send with a bandwidth-optimal algorithm. Groups follow
    XLA's four group modes. send and recv are listed and counted, but are in no total.
    """

    name = "collectives"
    wants = Wants(opcodes=OPCODES, operands=RESIZING_OPCODES, targets=TARGETS) | calls.WANTS
    specs = (
        FactSpec("collectives.count", "count", "logical collectives, without send and recv"),
        FactSpec("collectives.operand_bytes", "bytes", "bytes of their operands"),
        FactSpec("collectives.result_bytes", "bytes", "bytes of their results"),
        FactSpec("collectives.wire_bytes", "bytes", "bytes that one device has to send for them"),
        FactSpec("collectives.async_count", "count", "those whose start and done are apart"),
        FactSpec("collectives.executed_count", "count", "how often they run in one run of the entry"),
        FactSpec("collectives.executed_operand_bytes", "bytes", "bytes of their operands then"),
        FactSpec("collectives.<kind>.count", "count", "collectives of a kind", frozenset((*KINDS, *POINT_TO_POINT))),
        FactSpec("collectives.<kind>.operand_bytes", "bytes", "bytes of their operands", frozenset(KINDS)),
        FactSpec("collectives.group_size.<n>.count", "count", "collectives over groups of n devices"),
        FactSpec("collectives.group_size.<n>.operand_bytes", "bytes", "bytes of their operands"),
        FactSpec("collectives.phase.<phase>.count", "count", "collectives of a phase of the step", frozenset(PHASES)),
        FactSpec("collectives.phase.<phase>.operand_bytes", "bytes", "bytes of their operands", frozenset(PHASES)),
        FactSpec("mesh.shape", "text", "sizes of the device mesh that all groups and shardings fit, as 2x8"),
        FactSpec("mesh.order", "text", "iota, or the devices in the mesh's row-major order"),
    )

    def facts(self, context: Context) -> dict[str, Value]:
        found = _counted(context)
        facts: dict[str, Value] = {
            "collectives.count": len(found),
            "collectives.operand_bytes": total(c.operand_bytes for c in found),
            "collectives.result_bytes": total(c.result_bytes for c in found),
            "collectives.wire_bytes": total(c.wire_bytes for c in found),
            "collectives.async_count": sum(c.is_async for c in found),
            "collectives.executed_count": context.executed.count,
            "collectives.executed_operand_bytes": context.executed.operand_bytes,
        }
        kinds = _grouped(context, [c.kind for c in context.collectives])
        sizes = _grouped(context, [c.group_size for c in context.collectives])
        phases = _grouped(context, context.phases)
        for kind in KINDS:
            facts |= _figures(f"collectives.{kind}", kinds.get(kind, []))
        for kind in POINT_TO_POINT:
            facts[f"collectives.{kind}.count"] = sum(c.kind == kind for c in context.collectives)
        for size in sorted(size for size in sizes if size is not None):
            facts |= _figures(f"collectives.group_size.{size}", sizes[size])
        for phase in PHASES:
            facts |= _figures(f"collectives.phase.{phase}", phases.get(phase, []))
        return facts | {"mesh.shape": context.mesh.shape_text, "mesh.order": context.mesh.order_text}

    def tables(self, context: Context) -> list[Table]:
        tables = [_listed(context), by_kind(context), by_axis(context), by_phase(context), loops(context)]
        return [table for table in tables if table.rows or table.name in {"collectives", "collectives_by_kind"}]

    def findings(self, context: Context) -> list[Finding]:
        faults = device_faults(context.module, context.collectives, context.device_counts)
        return [
            *(Finding(f.rule, f.severity, f.message, context.module.location(f.line), f.subject, f.bytes) for f in faults),
            *_mesh_findings(context),
            *loop_findings(context),
        ]

    def notes(self, context: Context, unknown: Sequence[str]) -> list[str]:
        """One line for each fact that is not known, naming the first collective that keeps it from being known."""
        notes = []
        for fact in unknown:
            if fact.startswith("mesh."):
                notes.append(f"{fact}: {context.mesh.reason}")
            elif not fact.startswith("collectives.executed"):
                notes.append(f"{fact}: {_why(fact, context)}")
        return [*notes, *context.executed.notes]


def _mesh_findings(context: Context) -> list[Finding]:
    """A mesh of the user's that is not that of the program."""
    note, place = context.mesh.note, context.module.location(context.module.first_line)
    return [Finding("HI205", "warning", note, place)] if note else []


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
            return _why_unknown(collective)
    return "the text does not tell"


def _why_unknown(collective: Collective) -> str:
    place = f"{collective.start.name} (line {collective.start.line})"
    if collective.operand_bytes is None or collective.result_bytes is None:
        return f"the shape of {place} or of its operands cannot be read, or has no size"
    if collective.kind == "ragged-all-to-all":
        return f"{place} sends what its operands say at run time"
    return f"the group size of {place} is not known: {collective.participants.fault or 'the text does not tell'}"


def _listed(context: Context) -> Table:
    columns = (
        Column("name", detail=1),
        Column("kind"),
        Column("dtype", detail=4),
        Column("shape", detail=4),
        Column("operand_bytes", "bytes", summed=True),
        Column("result_bytes", "bytes", summed=True, detail=6),
        Column("wire_bytes", "bytes", summed=True, detail=3),
        Column("group_size", "number", optional=True),
        Column("replica_groups", detail=5),
        Column("source_target_pairs", detail=9),
        Column("trip_count", "count", detail=5),
        Column("axis", detail=2, optional=True),
        Column("phase", detail=3),
        Column("channel_id", "number", detail=9, optional=True),
        Column("reduction", detail=3),
        Column("is_async", "bool", detail=5),
        Column("form", detail=9),
        Column("computation", detail=8),
        Column("op_name", detail=6),
        Column("source", detail=2),
        Column("line", "number", detail=7),
    )
    found = zip(context.collectives, context.axes, context.phases, strict=True)
    largest_first = sorted(found, key=lambda one: one[0].operand_bytes or 0, reverse=True)
    rows = tuple(_row(context, collective, axis, phase) for collective, axis, phase in largest_first)
    return Table("collectives", "Collectives, by operand bytes", columns, rows)


def _row(context: Context, collective: Collective, axis: str | None, phase: str) -> Row:
    start = collective.start
    sizes = (collective.operand_bytes, collective.result_bytes, collective.wire_bytes)
    runs = context.call_graph.executions.get(collective.inner.computation.name)
    return (
        start.name,
        collective.kind,
        leaf_dtype(collective.result_shape),
        str(collective.result_shape) if collective.result_shape else None,
        *((0, 0, 0) if collective.is_point_to_point else sizes),
        collective.group_size,
        collective.replica_groups,
        collective.source_target_pairs,
        runs,
        axis,
        phase,
        collective.channel_id,
        collective.reduction,
        collective.is_async,
        start.opcode,
        start.computation.name,
        collective.origin.op_name,
        collective.origin.source,
        start.line,
    )


def loops(context: Context) -> Table:
    """The loops that collectives run in, with their trip counts."""
    columns = (
        Column("loop"),
        Column("trip_count", "count"),
        Column("known_from", detail=1),
        Column("line", "number", detail=2),
    )
    found = context.call_graph.loops
    rows = tuple((loop.instruction.name, loop.trip_count, loop.source or "", loop.instruction.line) for loop in found)
    return Table("loops", "Loops", columns, rows)


def by_axis(context: Context) -> Table:
    """One row an axis of the mesh, or several together."""
    return _by("axis", "Collectives by mesh axis", context.axes, context)


def by_phase(context: Context) -> Table:
    """One row a phase of the training step."""
    return _by("phase", "Collectives by phase", context.phases, context)


def _by(name: str, title: str, labels: Sequence[str | None], context: Context) -> Table:
    columns = (
        Column(name),
        Column("count", "count", summed=True),
        Column("operand_bytes", "bytes", summed=True),
        Column("wire_bytes", "bytes", summed=True, detail=1),
    )
    rows = [
        (label, len(members), total(c.operand_bytes for c in members), total(c.wire_bytes for c in members))
        for label, members in _grouped(context, labels).items()
    ]
    rows.sort(key=lambda row: -(row[2] or 0))
    return Table(f"collectives_by_{name}", title, columns, tuple(rows))


def by_kind(context: Context) -> Table:
    """One row a kind and group size."""
    columns = (
        Column("kind"),
        Column("group_size", "number", optional=True),
        Column("count", "count", summed=True),
        Column("async_count", "count", summed=True, detail=2),
        Column("operand_bytes", "bytes", summed=True),
        Column("wire_bytes", "bytes", summed=True, detail=1),
    )
    groups = _grouped(context, [(c.kind, c.group_size) for c in context.collectives])
    rows = [
        (
            kind,
            size,
            len(members),
            sum(c.is_async for c in members),
            total(c.operand_bytes for c in members),
            total(c.wire_bytes for c in members),
        )
        for (kind, size), members in groups.items()
    ]
    rows.sort(key=lambda row: (-(row[4] or 0), row[0]))
    return Table("collectives_by_kind", "Collectives by kind and group", columns, tuple(rows))

"""The collectives of a module: kind, bytes, devices, reduction, source line."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import TypeVar

from hlo_inspect.analysis.collectives import KERNEL_WANTS, WANTS, Collective
from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.executed_collectives import NOT_EXECUTED, ExecutedFigure
from hlo_inspect.hlo.opcodes import COLLECTIVE_KINDS, POINT_TO_POINT
from hlo_inspect.hlo.values.op_names import PHASES
from hlo_inspect.hlo.values.shapes import total
from hlo_inspect.passes.base import Pass, unknown, with_lower_bound
from hlo_inspect.passes.collectives import tables
from hlo_inspect.passes.collectives.loops import loops
from hlo_inspect.passes.instruction_rows import call_stacks, differences, phase_notes
from hlo_inspect.report.model import LOWER_BOUND, FactSpec, Section, Table, Value

Label = TypeVar("Label", bound=Hashable)

_GROUPED_KINDS = frozenset(COLLECTIVE_KINDS)
_KINDS = frozenset((*COLLECTIVE_KINDS, *POINT_TO_POINT))
_PHASES = frozenset(PHASES)
_PHASE_FACTS = "collectives.phase."


class Collectives(Pass):
    """Every collective: kind, bytes, groups, mesh axis, reduction, asynchronous or not, how often it runs, phase, source line.

    A start/done pair, an async wrapper and TPU's copies of one all-gather are one collective each. Operand bytes are those of
    one device; wire bytes are what it has to send with a bandwidth-optimal algorithm. Groups follow XLA's four group modes.
    send and recv are listed and counted, but are in no total.
    """

    name = "collectives"
    asks_phases = True
    profile_wants = KERNEL_WANTS
    wants = WANTS
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
        notes = phase_notes(context, (one.inner for one in context.collectives))
        return Section(facts, _tables(context), [*_notes(context, unknown(facts)), *notes])


def _tables(context: Context) -> Iterator[Table]:
    yield tables.sites(context)
    yield tables.groups(context)
    yield tables.by_kind(context)
    others = (
        tables.point_to_point,
        tables.by_axis,
        tables.by_size,
        tables.by_phase,
        loops,
    )
    yield from (table for table in (of(context) for of in others) if table.rows)
    yield from call_stacks(collective.origin for collective in context.collectives)
    yield from differences(context, [one.inner for one in context.collectives], "collectives")


def _facts(context: Context) -> dict[str, Value]:
    found = [c for c in context.collectives if not c.is_point_to_point]
    facts: dict[str, Value] = {
        "collectives.count": len(found),
        "collectives.operand_bytes": total(c.operand_bytes for c in found),
        "collectives.result_bytes": total(c.result_bytes for c in found),
        "collectives.wire_bytes": total(c.wire_bytes for c in found),
        "collectives.async_count": sum(c.is_async for c in found),
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
        with_lower_bound(facts, name, figure.exact, figure.least or None)
    if context.leaves_phases_open:
        facts = _with_open_phases(facts)
    mesh = context.mesh
    is_whole = not mesh.why_partial
    return facts | {
        "mesh.shape": mesh.shape_text if is_whole else None,
        "mesh.order": mesh.order_text if is_whole else None,
    }


def _with_open_phases(facts: dict[str, Value]) -> dict[str, Value]:
    """The facts, those of a phase as lower bounds: --quick leaves the phase of some collectives open."""
    bounded: dict[str, Value] = {}
    for name, value in facts.items():
        if name.startswith(_PHASE_FACTS) and not name.endswith(LOWER_BOUND):
            with_lower_bound(bounded, name, None, value or None)
        else:
            bounded[name] = value
    return bounded


def _executed_figures(context: Context) -> Iterator[tuple[str, ExecutedFigure]]:
    """The facts of one step by name: of all collectives, of each kind, axis and phase."""
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
    """One line for each fact that is not known, naming the first collective that keeps it from being known."""
    executed = dict(_executed_figures(context)) if facts else {}
    notes = []
    for fact in facts:
        if fact.startswith(_PHASE_FACTS) and context.leaves_phases_open:
            notes.append(f"{fact}: --quick leaves out the graph of values, which decides phases that names leave open")
        elif fact.startswith("mesh."):
            notes.append(f"{fact}: {context.mesh.reason or context.mesh.why_partial}")
        else:
            notes.append(f"{fact}: {_why_not_executed(executed[fact]) if fact in executed else _why(fact, context)}")
    return notes


def _why_not_executed(figure: ExecutedFigure) -> str:
    """Of a conditional with what the branches do at least and at most."""
    between = f": {figure.least:,} to {figure.most:,}" if figure.most is not None else ""
    return figure.reason + between


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
    for collective, phase in zip(context.collectives, context.collective_phases, strict=True):
        belongs = member in {"collectives", collective.kind, str(collective.group_size), phase}
        if belongs and not collective.is_point_to_point and getattr(collective, figure) is None:
            return collective.why_unknown
    return "the text does not say"

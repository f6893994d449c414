"""FLOPs and bytes: as XLA counts them, and for one run of the program; with a hardware profile, the time that they take."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from hlo_inspect.analysis import calls
from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.cost.computation import UnknownCall
from hlo_inspect.analysis.cost.model import FIGURES, Figure, Tally
from hlo_inspect.analysis.cost.roofline import (
    bound,
    compute_seconds,
    memory_seconds,
    why_no_compute_time,
    why_no_memory_time,
)
from hlo_inspect.analysis.cost.traversal import ModuleCost
from hlo_inspect.analysis.hardware import HardwareProfile
from hlo_inspect.hlo.module import Wants
from hlo_inspect.passes.base import Pass
from hlo_inspect.passes.loops import loop_findings
from hlo_inspect.report.model import Column, FactSpec, Finding, Row, Table, Value

_AS_XLA: dict[str, Figure] = {
    "cost.flops": "flops",
    "cost.transcendentals": "transcendentals",
    "cost.bytes_accessed": "bytes",
    "cost.matmul_flops": "matmul_flops",
}
_EXECUTED: dict[str, Figure] = {
    "cost.executed_flops": "flops",
    "cost.executed_matmul_flops": "matmul_flops",
    "cost.executed_bytes_accessed": "bytes",
}
_FIGURES = (
    Column("flops", "flops", summed=True),
    Column("transcendentals", "count", summed=True, detail=3),
    Column("matmul_flops", "flops", summed=True, detail=1),
    Column("bytes_accessed", "bytes", summed=True),
)
_TIMES = (Column("compute_s", "seconds", summed=True), Column("memory_s", "seconds", summed=True))
_BOUND = Column("bound", detail=2, optional=True)
_LATER = ("time.collective_s", "time.exposed_collective_s", "time.step_s")
"""Times that need a model of collectives."""


class Cost(Pass):
    """What the program computes and moves, on one device where its shapes are those of one.

    FLOPs are counted two for a multiply-add; a transcendental (exponential, square root, power, …) is counted apart. Bytes
    are what instructions read and write: a fusion its parameters and results, with what it slices or updates in place
    counted as that part. XLA's own figures (`HloCostAnalysis`) count a loop once and custom calls not at all, and are
    rounded as XLA rounds, in float32. Those of one run are exact: they count each loop as often as it runs, and the custom
    calls that are known to be matrix multiplications or bring an estimate. They are not known where a trip count is not,
    nor behind a conditional. Times are those of the plain roofline: FLOPs at the device's dense peak of their type, bytes at
    its memory bandwidth.
    """

    name = "cost"
    wants = calls.WANTS | Wants(graph=True, checked=True)
    specs = (
        FactSpec("cost.flops", "flops", "FLOPs as XLA counts them, in float32: a loop once, custom calls not at all"),
        FactSpec("cost.transcendentals", "count", "transcendental functions as XLA counts them"),
        FactSpec("cost.bytes_accessed", "bytes", "bytes read and written as XLA counts them"),
        FactSpec("cost.matmul_flops", "flops", "FLOPs of matrix multiplications, custom calls included, a loop once"),
        FactSpec("cost.executed_flops", "flops", "FLOPs of one run"),
        FactSpec("cost.executed_matmul_flops", "flops", "FLOPs of matrix multiplications of one run"),
        FactSpec("cost.executed_bytes_accessed", "bytes", "bytes read and written in one run"),
        FactSpec("cost.unknown_custom_calls", "count", "custom calls whose cost is not known"),
        FactSpec("time.compute_s", "seconds", "time of one run's FLOPs at the profile's peaks"),
        FactSpec("time.memory_s", "seconds", "time of one run's bytes at the profile's memory bandwidth"),
        FactSpec("time.collective_s", "seconds", "time of one run's collectives"),
        FactSpec("time.exposed_collective_s", "seconds", "the part of it that nothing hides"),
        FactSpec("time.step_s", "seconds", "time of one run"),
    )

    def facts(self, context: Context) -> dict[str, Value]:
        cost, profile = context.cost, context.profile
        facts: dict[str, Value] = {name: cost.as_xla.total(figure) for name, figure in _AS_XLA.items()}
        facts |= {name: cost.opcodes.total(figure) for name, figure in _EXECUTED.items()}
        facts["cost.unknown_custom_calls"] = len(cost.unknown_calls)
        facts["time.compute_s"] = compute_seconds(cost.opcodes, profile) if profile else None
        facts["time.memory_s"] = memory_seconds(cost.opcodes, profile) if profile else None
        return facts | dict.fromkeys(_LATER)

    def tables(self, context: Context) -> list[Table]:
        cost, profile = context.cost, context.profile
        return [
            _table("cost", "Cost of one run by opcode", "opcode", cost.opcodes, profile),
            _table("cost_by_fusion_kind", "Cost of one run by kind of fusion", "kind", cost.by("kind"), profile),
            by_phase(context),
            _table("cost_by_source", "Cost of one run by line of source", "source", cost.by("source"), profile),
            _unknown_calls(cost.unknown_calls),
        ]

    def findings(self, context: Context) -> list[Finding]:
        """Custom calls that are known for what they are, but whose configuration cannot be used; and faults of loops."""
        broken = (
            Finding("HI503", "warning", f"custom call {call.name}: {call.fault}", context.module.location(call.line), call.name)
            for call in context.cost.broken_calls
        )
        return [*loop_findings(context), *broken]

    def notes(self, context: Context, unknown: Sequence[str]) -> list[str]:
        cost = context.cost
        reasons = {name: cost.as_xla.why_unknown(figure) for name, figure in _AS_XLA.items()}
        reasons |= {name: cost.opcodes.why_unknown(figure) for name, figure in _EXECUTED.items()}
        reasons |= _why_no_times(cost, context.profile)
        notes = [f"{name}: {reason}" for name, reason in reasons.items() if reason]
        if cost.unknown_calls:
            targets = ", ".join(f"{target} ({count:,})" for target, count in _by_target(cost.unknown_calls).most_common())
            notes.append(f"cost.unknown_custom_calls: no figure counts {targets}")
        if context.module.unparsed_lines:
            notes.append(f"cost.flops: {context.module.unparsed_lines:,} lines could not be read, no figure counts them")
        return notes


def by_phase(context: Context) -> Table:
    """One row a phase of the training step."""
    return _table("cost_by_phase", "Cost of one run by phase", "phase", context.cost.by("phase"), context.profile)


def _why_no_times(cost: ModuleCost, profile: HardwareProfile | None) -> dict[str, str]:
    if profile is None:
        return dict.fromkeys(("time.compute_s", "time.memory_s", *_LATER), "a time needs a hardware profile: --profile NAME")
    reasons = dict.fromkeys(_LATER, "the time of collectives is not modelled yet")
    reasons["time.compute_s"] = why_no_compute_time(cost.opcodes, profile)
    reasons["time.memory_s"] = why_no_memory_time(cost.opcodes, profile)
    return reasons


def _table(name: str, title: str, label: str, tally: Tally, profile: HardwareProfile | None) -> Table:
    """One row a label; rows add up to the facts of one run. What has most FLOPs comes first.

    By opcode nothing is bound by anything: the work of a fusion stands with the opcodes inside, its bytes with the fusion.
    """
    times = () if profile is None else _TIMES if label == "opcode" else (*_TIMES, _BOUND)
    columns = (Column(label), *_FIGURES, *times)
    rows = [(text, *_figures(one), *_times(one, profile)) for text, one in sorted(tally.by_label(), key=lambda item: item[0])]
    return Table(name, title, columns, tuple(sorted((row[: len(columns)] for row in rows), key=_weight)))


def _figures(tally: Tally) -> Iterable[int | None]:
    return (tally.total(figure) for figure in FIGURES)


def _times(tally: Tally, profile: HardwareProfile | None) -> Row:
    if profile is None:
        return ()
    compute, memory = compute_seconds(tally, profile), memory_seconds(tally, profile)
    return compute, memory, bound(compute, memory)


def _weight(row: Row) -> tuple[int, ...]:
    """For the order only: an unknown figure counts nothing."""
    return tuple(-value if isinstance(value, int) else 0 for value in row[1 : 1 + len(FIGURES)])


def _by_target(calls: tuple[UnknownCall, ...]) -> Counter[str]:
    return Counter(call.target for call in calls)


def _unknown_calls(calls: tuple[UnknownCall, ...]) -> Table:
    """One row a target, with the line of its first call."""
    columns = (Column("target"), Column("count", "count", summed=True), Column("line", "number"))
    first = {call.target: call.line for call in reversed(calls)}
    rows = tuple((target, count, first[target]) for target, count in _by_target(calls).most_common())
    return Table("unknown_custom_calls", "Custom calls that no figure counts", columns, rows)

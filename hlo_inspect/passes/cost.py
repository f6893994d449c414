"""FLOPs and bytes: as XLA counts them, and for one run of the program; with a hardware profile, the time that they take."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from hlo_inspect.analysis import calls
from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.cost.computation import UnknownCall
from hlo_inspect.analysis.cost.figures import FIGURES, Figure, Tally
from hlo_inspect.analysis.cost.module_cost import ModuleCost
from hlo_inspect.analysis.cost.roofline import (
    bound,
    compute_seconds,
    memory_seconds,
    why_no_compute_time,
    why_no_memory_time,
)
from hlo_inspect.analysis.hardware import HardwareProfile
from hlo_inspect.hlo.wants import Wants
from hlo_inspect.passes.base import Pass
from hlo_inspect.report.model import Column, FactSpec, Section, Table, Value

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
_Labelled = tuple[str, Tally]
_FIGURES = (
    Column("flops", "flops", summed=True, get=lambda one: one[1].total("flops")),
    Column("transcendentals", "count", summed=True, detail=3, get=lambda one: one[1].total("transcendentals")),
    Column("matmul_flops", "flops", summed=True, detail=1, get=lambda one: one[1].total("matmul_flops")),
    Column("bytes_accessed", "bytes", summed=True, get=lambda one: one[1].total("bytes")),
)
_LATER = ("time.collective_s", "time.exposed_collective_s", "time.step_s")
"""Times that need a model of collectives."""


class Cost(Pass):
    """FLOPs and bytes by opcode, kind of fusion, phase and source line; with --profile also time.

    The figures are those of one device where the module's shapes are those of one. FLOPs are counted two for a multiply-add; a
    transcendental (exponential, square root, power, …) is counted apart. Bytes are what instructions read and write: a fusion
    its parameters and results, with what it slices or updates in place counted as that part. XLA's own figures
    (`HloCostAnalysis`) count a loop once and custom calls not at all, and are rounded as XLA rounds, in float32. Those of one
    run are exact: they count each loop as often as it runs, and the custom calls that are known to be matrix multiplications
    or bring an estimate. They are not known where a trip count is not, nor in the branches of a conditional. Times are those
    of the plain roofline: FLOPs at the device's dense peak of their type, bytes at its memory bandwidth.
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

    def run(self, context: Context) -> Section:
        cost, profile = context.cost, context.profile
        facts: dict[str, Value] = {name: cost.as_xla.total(figure) for name, figure in _AS_XLA.items()}
        facts |= {name: cost.step[figure].exact for name, figure in _EXECUTED.items()}
        facts["cost.unknown_custom_calls"] = len(cost.unknown_calls)
        facts["time.compute_s"] = compute_seconds(cost.opcodes, profile) if profile else None
        facts["time.memory_s"] = memory_seconds(cost.opcodes, profile) if profile else None
        return Section(facts | dict.fromkeys(_LATER), _tables(context), _notes(context))


def _tables(context: Context) -> Iterator[Table]:
    cost, profile = context.cost, context.profile
    yield _table("cost", "Cost of one run by opcode", "opcode", cost.opcodes, profile)
    yield _table("cost_by_fusion_kind", "Cost of one run by kind of fusion", "kind", cost.by("kind"), profile)
    yield by_phase(context)
    yield _table("cost_by_source", "Cost of one run by line of source", "source", cost.by("source"), profile)
    yield _unknown_calls(cost.unknown_calls)


def _notes(context: Context) -> list[str]:
    cost = context.cost
    reasons = {name: cost.as_xla.why_unknown(figure) for name, figure in _AS_XLA.items()}
    reasons |= {name: cost.step[figure].reason for name, figure in _EXECUTED.items() if not cost.step[figure].is_exact}
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

    By opcode nothing is bound by anything: the work of a fusion is counted with the opcodes inside, its bytes with the fusion.
    """
    times = _times(profile) if profile is not None else ()
    shown = [column for column in times if column.name != "bound" or label != "opcode"]
    by_label = sorted(tally.by_label(), key=lambda one: one[0])
    return Table.of(name, title, (Column(label, get=lambda one: one[0]), *_FIGURES, *shown), sorted(by_label, key=_weight))


def _times(profile: HardwareProfile) -> tuple[Column, ...]:
    def bound_by(one: _Labelled) -> str | None:
        return bound(compute_seconds(one[1], profile), memory_seconds(one[1], profile))

    return (
        Column("compute_s", "seconds", summed=True, get=lambda one: compute_seconds(one[1], profile)),
        Column("memory_s", "seconds", summed=True, get=lambda one: memory_seconds(one[1], profile)),
        Column("bound", detail=2, optional=True, get=bound_by),
    )


def _weight(one: _Labelled) -> tuple[int, ...]:
    """For the order only: an unknown figure counts nothing."""
    return tuple(-(one[1].total(figure) or 0) for figure in FIGURES)


def _by_target(calls: tuple[UnknownCall, ...]) -> Counter[str]:
    return Counter(call.target for call in calls)


def _unknown_calls(calls: tuple[UnknownCall, ...]) -> Table:
    """One row a target, with the line of its first call."""
    first = {call.target: call.line for call in reversed(calls)}
    columns = (
        Column("target", get=lambda one: one[0]),
        Column("count", "count", summed=True, get=lambda one: one[1]),
        Column("line", "number", get=lambda one: first[one[0]]),
    )
    return Table.of("unknown_custom_calls", "Custom calls that no figure counts", columns, _by_target(calls).most_common())

"""FLOPs and bytes: as XLA counts them, and for one run of the program; with a hardware profile, the time that they take."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from hlo_inspect.analysis.collectives import KERNEL_WANTS
from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.cost.custom_calls.step import attention_of_step, total_of_step
from hlo_inspect.analysis.cost.figures import EXACT_UP_TO, Figure, Tally
from hlo_inspect.analysis.cost.roofline import NOT_KNOWN, percent, rates_taken
from hlo_inspect.analysis.hardware import HardwareProfile
from hlo_inspect.analysis.phases import phases
from hlo_inspect.graph.calls import Bounds
from hlo_inspect.hlo.values.op_names import RECOMPUTE
from hlo_inspect.passes import time_facts
from hlo_inspect.passes.base import Pass, with_lower_bound
from hlo_inspect.passes.cost_tables import by_phase, cost_table, share_notes
from hlo_inspect.passes.origins import phase_notes
from hlo_inspect.report.model import FactSpec, Section, Table, Value, number_of

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


class Cost(Pass):
    """FLOPs and bytes by opcode, kind of fusion, phase and source line; with --profile also time.

    The figures are those of one device where the module's shapes are those of one. FLOPs are counted two for a multiply-add; a
    transcendental (exponential, square root, power, …) is counted apart. Bytes are what instructions read and write: a fusion
    its parameters and results, with what it slices or updates in place counted as that part. XLA's own figures
    (`HloCostAnalysis`) count a loop once and custom calls not at all, and are rounded as XLA rounds, in float32. Those of a
    step are exact: they count each loop as often as it runs, and the custom calls that are known to be matrix multiplications
    or bring an estimate. They are not known where a trip count is not, nor in the branches of a conditional. Times are those
    of the plain roofline: FLOPs at the device's dense peak of their type, bytes at its memory bandwidth.
    """

    name = "cost"
    includes = ("custom-calls",)
    uses_profile = True
    wants = KERNEL_WANTS | phases.WANTS
    specs = (
        FactSpec("cost.flops", "flops", "FLOPs as XLA counts them, in float32: a loop once, custom calls not at all"),
        FactSpec("cost.transcendentals", "count", "transcendental functions as XLA counts them"),
        FactSpec("cost.bytes_accessed", "bytes", "bytes read and written as XLA counts them"),
        FactSpec("cost.matmul_flops", "flops", "FLOPs of matrix multiplications, custom calls included, a loop once"),
        FactSpec("cost.executed_flops", "flops", "FLOPs of one run"),
        FactSpec("cost.executed_matmul_flops", "flops", "FLOPs of matrix multiplications of one run"),
        FactSpec("cost.executed_bytes_accessed", "bytes", "bytes read and written in a step"),
        FactSpec("cost.attention_flops", "flops", "FLOPs of attention kernels of one run"),
        FactSpec("cost.unknown_custom_calls", "count", "custom calls whose cost is not known"),
        *time_facts.SPECS,
    )

    def run(self, context: Context) -> Section:
        cost = context.cost
        facts: dict[str, Value] = {}
        notes: dict[str, str] = {}
        for name, figure in _AS_XLA.items():
            amount = cost.as_xla.bounds(figure)
            with_lower_bound(facts, name, amount.exact, amount.least or None)
            is_rounded = figure != "matmul_flops" and amount.is_exact and amount.least > EXACT_UP_TO
            notes[name] = _ROUNDING if is_rounded and not cost.has_xla_order else amount.reason
        for name, figure in _EXECUTED.items():
            amount = cost.step[figure]
            with_lower_bound(facts, name, amount.exact, amount.least or None)
            notes[name] = "" if amount.is_exact else step_reason(amount)
        attention = attention_of_step(context.cost.calls)
        with_lower_bound(facts, "cost.attention_flops", attention.exact, attention.least)
        notes["cost.attention_flops"] = "" if attention.is_exact else attention.reason
        facts["cost.unknown_custom_calls"] = len(cost.unknown_calls)
        times = time_facts.time_facts(context)
        facts |= times.facts
        notes |= times.reasons
        reasons = [f"{name}: {reason}" for name, reason in notes.items() if reason]
        return Section(facts, _tables(context), _notes(context, reasons))


def _notes(context: Context, reasons: Sequence[str]) -> Iterator[str]:
    cost = context.cost
    yield from time_facts.profile_notes(context)
    yield from reasons
    yield from share_notes(cost.opcodes, context.on_machine.kernel_times)
    yield from _divided(context)
    yield from _rates(cost.opcodes, context.on_machine.profile)
    yield from _recomputed(context)
    yield from _uncounted(context)
    yield from phase_notes(context, (kernel.instruction for kernel in context.kernels.found))


def _tables(context: Context) -> Iterator[Table]:
    cost, times = context.cost, context.on_machine.kernel_times
    yield cost_table("cost", "Cost of one step by opcode", "opcode", cost.opcodes, times)
    if not context.request.skips_graph_phases:
        yield by_phase(context)
    yield cost_table("cost_by_scope", "Cost of one step by scope of the program", "scope", cost.by("scope"), times)
    yield cost_table("cost_by_source", "Cost of one step by line of source", "source", cost.by("source"), times)
    yield cost_table("cost_by_fusion_kind", "Cost of one step by kind of fusion", "kind", cost.by("kind"), times)


_ROUNDING = "operands are left out, and with them the order in which XLA adds: its sum may be rounded otherwise"


def step_reason(amount: Bounds) -> str:
    """Why a figure of one run is not known, and how much more than its lower bound it is at most, where that has a limit."""
    if amount.greatest is None or not amount.least:
        return amount.reason
    more = amount.greatest / amount.least - 1
    return f"{amount.reason}: the cheapest is counted, the dearest makes {percent(more)} more"


def _divided(context: Context) -> list[str]:
    """Over how many devices the work is split, in a text whose shapes are those of all of them."""
    times = context.on_machine.kernel_times
    if times is None or times.devices == 1:
        return []
    regions = ", and those of regions that are written for one device too" if context.shapes_are == "mixed" else ""
    return [
        f"time.compute_s: the FLOPs of the whole program over {times.devices:,} devices, as its shardings split it{regions}"
    ]


def _rates(tally: Tally, profile: HardwareProfile | None) -> list[str]:
    """Which rate was taken where the profile states none of a unit."""
    taken = rates_taken(tally, profile) if profile is not None else {}
    named = {unit: f"of {unit}" if unit else "whose unit or type is not known" for unit in taken}
    return [
        f"time.compute_s: FLOPs {named[unit]} at the rate of {figure}{_WHY.get(unit, '')}" for unit, figure in taken.items()
    ]


_WHY = {
    "matmul.f32": ", as XLA rounds f32 there unless operand_precision or the algorithm asks for more",
    NOT_KNOWN: ", the fastest",
}


def _recomputed(context: Context) -> list[str]:
    """How many of the FLOPs a formula for model FLOPs does not count, since people compare with those: what is computed again
    for the backward pass, by phase, and the scores within attention kernels.
    """
    by_phase = {phase: tally.bounds("flops").least for phase, tally in context.cost.by("phase").by_label()}
    again = by_phase.get(RECOMPUTE, 0) + total_of_step(context.cost.calls, "recomputed_flops").least
    flops = context.cost.step["flops"].exact
    if not again or not flops or context.request.skips_graph_phases or context.module.problems.hold_a_cut:
        return []
    share, rest = percent(again / flops), flops - again
    return [f"cost.executed_flops: at least {share} of these FLOPs are recomputation; without it there are at most {rest:,}"]


def _uncounted(context: Context) -> list[str]:
    counts, lines = Counter(call.target for call in context.cost.unknown_calls), context.module.unparsed_lines
    notes = []
    if counts:
        targets = ", ".join(f"{target or 'calls without a target'} ({count:,})" for target, count in counts.most_common())
        notes.append(f"cost.unknown_custom_calls: the work of {targets} is not known and in no figure")
    if lines:
        notes.append(f"cost.flops: {number_of(lines, 'line')} that cannot be read {'is' if lines == 1 else 'are'} in no figure")
    return notes

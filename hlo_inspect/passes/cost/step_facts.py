"""The time of a step as facts and in words, which are the same whichever command gives them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.time.kernel_times import no_bytes_reason
from hlo_inspect.figure import Figure, Quantity, least, reason
from hlo_inspect.passes.base import FactSheet
from hlo_inspect.report.model import Amount, FactSpec, Parts, sentence
from hlo_inspect.report.table import Unit

if TYPE_CHECKING:
    from hlo_inspect.analysis.time.step_times import StepTimes

_NO_PROFILE = "times need a hardware profile: give --profile NAME"

_FACTS: tuple[tuple[str, Unit, str], ...] = (
    ("compute_s", "seconds", "time of all FLOPs of a step at the profile's peaks"),
    ("memory_s", "seconds", "time of all bytes of a step at the profile's memory bandwidth"),
    ("collective_s", "seconds", "time of all collectives of a step, each alone on its links"),
    ("kernels_s", "seconds", "bound of the kernels of a step, without collectives"),
    ("exposed_collective_s", "seconds", "exposed time of collectives, at bounds"),
    ("step_s", "seconds", "bound of a step"),
    ("estimate_kernels_s", "seconds", "estimate of the kernels of a step, without collectives"),
    ("estimate_exposed_collective_s", "seconds", "exposed time of collectives, at estimates"),
    ("estimate_step_s", "seconds", "estimate of a step"),
    ("compiler_cycles", "count", "the compiler's own estimates of the kernels of a step"),
    ("mfu_bound", "share", "upper bound of MFU: FLOPs without recomputation / (bound of the step × peak)"),
)
_EXPECTED = FactSpec(
    "time.expected_collective_s",
    "seconds",
    "time.collective_s once XLA's collective passes ran",
    absent=_NO_PROFILE,
)
SPECS = tuple(FactSpec(f"time.{name}", unit, about, absent=_NO_PROFILE) for name, unit, about in _FACTS)
_NAMES = tuple(spec.name for spec in SPECS if spec.unit == "seconds")
"""In the order of `StepTimes`."""
SPECS = (*SPECS, _EXPECTED)


def put_times(context: Context, facts: FactSheet) -> None:
    """Set every fact of `SPECS`; without a profile all are absent."""
    times, kernel_times = context.on_machine.step_times, context.on_machine.kernel_times
    if times is None or kernel_times is None:
        facts.values.update(dict.fromkeys(spec.name for spec in SPECS))
        return
    from hlo_inspect.analysis.time.step_times import compiler_cycles
    from hlo_inspect.analysis.time.utilization import model_seconds, utilization_bound

    for name, time in zip(_NAMES, times, strict=True):
        facts.put(name, time, unit="seconds")
    facts.put(_EXPECTED.name, context.on_machine.expected_collective_seconds, unit=_EXPECTED.unit)
    cycles = compiler_cycles(context.kernels.launched, kernel_times)
    facts.put("time.compiler_cycles", cycles)
    if not isinstance(cycles, Figure) and inferred_clock(context):
        facts.notes.append(f"time.compiler_cycles: {inferred_clock(context)}")
    model = model_seconds(context.cost, kernel_times)
    utilization = None if context.request.skips_graph_phases else utilization_bound(model, times.step)
    facts.put("time.mfu_bound", utilization, _no_utilization_reason(context, model), unit="share")


def _no_utilization_reason(context: Context, model: Quantity) -> str:
    if context.request.skips_graph_phases:
        return "--quick skips the graph of values, which finds recomputation"
    return reason(model) or "the bound of the step is unknown"


def profile_notes(context: Context) -> list[str]:
    """Return the notes of the choice of the profile."""
    profile, chosen_by, notes = context.on_machine.profile_choice
    if profile is None:
        return []
    recognized = [] if context.on_machine.profile_is_named else [f"profile: {profile.name}, recognized by {chosen_by}"]
    return [*recognized, *(f"profile: {note}" for note in notes)]


def inferred_clock(context: Context) -> str:
    """Return a note if no document states the clock that turns the compiler's cycles into seconds, else ""."""
    profile = context.on_machine.profile
    if profile is None or profile.clock is None or not profile.clock_is_inferred:
        return ""
    clock = f"{profile.clock / 1e9:g} GHz"
    return (
        f"the compiler's cycles are converted to seconds by an inferred clock of {profile.name}, {clock}: no document states it"
    )


def step_words(context: Context, times: StepTimes) -> Parts:
    """Yield bound and estimate of a step and the hardware; without a schedule the range that overlap leaves open."""
    if context.on_machine.known_step is not None:
        bound, estimate = Amount(least(times.step), "seconds"), Amount(times.estimate_step, "seconds")
        yield from sentence("bound {}, estimate {}", bound, estimate)
        yield from _machine_words(context)
        return
    alone = (times.compute, times.memory, times.collectives)
    text = "{} or more if FLOPs, bytes and collectives overlap; {} or more if nothing overlaps"
    amounts = (Amount(time, "seconds") for time in (least(times.step), sum(least(seconds) for seconds in alone)))
    yield from sentence(text, *amounts)
    yield from _machine_words(context)
    yield "; the module is not scheduled"


def _machine_words(context: Context) -> Parts:
    profile, chosen_by = context.on_machine.profile, context.on_machine.profile_choice.chosen_by
    if profile is not None:
        yield f", on {profile.name}"
        yield f" (recognized by {chosen_by})" if chosen_by and not chosen_by.startswith("--") else ""
        yield "".join(f", {change}" for change in profile.changes)


def bytes_name(context: Context) -> str:
    """Return the heading of bytes: XLA's fusions do away with many of those that a text before fusion has."""
    return "bytes_as_written" if no_bytes_reason(context.module) else "bytes_accessed"

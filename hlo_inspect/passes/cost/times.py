"""The facts about times, which are the same whichever command gives them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.cost.roofline import Seconds
from hlo_inspect.analysis.time.step_times import compiler_cycles
from hlo_inspect.analysis.time.utilization import model_seconds, utilization_bound
from hlo_inspect.passes.base import with_lower_bound
from hlo_inspect.report.model import FactSpec, Unit, Value

_NO_PROFILE = "a time needs a hardware profile: --profile NAME"

_FACTS: tuple[tuple[str, Unit, str], ...] = (
    ("compute_s", "seconds", "time of one run's FLOPs at the profile's peaks"),
    ("memory_s", "seconds", "time of one run's bytes at the profile's memory bandwidth"),
    ("collective_s", "seconds", "time of one run's collectives, each alone on its links"),
    ("kernels_s", "seconds", "time of one run's kernels without collectives, at least"),
    ("exposed_collective_s", "seconds", "what of the collectives nothing hides, at least times"),
    ("step_s", "seconds", "time of one run, at least"),
    ("estimate_kernels_s", "seconds", "time of one run's kernels by the model"),
    ("estimate_exposed_collective_s", "seconds", "what of the collectives nothing hides, by the model"),
    ("estimate_step_s", "seconds", "time of one step by the model"),
    ("compiler_cycles", "count", "the compiler's own estimates of one run's kernels"),
    ("mfu_bound", "share", "share of the peak that the model's FLOPs reach at most"),
)
SPECS = tuple(FactSpec(f"time.{name}", unit, about, absent=_NO_PROFILE) for name, unit, about in _FACTS)
_NAMES = tuple(spec.name for spec in SPECS if spec.unit == "seconds")
"""In the order of `StepTimes`."""


class TimeFacts(NamedTuple):
    """Facts with the reasons why they are unknown."""

    facts: Mapping[str, Value]
    reasons: Mapping[str, str]


def time_facts(context: Context) -> TimeFacts:
    """Return every fact of `SPECS`; without a profile all are unknown, and no reason is given."""
    facts: dict[str, Value] = {spec.name: None for spec in SPECS}
    times, kernel_times = context.on_machine.step_times, context.on_machine.kernel_times
    if times is None or kernel_times is None:
        return TimeFacts(facts, {})
    reasons: dict[str, str] = {}
    for name, time in zip(_NAMES, times, strict=True):
        with_lower_bound(facts, name, time.exact, time.least or None)
        reasons[name] = time.reason
    cycles = compiler_cycles(context.kernels.launched, kernel_times)
    with_lower_bound(facts, "time.compiler_cycles", cycles.exact, cycles.least or None)
    reasons["time.compiler_cycles"] = inferred_clock(context) if cycles.is_exact else cycles.reason
    model = model_seconds(context.cost, kernel_times)
    if not context.request.skips_graph_phases:
        facts["time.mfu_bound"] = utilization_bound(model, times.step)
    if facts["time.mfu_bound"] is None:
        reasons["time.mfu_bound"] = _no_utilization_reason(context, model)
    return TimeFacts(facts, {name: reason for name, reason in reasons.items() if reason})


def _no_utilization_reason(context: Context, model: Seconds) -> str:
    if context.request.skips_graph_phases:
        return "--quick leaves out the graph of values, which tells recomputation"
    return model.reason or "how long the step takes is unknown"


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
        f"the compiler's cycles are turned into seconds by an inferred clock of {profile.name}, {clock}: no document states it"
    )

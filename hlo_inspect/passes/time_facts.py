"""The facts about times, which are the same whichever command gives them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.cost.roofline import Seconds
from hlo_inspect.analysis.time.step_times import bytes_time, compiler_cycles, flops_time, kernels_bound, kernels_estimate
from hlo_inspect.passes.base import with_lower_bound
from hlo_inspect.report.model import FactSpec, Value

_NO_PROFILE = "a time needs a hardware profile: --profile NAME"

SPECS = (
    FactSpec("time.compute_s", "seconds", "time of one run's FLOPs at the profile's peaks", absent=_NO_PROFILE),
    FactSpec("time.memory_s", "seconds", "time of one run's bytes at the profile's memory bandwidth", absent=_NO_PROFILE),
    FactSpec("time.collective_s", "seconds", "time of one run's collectives", absent=_NO_PROFILE),
    FactSpec("time.kernels_s", "seconds", "time of one run's kernels without collectives, at least", absent=_NO_PROFILE),
    FactSpec("time.exposed_collective_s", "seconds", "the part of collectives that nothing hides", absent=_NO_PROFILE),
    FactSpec("time.step_s", "seconds", "time of one run, at least", absent=_NO_PROFILE),
    FactSpec("time.estimate_kernels_s", "seconds", "time of one run's kernels by the model", absent=_NO_PROFILE),
    FactSpec("time.compiler_cycles", "count", "the compiler's own estimates of one run's kernels", absent=_NO_PROFILE),
)


class TimeFacts(NamedTuple):
    """Facts with the reasons why they are not known."""

    facts: Mapping[str, Value]
    reasons: Mapping[str, str]


def time_facts(context: Context) -> TimeFacts:
    """Every fact of `SPECS`; without a profile nothing is known, and no reason is given."""
    facts: dict[str, Value] = {spec.name: None for spec in SPECS}
    reasons: dict[str, str] = {}
    for name, time in _times(context).items():
        with_lower_bound(facts, name, time.exact, time.least or None)
        reasons[name] = time.reason
    if context.kernel_times is not None:
        cycles = compiler_cycles(context.kernels.found, context.kernel_times)
        with_lower_bound(facts, "time.compiler_cycles", cycles.exact, cycles.least or None)
        reasons["time.compiler_cycles"] = "" if cycles.is_exact else cycles.reason
    return TimeFacts(facts, {name: reason for name, reason in reasons.items() if reason})


def _times(context: Context) -> dict[str, Seconds]:
    times = context.kernel_times
    if times is None:
        return {}
    not_modelled = Seconds(0.0, "the time of collectives is not modelled yet")
    kernels = kernels_bound(context.own_kernels, times)
    return {
        "time.compute_s": flops_time(context.cost.opcodes, times),
        "time.memory_s": bytes_time(context.cost.opcodes, times),
        "time.collective_s": not_modelled,
        "time.kernels_s": kernels,
        "time.exposed_collective_s": not_modelled,
        "time.step_s": Seconds(kernels.least, "the time of collectives is not in it"),
        "time.estimate_kernels_s": kernels_estimate(context.own_kernels, times),
    }

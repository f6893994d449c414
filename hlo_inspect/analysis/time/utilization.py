"""The share of a device's peak that a step can reach at most: model FLOPs utilization (MFU).

Counted are the FLOPs that a model needs: matrix multiplications without those that are computed again for the backward pass,
and of attention what static masks let through; as in appendix B of "PaLM: Scaling Language Modeling with Pathways" (2022).
Each at the peak of its unit and type.
"""

from __future__ import annotations

from collections.abc import Sequence

from hlo_inspect.analysis.cost.custom_calls.step import StepCall, recomputed_of_step
from hlo_inspect.analysis.cost.figures import FIGURES, MASKED
from hlo_inspect.analysis.cost.module_cost import ModuleCost
from hlo_inspect.analysis.cost.roofline import Seconds, rate
from hlo_inspect.analysis.op_names import RECOMPUTE
from hlo_inspect.analysis.time.kernel_times import KernelTimes

_MATMUL_FLOPS = FIGURES.index("matmul_flops")


def model_seconds(cost: ModuleCost, calls: Sequence[StepCall], times: KernelTimes) -> Seconds:
    """The time of the FLOPs that count, at the peaks."""
    tally = cost.by("phase")
    reason = tally.why_unknown("matmul_flops")
    seconds, fastest = 0.0, 0.0
    for key, row in tally.rows.items():
        if key.label == RECOMPUTE or key.unit == MASKED or not row[_MATMUL_FLOPS]:
            continue
        found = rate(key.unit, times.profile)
        if found is None:
            return Seconds(0.0, f"the profile {times.profile.name} states no rate for {key.unit}")
        seconds += row[_MATMUL_FLOPS] / found[0]
        fastest = max(fastest, found[0])
    again = recomputed_of_step(calls).least / fastest if fastest else 0.0
    return Seconds((seconds - again) / times.devices, reason)


def utilization_bound(model: Seconds, step: Seconds) -> float | None:
    """The share of the peak that the step can reach at most; `None` where that is not known."""
    if model.reason or not step.least:
        return None
    return model.least / step.least

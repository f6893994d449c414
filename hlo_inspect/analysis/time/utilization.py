"""Busy time of each resource in one step, its longest parts, and the bound of model FLOPs utilization (MFU).

MFU counts the FLOPs that a model needs: matrix multiplications without recompute, and the part of attention that static masks
let through. See appendix B of "PaLM: Scaling Language Modeling with Pathways" (2022). Each counts at the peak of its unit and
type.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from hlo_inspect.analysis.collectives.logical_collectives import Collective
from hlo_inspect.analysis.cost.custom_calls.step_calls import total_of_step
from hlo_inspect.analysis.cost.figures import FIGURES, MASKED, Tally
from hlo_inspect.analysis.cost.module_cost import ModuleCost
from hlo_inspect.analysis.cost.roofline import engine_times, rate
from hlo_inspect.analysis.time.collective_times import ALL, CollectiveTime
from hlo_inspect.analysis.time.kernel_times import HOST_LINK, KernelTimes
from hlo_inspect.analysis.time.program_steps import FROM_HOST, TO_HOST
from hlo_inspect.analysis.time.step_times import bytes_time, flops_time
from hlo_inspect.analysis.time.timelines import TimedStep
from hlo_inspect.figure import Quantity, at_least, between, known_part, least, reason
from hlo_inspect.hlo.values.op_names import RECOMPUTE

MATRIX_UNIT, VECTOR_UNIT, MEMORY = "matrix unit", "vector unit", "memory"


def resource_seconds(
    work: Tally,
    times: KernelTimes,
    step: TimedStep,
    collectives: Iterable[tuple[Collective, CollectiveTime]],
    levels: Mapping[str, Quantity],
) -> dict[str, Quantity]:
    """Return the seconds of each resource.

    Resources are units and memory, each level of links, each axis of a torus, and the link to the host.
    """
    engines, gap = engine_times(work, times.profile), reason(flops_time(work, times))
    busy_times = {
        MATRIX_UNIT: known_part(engines.get("matmul", 0.0) / times.devices, gap),
        VECTOR_UNIT: known_part(engines.get("vector", 0.0) / times.devices, gap),
        MEMORY: bytes_time(work, times),
    }
    toruses = {name for name, link in times.profile.links.items() if link.topology == "torus"}
    busy_times |= {level: time for level, time in levels.items() if level not in (ALL, *toruses)}
    axes: defaultdict[str, float] = defaultdict(float)
    for collective, time in collectives:
        if time.level in toruses:
            for stream in time.streams:
                axes[f"{time.level} {stream}" if stream != time.level else stream] += step.site_of(collective).busy
    copies: defaultdict[str, float] = defaultdict(float)
    for position, streams in step.work.streams.items():
        for stream in streams:
            copies[stream] += step.timeline.site(position).busy
    alone = 0.0  # the time of kernels that read or write the host's memory themselves, one after the other
    for position, runs in step.computed.items():
        kernel = step.work.kernels.get(position)
        if kernel is not None and (kernel_time := times.for_kernel(kernel)).bound_by == HOST_LINK:
            alone += runs * kernel_time.bound_s
    busy_times |= {axis: known_part(seconds, reason(levels[ALL])) for axis, seconds in axes.items()}
    busy_times[HOST_LINK] = known_part(max(copies[TO_HOST], copies[FROM_HOST], alone), step.timeline.reason)
    return {name: time for name, time in busy_times.items() if least(time)}


_MATMUL_FLOPS = FIGURES.index("matmul_flops")


def model_seconds(cost: ModuleCost, times: KernelTimes) -> Quantity:
    """Return the time of the FLOPs that MFU counts, at the peaks."""
    tally = cost.tally("phase")
    gap = reason(tally.bounds("matmul_flops"))
    seconds, fastest = 0.0, 0.0
    for key, row in tally.rows.items():
        if key.label == RECOMPUTE or key.unit == MASKED or not row[_MATMUL_FLOPS]:
            continue
        peak = rate(key.unit, times.profile)
        if peak is None:
            return at_least(0.0, f"the profile {times.profile.name} states no rate for {key.unit}")
        seconds += row[_MATMUL_FLOPS] / peak[0]
        fastest = max(fastest, peak[0])
    again = least(total_of_step(cost.calls, "recomputed_flops")) / fastest if fastest else 0.0
    return known_part((seconds - again) / times.devices, gap)


def executed_seconds(cost: ModuleCost, times: KernelTimes) -> Quantity:
    """Return the time of all executed FLOPs of matrix multiplications, at the peaks."""
    tally = cost.tally("phase")
    seconds = 0.0
    for key, row in tally.rows.items():
        peak = rate(key.unit, times.profile) if row[_MATMUL_FLOPS] else None
        seconds += row[_MATMUL_FLOPS] / peak[0] if peak is not None else 0.0
    return known_part(seconds / times.devices, reason(tally.bounds("matmul_flops")))


def utilization_bound(model: Quantity, step: Quantity) -> Quantity | None:
    """Return the largest share of the peak that the step can reach; less if the step is longer; None if unknown."""
    if reason(model) or not least(step):
        return None
    most = least(model) / least(step)
    return between(0.0, most, reason(step)) if reason(step) else most


def longest_parts(parts: Mapping[str, Quantity]) -> list[str]:
    """Return the parts of a step that take time, the bottleneck first."""
    return sorted((name for name, time in parts.items() if least(time) > 0), key=lambda name: (-least(parts[name]), name))

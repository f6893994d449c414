"""How long each resource of a machine is busy in one run of a program, each as if nothing else took time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from hlo_inspect.analysis.collectives import Collective
from hlo_inspect.analysis.cost.figures import Tally
from hlo_inspect.analysis.cost.roofline import Seconds, engine_times
from hlo_inspect.analysis.time.collective_times import CollectiveTime
from hlo_inspect.analysis.time.collective_totals import ALL
from hlo_inspect.analysis.time.kernel_times import KernelTimes
from hlo_inspect.analysis.time.program_steps import FROM_HOST, TO_HOST
from hlo_inspect.analysis.time.step_times import bytes_time, flops_time
from hlo_inspect.analysis.time.timelines import TimedStep

MATRIX_UNIT, VECTOR_UNIT, MEMORY, HOST_LINK = "matrix unit", "vector unit", "memory", "host link"


def resource_seconds(
    work: Tally,
    times: KernelTimes,
    step: TimedStep,
    collectives: Iterable[tuple[Collective, CollectiveTime]],
    levels: Mapping[str, Seconds],
) -> dict[str, Seconds]:
    """Seconds by resource: units and memory, each level of links, of a torus each axis, and the link to the host."""
    engines, gap = engine_times(work, times.profile), flops_time(work, times).reason
    found = {
        MATRIX_UNIT: Seconds(engines.get("matmul", 0.0) / times.devices, gap),
        VECTOR_UNIT: Seconds(engines.get("vector", 0.0) / times.devices, gap),
        MEMORY: bytes_time(work, times),
    }
    toruses = {name for name, link in times.profile.links.items() if link.topology == "torus"}
    found |= {level: time for level, time in levels.items() if level not in (ALL, *toruses)}
    axes: defaultdict[str, float] = defaultdict(float)
    for collective, time in collectives:
        if time.level in toruses:
            for stream in time.streams:
                axes[f"{time.level} {stream}" if stream != time.level else stream] += step.site_of(collective).busy
    busy = {stream: sum(step.timeline.site(at).busy for at in places) for stream, places in _by_stream(step).items()}
    found |= {axis: Seconds(seconds, levels[ALL].reason) for axis, seconds in axes.items()}
    found[HOST_LINK] = Seconds(max(busy.get(TO_HOST, 0.0), busy.get(FROM_HOST, 0.0)), step.timeline.reason)
    return {name: time for name, time in found.items() if time.least}


def _by_stream(step: TimedStep) -> dict[str, list[tuple[str, int, str]]]:
    """The places of asynchronous copies by their stream."""
    places: dict[str, list[tuple[str, int, str]]] = {}
    for at, streams in step.work.streams.items():
        for stream in streams:
            places.setdefault(stream, []).append(at)
    return places
